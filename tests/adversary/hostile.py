# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a node that has been taken over could return: honest facts, hostile values, and every place to put them.

The honest facts are CONSTRUCTED, NOT RECORDED; those of GPU and fabric come from the modules' own RETURN, so that a
field that is documented tomorrow is attacked tomorrow.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.modules import fabric_info, gpu_info

LONG = "A" * 10_000_000
MARK = "OWNED"
"""No output may hold it on a line of its own, or as an option."""

HOSTILE: dict[str, Any] = {
    "an option": f"-oProxyCommand=touch {MARK}",
    "a long option": f"--output=/tmp/{MARK}",
    "a way up": f"../../../../tmp/{MARK}",
    "an absolute path": f"/tmp/{MARK}",
    "a line break": f"10.0.0.1\n    ProxyCommand touch {MARK}",
    "a carriage return": f"eth0\r{MARK}",
    "a line separator": f"eth0\u2028{MARK}",
    "a template": "{{ 7*7 }}",
    "a statement": "{% for x in range(9) %}49{% endfor %}",
    "a shell's substitution": f"$(touch {MARK})",
    "control codes": f"\x1b]0;{MARK}\x07\x1b[2J",
    "ten megabytes": LONG,
    "no number": float("nan"),
    "no end": float("inf"),
    "a giant": 10**400,
    "less than nothing": -1,
    "null": None,
    "true": True,
    "a list": [[]],
    "a mapping": {"": {}},
}

