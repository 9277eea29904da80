# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The keys of daemon.json: which an engine knows, what each holds, and which it takes over without a restart.

Source: moby, every release from 20.10.0 to 29.7.2. Keys and types: the JSON tags in daemon/config/config*.go that have
a flag of their name, a NamedOption or a place in ``skipValidateOptions`` (the engine refuses the others). Reloading:
daemon/reload.go and reload_unix.go. A key that has only a flag's name passes the engine's check and is then ignored.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from ..common.problems import Problem, shown
from .daemon_config import same
from .daemon_config_pools import pool_problems
from .daemon_config_secrets import mask
from .daemon_config_unit import FLAG_KEYS

NEWEST = (29, 7)
"""The newest release whose keys are known here. Of a newer engine an unknown key is left to the engine to judge."""

SWARM_NFTABLES = "swarm-nftables"
SWARM_NFTABLES_SINCE = (29, 6)

Check = Callable[[str, Any], Iterator[Problem]]


class Key(NamedTuple):
    """What a key holds, and since and until which release.

    ``reload``: whether SIGHUP makes the engine take it over: ``never``, when it is ``set`` (but a removed key keeps its
    former value until a restart), or ``always``.
    """

    check: Check
    since: tuple[int, int] = (0, 0)
    until: tuple[int, int] | None = None
    reload: str = "never"


def _must(path: str, what: str, value: Any) -> Problem:
    # Credentials are masked by the name of the key too, so the whole path counts.
    return Problem(path, f"must be {what}, not {shown(mask(value, tuple(path.split('.'))))}")


def _boolean(path: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, bool):
        yield _must(path, "true or false", value)


def _text(path: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, str):
        plain = isinstance(value, (bool, int, float))
        yield _must(path, "text (put it into quotes)" if plain else "text", value)


def _whole(least: int = 0, most: int | None = None) -> Check:
    limits = f", from {least} to {most}" if most is not None else f", at least {least}"

    def check(path: str, value: Any) -> Iterator[Problem]:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            quoted = isinstance(value, str) and re.fullmatch(r"\s*-?\d+\s*", value)
            yield _must(path, f"a whole number{' without quotes' if quoted else ''}{limits}", value)

    return check


def _one_of(*choices: str) -> Check:
    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, str) or value not in choices:
            yield _must(path, "one of " + ", ".join(choices), value)

    return check


def _matching(pattern: str, what: str) -> Check:
    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            yield _must(path, what, value)

    return check


def _address(path: str, value: Any) -> Iterator[Problem]:
    try:
        ipaddress.ip_address(value if isinstance(value, str) else "")
    except ValueError:
        yield _must(path, "an IP address", value)


def _list(inner: Check) -> Check:
    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, list):
            yield _must(path, "a list", value)
            return
        for index, item in enumerate(value):
            yield from inner(f"{path}[{index}]", item)

    return check


def _mapping(inner: Check) -> Check:
    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield _must(path, "a mapping", value)
            return
        for name, item in value.items():
            if item is not None:  # for the engine the same as no such key
                yield from inner(f"{path}.{name}", item)

    return check


def _fields(fields: dict[str, Check], required: tuple[str, ...] = ()) -> Check:
    """A mapping with these keys and no others."""

    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield _must(path, "a mapping with " + ", ".join(fields), value)
            return
        for name, item in value.items():
            if name not in fields:
                yield Problem(f"{path}.{name}", f"is unknown; {path} has {', '.join(fields)}{_meant(name, fields)}")
            elif item is not None:
                yield from fields[name](f"{path}.{name}", item)
        for name in required:
            if value.get(name) is None:
                yield Problem(path, f"must name {name}")

    return check


