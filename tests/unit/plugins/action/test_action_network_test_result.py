# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The verdict on the controller: what is written, what is said, what a role that failed leaves. Hosts are invented."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.action import network_test_result
from ansible_collections.swarmspeed.cluster.plugins.modules import network_test_result as documented
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import NAMES, requested_roles, role_of
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.fabric.document import (
    versions_of,
)

NODES = ["gpu1", "gpu2"]
FACTS = {
    "system": {"distribution": "debian", "release": "13", "kernel": "6.12.1"},
    "docker": {"version": "26.1.5"},
    "gpu": {"driver_version": None},
}


def started(name: str) -> dict[str, Any]:
    versions = {"python": "3.11.2", "torch": "2.13.0", "deepspeed": "0.19.8"}
    return {"trouble": {}, "ready": {"inner": {"interface": "eth0", "versions": versions}, "outer": {}}, "n": name}


def ended(name: str, **change: Any) -> dict[str, Any]:
    other = "gpu2" if name == "gpu1" else "gpu1"
    one = {"to": other, "check": "tcp", "ok": True, "value": 0.4, "said": "10.0.0.2 port 29599", "end": "inner"}
    seen = {**one, "check": "udp 4789", "end": "outer", "value": None, "said": ""}
    collective = {"ok": True, "said": "9 reductions of 1024 KiB over 2 nodes", "interfaces": ["eth0"], "seconds": 2.0}
    return {"trouble": {}, "pairs": [one, seen], "seen": {other: [4789]}, "collective": collective, **change}


def run(
    args: dict[str, Any], check_mode: bool = False, tags: tuple[str, ...] = ("all",), **variables: Any
) -> dict[str, Any]:
    hostvars = {name: {"ansible_facts": {"swarmspeed": FACTS}, **variables.get(name, {})} for name in NODES}
    action = network_test_result.ActionModule(
        task=SimpleNamespace(args=args, check_mode=check_mode, async_val=0, diff=False, action="network_test_result"),
        connection=SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)),  # with it, nothing can be done on a node
        play_context=None,
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )
    result: dict[str, Any] = action.run(
        task_vars={"hostvars": hostvars, "ansible_run_tags": list(tags), "ansible_skip_tags": []}
    )
    return result


def args(folder: Path | str, **change: Any) -> dict[str, Any]:
    return {
        "cluster": "ai",
        "hosts": NODES,
        "started": {name: started(name) for name in NODES},
        "ended": {name: ended(name) for name in NODES},
        "wanted": {"network": "container", "data_port": 4789, "clock": "30", "encrypted": False},
        "began": time.time() - 9.5,
        "reports_dir": str(folder),
        **change,
    }


def test_what_was_found_is_written_whole(tmp_path: Path) -> None:
    result = run(args(tmp_path / "reports" / "ai"))
    assert not result["failed"] and not result["changed"]
    path = tmp_path / "reports" / "ai" / "verify.json"
    assert result["report"] == str(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [left.name for left in path.parent.iterdir()] == ["verify.json"]
    made = json.loads(path.read_text(encoding="utf-8"))
    assert list(made) == ["version", "cluster", "time", "seconds", "nodes", "roles", "pairs", "collective", "versions"]
    assert (made["version"], made["cluster"], made["nodes"]) == (1, "ai", NODES)
    assert 9 < made["seconds"] < 60
    assert made["time"].endswith("Z") and "T" in made["time"]
    assert list(made["roles"]) == list(NAMES) and all(role["ok"] for role in made["roles"].values())
    assert {(one["from"], one["to"], one["check"], one["ok"]) for one in made["pairs"]} == {
        (source, target, check, True)
        for source, target in (("gpu1", "gpu2"), ("gpu2", "gpu1"))
        for check in ("tcp", "udp 4789")
    }
    assert made["collective"]["interfaces"] == {"gpu1": "eth0", "gpu2": "eth0"}
    assert made["versions"]["gpu1"]["system"] == "debian 13"
    assert made["versions"]["gpu1"]["torch"] == "2.13.0" and made["versions"]["gpu1"]["driver"] is None
    assert result["msg"].startswith("Fabric: 1 pair of 2 nodes in ") and "gloo over eth0: 9 reductions" in result["msg"]
    assert result["msg"].endswith(f"Written to {path}.")


def test_in_check_mode_and_with_tags_nothing_is_written(tmp_path: Path) -> None:
    assert run(args(tmp_path), check_mode=True)["report"] == ""
    assert run(args(tmp_path), tags=("ssh_trust",))["report"] == ""
    assert run(args(""))["report"] == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("hcas", "fails"), [({"gpu1": "=mlx5_0:1", "gpu2": ""}, True), ({"gpu2": ""}, False)])
