# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The servers that a user lists, and how ssh reaches each. Pure.

A line is ``[user@]address[:port]``, and after it, in any order, ``name=…`` and ``jump=[user@]address[:port]``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..core.kinds import KINDS
from ..core.problems import Problem

FORM = "[user@]address[:port]"
KNOWN_HOSTS = "known_hosts"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PLACE = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^@:\s]+))(?::(?P<port>\d+))?")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?")


@dataclass(frozen=True)
class Server:
    """How one server is reached. ``port`` is 0 where ssh chooses it; ``jump`` has the form of a server."""

    address: str
    user: str = ""
    port: int = 0
    jump: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        """What messages call it, until it has a name; no two servers have the same one."""
        way = f" via {self.jump}" if self.jump else ""
        return _with_port(self.address, self.port if self.port != 22 else 0) + way

    @property
    def alias(self) -> str:
        """Its label as Ansible takes the name of a host."""
        return re.sub(r"[^A-Za-z0-9.-]+", "_", self.label).strip("_")


def _with_port(address: str, port: int) -> str:
    bracketed = f"[{address}]" if ":" in address else address
    return f"{bracketed}:{port}" if port else address


class ServerError(ValueError):
    """A line does not name a server; the text continues "… is"."""


def parse_place(text: str) -> Server:
    """Return the server that ``[user@]address[:port]`` names."""
    match = _PLACE.fullmatch(text)
    if match is None and text.count(":") > 1 and "[" not in text:
        match = re.fullmatch(r"(?:(?P<user>[^@\s]+)@)?(?P<v6>[0-9A-Fa-f:.]+)(?P<host>)(?P<port>)", text)
    if match is None:
        raise ServerError(f"not {FORM}")
    user, port, address = match["user"] or "", int(match["port"] or 0), match["v6"] or match["host"]
    try:
        address = str(ipaddress.ip_address(address))
    except ValueError:
        # What has only digits and dots was meant as an address.
        if match["v6"] or not _NAME.fullmatch(address) or re.fullmatch(r"[0-9.]+", address):
            raise ServerError("not an address or a host name") from None
    if user and not _USER.fullmatch(user):
        raise ServerError("not the name of an account before the @")
    if port > 65535 or match["port"] == "0":
        raise ServerError("not a port after the colon")
    return Server(address.lower(), user, port)


def parse_server(line: str) -> Server:
    """Return the server of a line. Raises ``ServerError``."""
    place, *options = line.split()
    server = parse_place(place)
    for option in options:
        key, equals, value = option.partition("=")
        if key == "name" and equals:
            if not KINDS["dns_label"].accepts(value):
                raise ServerError(f"not {KINDS['dns_label'].what} after name=")
            server = replace(server, name=value)
        elif key == "jump" and equals:
            parse_place(value)
            server = replace(server, jump=value)
        else:
            raise ServerError(f"followed by '{option}'; only name=… and jump=… may follow an address")
    return server


def lines_of(listed: str | Sequence[object], file_text: str = "") -> Iterator[str]:
    """Yield one line a server: of a list, or one text with commas, and of a file with comments."""
    entries = re.split(r"[,\n]", listed) if isinstance(listed, str) else [str(entry) for entry in listed]
    for entry in [*entries, *file_text.splitlines()]:
        line = re.sub(r"(^|\s)#.*", "", entry).strip()
        if line:
            yield line


def parse_servers(lines: Sequence[str], jump: str = "", user: str = "") -> tuple[list[Server], list[Problem]]:
    """Return the servers, with ``jump`` and ``user`` where a line has none, and what is wrong with the lines."""
    servers: list[Server] = []
    problems: list[Problem] = []
    for line in lines:
        try:
            server = parse_server(line)
            if jump:
                parse_place(jump)
        except ServerError as error:
            problems.append(
                Problem(f"'{line}'", f"is {error}", f"write a server as {FORM}, such as ubuntu@10.0.0.11:22")
            )
            continue
        servers.append(replace(server, jump=server.jump or jump, user=server.user or user))
    return servers, [*problems, *_repeated(servers)]


def _repeated(servers: Sequence[Server]) -> Iterator[Problem]:
    seen: set[str] = set()
    names: set[str] = set()
    for server in servers:
        if server.label in seen:
            yield Problem(server.label, "is the address of two servers", "list each server once")
        elif server.name and server.name in names:
            yield Problem(server.label, f"has the name {server.name}, as another server does", "give each its own name")
        seen.add(server.label)
        names.add(server.name)


def jumps(servers: Sequence[Server]) -> list[Server]:
    """Return the jump hosts, each once."""
    return [parse_place(text) for text in dict.fromkeys(server.jump for server in servers) if text]


def ssh_options(server: Server, known_hosts: str, key: str = "", of_jump: str = "") -> list[str]:
    """Return ssh's options for a server whose host key, and whose jump host's, are in the file ``known_hosts``.

    ``of_jump``: more options for the jump host. A shell runs its command, in which ssh replaces ``%h`` and ``%p``.
    """
    pinned = f"UserKnownHostsFile={known_hosts}"
    if not server.jump:
        return ["-o", pinned]
    jump = parse_place(server.jump)
    target = "[%h]:%p" if ":" in server.address else "%h:%p"
    words = [f"ssh -W {target} -o BatchMode=yes -o {pinned}", of_jump, f"-p {jump.port}" * bool(jump.port)]
    words += [f"-i {key}" * bool(key), f"{jump.user}@" * bool(jump.user) + jump.address]
    return ["-o", pinned, "-o", "ProxyCommand=" + " ".join(word for word in words if word)]


def ansible_ssh_args(server: Server, known_hosts: str, key: str = "") -> str:
    """Return the same as ``ansible_ssh_common_args``, which Ansible splits as a shell does."""
    options = ssh_options(server, known_hosts, key)[1::2]
    return " ".join(f"-o '{option}'" if option.startswith("ProxyCommand=") else f"-o {option}" for option in options)
