# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the modules that transfer something have in common: options, and the steps of one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .receive import TransferError
from .spool import SpoolTransfer

OPTIONS: dict[str, Any] = {
    "run": {"type": "str", "required": True},
    "place": {"type": "path", "required": True},
    "node": {"type": "str", "required": True},
    "account": {"type": "str", "default": "root"},
    "started_from": {"type": "str", "default": ""},
    "part": {"type": "dict", "default": {}},
    "seconds": {"type": "int", "default": 50},
    "keep": {"type": "bool", "default": False},
}
REQUIRED_IF = (("step", "allow", ["part"]), ("step", "go", ["part"]))


def step(params: Mapping[str, Any], transfer: SpoolTransfer) -> dict[str, Any]:
    """Do what is requested."""
    result: dict[str, Any] = {"changed": False}
    if params["step"] == "start":
        result["gathered"] = transfer.start(params)
    elif params["step"] == "allow":
        transfer.allow(params["part"])
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


def run_step(module: Any, title: str, transfer: Callable[..., SpoolTransfer], **more: Any) -> None:
    """Do one step of a transfer that is made of the common options and these, and end the module."""
    params = module.params
    if not params["run"].isalnum():
        module.fail_json(msg=f"{title}: run: {params['run']!r}. Use letters and digits only.")
    try:
        one = transfer(params["place"], params["run"], params["node"], params["account"], **more)
        result = step(params, one)
    except TransferError as error:
        module.fail_json(msg=f"{params['node']}: {error}")
    except OSError as error:
        module.fail_json(msg=f"{params['node']}: {title}: {error}. Use become.")
    module.exit_json(**result)
