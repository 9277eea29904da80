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

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import (
    Parser,
    UnfitError,
    absolute_path,
    accept,
    address,
    flag,
    hex_digest,
    host_name,
    identity,
    interface,
    lines,
    network,
    number,
    port,
    sentence,
    short_text,
    text,
    whole,
    word,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.shape import (
    by_name,
    data,
    listing,
    mapping,
    one_of,
    optional,
)

_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MODE = re.compile("[0-7]{3,5}")
_CAPABILITY = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_NAME = text(255)
_PATH = text(4096)
"""A path that the node was asked about: looked up by the one who asked, never opened here."""

count = whole()
sentences = listing(sentence, 1000)
names = listing(_NAME)


def _matching(pattern: re.Pattern[str], expected: str) -> Parser:
    def parse(value: Any) -> Any:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise UnfitError(value, expected)
        return value

    return parse


def or_empty(parser: Parser) -> Parser:
    """Take empty text as well, which is what engines say for "none"."""
    return lambda value: value if isinstance(value, str) and not value else parser(value)


def _destination(value: Any) -> Any:
    return value if isinstance(value, str) and value == "default" else network(value)


def _own_name(value: Any) -> Any:
    # What the kernel says of a host that was given no name.
    return value if isinstance(value, str) and value == "(none)" else host_name(value)


def _jobs(value: Any) -> Any:
    """State by job. Folders of other names are none of ours: whoever is root in a container can make one."""
    found = by_name(lines(4096), sentence)(value)
    return {name: state for name, state in found.items() if _JOB.fullmatch(name)}


def _version(value: Any) -> Any:
    return text(200)(value)


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
        "hostname": _own_name,
        "systemd": flag,
        "esp": optional(flag),
    },
)

FILE = mapping(
    {
        "exists": flag,
        "sha256": optional(hex_digest),
        "mode": optional(_matching(_MODE, "a file's mode")),
        "owner": optional(count),
        "group": optional(count),
    },
    {"content": lines(), "marked": flag, "plain": flag},
)

_PCI = mapping(
    {"address": word},
    {
        "class": word,
        "device_id": word,
        "driver": optional(word),
        "numa_node": optional(whole(-1, 4096)),
        "cpu_affinity": optional(short_text),
        "generation": optional(short_text),
        "flavours": optional(names),
        "last_branch": optional(count),
    },
)

_MIG = mapping(
    {},
    {
        "enabled": optional(flag),
        "pending": optional(flag),
        "instances": listing(
            mapping({}, {"memory_bytes": optional(count), "uuid": optional(word), "profile": optional(short_text)}),
            1000,
        ),
    },
)

_GPU = mapping(
    {"index": count},
    {
        "name": optional(short_text),
        "uuid": optional(word),
        "memory_bytes": optional(count),
        "compute_capability": optional(_matching(_CAPABILITY, "a compute capability such as 9.0")),
        "address": optional(word),
        "numa_node": optional(whole(-1, 4096)),
        "cpu_affinity": optional(short_text),
        "generation": optional(short_text),
        "persistence": optional(flag),
        "power_limit_watts": optional(number),
        "ecc": optional(mapping({}, {"enabled": optional(flag)})),
        "mig": optional(_MIG),
        "nvlink": optional(flag),
        "fabric_state": optional(short_text),
    },
)

_LINKS = by_name(_NAME, by_name(_NAME, word))

GPU_INFO = mapping(
    {"present": flag, "slots": whole(0, 1024), "problems": sentences},
    {
        "gpus": listing(_GPU, 1024),
        "pci_devices": listing(_PCI, 4096),
        "nvswitches": listing(_PCI, 4096),
        "notes": sentences,
        "driver": mapping(
            {},
            {
                "loaded": flag,
                "version": optional(_version),
                "flavour": optional(word),
                "library_version": optional(_version),
                "matches": optional(flag),
                "nouveau_loaded": flag,
            },
        ),
        "cuda_version": optional(_version),
        "topology": optional(mapping({}, {"gpus": _LINKS, "nics": _LINKS})),
        "fabric": mapping(
            {},
            {
                "state": optional(short_text),
                "manager_running": optional(flag),
                "manager_version": optional(_version),
            },
        ),
        "secure_boot": optional(flag),
    },
)

