# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)


"""What is configured for a host itself, what the host is, and what differs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.apt.pins import names
from ...module_utils.firewall.state import FIREWALLD, IPTABLES, NFTABLES
from ..plan.changes import Inputs
from ..plan.files import differs, found_file
from ..plan.managed_file import ManagedFile, ManagedFileError
from .files import managed_files, names_block
from .firewall import firewall_plan
from .firewall_rules import SCRIPT_PATH, UNIT_PATH, policy_path
from .gathered import CA, CA_LINK, cluster_name

_OF_THE_ENGINE = re.compile(r"(docker|containerd|runc)[^ ]* ")
"""Packages, with their state, whose configuration restarts the engine."""


def firewall_request(host: str, role_vars: Mapping[str, Any], addresses: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``firewall_plan`` reads."""
    return {
        "cluster": cluster_name(role_vars),
        "host": host,
        "addresses": addresses,
        "manager": "managers" in (role_vars.get("group_names") or ()),
        "network_mode": role_vars["cluster_network_mode"],
        "ssh_port": role_vars["ssh_trust_port"],
        "rendezvous_port": role_vars["deepspeed_launch_master_port"],
        "data_path_port": role_vars["swarm_data_path_port"],
        "encrypted": bool(role_vars["overlay_network_encrypted"]),
        "bare": role_vars["deepspeed_launch_runtime"] == "host",
        "ports": role_vars["host_firewall_ports"],
        "state": role_vars["host_firewall"],
    }


@dataclass(frozen=True)
class Host:
    """One host: facts, role_vars, and what follows from both. ``inputs.cluster`` is empty where the role is alone."""

    name: str
    facts: Mapping[str, Any]
    role_vars: Mapping[str, Any]
    inputs: Inputs

    def part(self, name: str) -> Mapping[str, Any]:
        value = self.facts.get(name)
        return value if isinstance(value, Mapping) else {}

    @property
    def key(self) -> str:
        return self.inputs.digest_key

    @property
    def missing_packages(self) -> list[str]:
        there = self.part("packages")
        return [name for name in dict.fromkeys(self.role_vars["host_packages"]) if not there.get(name)]

    @property
    def sysctls(self) -> dict[str, tuple[Any, str]]:
        """Kernel parameters with another value than is configured, and both values."""
        there = self.part("sysctls")
        wanted = {str(name): " ".join(str(value).split()) for name, value in self.role_vars["host_sysctls"].items()}
        return {name: (there.get(name), value) for name, value in wanted.items() if there.get(name) != value}

    # dpkg

    @property
    def dpkg_waits(self) -> bool:
        """Whether dpkg has something left to do, be it at work or not."""
        dpkg = self.part("dpkg")
        return bool(names(dpkg.get("unfinished")) or dpkg.get("journal") is True)

    @property
    def interrupted(self) -> list[str]:
        """What an interrupted dpkg left. One that is at work has unfinished packages, too, and finishes them itself."""
        dpkg = self.part("dpkg")
        if dpkg.get("busy") is True:
            return []
        journal = ["journal in /var/lib/dpkg/updates"] if dpkg.get("journal") is True else []
        return [*names(dpkg.get("unfinished")), *journal]

    @property
    def stopped_by_repair(self) -> list[str]:
        """Running containers that the repair of dpkg would stop, as it restarts their engine."""
        if not any(_OF_THE_ENGINE.match(package) for package in self.interrupted):
            return []
        containers = self.part("docker").get("containers")
        found = containers.items() if isinstance(containers, Mapping) else ()
        return sorted(
            str(name) for name, entry in found if isinstance(entry, Mapping) and entry.get("state") == "running"
        )

    # Files

    def files(self, firewall: Mapping[str, Any] | None) -> list[ManagedFile]:
        """Return the files that the role owns."""
        certificate = str(self.role_vars["host_ca_certificate"])
        authority = self.inputs.files.get(certificate, "") if certificate else ""
        addresses = self.addresses
        block = None if addresses is None else names_block(list(addresses), addresses)
        opened = [ManagedFile(**entry) for entry in firewall["files"]] if firewall else []
        return [*managed_files(self.role_vars, self.part("system"), authority, block), *opened]

    def differing(self, files: list[ManagedFile]) -> tuple[list[ManagedFile], list[ManagedFile]]:
        """Return the files that differ, and those in whose place somebody else's is."""
        known, wrong, foreign = self.part("files"), [], []
        for item in files:
            try:
                if differs(item, known, self.key):
                    wrong.append(item)
            except ManagedFileError:
                foreign.append(item)
        return wrong, foreign

    def exists(self, path: str) -> bool:
        return found_file(self.part("files"), path).get("exists") is True

    @property
    def trusts(self) -> bool:
        """Whether the certificate authority is among those that the host trusts."""
        return self.exists(CA_LINK)

    # The nodes of the cluster

    @property
    def addresses(self) -> dict[str, Any] | None:
        """Return the address of each node in rank order; None where they are not known."""
        underlay = self.inputs.cluster.get("underlay")
        found = underlay.get("addresses") if isinstance(underlay, Mapping) else None
        if not isinstance(found, Mapping):
            return None
        return {name: found[name] for name in self.inputs.cluster.get("hosts") or found if name in found}

    @property
    def firewall(self) -> dict[str, Any] | None:
        """Return what is to be opened; None where it is not known to whom."""
        addresses = self.addresses
        if addresses is None:
            return None
        return firewall_plan(self.part("firewall"), firewall_request(self.name, self.role_vars, addresses))


@dataclass(frozen=True)
class Differences:
    """What differs on a host, each thing worked out once."""

    here: Host
    files: list[ManagedFile]
    foreign: list[ManagedFile]
    firewall: Mapping[str, Any] | None

    @property
    def paths(self) -> list[str]:
        return [item.path for item in self.files]

    @property
    def trust(self) -> bool:
        """Whether the trusted authorities must be put together again."""
        return CA in self.paths or self.trust_differs

    @property
    def trust_differs(self) -> bool:
        return self.here.trusts is not bool(self.here.role_vars["host_ca_certificate"])

    @property
    def close_unit(self) -> bool:
        """Whether our unit is there, and is to open nothing any more."""
        firewall = self.firewall
        return bool(firewall and not firewall["problems"] and not firewall["scripted"] and self.here.exists(UNIT_PATH))

    @property
    def restart_unit(self) -> bool:
        firewall = self.firewall
        if not firewall or not firewall["scripted"]:
            return False
        closed = [name for name in firewall["wanted"] if firewall["found"].get(name) != firewall["wanted"][name]]
        of_the_unit = any(name.startswith((IPTABLES, NFTABLES)) for name in closed)
        return of_the_unit or bool({SCRIPT_PATH, UNIT_PATH} & set(self.paths))

    @property
    def reload_firewalld(self) -> bool:
        active = names(self.here.part("firewall").get("active"))
        return FIREWALLD in active and policy_path(cluster_name(self.here.role_vars)) in self.paths


def compared(here: Host) -> Differences:
    firewall = here.firewall
    files, foreign = here.differing(here.files(firewall))
    return Differences(here, files, foreign, firewall)
