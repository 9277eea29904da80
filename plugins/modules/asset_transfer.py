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

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.transfer.assets.run import AssetTransfer, read_listed
from ..module_utils.transfer.receive import TransferError
from ..module_utils.transfer.spool import python_of_the_host

STEPS = ["start", "queue", "allow", "go", "feed", "wait", "end"]


def step(params: dict[str, Any], transfer: AssetTransfer) -> dict[str, Any]:
    """Do what is requested."""
    result: dict[str, Any] = {"changed": False}
    if params["step"] == "start":
        result["gathered"] = transfer.start(read_listed(params["listed"]), params["started_from"])
    elif params["step"] == "allow":
        transfer.allow(params["part"], python_of_the_host())
    elif params["step"] == "go":
        transfer.go(params["part"])
    elif params["step"] == "feed":
        result["needed"] = transfer.feed(params["archive"] or "")
    elif params["step"] == "wait":
        reported = transfer.wait(params["seconds"])
        empty: dict[str, Any] = {"received": {}, "resumed": 0, "seconds": 0.0, "notes": [], "trouble": ""}
        result.update({key: reported.get(key, value) for key, value in empty.items()})
        result["over"] = reported["over"]
        result["progress"] = {**transfer.progress(), "state": str(reported.get("state") or "")}
        # A node that only gives is as it was.
        result["changed"] = reported.get("state") == "done" and bool(reported.get("changed"))
    elif params["step"] == "queue":
        result["running"] = transfer.queue(params["seconds"])
    else:
        transfer.end(params["keep"])
    return result


def main() -> None:
    """Do one step."""
    module = AnsibleModule(
        argument_spec={
            "step": {"type": "str", "choices": STEPS, "required": True},
            "run": {"type": "str", "required": True},
            "place": {"type": "path", "required": True},
            "root": {"type": "path", "required": True},
            "node": {"type": "str", "required": True},
            "account": {"type": "str", "default": "root"},
            "started_from": {"type": "str", "default": ""},
            # The action plugin keeps these three.
            "manifests": {"type": "dict", "default": {}},
            "cache": {"type": "str"},
            "bundled": {"type": "bool", "default": False},
            "listed": {"type": "path"},
            "archive": {"type": "path"},
            "part": {"type": "dict", "default": {}},
            "seconds": {"type": "int", "default": 50},
            "keep": {"type": "bool", "default": False},
        },
        required_if=[("step", "start", ["listed"]), ("step", "allow", ["part"]), ("step", "go", ["part"])],
        supports_check_mode=False,
    )
    params = module.params
    if not params["run"].isalnum():
        module.fail_json(msg=f"asset_transfer: run: {params['run']!r}. Use letters and digits only.")
    transfer = AssetTransfer(params["place"], params["run"], params["node"], params["account"], params["root"])
    try:
        result = step(params, transfer)
    except TransferError as error:
        module.fail_json(msg=f"{params['node']}: {error}")
    except OSError as error:
        module.fail_json(msg=f"{params['node']}: asset_transfer: {error}. Use become.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
