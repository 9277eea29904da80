# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""TensorBoard on the first manager: a container of the training image, which sees the logs and nothing else.

It has the host's network, as only there 127.0.0.1 is the host's: a published port of a container listens in the
container on all of its addresses. The folder of the logs is mounted read-only: what a link in it leads to is found
in this container, where there is nothing of the host. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.values import fingerprint
from ..plan.container import container_name

CLUSTER_LABEL, LABEL = "swarmspeed.cluster", "swarmspeed.tensorboard"
RELOAD = "30"
"""Seconds between two searches for new events; TensorBoard's own 5 are much for a folder of many files."""
PRIVATE = "/etc/swarmspeed"
"""Where a container has the cluster's keys."""
MODULE = "tensorboard.main"
PORTS = range(1024, 65536)

_ID = re.compile(r"sha256:[0-9a-f]{64}")
_PATH = re.compile(r"/[^\x00-\x1f\x7f:]*")
_VOLUME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")


def board_name(cluster: str) -> str:
    """Return the name of its container: with a dot, as those of nodes begin with the cluster's name and a hyphen."""
    return f"{cluster}.tensorboard"


def board(requested: Mapping[str, Any], training: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what to do: ``problem``, ``exists``, ``same``, ``holds_port`` and the ``settings`` of the container.

    ``requested``: ``host``, ``cluster``, ``runtime``, ``state``, ``port`` and ``logdir``. ``training`` and ``found``
    are what the engine says of the node's container and of TensorBoard's, empty where there is none.
    """
    name = board_name(str(requested["cluster"]))
    labels = _mapping(_mapping(found.get("Config")).get("Labels"))
    plan: dict[str, Any] = {
        "name": name,
        "problem": "",
        "exists": bool(found),
        "same": False,
        "holds_port": False,
        "settings": {},
    }
    if found and not (LABEL in labels and labels.get(CLUSTER_LABEL) == requested["cluster"]):
        problem = f"the container {name} exists, but this collection did not create it. Remedy: rename or remove it"
        return {**plan, "problem": _at(requested, problem)}
    if requested["state"] == "absent":
        return plan
    problem = _wrong(requested)
    if problem:
        return {**plan, "problem": _at(requested, problem)}
    mounts, problem = _mounts(requested, training)
    image = training.get("Image")
    if not problem and not (isinstance(image, str) and _ID.fullmatch(image)):
        problem = "the engine does not report the image of its training container. Remedy: site.yml"
    if problem:
        return {**plan, "problem": _at(requested, problem)}
    settings = {
        "image": image,
        "entrypoint": ["python3", "-m", MODULE],
        "command": [
            *("--logdir", str(requested["logdir"]), "--host", "127.0.0.1", "--port", str(int(requested["port"]))),
            # The faster reader is a server of its own, on another port.
            *("--reload_interval", RELOAD, "--load_fast=false"),
        ],
        "volumes": mounts,
    }
    label = fingerprint(settings)
    runs = _mapping(found.get("State")).get("Running") is True
    return {
        **plan,
        "holds_port": runs and _port_of(found) == str(int(requested["port"])),
        "same": runs and labels.get(LABEL) == label,
        "settings": {**settings, "labels": {CLUSTER_LABEL: str(requested["cluster"]), LABEL: label}},
    }


def _port_of(found: Mapping[str, Any]) -> str:
    """Return on which port a container of TensorBoard listens."""
    words = [str(word) for word in _sequence(_mapping(found.get("Config")).get("Cmd"))]
    return words[words.index("--port") + 1] if "--port" in words[:-1] else ""


def tunnel(host: str, reached: Mapping[str, Any], port: int) -> list[str]:
    """Return what to type where Ansible runs, and what to open; ``reached``: how it reaches the host."""
    address = f"http://127.0.0.1:{port}"
    if reached.get("connection") == "local":
        return [f"Open {address} on {host}."]
    words = ["ssh", "-N", "-L", f"{port}:127.0.0.1:{port}"]
    if str(reached.get("port") or "22") != "22":
        words += ["-p", str(reached["port"])]
    if reached.get("key"):
        words += ["-i", str(reached["key"])]
    name = str(reached.get("address") or host)
    words.append(f"{reached['user']}@{name}" if reached.get("user") else name)
    return [f"Run {' '.join(_quoted(word) for word in words)}", f"and open {address}."]


def _wrong(requested: Mapping[str, Any]) -> str:
    port, logdir = str(requested["port"]), str(requested["logdir"])
    if requested["state"] != "present":
        return f"tensorboard_state: {requested['state']!r} is neither present nor absent"
    if not re.fullmatch(r"\d{1,5}", port, re.ASCII) or int(port) not in PORTS:
        return f"tensorboard_port: {port!r} is not a port from {PORTS[0]} to {PORTS[-1]}"
    if not _PATH.fullmatch(logdir) or ".." in logdir.split("/"):
        return f"tensorboard_logdir: {logdir!r} is not an absolute path without a colon, as the containers see it"
    if requested["runtime"] == "host":
        return (
            "deepspeed_launch_runtime is host, but TensorBoard is served from a container. Remedy: start it there by"
            f" hand, in the environment of the ranks: python3 -m {MODULE} --host 127.0.0.1 --logdir FOLDER"
        )
    return ""


def _mounts(requested: Mapping[str, Any], training: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the mounts of the training container in which the logs are, read-only, or what is wrong."""
    node = container_name(str(requested["cluster"]), str(requested["host"]))
    if not training:
        return [], f"there is no container {node}, whose image TensorBoard needs. Remedy: site.yml creates it"
    logdir = str(requested["logdir"]).rstrip("/") or "/"
    places = {}
    for mount in _sequence(training.get("Mounts")):
        one = _mapping(mount)
        target, volume = one.get("Destination"), one.get("Type") == "volume"
        source = one.get("Name" if volume else "Source")
        fits = isinstance(source, str) and (_VOLUME if volume else _PATH).fullmatch(source)
        if fits and isinstance(target, str) and _PATH.fullmatch(target) and not _within(target, PRIVATE):
            places[target] = str(source)
    holder = max((target for target in places if _within(logdir, target)), key=len, default="")
    if not holder:
        return [], (
            f"tensorboard_logdir: {logdir} is not on a mount of container {node}, so logs there would not persist. "
            "Mounts are"
            f" {', '.join(sorted(places)) or 'none'}. Remedy: name a folder below one of them"
        )
    inner = [target for target in places if target != holder and _within(target, logdir)]
    return [f"{places[target]}:{target}:ro" for target in (holder, *sorted(inner))], ""


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _at(requested: Mapping[str, Any], problem: str) -> str:
    return f"{requested['host']}: {problem}."


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word, re.ASCII) else "'" + word.replace("'", "'\"'\"'") + "'"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()
