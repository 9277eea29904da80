#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One node's part of giving an image to many: started, instructed, waited for, ended."""

from __future__ import annotations

DOCUMENTATION = r"""
module: image_transfer
short_description: Distribute an image from one node to many, in about the time of one transfer
version_added: 0.1.0
description:
  - Each node reads from the node before it over the host's sshd, while that one is still receiving, and loads the image
    layer by layer. Only layers that a node lacks are sent. The filter P(swarmspeed.cluster.image_chain#filter) plans
    it.
  - A process in the background does the work, so the number of Ansible's forks does not limit how many nodes take part.
  - Every part is named by its SHA-256, and is accepted only if it has that digest. If a sending node is lost, the one
    before it takes over. What was received stays for the next run.
  - Each node has a key for this transfer alone. It can only read the spool of the nodes before it, expires, and is
    removed at the end.
options:
  step: {type: str, choices: [start, queue, allow, go, wait, end], required: true, description: "V(start) takes the
      lock, starts the process and gathers what is there; V(queue) waits until another transfer ends. V(allow)
      authorizes the nodes that come after this one to read, then V(go) instructs the process. V(wait) waits until this
      node has the image. V(end) ends the process and removes everything that the transfer created."}
  run: {type: str, required: true, description: A word that distinguishes this transfer from others.}
  place: {type: path, required: true, description: "Folder of the spool, used for nothing else. It is created for root
      only, and removed. Its parent is created for root only, too, if it is missing."}
  node: {type: str, required: true, description: Name of this node.}
  account: {type: str, default: root, description: "Account by which other nodes reach this one. Unless it is root, it
      must be allowed to use sudo without a password."}
  image: {type: str, default: '', description: Name and tag of the image. For V(start).}
  started_from: {type: str, default: '', description: "Which controller started it, for messages on another one."}
  part: {type: dict, default: {}, description: This node's part of what P(swarmspeed.cluster.image_chain#filter)
      returns. For V(allow) and V(go).}
  seconds: {type: int, default: 50, description: "How long V(wait) and V(queue) wait at most; for V(queue) the action
      plugin's default is 1800. If that is too short, RV(over) is false or RV(running) not empty."}
  keep: {type: bool, default: false, description: "Whether V(end) keeps what was received of the image, so that the next
      run can resume."}
notes:
  - Run it with privileges (become).
  - Engines with a graph driver and engines with containerd's image store may be mixed. Ids of one image differ between
    the two, so the image is identified by C(content), a digest of what a container gets.
  - The image is tagged once the engine has all of it. A load that fails leaves nothing tagged.
  - A node that sends an image with layers compressed by zstd needs the program C(zstd).
attributes:
  check_mode: {support: none, description: Half a transfer shows nothing. Compare C(docker.image_contents) of
      M(swarmspeed.cluster.node_facts) to know whether there would be one.}
  diff_mode: {support: none, description: Layers are not text.}
  idempotent: {support: partial, description: The module transfers only on request., details: "Layers that a node has
      are not sent again. Only V(wait) reports a change, on a node that received the image."}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Start
  swarmspeed.cluster.image_transfer:
    step: start
    run: "{{ run }}"
    place: /srv/transfer
    node: "{{ inventory_hostname }}"
    image: team/train:3
  register: started
"""

RETURN = r"""
gathered: {returned: with step start, type: dict, description: "What this node has and the free space on it, or what
    keeps it from taking part. C(store) is V(graph) or V(containerd), C(image) what it has of the image, and C(images)
    the layers of all images by their ids."}
running: {returned: with step queue, type: dict, description: "Which other transfer runs, with C(pid), C(since) and
    C(started_from). Empty if none runs."}
over: {returned: with step wait, type: bool, description: "Whether this node's part has ended, successfully or not."}
progress: {returned: with step wait, type: dict, description: "Progress of this node. C(bytes), the approximate total
    that it needs; C(spooled), those it has; and C(state), such as V(receiving). On a terminal it is printed every ten
    seconds."}
trouble: {returned: with step wait, type: str, description: What went wrong. Empty if nothing did.}
received: {returned: with step wait, type: dict, description: "Bytes received, by the node they came from."}
resumed: {returned: with step wait, type: int, description: Bytes that were left from an earlier transfer.}
seconds: {returned: with step wait, type: float, description: "How long it took, loading included."}
notes: {returned: with step wait, type: list, elements: str, description: What went wrong during the transfer and was
    recovered from.}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.engine.api_io import SocketEngine
from ..module_utils.transfer.image.run import Transfer
from ..module_utils.transfer.steps import OPTIONS, REQUIRED_IF, run_step


def main() -> None:
    """Do one step."""
    module = AnsibleModule(
        argument_spec={
            **OPTIONS,
            "step": {"type": "str", "choices": ["start", "queue", "allow", "go", "wait", "end"], "required": True},
            "image": {"type": "str", "default": ""},
        },
        required_if=[("step", "start", ["image"]), *REQUIRED_IF],
        supports_check_mode=False,
    )
    run_step(module, "image_transfer", Transfer, engine=SocketEngine())


if __name__ == "__main__":
    main()
