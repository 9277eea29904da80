# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What site.yml would change, verify.yml lists: the plan of every role, over invented facts edited by hand."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleError
from ansible.plugins.loader import init_plugin_loader
from ansible_collections.swarmspeed.cluster.plugins.filter import driver, engine
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import PLANNED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.variables import BESIDE, role_specs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.planner import KEY_FILE
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.files import ENTRY_POINT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.gathered import requested as queried_image
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import ManagedFile
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import drift_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.variables import rendered
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.registry.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.registry.planners import planners
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.files import SSHD_CONFIG

from tests.image_nodes import text
from tests.role_values import ROLES, templar, variables
from tests.ssh_nodes import public

ROOT = ROLES.parent
HERE = "gpu2"
ETC = "/srv/swarmspeed/swarmspeed/etc"
IMAGE = "swarmspeed/swarmspeed:1"
SOURCE = str(ROOT / "meta")
PACKAGES = ("ca-certificates", "iproute2", "openssh-client", "docker.io", "python3-docker", "python3-requests")


def clean() -> dict[str, Any]:
    """Return the facts of a host on which nothing is left to do, but for its files."""
    content = "sha256:content"
    return {
        "system": {
            "distribution": "debian",
            "release": "12",
            "codename": "bookworm",
            "memory_bytes": 8 << 30,
            "hostname": HERE,
        },
        "dpkg": {"unfinished": [], "journal": False, "busy": False},
        "packages": dict.fromkeys(PACKAGES, "1"),
        "sysctls": {"net.core.somaxconn": "8192"},
        "firewall": {"active": [], "ufw": [], "iptables": {}, "nftables": [], "ephemeral_ports": [32768, 60999]},
        "groups": {"docker": ["games"]},
        "accounts": {"games": True},
        "held": [],
        "engine": {"config_exists": False, "config": {}, "problem": None, "unit": None},
        "docker": {
            "installed": True,
            "running": True,
            "version": "20.10.24",
            "error": None,
            "swarm": {
                "state": "active",
                "node_id": "id2",
                "manager": True,
                "labels": {"swarmspeed.cluster": "swarmspeed"},
                "nodes": [node("id2", "manager")],
            },
            "networks": {
                "swarmspeed": {
                    "driver": "overlay",
                    "attachable": True,
                    "subnets": ["10.64.0.0/24"],
                    "options": {"com.docker.network.driver.mtu": "9000"},
                }
            },
            "containers": {},
            "images": {IMAGE: "sha256:1"},
            "image_contents": {IMAGE: content},
        },
        "fabric": {"infiniband": []},
        "gpu": {"present": False},
        "driver": None,
        "jobs": {},
        "trees": {"/srv/swarmspeed/swarmspeed/workspace": []},
        "trees_missing": {"/srv/swarmspeed/swarmspeed/workspace": []},
        "files": {},
    }


def node(node_id: str, role: str, availability: str = "active") -> dict[str, Any]:
    return {"id": node_id, "hostname": HERE, "role": role, "availability": availability, "state": "ready"}


