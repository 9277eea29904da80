# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A training job as a resource: its specification, its state, what a call has to do about it, and how it is shown."""

from __future__ import annotations

import hashlib
import json
import os.path
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ..common.secret_names import secret_variables
from .record import JOB_NAME

ACTIVE = ("starting", "running")
LOST_AFTER = 30.0
"""Seconds without a heartbeat after which a job counts as lost; the supervisor writes one every 2 s."""


class JobError(Exception):
    """A job cannot be as requested. The text says what, where and what to do."""


@dataclass(frozen=True)
class Container:
    """What the engine says about a container. ``mounts`` maps a path inside to the path on the host."""

    id: str
    started_at: str
    running: bool
    mounts: dict[str, str]

    @classmethod
    def parse(cls, inspected: dict[str, Any]) -> Container:
        """Read the answer of GET /containers/ID/json."""
        return cls(
            id=inspected["Id"],
            started_at=inspected["State"]["StartedAt"],
            running=bool(inspected["State"]["Running"]) and not inspected["State"].get("Restarting", False),
            mounts={mount["Destination"]: mount.get("Source", "") for mount in inspected.get("Mounts") or []},
        )

    def source_of(self, path: str) -> str | None:
        """The host's path behind a path in the container; ``None`` when it is not on a mount."""
        holders = [inside for inside in self.mounts if path == inside or path.startswith(inside.rstrip("/") + "/")]
        if not holders:
            return None
        inside = max(holders, key=len)
        return os.path.normpath(f"{self.mounts[inside]}/{os.path.relpath(path, inside)}")


def check_name(name: str) -> None:
    if not JOB_NAME.fullmatch(name):
        raise JobError(
            f"name: {name!r} is not a name for a job. "
            "Use 1 to 63 of a-z, 0-9, '.', '_' and '-', the first one a letter or digit."
        )


def build_spec(
    *,
    command: list[str],
    chdir: str | None,
    environment: dict[str, Any],
    world_size: int,
    nodes: int,
    fingerprint: dict[str, Any],
    ds_config: str | None = None,
    launcher: str = "deepspeed",
    transport: str = "pdsh",
    runtime: str = "container",
    members: list[dict[str, Any]] | None = None,
    secret_file: str | None = None,
    visible_devices: str | None = None,
    env_file: str | None = None,
) -> dict[str, Any]:
    """Everything that makes two jobs of one name the same job."""
    if not command or not command[0].strip():
        raise JobError("command: empty. Give the launcher and its arguments as a list.")
    if nodes < 1 or world_size < nodes:
        raise JobError(
            f"world_size {world_size} and nodes {nodes} do not fit: each node needs at least one rank, and there is "
            "at least one node. Add up the slots of the nodes in the hostfile."
        )
    if chdir is not None and not chdir.startswith("/"):
        raise JobError(f"chdir: {chdir!r} is not absolute. Give a path as the container sees it.")
    if ds_config is not None and not ds_config.startswith("/"):
        raise JobError(f"ds_config: {ds_config!r} is not absolute. Give a path as the container sees it.")
    check_variables(environment, forwarded=transport == "pdsh" and len(members or []) > 1)
    _check_members(members or [], launcher, transport, world_size=world_size, nodes=nodes, secret_file=secret_file)
    return {
        "command": list(command),
        "chdir": chdir,
        "environment": {key: str(value) for key, value in environment.items()},
        "world_size": world_size,
        "nodes": nodes,
        "fingerprint": fingerprint,
        "ds_config": ds_config,
        "launcher": launcher,
        "transport": transport,
        "runtime": runtime,
        "members": [
            {"name": item["name"], "address": item["address"], "slots": list(item["slots"])} for item in members or []
        ],
        "secret_file": secret_file,
        "visible_devices": visible_devices,
        "env_file": env_file,
    }


