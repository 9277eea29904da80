# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What node_facts may return: the shape of ``ansible_facts.swarmspeed``, checked on the controller as it arrives.

Everything that concerns more than one node is made of these facts, so a role need not ask again whether an address is
one. Keys that are named nowhere stay, within bounds of size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...module_utils.common.reported import (
    absolute_path,
    accept,
    address,
    flag,
    hex_digest,
    lines,
    number,
    sentence,
    text,
    whole,
    word,
)
from ...module_utils.owned.names import OF_ETC
from ...module_utils.owned.record import STATES
from .docker import DOCKER
from .fabric import FABRIC_INFO
from .gpu import CDI, GPU_INFO
from .shape import (
    NAME,
    by_name,
    count,
    data,
    listing,
    mapping,
    matching,
    names,
    one_of,
    optional,
    or_empty,
    own_name,
    version,
)

_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MODE = re.compile("[0-7]{3,5}")
_PATH = text(4096)
"""A path that the node was asked about: resolved by the one who asked, never opened here."""


_RANGES = listing(listing(whole(0, 65535), 2), 64)
_OPEN = mapping({"tcp": _RANGES, "udp": _RANGES})


def _jobs(value: Any) -> Any:
    """State by job. Folders of other names are not jobs: whoever is root in a container can make one."""
    found = by_name(lines(4096), sentence)(value)
    return {name: state for name, state in found.items() if _JOB.fullmatch(name)}


def _succeeded(value: Any) -> Any:
    found = by_name(lines(4096), mapping({"spec": hex_digest, "finished_at": sentence}))(value)
    return {name: job for name, job in found.items() if _JOB.fullmatch(name)}


_SYSTEM = mapping(
    {
        "distribution": word,
        "release": or_empty(word),
        "architecture": word,
        "kernel": word,
        "memory_bytes": count,
        "time": number,
    },
    {
        "codename": or_empty(word),
        "python": word,
        "cpus": count,
        "hostname": own_name,
        "systemd": flag,
        "esp": optional(flag),
    },
)

FILE = mapping(
    {
        "exists": flag,
        "sha256": optional(hex_digest),
        "mode": optional(matching(_MODE, "a file's mode")),
        "owner": optional(count),
        "group": optional(count),
    },
    {"content": lines(), "marked": flag},
)

_ASSET = mapping(
    {"recorded": flag, "there": flag, "digest": or_empty(hex_digest), "changed": listing(lines(4096))},
    {"missing": listing(lines(4096)), "files": by_name(lines(4096), hex_digest)},
)


def _code(value: Any) -> Any:
    """Code in the workspace; empty where it was not asked about."""
    return value if isinstance(value, Mapping) and not value else _CODE(value)


_CODE = mapping(
    {
        "left": listing(lines(4096)),
        "copied": by_name(lines(4096), hex_digest),
        "kept": by_name(lines(4096), hex_digest),
        "recorded": flag,
        "unneeded": listing(hex_digest),
        "readers": names,
        "running": by_name(NAME, listing(lines(4096))),
    }
)


def _assets(value: Any) -> Any:
    """Models and data sets; empty where none were asked about."""
    return value if isinstance(value, Mapping) and not value else _ASSETS(value)


_ASSETS = mapping(
    {"root": _PATH, "free_bytes": count, "filesystem": or_empty(word), "found": by_name(NAME, _ASSET)},
    {"incoming_bytes": count, "recorded": names},
)

FACTS = mapping(
    {
        "system": _SYSTEM,
        "packages": by_name(NAME, optional(version)),
        "files": by_name(_PATH, FILE),
        "listening": mapping({"tcp": listing(whole(0, 65535)), "udp": listing(whole(0, 65535))}),
        "gpu": GPU_INFO,
        "fabric": FABRIC_INFO,
        "docker": DOCKER,
    },
    {
        "disk": by_name(_PATH, mapping({"free_bytes": count, "total_bytes": count})),
        "trees": by_name(_PATH, listing(lines(4096))),
        "trees_missing": by_name(_PATH, listing(lines(4096))),
        "code": _code,
        "groups": by_name(NAME, optional(names)),
        "accounts": by_name(NAME, flag),
        "sysctls": by_name(NAME, optional(lines(4096))),
        "jobs": _jobs,
        "jobs_succeeded": _succeeded,
        "assets": _assets,
        "folders": by_name(
            _PATH, mapping({"real": absolute_path, "state": one_of(*STATES)}, {"replaced": listing(one_of(*OF_ETC))})
        ),
        "vscode": by_name(hex_digest, mapping({"folder": word, "intact": flag})),
        "reach": by_name(NAME, mapping({"stage": word}, {"error": sentence})),
        "held": names,
        "clock_synchronized": optional(flag),
        "services": mapping(
            {},
            {
                "nameservers": names,
                "addresses": by_name(text(4096), text(4096)),
                "resolved": by_name(text(4096), listing(address, 10_000)),
            },
        ),
        "proxies": by_name(NAME, mapping({})),
        "engine": mapping(
            {},
            {
                "config_exists": flag,
                "config": optional(by_name(lines(4096), data)),
                "problem": optional(sentence),
                "unit": optional(mapping({})),
            },
        ),
        "firewall": mapping(
            {},
            {
                "active": names,
                "ufw": listing(mapping({})),
                "iptables": optional(mapping({})),
                "nftables": listing(mapping({})),
                "ephemeral_ports": optional(listing(whole(0, 65535), 2)),
                "open": mapping({"ipv4": _OPEN, "ipv6": _OPEN}),
            },
        ),
        "driver": optional(mapping({})),
        "cdi": optional(CDI),
    },
)


def node_facts(host: str, reported: Any) -> dict[str, Any]:
    """Return the facts of a host; raises ``ReportedError`` that names the field."""
    bounded = accept(host, "node_facts", reported, data)
    if not isinstance(bounded, Mapping):
        accept(host, "node_facts", reported, mapping({}))
    found: dict[str, Any] = accept(host, "node_facts", bounded, FACTS)
    return found