_INTERFACE = mapping(
    {
        "name": interface,
        "mtu": whole(0, 1 << 32),
        "state": word,
        "kind": word,
        "addresses": listing(
            mapping(
                {
                    "address": address,
                    "prefix": whole(0, 128),
                    "subnet": network,
                    "family": one_of("inet", "inet6"),
                    "scope": short_text,
                }
            ),
            100_000,
        ),
    },
    {
        "mac": optional(word),
        "parent": optional(interface),
        "master": optional(interface),
        "members": listing(interface, 100_000),
        "speed_mbps": optional(count),
        "driver": optional(short_text),
        "pci_address": optional(word),
        "numa_node": optional(whole(-1, 4096)),
        "offloads": optional(by_name(_NAME, optional(flag))),
    },
)

_RDMA_PORT = mapping(
    {
        "port": whole(0, 65535),
        "state": short_text,
        "physical_state": short_text,
        "rate_gbps": optional(number),
        "link_layer": short_text,
    },
    {
        "gids": listing(
            mapping(
                {"index": count},
                {
                    "gid": address,
                    "type": optional(word),
                    "interface": optional(interface),
                    "address": optional(address),
                },
            ),
            100_000,
        )
    },
)

FABRIC_INFO = mapping(
    {
        "interfaces": listing(_INTERFACE, 100_000),
        "routes": listing(
            mapping(
                {"dst": _destination, "dev": optional(interface)},
                {"gateway": optional(address), "metric": count, "table": word},
            )
        ),
        "problems": sentences,
    },
    {
        "default_interface": optional(interface),
        "interface": optional(interface),
        "infiniband": listing(
            mapping(
                {"name": word, "ports": listing(_RDMA_PORT, 1024)},
                {
                    "interfaces": listing(interface, 1024),
                    "numa_node": optional(whole(-1, 4096)),
                    "pci_address": optional(word),
                    "gpu_distances": by_name(word, word),
                },
            ),
            1024,
        ),
    },
)

_SWARM = mapping(
    {
        "state": word,
        "manager": flag,
        "node_id": optional(identity),
        "nodes": listing(
            mapping(
                {
                    "id": optional(identity),
                    "hostname": optional(_own_name),
                    "role": optional(word),
                    "availability": optional(word),
                    "state": optional(word),
                    "addr": optional(or_empty(address)),
                },
                {"leader": flag, "reachability": optional(or_empty(word))},
            ),
            100_000,
        ),
        "labels": by_name(_NAME, lines(4096)),
    },
    {
        "error": optional(sentence),
        "node_addr": optional(or_empty(address)),
        "cluster_id": optional(identity),
        "data_path_port": optional(port),
        "default_addr_pool": listing(network, 1000),
    },
)

_LABELS = by_name(text(4096), lines(1 << 16))

_DOCKER = mapping(
    {
        "installed": flag,
        "running": flag,
        "swarm": _SWARM,
        "networks": by_name(
            _NAME,
            mapping(
                {"driver": optional(or_empty(_NAME)), "subnets": listing(network, 1000), "options": _LABELS},
                {"id": optional(identity), "scope": optional(word), "attachable": flag, "labels": _LABELS},
            ),
        ),
        "containers": by_name(
            _NAME,
            mapping(
                {"state": optional(word), "labels": _LABELS, "addresses": by_name(_NAME, optional(address))},
                {"id": optional(identity), "image": optional(text(4096)), "image_id": optional(or_empty(identity))},
            ),
        ),
        "images": by_name(text(4096), identity),
        "image_contents": by_name(text(4096), optional(or_empty(identity))),
    },
    {
        "version": optional(_version),
        "root": optional(absolute_path),
        "error": optional(sentence),
        "runtimes": names,
        "settings": data,
    },
)

FACTS = mapping(
    {
        "system": _SYSTEM,
        "packages": by_name(_NAME, optional(_version)),
        "files": by_name(_PATH, FILE),
        "listening": mapping({"tcp": listing(whole(0, 65535)), "udp": listing(whole(0, 65535))}),
        "gpu": GPU_INFO,
        "fabric": FABRIC_INFO,
        "docker": _DOCKER,
    },
    {
        "disk": by_name(_PATH, mapping({"free_bytes": count, "total_bytes": count})),
        "trees": by_name(_PATH, listing(lines(4096))),
        "groups": by_name(_NAME, optional(names)),
        "sysctls": by_name(_NAME, optional(lines(4096))),
        "jobs": _jobs,
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
        "proxies": by_name(_NAME, mapping({})),
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
            },
        ),
        "driver": optional(mapping({})),
    },
)


def node_facts(host: str, reported: Any) -> dict[str, Any]:
    """Return the facts of a host; raises ``ReportedError`` that names the field."""
    bounded = accept(host, "node_facts", reported, data)
    if not isinstance(bounded, Mapping):
        accept(host, "node_facts", reported, mapping({}))
    found: dict[str, Any] = accept(host, "node_facts", bounded, FACTS)
    return found
