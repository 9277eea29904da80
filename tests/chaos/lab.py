# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The lab's nodes from outside, through the engine they are containers of: it reaches them whatever is broken inside.

Everything takes a bounded time, and nothing but containers that carry this lab's label is touched.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from docker.errors import DockerException

from tests import engines
from tests.chaos.scripts import TIDY
from tests.engines import EngineError, SwarmNode, outside
from tests.playbook_run import LAB, container, lab_inventory, ssh

LABEL = "swarmspeed.lab"  # molecule/default/vars/lab.yml
AWAY = 100
"""Added to a node's address for another one: far from those that the lab gives out."""


class LabError(Exception):
    """The lab did not do as requested: the fault was not made, which says nothing about the collection."""


class Lab:
    """The nodes of the lab that LAB_NAME means. ``arguments`` are given to every playbook while they stand."""

    def __init__(self) -> None:
        try:
            hosts: dict[str, dict[str, Any]] = lab_inventory()["_meta"]["hostvars"]
        except subprocess.CalledProcessError as error:
            raise LabError(f"{error.stderr.strip()} (then run make chaos again)") from error
        self.nodes: tuple[str, ...] = tuple(hosts)
        self.hosts = hosts
        self.arguments: tuple[str, ...] = ()

    @property
    def manager(self) -> str:
        return self.nodes[0]

    def engine(self, *words: str, timeout: float = 120) -> str:
        """Run the docker command of the machine around the nodes."""
        return _run(["docker", *words], "", timeout)

    def node(self, name: str) -> str:
        """Return the container that is this node. Raises ``LabError`` for one that is not this lab's."""
        where = f"{LAB}-{name}"
        self._outer(name)
        return where

    def _outer(self, name: str) -> dict[str, Any]:
        """Return what the machine around the nodes knows of the container that is this node."""
        where = f"{LAB}-{name}"
        with _answers():
            found: dict[str, Any] = outside().api.inspect_container(where)
        if name not in self.nodes or (found["Config"]["Labels"] or {}).get(LABEL) != LAB:
            raise LabError(f"{where} is no node of the lab {LAB}")
        return found

    def info(self, name: str) -> dict[str, Any]:
        """Return what a node's engine shows of itself. Raises ``LabError`` where none answers."""
        with _answers():
            return engines.info(name)

    def training_container(self, name: str) -> str:
        """Return the state of a node's training container; empty where there is none."""
        with _answers():
            return engines.container_state(name, container(name))

    def member(self, name: str) -> SwarmNode:
        """Return what the manager knows of a node: of the entry that the node itself has, should there be others."""
        own = self.info(name)["Swarm"]["NodeID"]
        with _answers():
            listed = engines.swarm_nodes(self.manager)
        for found in listed:
            if found.id == own:
                return found
        raise LabError(f"{name} is none of the nodes of {self.manager}'s swarm")

    def run(self, name: str, script: str, timeout: float = 120) -> str:
        """Run a shell script on a node that must succeed; return what it printed."""
        # The inner limit ends the script, the outer one only the client.
        words = ["docker", "exec", "--interactive", self.node(name), "timeout", str(int(timeout)), "sh", "-eu", "-s"]
        return _run(words, script, timeout + 15)

    def as_user(self, name: str, command: str, timeout: float = 300) -> str:
        """Run a command on a node as its user would: over ssh."""
        return _run(ssh(name, command), "", timeout)

    def power(self, words: Sequence[str], *names: str) -> None:
        """Do something to whole nodes at the same time, as their power switches would: kill, start, restart, pause."""
        containers = [self.node(name) for name in names]
        with ThreadPoolExecutor(len(containers)) as pool:
            list(pool.map(lambda where: self.engine(*words, where, timeout=180), containers))

    def wait_for(self, *names: str, seconds: float = 180) -> None:
        """Wait until nodes let their user in, as a person does before running a playbook again."""
        deadline = time.monotonic() + seconds
        for name in names:
            while True:
                with contextlib.suppress(LabError):
                    self.as_user(name, "true", timeout=30)
                    break
                if time.monotonic() > deadline:
                    raise LabError(f"{name} did not let anyone in within {seconds:.0f} s")
                time.sleep(1)

    def state(self, name: str) -> str:
        return str(self._outer(name)["State"]["Status"])

    def address(self, name: str) -> str:
        """Return the address that a node has now; empty where it is cut off from the lab's network."""
        networks = self._outer(name)["NetworkSettings"]["Networks"]
        return str(networks.get(LAB, {}).get("IPAddress") or "")

    def readdress(self, name: str, address: str) -> None:
        """Give a node another address, as a DHCP server would after its lease was lost."""
        where = self.node(name)
        with contextlib.suppress(LabError):  # it may be cut off already
            self.engine("network", "disconnect", LAB, where)
        self.engine("network", "connect", "--ip", address, LAB, where)

    def other_address(self, name: str) -> str:
        return str(ipaddress.IPv4Address(self.hosts[name]["ansible_host"]) + AWAY)

    def follow(self, name: str, address: str, path: Path) -> None:
        """Tell the inventory of a node's new address, as its administrator would; its host key stays pinned."""
        known = self.hosts[name]
        options = f"{known['ansible_ssh_common_args']} -o HostKeyAlias={known['ansible_host']}"
        values = {"ansible_host": address, "ansible_ssh_common_args": options}
        path.write_text(json.dumps({"all": {"hosts": {name: values}}}), encoding="utf-8")
        self.arguments = ("--inventory", str(path))

    def settle(self) -> None:
        """Bring the nodes themselves back, whatever a round that was cut off has left; site.yml does the rest."""
        self.arguments = ()
        for name in self.nodes:
            state = self.state(name)
            if state == "paused":
                self.power(["unpause"], name)
            elif state != "running":
                self.power(["start"], name)
            if self.address(name) != self.hosts[name]["ansible_host"]:
                self.readdress(name, self.hosts[name]["ansible_host"])
        self.wait_for(*self.nodes)
        for name in self.nodes:
            self.run(name, TIDY, timeout=180)

    def description(self) -> str:
        """Return what the nodes are, for the record: systems and engines."""

        def described(name: str) -> str:
            system = self.run(name, '. /etc/os-release\necho "$ID $VERSION_ID"').strip()
            try:
                return f"{system}, Docker {self.info(name)['ServerVersion']}"
            except LabError:
                return f"{system}, Docker none"

        with ThreadPoolExecutor(len(self.nodes)) as pool:
            return "; ".join(pool.map(described, self.nodes))


@contextlib.contextmanager
def _answers() -> Iterator[None]:
    """Make what keeps an engine from answering an error of the lab."""
    try:
        yield
    except (EngineError, DockerException, OSError) as error:
        raise LabError(str(error)) from error


def _run(words: Sequence[str], text: str, timeout: float) -> str:
    try:
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise LabError(f"no answer within {timeout:.0f} s: {' '.join(words)[:200]} {text[:200]!r}") from None
    if done.returncode:
        printed = (done.stderr.strip() or done.stdout.strip() or "nothing was said").splitlines()[-1]
        raise LabError(f"exit status {done.returncode} ({printed[:300]}): {' '.join(words)[:200]} {text[:200]!r}")
    return done.stdout
