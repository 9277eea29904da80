# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What tests want to know of the nodes' Docker engines, by their API instead of the docker command's output.

Each engine is reached over its own Unix socket, which OpenSSH forwards to this machine.
"""

from __future__ import annotations

import atexit
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException, NotFound

from tests.playbook_run import login

SOCKET = "/run/docker.sock"
TIMEOUT = 60
"""Seconds that an engine may take for one answer."""
CONNECT = 30
"""Seconds that ssh may take to forward the socket."""
# A node that was killed says nothing: ssh ends 15 s later, and with it what waits for an answer.
_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": CONNECT,
    "ControlPath": "none",
    "ExitOnForwardFailure": "yes",
    "ServerAliveCountMax": 3,
    "ServerAliveInterval": 5,
    "StreamLocalBindUnlink": "yes",
}


class EngineError(Exception):
    """A node's engine cannot be asked: there is no connection to the node."""


class NoEngine(EngineError):
    """The node can be reached, and no engine answers there."""


class Tunnel:
    """The socket of one node's engine on this machine, for as long as its ssh runs."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.path = folder / f"{name}.sock"
        self._errors = folder / f"{name}.log"
        self._ssh: subprocess.Popen[bytes] | None = None

    @property
    def is_open(self) -> bool:
        return self._ssh is not None and self._ssh.poll() is None

    def open(self) -> None:
        """Forward the socket, where no ssh does so. Raises ``EngineError`` where there is no connection."""
        if self.is_open:
            return
        self.path.unlink(missing_ok=True)  # what an ssh that was killed has left would count as open
        options = [word for option, value in _OPTIONS.items() for word in ("-o", f"{option}={value}")]
        command = ["ssh", "-N", "-L", f"{self.path}:{SOCKET}", *options, *login(self.name)]
        with self._errors.open("wb") as errors:
            self._ssh = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        deadline = time.monotonic() + CONNECT
        while not self._listens():
            if not self.is_open or time.monotonic() > deadline:
                self.close()
                raise EngineError(f"{self.name}: no connection: {self._errors.read_text(errors='replace').strip()}")
            time.sleep(0.02)

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as end:
            return end.connect_ex(str(self.path)) == 0

    def close(self) -> None:
        if self._ssh is not None:
            self._ssh.kill()
            self._ssh.wait()
            self._ssh = None


class Engines:
    """The tunnels to all nodes that were asked for, each opened once."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._tunnels: dict[str, Tunnel] = {}
        self._lock = threading.Lock()

    def client(self, name: str) -> docker.DockerClient:
        """Return a client of a node's engine, in the version of the API that the engine has now."""
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="engines"))  # short: a socket's path has at most 107 bytes
            tunnel = self._tunnels.setdefault(name, Tunnel(name, self._folder))
            was_open = tunnel.is_open
            tunnel.open()
            try:
                return self._negotiated(tunnel)
            except DockerException as error:
                if not was_open:
                    raise NoEngine(f"{name}: no engine answers: {error}") from error
            # Either the engine is gone or the node was restarted meanwhile: a connection of now tells.
            tunnel.close()
            tunnel.open()
            try:
                return self._negotiated(tunnel)
            except DockerException as error:
                raise NoEngine(f"{name}: no engine answers: {error}") from error

    def close(self) -> None:
        with self._lock:
            for tunnel in self._tunnels.values():
                tunnel.close()
            self._tunnels.clear()
            if self._folder is not None:
                shutil.rmtree(self._folder)
                self._folder = None

    @staticmethod
    def _negotiated(tunnel: Tunnel) -> docker.DockerClient:
        return docker.DockerClient(base_url=f"unix://{tunnel.path}", version="auto", timeout=TIMEOUT)


_engines = Engines()
atexit.register(_engines.close)


def engine(name: str) -> docker.DockerClient:
    """Return a client of a lab node's engine. Raises ``EngineError``; ``NoEngine`` where only the engine is missing.

    Take it where it is used: one that is kept does not outlive the node's connection.
    """
    return _engines.client(name)


def outside() -> docker.DockerClient:
    """Return a client of this machine's own engine, whose containers the lab's nodes are."""
    return docker.from_env(version="auto", timeout=TIMEOUT)


@dataclass(frozen=True)
class SwarmNode:
    """What a manager knows of a node; ``manager`` is leader, reachable, unreachable, or empty for a worker."""

    id: str
    host: str
    status: str
    availability: str
    role: str
    manager: str