def check_shrink(params: Mapping[str, Any]) -> None:
    """A job that may go on with fewer nodes is started again, with a command that does not fix their number."""
    if not params.get("shrink"):
        return
    if params["resume"] != "auto":
        raise JobError("shrink: true is for a job that is started again. Set resume: auto, or shrink: false.")
    wanted = {"deepspeed": "@hostfile@", "torchrun": "@nodes@"}.get(params["launcher"])
    needed = [word for word in (wanted, "@ds_config@" if params["ds_config"] else None) if word]
    lacking = [word for word in needed if word not in params["command"]]
    if lacking or not params["members"]:
        raise JobError(
            f"shrink: true needs {' and '.join(lacking) if lacking else 'members'}"
            + (" as an argument of the command" if lacking else "")
            + ", as nodes and batch change when a node is left out. Add that, or set shrink: false."
        )


def check_variables(environment: Mapping[str, Any], *, forwarded: bool) -> None:
    """Each can be a variable of a process. ``forwarded``: pdsh hands them to other nodes. Raises ``JobError``."""
    hidden = secret_variables(environment)
    for key, value in environment.items():
        if not key or "=" in key or "\0" in key:
            raise JobError(f"environment: {key!r} cannot be the name of a variable.")
        if isinstance(value, (dict, list)) or value is None or "\0" in str(value):
            raise JobError(f"environment: {key} must be text or a number. Quote it.")
        if forwarded:
            _check_forwarded(key, str(value), key in hidden)


def _check_forwarded(key: str, value: str, secret: bool) -> None:
    """pdsh hands variables over as ``export KEY=VALUE;`` on its command line, through a shell."""
    if secret:
        raise JobError(
            f"environment: {key} looks like a secret, and transport pdsh would show it in the process list of every "
            "node. Use transport direct, or give it in nccl_env_environment, which travels by file."
        )
    if re.search(r"[\s\"'$`\\;&|<>()#]", value):
        raise JobError(
            f"environment: {key} has a character that the shell behind pdsh would change. Use transport direct, or "
            "give it in nccl_env_environment, which travels by file."
        )


def _check_members(
    members: list[dict[str, Any]],
    launcher: str,
    transport: str,
    *,
    world_size: int,
    nodes: int,
    secret_file: str | None,
) -> None:
    names = [item.get("name") for item in members]
    for item in members:
        if not item.get("name") or not item.get("address") or not item.get("slots"):
            raise JobError(f"members: {item.get('name') or item} needs a name, an address, and one slot at least.")
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise JobError(f"members: {', '.join(twice)} is there more than once.")
    if members and (len(members) != nodes or sum(len(item["slots"]) for item in members) != world_size):
        raise JobError(
            f"members: {len(members)} node(s) with {sum(len(item['slots']) for item in members)} slot(s) are not the "
            f"{nodes} node(s) and {world_size} rank(s) that were requested."
        )
    if len(members) > 1 and not secret_file:
        raise JobError("secret_file: give the path of a file that every node of the job has, and no one else.")
    if launcher == "per_node" and not members:
        raise JobError("members: launcher per_node needs the nodes of the job, for MASTER_ADDR. Give them.")
    if launcher != "deepspeed" and transport == "pdsh":
        raise JobError(f"transport: pdsh starts DeepSpeed's launcher only. Launcher {launcher} needs transport direct.")