def test_sockets_where_hcas_were_chosen_fail_the_run(hcas: dict[str, str], fails: bool, tmp_path: Path) -> None:
    """The line is that of NVIDIA/nccl#1410, with another address."""
    log = ["gpu1:1:2 [0] NCCL INFO NET/Socket : Using [0]eth0:10.64.0.4<0>"]
    collective = {"ok": True, "said": "9 reductions", "interfaces": [], "seconds": 2.0, "log": log}
    given = args(tmp_path, ended={name: ended(name, collective=collective) for name in NODES}, backend="nccl")
    given["wanted"] = {**given["wanted"], "hcas": hcas}
    result = run(given)
    assert result["failed"] is fails
    assert ("gpu1: NCCL fell back to sockets (eth0)" in result["msg"]) is fails
    assert json.loads((tmp_path / "verify.json").read_text(encoding="utf-8"))["collective"]["ok"] is not fails


def test_a_pair_that_fails_fails_the_run_and_is_written(tmp_path: Path) -> None:
    result = run(args(tmp_path, ended={"gpu1": ended("gpu1"), "gpu2": ended("gpu2", seen={})}))
    assert result["failed"]
    assert result["msg"].startswith(
        "The network between the nodes has 1 problem.\n1. gpu1 -> gpu2: between the hosts, UDP"
    )
    made = json.loads((tmp_path / "verify.json").read_text(encoding="utf-8"))
    (failed,) = [one for one in made["pairs"] if not one["ok"]]
    assert failed["reason"].startswith("port closed") and failed["remedy"].startswith("open 4789/udp")


def test_a_role_that_failed_is_kept_with_its_words_and_those_before_it(tmp_path: Path) -> None:
    reported = "gpu2: not in the swarm ai.\nRemedy: ansible-playbook site.yml --tags swarm"
    result = run(
        {"cluster": "ai", "hosts": NODES, "began": time.time(), "failed": True, "reports_dir": str(tmp_path)},
        gpu2={"_verify_failed": {"tags": ["swarm", "verify"], "reported": reported}},
    )
    assert result["failed"] and result["msg"].startswith("Verify ended at the role swarm: see above.")
    made = json.loads((tmp_path / "verify.json").read_text(encoding="utf-8"))
    assert list(made["roles"])[-1] == "swarm"
    assert made["roles"]["swarm"] == {"ok": False, "sentence": " ".join(reported.split())}
    assert made["roles"]["docker"]["ok"] is True
    assert (made["pairs"], made["collective"]) == ([], None)


def test_a_failure_whose_role_is_not_known_blames_none(tmp_path: Path) -> None:
    result = run({"cluster": "ai", "hosts": NODES, "began": time.time(), "failed": True, "reports_dir": str(tmp_path)})
    assert result["failed"] and result["msg"].startswith("Verify ended: see above.")
    assert json.loads((tmp_path / "verify.json").read_text(encoding="utf-8"))["roles"] == {}


def test_a_folder_that_cannot_be_written_to_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(AnsibleActionFail, match="Remedy: set cluster_reports_dir to a folder that you may write to"):
        run(args(tmp_path / "file" / "reports"))


@pytest.mark.parametrize(
    "tags, skip, roles",
    [
        (["all"], [], list(NAMES)),
        (["verify"], [], list(NAMES)),
        (["all"], ["docker"], [role for role in NAMES if role != "docker"]),
        (["ssh_trust"], [], ["preflight", "ssh_trust"]),
    ],
)
def test_the_roles_that_were_walked_follow_from_the_tags(tags: list[str], skip: list[str], roles: list[str]) -> None:
    assert requested_roles(tags, skip) == roles


@pytest.mark.parametrize(
    "tags, role",
    [
        (["swarm"], "swarm"),
        (["verify", "nccl_env"], "nccl_env"),
        (["always"], "preflight"),
        (["fabric", "overlay_network", "ssh_trust"], ""),
        ([], ""),
    ],
)
def test_a_task_is_its_roles_by_its_tag(tags: list[str], role: str) -> None:
    assert role_of(tags) == role


def test_the_documented_options_are_those_of_the_action() -> None:
    options = from_yaml(documented.DOCUMENTATION)["options"]
    given = {"cluster": "ai", "hosts": NODES, "began": 1.0}
    with pytest.raises(AnsibleActionFail, match="Unsupported parameters") as refused:
        run({**given, "no_such": 1})
    assert all(name in str(refused.value) for name in options)


@pytest.mark.parametrize(
    ("packages", "nccl"),
    [
        ({"torch": "2.10.0", "nvidia-nccl-cu12": "2.27.5", "nvidia-nccl-cu13": None}, "2.27.5"),
        ({"torch": "2.12.1", "nvidia-nccl-cu12": None, "nvidia-nccl-cu13": "2.29.7"}, "2.29.7"),
        ({"torch": "2.12.1", "nvidia-nccl-cu12": "2.27.5", "nvidia-nccl-cu13": "2.29.7"}, "2.29.7"),
        ({"torch": "2.12.1+cu126", "nvidia-nccl-cu12": "2.27.5", "nvidia-nccl-cu13": "2.29.7"}, "2.27.5"),
        ({"torch": "2.13.0"}, None),
    ],
)
def test_nccl_is_that_of_pytorchs_own_cuda(packages: dict[str, Any], nccl: str | None) -> None:
    assert versions_of({}, {"inner": {"versions": packages}}, "")["nccl"] == nccl
    assert versions_of({}, {"inner": {"versions": packages}}, "2.30.7")["nccl"] == "2.30.7"
