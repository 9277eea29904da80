# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What ssh and sshd read in a node's container: whom they trust, and their configuration. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..plan.container import container_name
from ..plan.managed_file import ManagedFile

SSHD_CONFIG = "role:ssh_trust/files/sshd_config"
"""Comes with the role; ``@SSH_PORT@`` and ``@FORWARDING@`` are filled."""
OVERLAY = "overlay"
_HEAD = "# Kept by swarmspeed.cluster, role ssh_trust. Read inside the containers only."
_MOUNTED = "/etc/swarmspeed/ssh"


@dataclass(frozen=True)
class Request:
    """What is configured for one host, and what the cluster says: ``sources`` is where its connections come from.

    ``server_ports`` are those of the hosts' own sshd.
    """

    cluster: str
    host: str
    root: str
    network_mode: str
    sources: str
    port: int
    forwarding: bool
    hosts: Sequence[str]
    first: str
    addresses: Mapping[str, str]
    server_ports: Mapping[str, int] = field(default_factory=dict)

    @property
    def ssh(self) -> str:
        return f"{self.root}/etc/ssh"

    @property
    def cluster_key(self) -> str:
        return f"{self.ssh}/id_ed25519"

    @property
    def host_key(self) -> str:
        return f"{self.ssh}/ssh_host_ed25519_key"

    @property
    def cluster_comment(self) -> str:
        return f"swarmspeed {self.cluster}"

    @property
    def host_comment(self) -> str:
        return f"{self.cluster}-{self.host}"


def ours(requested: Request) -> list[str]:
    """Return the folders of which it is recorded whether they are ours. What lies in ``etc`` is known by name."""
    return [requested.root, f"{requested.root}/etc"]


def folders(requested: Request) -> list[ManagedFile]:
    return [ManagedFile(path, None, "0700") for path in (requested.root, f"{requested.root}/etc", requested.ssh)]


def authorized_keys(requested: Request, cluster_key: str) -> ManagedFile:
    """Return the file that lets the cluster's key in, from the training network alone."""
    forwarding = ",port-forwarding" if requested.forwarding else ""
    line = f'restrict,pty{forwarding},from="{requested.sources}" {cluster_key.strip()}\n'
    return ManagedFile(f"{requested.ssh}/authorized_keys", line, "0600")


def public_part(path: str, public: str) -> ManagedFile:
    """Return the public key, for a node that has another one beside the private key at ``path``."""
    return ManagedFile(f"{path}.pub", f"{public.strip()}\n")


def known_hosts(requested: Request, host_keys: Mapping[str, str]) -> ManagedFile:
    """Return the file that pins the keys of all containers."""
    lines = [f"{name} {' '.join(host_keys[name].split()[:2])}\n" for name in requested.hosts]
    return ManagedFile(f"{requested.ssh}/known_hosts", "".join(lines))


def configuration(requested: Request, sshd_config: str) -> list[ManagedFile]:
    text = sshd_config.replace("@SSH_PORT@", str(requested.port))
    text = text.replace("@FORWARDING@", "yes" if requested.forwarding else "no")
    return [
        ManagedFile(f"{requested.ssh}/ssh_config", _ssh_config(requested)),
        ManagedFile(f"{requested.ssh}/sshd_config", text),
    ]


def _ssh_config(requested: Request) -> str:
    lines, containers = [_HEAD], [container_name(requested.cluster, name) for name in requested.hosts]
    for name, container in zip(requested.hosts, containers):
        address = container if requested.network_mode == OVERLAY else requested.addresses[name]
        lines += [f"Host {name} {container}", f"  HostName {address}", f"  HostKeyAlias {name}"]
    lines += [
        f"Host {' '.join([*requested.hosts, *containers])}",
        "  User root",
        f"  Port {requested.port}",
        f"  IdentityFile {_MOUNTED}/id_ed25519",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {_MOUNTED}/known_hosts",
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
        "  PasswordAuthentication no",
        "  ConnectTimeout 10",
        "  ConnectionAttempts 3",
        "  ServerAliveInterval 15",
    ]
    if requested.network_mode != OVERLAY:
        lines += [
            "  # The key is good from the underlay only, and a host with several networks could take another address.",
            f"  BindAddress {requested.addresses[requested.host]}",
        ]
    return "".join(f"{line}\n" for line in [*lines, "  LogLevel ERROR"])