def _any_mapping(path: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield _must(path, "a mapping", value)


def _runtimes(path: str, value: Any) -> Iterator[Problem]:
    fields = {"path": _text, "runtimeArgs": _list(_text), "runtimeType": _text, "options": _any_mapping}
    # nvidia-ctk writes an empty "args", which the engine ignores
    fields["args"] = _list(_text)
    yield from _mapping(_fields(fields))(path, value)
    if isinstance(value, dict) and value.get("runc") is not None:
        yield Problem(f"{path}.runc", "is the engine's own runtime, which cannot be set; choose another name")


_LIMIT = _whole(-1)
# Go reads the names in any letter case; these two are what people write.
_ULIMIT = _fields({"Name": _text, "Hard": _LIMIT, "Soft": _LIMIT, "name": _text, "hard": _LIMIT, "soft": _LIMIT})


def _ulimits(path: str, value: Any) -> Iterator[Problem]:
    yield from _mapping(_ULIMIT)(path, value)
    for name, limit in value.items() if isinstance(value, dict) else ():
        # daemon/oci_linux.go takes the limit's name from Name alone, and no container starts without one.
        if isinstance(limit, dict) and limit.get("Name", limit.get("name")) != name:
            yield Problem(f"{path}.{name}", f"must have Name: {name}, or no container would start")


_POOL = _fields({"base": _text, "size": _whole(1, 128)}, required=("base", "size"))


def _pool(path: str, value: Any) -> Iterator[Problem]:
    problems = list(_POOL(path, value))
    yield from problems or pool_problems(path, value)


_TEXTS = _list(_text)
_MIRROR = _matching(r"https?://[^\s?#@]+", "http:// or https:// and a host, without user and query")
_SIZE = _matching(r"(?i)\s*\d+(\.\d*)?\s*([kmgtp]i?b?|b)?\s*", "a size as text, such as '64M'")

KEYS: dict[str, Key] = {
    "allow-direct-routing": Key(_boolean, since=(28, 2)),
    "allow-nondistributable-artifacts": Key(_TEXTS, reload="set"),
    "api-cors-header": Key(_text, until=(28, 5)),
    "authorization-plugins": Key(_TEXTS),  # a reload with a plugin that is not there ends the engine
    "bip": Key(_text),
    "bip6": Key(_text, since=(28, 0)),
    "bridge": Key(_text),
    "bridge-accept-fwmark": Key(_text, since=(29, 0)),
    "builder": Key(_any_mapping),
    "cdi-spec-dirs": Key(_TEXTS, since=(25, 0)),
    "cgroup-parent": Key(_text),
    "cluster-advertise": Key(_text, until=(23, 0)),
    "cluster-store": Key(_text, until=(23, 0)),
    "cluster-store-opts": Key(_mapping(_text), until=(23, 0)),
    "containerd": Key(_text),
    "containerd-namespace": Key(_text),
    "cpu-rt-period": Key(_whole()),
    "cpu-rt-runtime": Key(_whole()),
    "cri-containerd": Key(_boolean),
    "data-root": Key(_matching("/.*", "an absolute path")),
    "debug": Key(_boolean, reload="set"),
    "default-address-pools": Key(_list(_pool)),
    "default-cgroupns-mode": Key(_one_of("host", "private"), reload="set"),
    "default-gateway": Key(_address),
    "default-gateway-v6": Key(_address),
    "default-ipc-mode": Key(_one_of("private", "shareable"), reload="set"),
    "default-network-opts": Key(_mapping(_mapping(_text)), since=(24, 0)),
    "default-runtime": Key(_matching(r".*\S.*", "the name of a runtime"), reload="set"),
    "default-shm-size": Key(_SIZE, reload="set"),
    "default-stop-timeout": Key(_whole(), since=(29, 7), reload="set"),
    "default-ulimits": Key(_ulimits),
    "deprecated-key-path": Key(_text),
    "dns": Key(_list(_address)),
    "dns-opts": Key(_TEXTS),
    "dns-search": Key(_TEXTS),
    "exec-opts": Key(_list(_matching(r"[^=]+=.+", "'name=value', such as 'native.cgroupdriver=systemd'"))),
    "exec-root": Key(_matching("/.*", "an absolute path")),
    "experimental": Key(_boolean),
    "features": Key(_mapping(_boolean)),  # buildkit alone is reloaded, see needs_restart
    "firewall-backend": Key(_one_of("iptables", "nftables"), since=(29, 0)),
    "fixed-cidr": Key(_text),
    "fixed-cidr-v6": Key(_text),
    "graph": Key(_text, until=(23, 0)),
    "group": Key(_text),
    "host-gateway-ip": Key(_address),
    "host-gateway-ips": Key(_list(_address), since=(28, 0)),
    "hosts": Key(_TEXTS),
    "icc": Key(_boolean),
    "init": Key(_boolean),
    "init-path": Key(_text),
    "insecure-registries": Key(_TEXTS, reload="set"),
    "ip": Key(_address),
    "ip-forward": Key(_boolean),
    "ip-forward-no-drop": Key(_boolean, since=(28, 0)),
    "ip-masq": Key(_boolean),
    "ip6tables": Key(_boolean),
    "iptables": Key(_boolean),
    "ipv6": Key(_boolean),
    "labels": Key(_list(_matching(r"[^=\s]+=.*", "'name=value'")), reload="set"),
    "live-restore": Key(_boolean, reload="set"),
    "log-driver": Key(_text),
    "log-format": Key(_one_of("text", "json"), since=(25, 0)),
    "log-level": Key(_one_of("trace", "debug", "info", "warn", "error", "fatal", "panic")),
    "log-opts": Key(_mapping(_text)),
    "max-concurrent-downloads": Key(_whole(), reload="always"),
    "max-concurrent-uploads": Key(_whole(), reload="always"),
    "max-download-attempts": Key(_whole(), reload="always"),
    "metrics-addr": Key(_text),
    "min-api-version": Key(_matching(r"\d+\.\d+", "a version of the API as text, such as '1.40'"), since=(29, 0)),
    "mtu": Key(_whole()),
    "network-control-plane-mtu": Key(_whole()),
    "network-diagnostic-port": Key(_whole(0, 65535)),
    "no-new-privileges": Key(_boolean),
    "node-generic-resources": Key(_TEXTS),
    "nri-opts": Key(
        _fields({"enable": _boolean, "plugin-path": _text, "plugin-config-path": _text, "socket-path": _text}),
        since=(29, 2),
    ),
    "oom-score-adjust": Key(_whole(-1000, 1000), until=(25, 0)),
    "pidfile": Key(_text),
    "proxies": Key(_fields(dict.fromkeys(("http-proxy", "https-proxy", "no-proxy"), _text)), since=(23, 0)),
    "raw-logs": Key(_boolean),
    "registry-mirrors": Key(_list(_MIRROR), reload="set"),
    "rootless": Key(_boolean),
    "runtimes": Key(_runtimes, reload="set"),
    "seccomp-profile": Key(_text),
    "selinux-enabled": Key(_boolean),
    "shutdown-timeout": Key(_whole(-1), reload="set"),
    "storage-driver": Key(_text),
    "storage-opts": Key(_TEXTS),
    "swarm-default-advertise-addr": Key(_text),
    "tls": Key(_boolean),
    "tlscacert": Key(_text),
    "tlscert": Key(_text),
    "tlskey": Key(_text),
    "tlsverify": Key(_boolean),
    "userland-proxy": Key(_boolean),
    "userland-proxy-path": Key(_text),
    "userns-remap": Key(_text),
}
_INSIDE = dict.fromkeys(("http-proxy", "https-proxy", "no-proxy"), "proxies")
_FLAGS_ONLY = (*FLAG_KEYS, "config-file", "containerd-plugins-namespace", "restart", "validate", "version")


def parse_version(text: object) -> tuple[int, int] | None:
    """Major and minor of an engine's version such as ``20.10.24+dfsg1``; ``None`` where the text holds none."""
    found = re.search(r"(\d{1,4})\.(\d{1,4})", text) if isinstance(text, str) else None
    return (int(found.group(1)), int(found.group(2))) if found else None


def check(names: Iterable[str], config: dict[str, Any], version: tuple[int, int] | None) -> list[Problem]:
    """What is wrong with these keys of a configuration, on an engine of this version (``None``: not known)."""
    problems: list[Problem] = []
    for name in names:
        if name not in config:
            continue
        if name in KEYS:
            problems += _dated(name, version)
            problems += KEYS[name].check(name, config[name])
        else:
            problems += _unknown(name, version)
    return problems


def unknown_keys(config: dict[str, Any], version: tuple[int, int] | None) -> list[str]:
    """Keys of the file that an engine of this version does not know, in order."""
    return [name for name in config if name not in KEYS or (version is not None and _dated(name, version))]


def swarm_takes_nftables(version: tuple[int, int] | None, requested: bool | None) -> bool:
    """Whether an engine with the nftables firewall backend may be in a swarm.

    ``IsSwarmCompatible`` in daemon/config/config_linux.go: never before 29.6, and from then on where
    ``features.swarm-nftables`` requests it (moby#52803). Services still lack their load balancer there (moby#53125),
    and this collection has none. ``requested`` is None where that is not known: GET /info does not show it, and then
    the engine is left to judge.
    """
    return requested is not False and (version is None or version >= SWARM_NFTABLES_SINCE)


def swarm_problems(config: dict[str, Any], version: tuple[int, int] | None = None) -> list[Problem]:
    """What of a configuration keeps the engine from being in a swarm (``IsSwarmCompatible`` in moby's source)."""
    problems = []
    if config.get("live-restore") is True:
        problems.append(
            Problem(
                "live-restore",
                "is incompatible with swarm mode, so the engine cannot join a swarm; set it to false or null",
            )
        )
    nftables = config.get("firewall-backend") == "nftables" and config.get("iptables") is not False
    if nftables and not swarm_takes_nftables(version, requests_swarm_nftables(config)):
        text = "nftables is incompatible with swarm mode, so the engine cannot join a swarm; set it to iptables or null"
        problems.append(Problem("firewall-backend", text + _swarm_nftables_hint(version)))
    return problems


def requests_swarm_nftables(config: dict[str, Any]) -> bool:
    """Whether daemon.json has the feature that lets an engine with the nftables backend into a swarm."""
    features = config.get("features")
    return isinstance(features, dict) and features.get(SWARM_NFTABLES) is True


def _swarm_nftables_hint(version: tuple[int, int] | None) -> str:
    if version is None:
        return ""
    if version >= SWARM_NFTABLES_SINCE:
        return f", or set features: {{{SWARM_NFTABLES}: true}}"
    return f" (features.{SWARM_NFTABLES} came with 29.6, and the engine here is {version[0]}.{version[1]})"


def needs_restart(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The changed keys that the engine reads only when it starts; empty where SIGHUP is enough."""
    names = []
    for name in [*before, *(key for key in after if key not in before)]:
        if name in before and name in after and same(before[name], after[name]):
            continue
        reload = KEYS[name].reload if name in KEYS else "never"
        if name == "features":
            reload = "always" if _only_buildkit(before.get(name), after.get(name)) else "never"
        if reload == "never" or (reload == "set" and name not in after):
            names.append(name)
    return names


def _only_buildkit(before: Any, after: Any) -> bool:
    rest = [
        {key: value for key, value in features.items() if key != "buildkit"} if isinstance(features, dict) else {}
        for features in (before, after)
    ]
    return same(*rest)


def _dated(name: str, version: tuple[int, int] | None) -> list[Problem]:
    key = KEYS[name]
    if version is None:
        return []
    here = f"the engine here is {version[0]}.{version[1]}"
    if version < key.since:
        hint = "; set it by a systemd drop-in with HTTP_PROXY instead" if name == "proxies" else ""
        return [Problem(name, f"is supported by engines from {key.since[0]}.{key.since[1]} on, but {here}{hint}")]
    if key.until is not None and version > key.until:
        return [Problem(name, f"was removed after engine {key.until[0]}.{key.until[1]}, but {here}")]
    return []


def _unknown(name: str, version: tuple[int, int] | None) -> list[Problem]:
    if name in _INSIDE:
        return [Problem(name, f"is silently ignored there; write it under {_INSIDE[name]}, as {_INSIDE[name]}.{name}")]
    if name in FLAG_KEYS:
        return [Problem(name, f"is the name of a flag, which the file ignores silently; the key is {FLAG_KEYS[name]}")]
    if name in _FLAGS_ONLY:
        return [Problem(name, "is a flag of dockerd, not a key of its file")]
    near = _meant(name, KEYS)
    if not near and version is not None and version > NEWEST:
        return []
    path = name if re.fullmatch(r"[\w.-]{1,60}", name) else shown(name)
    return [Problem(path, f"is not a key of daemon.json; the engine refuses or ignores it{near}")]


def _meant(name: str, names: Collection[str]) -> str:
    """``, perhaps 'x' is meant`` with the nearest of the names, or nothing where none is near."""
    if len(name) > 100:
        return ""
    plain = name.strip().lower().replace("_", "-")
    near = [known for known in names if known.lower() == plain] or difflib.get_close_matches(plain, names, 1, 0.75)
    return f", perhaps {near[0]!r} is meant" if near else ""
