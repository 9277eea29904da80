# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Values of the container's options that Docker, or the module that talks to it, would refuse. Pure; no host is needed.

Only what cannot work anywhere: what depends on a host (a device, a limit of its kernel) is seen there.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from ansible.module_utils.common.text.formatters import human_to_bytes
from ansible.module_utils.common.validation import check_type_list
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.gathered import DEVICE, DEVICES
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.mounts import wrong_volumes

SHM_SIZE, ULIMITS = "training_container_shm_size", "training_container_ulimits"
IPC_MODE, CAPABILITIES = "training_container_ipc_mode", "training_container_capabilities"
SECURITY_OPTS, ENVIRONMENT = "training_container_security_opts", "training_container_environment"
PORTS, GROUPS = "training_container_published_ports", "training_container_groups"
VOLUMES = "training_container_volumes"
READ = (
    *(SHM_SIZE, ULIMITS, IPC_MODE, CAPABILITIES, SECURITY_OPTS, ENVIRONMENT, PORTS, GROUPS, VOLUMES, DEVICES),
    *("cluster_network_mode", "cluster_root", "assets_sources", "assets_path", "deepspeed_launch_vscode_extensions"),
)
"""The variables that are read here."""

_LIMITS = "as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack"
LIMITS = frozenset(_LIMITS.split())
"""Of runc (libcontainer/specconv): https://man7.org/linux/man-pages/man2/getrlimit.2.html"""
_CAPABILITIES = """
    ALL AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH
    FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN
    NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYS_ADMIN SYS_BOOT SYS_CHROOT
    SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG SYSLOG WAKE_ALARM
"""
KNOWN_CAPABILITIES = frozenset(_CAPABILITIES.split())
"""https://man7.org/linux/man-pages/man7/capabilities.7.html"""
IPC_MODES = ("none", "private", "shareable", "host")
MOST = (1 << 63) - 1
"""The engine reads limits and sizes as signed numbers of 64 bits."""

_LIMIT = re.compile(r"([A-Za-z]+):(-?\d{1,19})(?::(-?\d{1,19}))?", re.ASCII)
_CONTAINER = re.compile(r"container:[A-Za-z0-9][A-Za-z0-9_.-]*")
_PORT = re.compile(r"(?:(\d+(?:\.\d+){3}|\[[0-9A-Fa-f:.]+\]):)?(\d{1,5}):(\d{1,5})(?:/(tcp|udp|sctp))?", re.ASCII)
_GROUP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}")
_BOOLEANS = ("1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False")
"""What Go's strconv.ParseBool takes."""


class Wrong(NamedTuple):
    """What is wrong with a variable's value, and what to do."""

    variable: str
    text: str
    remedy: str


def entries(values: Mapping[str, Any], name: str) -> list[str]:
    """Return a list as the argument spec converts it; nothing of what is none, which is refused as such."""
    value = values.get(name)
    try:
        return [str(item) for item in check_type_list(value)] if value else []
    except TypeError:
        return []


def wrong_values(values: Mapping[str, Any]) -> Iterator[Wrong]:
    """Yield what cannot work on any host, from a host's variables; one that is not known is not judged."""
    yield from _size(values.get(SHM_SIZE))
    for limit in entries(values, ULIMITS):
        yield from _limit(limit)
    mode = str(values.get(IPC_MODE) or "")
    if mode and mode not in IPC_MODES and not _CONTAINER.fullmatch(mode):
        yield Wrong(IPC_MODE, f"{mode!r} is no IPC mode of Docker", "use host, private, shareable or none")
    for name in entries(values, CAPABILITIES):
        if name.upper().removeprefix("CAP_") not in KNOWN_CAPABILITIES:
            yield Wrong(CAPABILITIES, f"{name!r} is no capability of Linux", "write it as in capabilities(7)")
    for option in entries(values, SECURITY_OPTS):
        yield from _security(option)
    yield from _environment(values.get(ENVIRONMENT))
    yield from _ports(values)
    for volume in wrong_volumes(entries(values, VOLUMES), values):
        yield Wrong(VOLUMES, *volume)
    for device in entries(values, DEVICES):
        if not DEVICE.fullmatch(device) or ".." in device.split("/"):
            remedy = "name it by its path, such as /dev/fuse"
            yield Wrong(DEVICES, f"{device!r} is not HOST[:CONTAINER[:rwm]]", remedy)
    for group in entries(values, GROUPS):
        if not _GROUP.fullmatch(group):
            yield Wrong(GROUPS, f"{group!r} is neither the name nor the number of a group", "correct it")


def _size(value: Any) -> Iterator[Wrong]:
    if value is None or value == "auto":
        return
    try:
        fits = 0 <= human_to_bytes(value) <= MOST
    except (ValueError, OverflowError):
        fits = False
    if not fits:
        yield Wrong(SHM_SIZE, f"{str(value)!r} is no size", "write a number with a unit, such as 16g, or auto")