def spec_hash(spec: dict[str, Any]) -> str:
    """SHA-256 of the specification in one canonical form: the order of keys does not count."""
    return hashlib.sha256(json.dumps(spec, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def changed_keys(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Names, never values, of what differs between two specifications; one level into ``fingerprint``."""
    found = []
    for key in sorted({*old, *new}):
        one, two = old.get(key), new.get(key)
        if one != two and key in ("fingerprint", "environment") and isinstance(one, dict) and isinstance(two, dict):
            found += [f"{key}.{inner}" for inner in sorted({*one, *two}) if one.get(inner) != two.get(inner)]
        elif one != two:
            found.append(key)
    return found


def current_state(recorded: dict[str, Any], container: Container | None, now: float) -> tuple[str, str]:
    """State and reason now. What the supervisor wrote last holds only as long as it can still be alive."""
    state = str(recorded.get("state", "absent"))
    if state not in ACTIVE:
        return state, str(recorded.get("reason", ""))
    name = recorded.get("container")
    if recorded.get("runtime") == "host" and (
        container is None or container.started_at != recorded.get("container_started_at")
    ):
        return "lost", "the host was rebooted while the job ran. Start the job again."
    if container is None or container.id != recorded.get("container_id"):
        return "lost", f"the container {name} it ran in is gone. Start the job again: it was not resumed by itself."
    started = recorded.get("container_started_at")  # None: the supervisor came back with its container
    if not container.running or started not in {None, container.started_at}:
        return "lost", (
            f"the container {name} was stopped or restarted while the job ran. Check `docker logs {name}` and the "
            "node's kernel log (out-of-memory killer), then start the job again."
        )
    silent = now - float(recorded.get("heartbeat") or 0.0)
    if silent > LOST_AFTER:
        return "lost", (
            f"no sign of life from its supervisor{f' in container {name}' if name else ''} for {silent:.0f} s. It was "
            "killed, or the disk is full. Starting or stopping the job ends what is left of it."
        )
    return state, ""


def plan(wanted: str, state: str, same: bool, rerun: bool) -> str:
    """``start``, ``stop``, ``remove`` or ``none``; ``refuse`` when another job of that name is running."""
    if wanted == "absent":
        return "none" if state == "absent" else "remove"
    if wanted == "stopped":
        return "stop" if state in ACTIVE or state == "lost" else "none"
    if state in ACTIVE:
        return "none" if same else "refuse"
    return "none" if state == "succeeded" and same and not rerun else "start"


def refusal(recorded: dict[str, Any], differs: list[str], folder: str) -> str:
    return (
        f"it is {recorded['state']} in container {recorded.get('container')} since "
        f"{recorded.get('started_at')} with another specification (differs: {', '.join(differs) or 'unknown'}). "
        "Nothing was changed. Stop it first "
        f"(stop.yml, or on that host: touch {folder}/stop), or give the new job another name."
    )


REPORTED = (
    *(
        "run",
        "run_id",
        "attempt",
        "leader",
        "launcher",
        "transport",
        "runtime",
        "spec_hash",
        "container",
        "started_at",
        "finished_at",
        "exit_code",
    ),
    *("world_size_expected", "world_size_seen", "nodes_expected", "nodes_seen", "hosts"),
    "deepspeed_version",
    *("members", "shrunk_from", "channel_port", "master_port", "ranks", "figures", "first_failure"),
    *("failed_node", "failed_rank", "traceback", "tail", "gpus", "nccl", "hang"),
)


def report(name: str, recorded: dict[str, Any], state: str, reason: str, hide: Callable[[str], str]) -> dict[str, Any]:
    """The return value ``job``. ``hide`` removes secrets from what the job printed."""
    job: dict[str, Any] = {"name": name, "state": state, "reason": hide(reason)}
    for key in REPORTED:
        job[key] = recorded.get(key)
    for key in ("hosts", "traceback", "tail"):
        job[key] = [hide(line) for line in recorded.get(key) or []]
    return job


def whole_lines(data: bytes, ended: bool, limit: int) -> bytes:
    """The part of ``data`` to hand out now: up to its last line end, so that no character or secret is cut in two."""
    if ended and len(data) < limit:
        return data
    end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    return data[:end] if end or len(data) < limit else data


def explain(job: dict[str, Any], host: str, log: str) -> str:
    """The one message for a job that did not succeed."""
    verb = {"lost": "was lost", "stopped": "was stopped"}.get(job["state"], "failed")
    reason = (job.get("reason") or "no reason is known").rstrip(" .")
    node = job.get("failed_node")
    where = f" on {node}" if node and node not in reason else ""
    return f"Training job {job['name']} {verb}{where}: {reason}. Log: {host}:{log}"