def states(listed: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return the state (running, exited, paused, …) of each container in the engine's list, by its name."""
    found = {}
    for entry in listed:
        # A link gives a container more names, /other/alias; one that is being removed has none.
        own = [name.removeprefix("/") for name in entry["Names"] or () if name.count("/") == 1]
        found[own[0] if own else str(entry["Id"])] = str(entry["State"])
    return found


def swarm_node(entry: dict[str, Any]) -> SwarmNode:
    """Return a node of the engine's list of nodes."""
    manager, description = entry.get("ManagerStatus") or {}, entry.get("Description") or {}
    return SwarmNode(
        id=str(entry["ID"]),
        host=str(description.get("Hostname", "")),  # none before it has reported itself
        status=str(entry["Status"]["State"]),
        availability=str(entry["Spec"]["Availability"]),
        role=str(entry["Spec"]["Role"]),
        manager="leader" if manager.get("Leader") else str(manager.get("Reachability", "")),
    )


def names(listed: Iterable[dict[str, Any]]) -> set[str]:
    """Return all names in the engine's list of images: repository and tag."""
    return {str(name) for entry in listed for name in entry["RepoTags"] or () if name != "<none>:<none>"}


def containers(name: str, label: str = "") -> dict[str, str]:
    """Return the state of each container of a node by its name, stopped ones too, or of those with a label."""
    return states(engine(name).api.containers(all=True, filters={"label": label} if label else None))


def networks(name: str, label: str = "") -> dict[str, str]:
    """Return the driver of each network that a node's engine knows by its name, or of those with a label."""
    listed = engine(name).api.networks(filters={"label": label} if label else None)
    return {str(entry["Name"]): str(entry["Driver"]) for entry in listed}


def image_ids(name: str, repository: str = "", label: str = "", dangling: bool = False) -> set[str]:
    """Return the ids of a node's images: of one repository, or with a label; else all, also those between two layers.

    With ``dangling`` only those without a name.
    """
    filters: dict[str, Any] = {"label": label} if label else {}
    if dangling:
        filters["dangling"] = True
    everything = not repository and not label
    listed = engine(name).api.images(name=repository or None, all=everything, filters=filters or None)
    return {str(entry["Id"]) for entry in listed}


def image_names(name: str, repository: str = "") -> set[str]:
    """Return the names of a node's images, with their tags: all of them, or those of one repository."""
    wanted = f"{repository}:" if repository else ""
    return {found for found in names(engine(name).api.images()) if found.startswith(wanted)}


def has_image(name: str, image: str) -> bool:
    try:
        return bool(inspect(name, "image", image))
    except NotFound:
        return False


def container_state(name: str, what: str) -> str:
    """Return the state of a container of a node (running, exited, …); empty where there is no such container."""
    try:
        return str(inspect(name, "container", what)["State"]["Status"])
    except NotFound:
        return ""


def is_running(name: str, what: str) -> bool:
    """Return whether a container runs; it does not where no engine answers, as one that is starting."""
    try:
        return container_state(name, what) == "running"
    except (NoEngine, OSError):  # the package's errors of connections and answers are of requests, and so OSError
        return False


def swarm_nodes(name: str) -> list[SwarmNode]:
    """Return the nodes of the swarm that this node manages. A host that has joined again may be among them twice."""
    return sorted((swarm_node(entry) for entry in engine(name).api.nodes()), key=lambda found: found.host)


def ready(name: str) -> list[str]:
    """Return the hosts of the swarm's nodes that are ready, as this manager knows them."""
    return [found.host for found in swarm_nodes(name) if found.status == "ready"]


def join_tokens(name: str) -> list[str]:
    """Return what lets a host join the swarm that this node manages: as a worker, and as a manager."""
    tokens = engine(name).api.inspect_swarm()["JoinTokens"]
    return [str(tokens[role]) for role in ("Worker", "Manager")]


def info(name: str) -> dict[str, Any]:
    """Return what ``docker info`` shows of a node's engine, by the names of the API."""
    found: dict[str, Any] = engine(name).api.info()
    return found


def swarm_state(name: str) -> str:
    """Return whether a node takes part in a swarm: active, inactive, pending, error or locked."""
    return str(info(name)["Swarm"]["LocalNodeState"])


def inspect(name: str, kind: str, what: str) -> dict[str, Any]:
    """Return what a node's engine knows about a container, network or image. Raises the package's ``NotFound``."""
    api = engine(name).api
    ask = {"container": api.inspect_container, "network": api.inspect_network, "image": api.inspect_image}[kind]
    found: dict[str, Any] = ask(what)
    return found