def given(facts: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Return the variables of one host that is the whole cluster's first manager, too."""
    found = variables(*PLANNED)
    cluster = {
        **found["swarmspeed_cluster"],
        "first": HERE,
        "hosts": [HERE],
        "managers": [HERE],
        "slots": {HERE: 1},
        "gpus_known": True,
        "host_keys": {HERE: "ssh-ed25519 AAAA comment"},
        "overlay": {"subnet": "10.64.0.0/24", "mtu": 9000, "addresses": {}},
    }
    hostvars = {HERE: {"ansible_facts": {"swarmspeed": facts}}}
    return {
        **found,
        "groups": {"managers": [HERE], "workers": []},
        "inventory_hostname": HERE,
        "swarmspeed_cluster": cluster,
        "swarmspeed_image": IMAGE,
        "ansible_facts": {"swarmspeed": facts},
        "hostvars": hostvars,
        "ansible_play_hosts": [HERE],
        "host_sysctls": {"net.core.somaxconn": 8192},
        "docker_users": ["games"],
        "deepspeed_launch_script": "train.py",
        "workspace_source": SOURCE,
        "deepspeed_launch_ds_config": {"train_micro_batch_size_per_gpu": 1},
        **changed,
    }


@pytest.fixture(scope="module", autouse=True)
def filters() -> None:
    """The filters of these roles, beside those that role_values has, and Ansible's lookups."""
    init_plugin_loader([])
    known = templar({}).environment.filters
    for module in (driver, engine):
        for name, function in module.FilterModule().filters().items():
            known[f"swarmspeed.cluster.{name}"] = function


OF_A_LAB = tuple(role for role in PLANNED if not role.startswith("nvidia_"))
"""Roles that change something on a host without GPU."""


def desired(found: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of all roles as Ansible evaluates them."""
    return dict(rendered((*role_specs().options, *BESIDE), found, templar(found).template, (AnsibleError,)))


def plan_of(role: str, found: dict[str, Any]) -> Plan:
    files = {KEY_FILE: "-----BEGIN PGP PUBLIC KEY BLOCK-----", ENTRY_POINT: "#!/bin/sh\n", SSHD_CONFIG: "Port 2222\n"}
    facts = {HERE: found["ansible_facts"]["swarmspeed"]}
    role_vars = desired(found)
    if role == "training_image":
        files = {name: text(name) for name in planners([role])[0].files(role_vars)}
    inputs = Inputs({**found["swarmspeed_cluster"], "image": IMAGE}, files)
    return fold(planners([role]), facts, {HERE: role_vars}, inputs)


def planned(role: str, found: dict[str, Any]) -> list[str]:
    """Return what verify says of a role that is part of the plan."""
    return [drift_text(change) for change in plan_of(role, found).changes]


@pytest.fixture(scope="module")
def sound() -> dict[str, Any]:
    """Facts of a host on which every file, and the container, is as wanted."""
    facts = clean()
    requested = []
    for role in PLANNED:
        requested += queried_image({}, [GATHERED[role]], desired(given(facts))).get("files", [])
    for path in (templar(given(facts)).template(entry["path"]) for entry in requested):
        facts["files"][path] = {"exists": False, "sha256": None, "mode": None, "owner": None, "group": None}
    for role in PLANNED:
        facts = copy.deepcopy(dict(plan_of(role, given(facts)).facts[HERE]))
    for name in ("id_ed25519", "ssh_host_ed25519_key", "ssh_host_ed25519_key.pub", "id_ed25519.pub"):
        text = public(name) if name.endswith(".pub") else f"{name}\n"
        facts["files"][f"{ETC}/ssh/{name}"] = fact(ManagedFile(f"{ETC}/ssh/{name}", text, mode="0600"), content=text)
    facts["files"][f"{ETC[:-4]}/jobs"] = fact(ManagedFile(f"{ETC[:-4]}/jobs", None, mode="0700"))
    for role in PLANNED:
        facts = dict(plan_of(role, given(facts)).facts[HERE])
    return facts


def fact(item: ManagedFile, **more: Any) -> dict[str, Any]:
    return {"exists": True, "sha256": item.sha256, "mode": item.mode, "owner": 0, "group": 0, "marked": True, **more}


def differs(facts: dict[str, Any], *roles: str, **changed: Any) -> dict[str, tuple[str, ...]]:
    """Return what verify says of these roles; those that would change nothing are left out."""
    found = given(facts, **changed)
    return {role: tuple(planned(role, found)) for role in roles if planned(role, found)}


def test_nothing_differs_where_nothing_was_edited(sound: dict[str, Any]) -> None:
    assert differs(sound, *OF_A_LAB) == {}


Edit = Callable[[dict[str, Any]], Any]


def _file(path: str, **change: Any) -> Edit:
    return lambda facts: facts["files"][path].update(change)


def _of_docker(**change: Any) -> Edit:
    return lambda facts: facts["docker"].update(change)


def _container(facts: dict[str, Any]) -> Any:
    return facts["docker"]["containers"][f"swarmspeed-{HERE}"]


LIMITS = "/etc/security/limits.d/80-swarmspeed.conf"
EDITS: dict[str, tuple[str, Edit, str]] = {
    "a package": (
        "host",
        lambda facts: facts["packages"].update(iproute2=None),
        "package iproute2 is missing",
    ),
    "dpkg": (
        "host",
        lambda facts: facts["dpkg"].update(unfinished=["bc (half-configured)"]),
        "dpkg is interrupted: bc (half-configured), but should be every package configured",
    ),
    "dpkg's journal": (
        "host",
        lambda facts: facts["dpkg"].update(journal=True),
        "dpkg is interrupted: journal in /var/lib/dpkg/updates, but should be every package configured",
    ),
    "limits": ("host", _file(LIMITS, sha256="other"), f"{LIMITS} has other content"),
    "limits' mode": (
        "host",
        _file(LIMITS, mode="0666"),
        f"{LIMITS} is mode 0666, owner 0, group 0, but should be mode 0644, owner 0, group 0",
    ),
    "exclusions": (
        "host",
        _file("/etc/apt/apt.conf.d/52swarmspeed", exists=False),
        "/etc/apt/apt.conf.d/52swarmspeed is missing",
    ),
    "a proxy that is not asked for": (
        "host",
        _file("/etc/apt/apt.conf.d/80swarmspeed-proxy", exists=True),
        "/etc/apt/apt.conf.d/80swarmspeed-proxy exists, but should not",
    ),
    "a certificate authority that is not asked for": (
        "host",
        _file("/etc/ssl/certs/swarmspeed.pem", exists=True),
        "trust in /usr/local/share/ca-certificates/swarmspeed.crt exists, but should not",
    ),
    "a kernel parameter": (
        "host",
        lambda facts: facts["sysctls"].update({"net.core.somaxconn": "128"}),
        "kernel parameter net.core.somaxconn is 128, but should be 8192",
    ),
    "a user": ("docker", lambda facts: facts["groups"].update(docker=[]), "user games in group docker is missing"),
    "a library": (
        "docker",
        lambda facts: facts["packages"].update({"python3-docker": None}),
        "package python3-docker is missing",
    ),
    "a drop-in of the engine": (
        "docker",
        _file("/etc/systemd/system/docker.service.d/swarmspeed-proxy.conf", exists=True),
        "/etc/systemd/system/docker.service.d/swarmspeed-proxy.conf exists, but should not",
    ),
    "availability": (
        "swarm",
        lambda facts: facts["docker"]["swarm"].update(nodes=[node("id2", "manager", "drain")]),
        "availability in swarm swarmspeed is drain, but should be active",
    ),
    "a stale node": (
        "swarm",
        lambda facts: facts["docker"]["swarm"]["nodes"].append({**node("old", "worker"), "state": "down"}),
        f"node {HERE} (old) of swarm swarmspeed exists, but should not",
    ),
    "the network's MTU": (
        "overlay_network",
        lambda facts: facts["docker"]["networks"]["swarmspeed"]["options"].update(
            {"com.docker.network.driver.mtu": "1200"}
        ),
        "MTU of network swarmspeed is 1200, but should be 9000",
    ),
    "the image": ("training_image", _of_docker(images={}, image_contents={}), f"image {IMAGE} is missing"),
    "a folder": (
        "ssh_trust",
        _file(ETC, mode="0755"),
        f"{ETC} is mode 0755, owner 0, group 0, but should be mode 0700, owner 0, group 0",
    ),
    "a public host key": (
        "ssh_trust",
        _file(f"{ETC}/ssh/ssh_host_ed25519_key.pub", exists=False),
        f"{ETC}/ssh/ssh_host_ed25519_key.pub is missing",
    ),
    "sshd's configuration": (
        "ssh_trust",
        _file(f"{ETC}/ssh/sshd_config", mode="0666"),
        f"{ETC}/ssh/sshd_config is mode 0666, owner 0, group 0, but should be mode 0644, owner 0, group 0",
    ),
    "nccl.conf": ("nccl_env", _file(f"{ETC}/nccl.conf", sha256="other"), f"{ETC}/nccl.conf has other content"),
    "the environment": (
        "nccl_env",
        _file(f"{ETC}/env", mode="0644"),
        f"{ETC}/env is mode 0644, owner 0, group 0, but should be mode 0600, owner 0, group 0",
    ),
    "the entry point": ("nccl_env", _file(f"{ETC}/entrypoint.sh", exists=False), f"{ETC}/entrypoint.sh is missing"),
    "the container": (
        "training_container",
        lambda facts: _container(facts).update(state="exited"),
        f"container swarmspeed-{HERE} is exited, but should be running",
    ),
    "the container's network": (
        "training_container",
        lambda facts: _container(facts).update(addresses={}),
        f"network swarmspeed of container swarmspeed-{HERE} is missing",
    ),
    "the hostfile": (
        "deepspeed_launch",
        _file(f"{ETC}/hostfile", sha256="other", content="gpu2 slots=9\n"),
        f"{ETC}/hostfile has other content",
    ),
    "ds_config.json": (
        "deepspeed_launch",
        _file(f"{ETC}/ds_config.json", exists=False),
        f"{ETC}/ds_config.json is missing",
    ),
    "ds_config.json's mode": (
        "deepspeed_launch",
        _file(f"{ETC}/ds_config.json", mode="0600"),
        f"{ETC}/ds_config.json is mode 0600, owner 0, group 0, but should be mode 0644, owner 0, group 0",
    ),
    "code": (
        "workspace",
        lambda facts: facts["trees"].update({"/srv/swarmspeed/swarmspeed/workspace": ["train.py"]}),
        f"/srv/swarmspeed/swarmspeed/workspace/train.py is different, but should be as in {SOURCE}",
    ),
}


@pytest.mark.parametrize(("role", "edit", "what"), EDITS.values(), ids=EDITS)
def test_what_was_edited_by_hand_is_named(sound: dict[str, Any], role: str, edit: Edit, what: str) -> None:
    facts = copy.deepcopy(sound)
    edit(facts)
    assert what in differs(facts, role)[role]


@pytest.mark.parametrize("availability", ["drain", "pause"])
def test_a_node_that_is_to_be_drained_is_as_asked(sound: dict[str, Any], availability: str) -> None:
    facts = copy.deepcopy(sound)
    facts["docker"]["swarm"]["nodes"] = [node("id2", "manager", availability)]
    assert differs(facts, "swarm", swarm_availability=availability) == {}
    assert differs(sound, "swarm", swarm_availability=availability) == {
        "swarm": (f"availability in swarm swarmspeed is active, but should be {availability}",)
    }


def test_a_secret_is_not_in_what_is_reported(sound: dict[str, Any]) -> None:
    facts = copy.deepcopy(sound)
    token = "hunter2-" + hashlib.sha256(b"x").hexdigest()
    what = differs(facts, "nccl_env", nccl_env_environment={"HF_TOKEN": token})
    assert what == {"nccl_env": (f"{ETC}/env has other content",)}


def test_a_failure_says_where_the_list_comes_from() -> None:
    path = Path(ROOT / "playbooks/tasks")
    (asserted,) = yaml.safe_load((path / "drift_found.yml").read_text(encoding="utf-8"))
    failed = (path / "verify_failed.yml").read_text(encoding="utf-8")
    assert failed.count(asserted["name"]) == 2