def _limit(limit: str) -> Iterator[Wrong]:
    """A limit: ``-1`` is none. The kernel has a highest number of open files (fs.nr_open), so there -1 never works."""
    found = _LIMIT.fullmatch(limit)
    if not found:
        remedy = "write name, soft and hard limit, such as memlock:-1:-1 or nofile:1024:65536"
        yield Wrong(ULIMITS, f"{limit!r} is not NAME:SOFT[:HARD]", remedy)
        return
    name, soft, hard = found.group(1), int(found.group(2)), int(found.group(3) or found.group(2))
    if name.lower() not in LIMITS:
        yield Wrong(ULIMITS, f"{limit!r}: there is no limit {name}", f"the limits are {', '.join(sorted(LIMITS))}")
    elif not all(-1 <= number <= MOST for number in (soft, hard)):
        yield Wrong(ULIMITS, f"{limit!r}: a limit is a number from 0, or -1 for none", "correct it")
    elif hard != -1 and (soft == -1 or soft > hard):
        yield Wrong(ULIMITS, f"{limit!r}: the soft limit is above the hard one", "raise the second number")
    elif name.lower() == "nofile" and hard == -1:
        remedy = "give a number, as in nofile:1048576:1048576"
        yield Wrong(ULIMITS, f"{limit!r}: the kernel has no unlimited number of open files", remedy)


def _security(option: str) -> Iterator[Wrong]:
    """As the engine reads them (daemon_unix.go, parseSecurityOpt). ``systempaths`` is read by its client alone."""
    if option in ("no-new-privileges", "disable"):
        return
    mark = "=" if "=" in option else ":"
    name, there, value = option.partition(mark)
    if name == "seccomp" and there:
        if value not in ("unconfined", "builtin") and not _is_mapping(value):
            remedy = "put a file into training_container_seccomp_profile, or write seccomp=unconfined"
            yield Wrong(SECURITY_OPTS, f"{option!r} is neither unconfined nor a profile", remedy)
    elif name in ("no-new-privileges", "writable-cgroups") and there:
        if value not in _BOOLEANS:
            yield Wrong(SECURITY_OPTS, f"{option!r}: {name} is true or false", "correct it")
    elif not there or name not in ("label", "apparmor"):
        remedy = "use apparmor=…, seccomp=…, label=… or no-new-privileges"
        yield Wrong(SECURITY_OPTS, f"{option!r} is no security option of the engine", remedy)


def _is_mapping(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _environment(environment: Any) -> Iterator[Wrong]:
    """A value may be a secret, so none is shown."""
    for name, value in environment.items() if isinstance(environment, Mapping) else ():
        if not isinstance(name, str) or not name or re.search(r"[=\x00\s]", name):
            yield Wrong(ENVIRONMENT, f"{str(name)!r} is no name of an environment variable", "correct it")
        elif value is None or isinstance(value, (Mapping, list, tuple)):
            yield Wrong(ENVIRONMENT, f"the value of {name} is no text and no number", "write it in quotes")
        elif "\0" in str(value):
            yield Wrong(ENVIRONMENT, f"the value of {name} holds a NUL", "take it out")


def _ports(values: Mapping[str, Any]) -> Iterator[Wrong]:
    published: list[tuple[str, ipaddress.IPv4Address | ipaddress.IPv6Address | None, int, str]] = []
    ports = entries(values, PORTS)
    for port in ports:
        found = _PORT.fullmatch(port)
        try:
            address = ipaddress.ip_address(found.group(1).strip("[]")) if found and found.group(1) else None
        except ValueError:
            found = None
        if not found or not all(0 < int(number) < 65536 for number in found.groups()[1:3]):
            remedy = 'write it in quotes, such as "127.0.0.1:8888:8888"'
            yield Wrong(PORTS, f"{port!r} is not [ADDRESS:]PORT:PORT[/PROTOCOL]", remedy)
        else:
            published.append((port, address, int(found.group(2)), found.group(4) or "tcp"))
    for (one, first, *rest), (other, second, *others) in combinations(published, 2):
        if rest == others and _meet(first, second):
            text = f"{one!r} and {other!r} take the same port of the host"
            yield Wrong(PORTS, text, "publish one of them at another port")
    if ports and values.get("cluster_network_mode") == "host":
        text = "with cluster_network_mode: host there is nothing to publish, as each port is the host's own"
        yield Wrong(PORTS, text, f"leave {PORTS} out")


def _meet(one: Any, other: Any) -> bool:
    """Whether who listens at one of these addresses keeps the other from doing so; None is every address."""
    if one is None or other is None or one == other:
        return True
    return bool(one.version == other.version and (one.is_unspecified or other.is_unspecified))