Path = tuple[Any, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the way to each value that holds no others, and to each list and mapping itself."""
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        yield from leaves(item, (*path, key))


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def planted(value: Any, path: Path, hostile: Any) -> Any:
    """Return a copy with a hostile value in one place."""
    found = copy.copy(value)
    found[path[0]] = hostile if len(path) == 1 else planted(found[path[0]], path[1:], hostile)
    return found


def renamed(value: Any, path: Path, hostile: str) -> Any:
    """Return a copy in which one key is a hostile one."""
    if len(path) > 1:
        return planted(value, path[:1], renamed(value[path[0]], path[1:], hostile))
    return {hostile if key == path[0] else key: item for key, item in value.items()}


def sample(document: dict[str, Any]) -> Any:
    """Return an honest value of a field, by its documentation."""
    if "contains" in document:
        one = {name: sample(field) for name, field in document["contains"].items()}
        return [one] if document.get("type") == "list" else one
    if "sample" in document:
        return document["sample"]
    empty: dict[str, Any] = {"bool": False, "int": 0, "float": 0.0, "list": [], "dict": {}, "str": "some-word"}
    return empty[document["type"]]


def returned(module: Any) -> dict[str, Any]:
    # A copy, for callers that change it: ansible-core 2.21's from_yaml() returns the same object for the same text.
    return {name: copy.deepcopy(sample(field)) for name, field in from_yaml(module.RETURN).items()}


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJv1Lr8wqRkQ5jW6eUqQH3rV5b1sV8xT7n2lq0o9mB5c node\n"
KEY_FILE = "/srv/swarmspeed/lab/etc/ssh/ssh_host_ed25519_key.pub"
CLUSTER_KEY = "/srv/swarmspeed/lab/etc/ssh/id_ed25519.pub"


def file(content: str | None = None) -> dict[str, Any]:
    known = {"exists": True, "sha256": "ab" * 32, "mode": "0644", "owner": 0, "group": 0}
    return {**known, "content": content} if content is not None else known


def facts(number: int = 1) -> dict[str, Any]:
    """What node_facts returns of an honest node."""
    name = f"gpu{number}"
    fabric = returned(fabric_info)
    fabric.pop("interface")
    for interface in fabric["interfaces"]:
        interface["addresses"][0]["address"] = f"10.20.0.{number}"
    member = {"id": f"id{number}", "hostname": name, "role": "manager", "state": "ready", "availability": "active"}
    swarm = {
        "state": "active",
        "error": None,
        "node_id": f"id{number}",
        "node_addr": f"10.20.0.{number}",
        "manager": True,
        "cluster_id": "c1",
        "labels": {"swarmspeed.cluster": "lab"},
        "data_path_port": 4789,
        "default_addr_pool": ["10.0.0.0/8"],
        "nodes": [{**member, "addr": f"10.20.0.{number}", "leader": True, "reachability": "reachable"}],
    }
    network = {"id": "n1", "driver": "overlay", "scope": "swarm", "attachable": True, "subnets": ["10.64.0.0/24"]}
    container = {
        "id": "ab12",
        "state": "running",
        "image": "swarmspeed:1",
        "image_id": f"sha256:{'cd' * 32}",
        "labels": {"swarmspeed.address": "10.64.0.9"},
        "addresses": {"lab": "10.64.0.9"},
    }
    return {
        "system": {
            "distribution": "debian",
            "release": "12",
            "codename": "bookworm",
            "kernel": "6.1.0-41-amd64",
            "architecture": "x86_64",
            "python": "3.11.2",
            "cpus": 8,
            "memory_bytes": 1 << 36,
            "hostname": name,
            "systemd": True,
            "time": 1790000000.0,
            "esp": True,
        },
        "clock": {"offset": 0.0, "uncertainty": 0.1},
        "disk": {"/srv": {"free_bytes": 1 << 40, "total_bytes": 1 << 41}},
        "packages": {"docker.io": "20.10.24+dfsg1-1", "rsync": None},
        "files": {KEY_FILE: file(KEY), CLUSTER_KEY: file(KEY), "/etc/hosts": file("127.0.0.1 localhost\n")},
        "trees": {"/srv/workspace": ["train.py"]},
        "assets": {
            "root": "/srv/assets",
            "free_bytes": 1 << 40,
            "filesystem": "ext4",
            "incoming_bytes": 0,
            "recorded": ["net"],
            "found": {
                "net": {
                    **{"recorded": True, "there": True, "digest": "ab" * 32, "changed": ["a"], "missing": ["a"]},
                    "files": {"a": "cd" * 32},
                }
            },
        },
        "folders": {
            "/srv/swarmspeed/lab": {"real": "/srv/swarmspeed/lab", "state": "made"},
            "/srv/swarmspeed/lab/workspace": {"real": "/srv/workspace", "state": "absent"},
        },
        "vscode": {"ab" * 32: {"folder": "me.one-1.0", "intact": True}},
        "code": {
            "left": ["old.py"],
            "copied": {"old.py": "ab" * 32},
            "kept": {"mine.py": "ab" * 32},
            "recorded": True,
            "unneeded": ["cd" * 32],
            "readers": ["digits"],
            "running": {"other": ["train.py"]},
        },
        "groups": {"docker": ["root"]},
        "accounts": {"root": True},
        "sysctls": {"net.core.rmem_max": "212992"},
        "jobs": {"digits": "running"},
        "listening": {"tcp": [22], "udp": [4789]},
        "gpu": returned(gpu_info) | {"slots": 1, "problems": []},
        "driver": None,
        "fabric": fabric,
        "services": {
            "nameservers": ["10.0.0.53"],
            "addresses": {"10.70.0.5": "/etc/apt/apt.conf.d/80proxy"},
            "resolved": {"proxy.example.com": ["10.70.0.5"]},
        },
        "proxies": {"host_apt_proxy": {"address": "proxy:3128", "given": False, "status": 200, "error": ""}},
        "held": ["docker.io"],
        "clock_synchronized": True,
        "engine": {"config_exists": True, "config": {"live-restore": True}, "problem": None, "unit": None},
        "firewall": {
            "active": ["nftables"],
            "ufw": [],
            "iptables": None,
            "nftables": [],
            "ephemeral_ports": [32768, 60999],
            "open": {"ipv4": {"tcp": [[22, 22]], "udp": []}, "ipv6": {"tcp": [], "udp": []}},
        },
        "docker": {
            "installed": True,
            "running": True,
            "version": "20.10.24",
            "root": "/var/lib/docker",
            "error": None,
            "runtimes": ["runc"],
            "settings": {"default_runtime": "runc"},
            "swarm": swarm,
            "networks": {"lab": {**network, "options": {}, "labels": {}}},
            "containers": {"lab-gpu1": container},
            "images": {"swarmspeed:1": f"sha256:{'cd' * 32}"},
            "image_contents": {"swarmspeed:1": f"sha256:{'ef' * 32}"},
        },
    }


def one_line(text: str) -> None:
    """What an error must be: one line of moderate length, without control characters, with a remedy."""
    assert text.isprintable() and len(text) < 2000, text[:300]
    assert "Remedy" in text, text[:300]
