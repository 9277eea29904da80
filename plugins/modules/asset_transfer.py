#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One node's part of distributing models and data sets: started, instructed, fed, waited for, ended."""

from __future__ import annotations

DOCUMENTATION = r"""
module: asset_transfer
short_description: Distribute models and data sets from the controller to many nodes
version_added: 0.1.0
description:
  - The first node receives the files that it lacks from the controller; each other node reads from the node before it
    over the host's sshd, while that one is still receiving. The filter P(swarmspeed.cluster.asset_chain#filter) plans
    it.
  - A process in the background does the work, with keys as M(swarmspeed.cluster.image_transfer) has them. If a sending
    node is lost, the one before it takes over. What was received stays for the next run.
  - Every file is named by its SHA-256, and is accepted only if it has that digest. New files are put in place in one
    step, once all of them have been received.
  - Implemented as an action plugin with a module of the same name, which runs on the node.
options:
  step: {type: str, choices: [start, queue, allow, go, feed, wait, end], required: true, description: "V(start) takes
      the lock, starts the process and gathers what is there; V(queue) waits until another transfer ends. V(allow)
      authorizes the nodes that come after this one to read, then V(go) instructs the process. V(feed) sends the first
      node what it lacks. V(wait) waits until this node has all files. V(end) ends the process and removes what the
      transfer has left."}
  run: {type: str, required: true, description: A word that distinguishes this transfer from others.}
  place: {type: path, required: true, description: "Folder for keys and state of the transfer, used for nothing else. It
      is created for root only, and removed."}
  root: {type: path, required: true, description: Folder of the folders of models and data sets.}
  node: {type: str, required: true, description: Name of this node.}
  account: {type: str, default: root, description: "Account by which other nodes reach this one. Unless it is root, it
      may use sudo without a password."}
  started_from: {type: str, default: '', description: "Which controller started it, for messages on another one."}
  manifests: {type: dict, default: {}, description: "The controller's lists of files by name, as
      M(swarmspeed.cluster.asset_sources) keeps them. For V(start) and V(feed), in the action plugin only."}
  cache: {type: str, description: "The controller's cache. For V(feed), in the action plugin only."}
  bundled: {type: bool, default: false, description: "Whether O(cache) is part of an offline bundle. For V(feed), in the
      action plugin only."}
  listed: {type: path, description: File with these lists on the node. Given by the action plugin.}
  archive: {type: path, description: Piece of files on the node. Given by the action plugin.}
  part: {type: dict, default: {}, description: This node's part of what P(swarmspeed.cluster.asset_chain#filter)
      returns. For V(allow) and V(go).}
  seconds: {type: int, default: 50, description: "How long V(wait) and V(queue) wait at most; for V(queue) the action
      plugin's default is 1800. If that is too short, RV(over) is false or RV(running) not empty."}
  keep: {type: bool, default: false, description: "Whether V(end) keeps what was received, so that the next run can
      resume."}
notes:
  - Run it with privileges (become).
attributes:
  check_mode: {support: none, description: Half a transfer shows nothing. Compare C(assets) of
      M(swarmspeed.cluster.node_facts) to know whether there would be one.}
  diff_mode: {support: none, description: Models are not text.}
  idempotent: {support: partial, description: The module transfers only on request., details: Files that a node has are
      not sent again. Only V(wait) reports a change.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Start
  swarmspeed.cluster.asset_transfer:
    step: start
    run: "{{ run }}"
    place: /srv/transfer
    root: /srv/models
    node: "{{ inventory_hostname }}"
    manifests: {qwen: ~/.cache/swarmspeed/assets/manifests/0123456789abcdef0123456789abcdef.json}
  register: started
"""

RETURN = r"""
gathered: {returned: with step start, type: dict, description: "How much this node lacks, the free space on it, and how
    other nodes reach it; or what keeps it from taking part."}
needed: {returned: with step feed, type: dict, description: "SHA-256 of the files that this node lacks, and how many
    bytes of each are there."}
running: {returned: with step queue, type: dict, description: "Which other transfer runs, with C(pid), C(since) and
    C(started_from). Empty if none runs."}
over: {returned: with step wait, type: bool, description: "Whether this node's part has ended, successfully or not."}
progress: {returned: with step wait, type: dict, description: "Progress of this node. C(bytes), the total that it needs;
    C(spooled), those it has; and C(state)."}
trouble: {returned: with step wait, type: str, description: What went wrong. Empty if nothing did.}
received: {returned: with step wait, type: dict, description: "Bytes that came from other nodes, by node."}
resumed: {returned: with step wait, type: int, description: Bytes that were left from an earlier transfer.}
seconds: {returned: with step wait, type: float, description: How long it took.}
notes: {returned: with step wait, type: list, elements: str, description: What went wrong during the transfer and was
    recovered from.}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.transfer.assets.run import AssetTransfer
from ..module_utils.transfer.steps import OPTIONS, REQUIRED_IF, run_step

STEPS = ["start", "queue", "allow", "go", "feed", "wait", "end"]


def main() -> None:
    """Do one step."""
    module = AnsibleModule(
        argument_spec={
            **OPTIONS,
            "step": {"type": "str", "choices": STEPS, "required": True},
            "root": {"type": "path", "required": True},
            # The action plugin keeps these three.
            "manifests": {"type": "dict", "default": {}},
            "cache": {"type": "str"},
            "bundled": {"type": "bool", "default": False},
            "listed": {"type": "path"},
            "archive": {"type": "path"},
        },
        required_if=[("step", "start", ["listed"]), *REQUIRED_IF],
        supports_check_mode=False,
    )
    run_step(module, "asset_transfer", AssetTransfer, root=module.params["root"])


if __name__ == "__main__":
    main()
