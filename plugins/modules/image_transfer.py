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
  - Each node reads from the one before it over the sshd of the host, while that one is still receiving, and loads layer
    by layer. Only layers that a node lacks travel. The filter P(swarmspeed.cluster.image_chain#filter) plans it.
  - The work is done by a process in the background, so that no number of Ansible's forks decides how many nodes take
    part at a time.
  - Every part is named by its SHA-256, and counts only when it has it. A part that differs is fetched once more, from
    the holder. When a node that gives is lost, the one before it gives, up to the holder. What has come stays for the
    next run where a transfer fails.
  - The key of a node is of this one transfer. It may do nothing but read the spool of the nodes before it, expires, and
    is removed at the end.
options:
  step:
    description:
      - V(start) takes the lock, starts the process and gathers what is there. If another transfer holds the lock,
        V(queue) waits until it ends. V(allow) authorizes the nodes that come after this one to read, and when all nodes
        have done so V(go) instructs the process. V(wait) waits until this node has the image. V(end) ends the process
        and removes what the transfer has left.
    type: str
    choices: [start, queue, allow, go, wait, end]
    required: true
  run:
    description: A word that distinguishes this transfer from others.
    type: str
    required: true
  place:
    description: Folder of the spool, for this alone. It is made, for root only, and removed. The one above it is made
      for root only as well, where it is missing.
    type: path
    required: true
  node:
    description: Name of this node.
    type: str
    required: true
  account:
    description: Account by which other nodes reach this one. Unless it is root, it may use sudo without a password.
    type: str
    default: root
  image:
    description: Name and tag of the image. For V(start).
    type: str
    default: ''
  started_from:
    description: Which controller started it, for the message on any other controller that tries at the same time.
    type: str
    default: ''
  part:
    description: What P(swarmspeed.cluster.image_chain#filter) says of this node. For V(allow) and V(go).
    type: dict
    default: {}
  seconds:
    description:
      - How long V(wait) and V(queue) wait at most. If that is too short, RV(over) is false or RV(running) not empty.
      - With V(queue) the action plugin waits 1800 seconds unless this is set.
    type: int
    default: 50
  keep:
    description: Whether V(end) keeps what has come of the image, for a next run to go on from.
    type: bool
    default: false
notes:
  - Run it with privileges (become).
  - Engines with a graph driver and engines with containerd's image store may be mixed. Ids of one image differ between
    the two, so it is known by a digest of what a container gets, C(content).
  - The image is tagged when the engine has all of it. A load that fails leaves nothing tagged.
  - On a node that gives an image with layers compressed by zstd, the program C(zstd) is needed.
attributes:
  check_mode:
    support: none
    description:
      - Half a transfer says nothing. Compare C(docker.image_contents) of M(swarmspeed.cluster.node_facts) to know
        whether there would be one.
  diff_mode:
    support: none
    description: Layers are no text.
  idempotent:
    support: partial
    description: The module transfers only on request.
    details:
      - Layers that are there do not travel again. Only V(wait), on a node that got the image, reports a change.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
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

- name: Let those that come after read; the same with step go follows
  swarmspeed.cluster.image_transfer:
    step: allow
    run: "{{ run }}"
    place: /srv/transfer
    node: "{{ inventory_hostname }}"
    part: "{{ (gathered | swarmspeed.cluster.image_chain('node1', image, addresses, {})).parts[inventory_hostname] }}"
  vars:
    image: team/train:3
    nodes: "{{ ansible_play_hosts }}"
    gathered: "{{ dict(nodes | zip(nodes | map('extract', hostvars, ['started', 'gathered']))) }}"

- name: Wait
  swarmspeed.cluster.image_transfer:
    step: wait
    run: "{{ run }}"
    place: /srv/transfer
    node: "{{ inventory_hostname }}"
  register: waited
  until: waited.over
  retries: 100

- name: End
  swarmspeed.cluster.image_transfer:
    step: end
    run: "{{ run }}"
    place: /srv/transfer
    node: "{{ inventory_hostname }}"
"""

RETURN = r"""
gathered:
  description:
    - What this node has, and what there is room for, or what keeps it from taking part. C(store) is V(graph) or
      V(containerd), C(image) what it has of the image, and C(images) the layers of all images by their ids.
  returned: with step start
  type: dict
running:
  description: Who runs the other transfer, with C(pid), C(since) and C(started_from). Empty if none runs.
  returned: with step queue
  type: dict
over:
  description: Whether this node's part is over, whether it succeeded or failed.
  returned: with step wait
  type: bool
progress:
  description: How far it is. C(bytes) that this node is to get, about; C(spooled), those it has; and C(state), such as
    V(receiving). On a terminal a line of it is printed every ten seconds.
  returned: with step wait
  type: dict
trouble:
  description: What went wrong. Empty where nothing did.
  returned: with step wait
  type: str
received:
  description: Bytes that came, by the node they came from.
  returned: with step wait
  type: dict
resumed:
  description: Bytes that an earlier transfer had left.
  returned: with step wait
  type: int
seconds:
  description: How long it took, loading included.
  returned: with step wait
  type: float
notes:
  description: What went wrong on the way and was repaired.
  returned: with step wait
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError, SocketEngine
from ansible_collections.swarmspeed.cluster.plugins.module_utils.image_transfer.receive import TransferError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.image_transfer.run import Transfer
from ansible_collections.swarmspeed.cluster.plugins.module_utils.image_transfer.spool import python_of_the_host


def step(params: dict[str, Any], transfer: Transfer) -> dict[str, Any]:
    """Do what is requested."""
    result: dict[str, Any] = {"changed": False}
    if params["step"] == "start":
        result["gathered"] = transfer.start(params["image"], params["started_from"])
    elif params["step"] == "allow":
        transfer.allow(params["part"], python_of_the_host())
    elif params["step"] == "go":
        transfer.go(params["part"])
    elif params["step"] == "wait":
        reported = transfer.wait(params["seconds"])
        empty: dict[str, Any] = {"received": {}, "resumed": 0, "seconds": 0.0, "notes": [], "trouble": ""}
        result.update({key: reported.get(key, value) for key, value in empty.items()})
        result["over"] = reported["over"]
        result["progress"] = {**transfer.progress(), "state": str(reported.get("state") or "")}
        # A node that gives has no seconds: it is as it was.
        result["changed"] = bool(reported.get("state") == "done" and "seconds" in reported)
    elif params["step"] == "queue":
        result["running"] = transfer.queue(params["seconds"])
    else:
        transfer.end(params["keep"])
    return result


def main() -> None:
    """Do one step."""
    module = AnsibleModule(
        argument_spec={
            "step": {"type": "str", "choices": ["start", "queue", "allow", "go", "wait", "end"], "required": True},
            "run": {"type": "str", "required": True},
            "place": {"type": "path", "required": True},
            "node": {"type": "str", "required": True},
            "account": {"type": "str", "default": "root"},
            "image": {"type": "str", "default": ""},
            "started_from": {"type": "str", "default": ""},
            "part": {"type": "dict", "default": {}},
            "seconds": {"type": "int", "default": 50},
            "keep": {"type": "bool", "default": False},
        },
        required_if=[("step", "start", ["image"]), ("step", "allow", ["part"]), ("step", "go", ["part"])],
        supports_check_mode=False,
    )
    params = module.params
    if not params["run"].isalnum():
        module.fail_json(msg=f"image_transfer: run: {params['run']!r}. Use letters and digits only.")
    transfer = Transfer(params["place"], params["run"], params["node"], params["account"], SocketEngine())
    try:
        result = step(params, transfer)
    except (EngineError, TransferError) as error:
        module.fail_json(msg=f"{params['node']}: {error}")
    except OSError as error:
        module.fail_json(msg=f"{params['node']}: image_transfer: {error}. Use become.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
