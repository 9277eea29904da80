# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which role records which folders, and that adopting a cluster from before does nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan

from tests import nccl_nodes, ssh_nodes, training_nodes, workspace_nodes

ROOT = workspace_nodes.ROOT


def folders(top: str = ROOT, /, **states: str) -> dict[str, dict[str, str]]:
    """Facts of folders: ``root`` is the node state directory, the others lie in it."""
    paths = {name: top if name == "root" else f"{top}/{name}" for name in states}
    return {paths[name]: {"real": paths[name], "state": state} for name, state in states.items()}


def records(made: Plan) -> list[str]:
    return [change.what.rpartition(" ")[2] for change in made.changes if change.what.startswith("record of folder ")]


def owned(made: Plan, host: str, role: str) -> list[str]:
    return [entry["path"] for entry in made.task_inputs[host][role]["owned"]]


def test_ssh_trust_records_the_node_state_directory_before_it_writes_keys() -> None:
    facts = {
        host: {**found, "folders": folders(root="absent", etc="absent")} for host, found in ssh_nodes.virgin().items()
    }
    made = ssh_nodes.plan(facts)
    host = ssh_nodes.FIRST
    assert owned(made, host, "ssh_trust") == [ROOT, f"{ROOT}/etc"]
    assert [change.what for change in made.of("ssh_trust", host)][:2] == [
        f"record of folder {ROOT}",
        f"record of folder {ROOT}/etc",
    ]
    assert made.facts[host]["folders"] == folders(root="ours", etc="ours")


def test_adopting_is_all_that_is_planned_for_a_cluster_that_is_complete() -> None:
    complete = ssh_nodes.running(ssh_nodes.complete())
    made = ssh_nodes.plan(
        {host: {**found, "folders": folders(root="made", etc="made")} for host, found in complete.items()}
    )
    assert records(made) == [change.what.rpartition(" ")[2] for change in made.changes]
    task_input = ssh_nodes.task_input(made, ssh_nodes.FIRST)
    assert (task_input["files"], task_input["provide"], task_input["reload"]) == ([], {}, [])
    assert ssh_nodes.plan(made.facts).changes == ()


def test_nccl_env_records_jobs_where_they_are_and_restarts_nothing() -> None:
    host = nccl_nodes.done(nccl_nodes.host(state="running"))
    found = {**host, "folders": folders(root="ours", etc="ours", jobs="made", host_jobs="absent")}
    made = nccl_nodes.plan(found)
    assert records(made) == [f"{ROOT}/jobs"] == owned(made, nccl_nodes.HOST, "nccl_env")
    assert (nccl_nodes.task_input(made)["files"], nccl_nodes.task_input(made)["render"]) == ([], [])
    assert nccl_nodes.plan(made.facts[nccl_nodes.HOST]).changes == ()


def test_nccl_env_records_the_jobs_of_servers_without_docker_once() -> None:
    host = nccl_nodes.done(nccl_nodes.host(), **nccl_nodes.ON_THE_HOST)
    found = {**host, "folders": folders(root="ours", etc="ours", jobs="empty", host_jobs="absent")}
    made = nccl_nodes.plan(found, **nccl_nodes.ON_THE_HOST)
    # Both before the first job makes one, or the run after it would have something to record.
    assert records(made) == [f"{ROOT}/jobs", f"{ROOT}/host_jobs"] == owned(made, nccl_nodes.HOST, "nccl_env")


def test_a_container_is_not_made_again_for_a_record() -> None:
    of = training_nodes
    states = folders(of.ROOT, root="made", jobs="made", workspace="made")
    made = of.plan(of.facts(of.running(), folders=states))
    assert made.changes == () and of.task_input(made)["make"] == {}
    first = of.plan(of.facts(folders=folders(of.ROOT, root="ours", jobs="absent", workspace="in_use")))
    assert owned(first, of.HOST, of.ROLE) == [f"{of.ROOT}/jobs", f"{of.ROOT}/workspace"]
    assert first.facts[of.HOST]["folders"] == folders(of.ROOT, root="ours", jobs="ours", workspace="theirs")


@pytest.mark.parametrize(
    ("missing", "states", "expected"),
    [
        ([], {"root": "ours", "workspace": "made"}, [f"{ROOT}/workspace"]),
        ([], {"root": "absent", "workspace": "absent"}, []),
        (["train.py"], {"root": "absent", "workspace": "absent"}, [ROOT, f"{ROOT}/workspace"]),
        (["train.py"], {"root": "ours", "workspace": "theirs"}, []),
    ],
)
def test_the_workspace_is_recorded_before_code_is_sent_or_where_it_is(
    missing: list[str], states: dict[str, str], expected: list[str]
) -> None:
    found = workspace_nodes.host(missing=missing, folders=folders(**states))
    made = workspace_nodes.plan(
        found, workspace_source="https://example.com/t.git", swarmspeed_source={"folder": "/src", "name": "t"}
    )
    assert records(made) == expected == [entry["path"] for entry in workspace_nodes.task_input(made)["owned"]]
    assert bool(workspace_nodes.task_input(made)["code"]) == bool(missing)


def test_folders_that_links_on_the_host_lay_over_each_other_are_refused_before_a_container_mounts_them() -> None:
    of = training_nodes
    leads: dict[str, Any] = {f"{of.ROOT}/workspace": {"real": f"{of.ROOT}/etc", "state": "in_use"}}
    (refusal,) = of.plan(of.facts(folders=leads)).refusals
    assert refusal.text.startswith(
        f"workspace_path: {of.ROOT}/workspace, which leads to {of.ROOT}/etc, is cluster_root/etc"
    )
    system = {of.ROOT: {"real": "/etc", "state": "in_use"}}
    assert "cluster_root: /srv/lab leads to /etc, which is a folder of the operating system" in "\n".join(
        refusal.text for refusal in of.plan(of.facts(folders=system)).refusals
    )


def of_a_team(mode: str = "0755") -> dict[str, Any]:
    return {"exists": True, "directory": True, "mode": mode, "owner": 1000, "group": 1000}


@pytest.mark.parametrize("state", ["in_use", "theirs"])
def test_a_folder_that_somebody_else_made_keeps_its_mode_and_owner(state: str) -> None:
    facts = {
        host: {**found, "files": {**found["files"], ROOT: of_a_team()}, "folders": folders(root=state, etc="absent")}
        for host, found in ssh_nodes.virgin().items()
    }
    made = ssh_nodes.plan(facts)
    written = [entry["path"] for entry in ssh_nodes.task_input(made, ssh_nodes.FIRST)["folders"]]
    assert ROOT not in written and f"{ROOT}/etc" in written
    assert made.facts[ssh_nodes.FIRST]["files"][ROOT] == of_a_team()

    found = nccl_nodes.host()
    files = {**found["files"], nccl_nodes.ROOT: of_a_team()}
    nccl = nccl_nodes.plan({**found, "files": files, "folders": folders(nccl_nodes.ROOT, root=state, etc="absent")})
    assert [entry["path"] for entry in nccl_nodes.task_input(nccl)["folders"]] == [nccl_nodes.ETC] and not nccl.refusals

    of = training_nodes
    for whose, corrected in ((state, []), ("ours", [f"{of.ROOT}/workspace"])):
        known = of.facts(folders=folders(of.ROOT, root="ours", jobs="ours", workspace=whose))
        known["files"] = {**known["files"], f"{of.ROOT}/workspace": of_a_team()}
        assert [entry["path"] for entry in of.task_input(of.plan(known))["folders"]] == corrected


@pytest.mark.parametrize(("mode", "refused"), [("0755", False), ("1777", True), ("0775", True), ("0757", True)])
def test_root_puts_nothing_where_others_could_replace_it(mode: str, refused: bool) -> None:
    found, root = nccl_nodes.host(), nccl_nodes.ROOT
    files = {**found["files"], root: of_a_team(mode)}
    for state in ("in_use", "ours"):  # the mode of our own is corrected
        made = nccl_nodes.plan({**found, "files": files, "folders": folders(root, root=state)})
        assert [one.sentence for one in made.refusals] == [
            f"{root} existed before this collection, and other accounts than its owner can write there (mode {mode}) "
            f"and so replace what root puts there. Remedy: chmod go-w {root} there, or set another cluster_root"
        ] * (refused and state == "in_use")


@pytest.mark.parametrize(
    ("state", "on_hosts", "refused"), [("in_use", False, True), ("ours", False, False), ("theirs", True, False)]
)
def test_sshd_in_containers_needs_a_folder_of_root(state: str, on_hosts: bool, refused: bool) -> None:
    """Seen in the lab: "Permission denied (publickey)", as sshd checks who owns the folder of authorized_keys."""
    found, etc = nccl_nodes.host(), nccl_nodes.ETC
    facts = {
        **found,
        "files": {**found["files"], etc: of_a_team()},
        "folders": folders(nccl_nodes.ROOT, root="ours", etc=state),
    }
    made = nccl_nodes.plan(facts, **(nccl_nodes.ON_THE_HOST if on_hosts else {}))
    assert [one.sentence for one in made.refusals] == [
        f"{etc} existed before this collection and belongs to user 1000, but sshd in the container accepts keys only "
        f"from a folder of root. Remedy: chown root {etc} there, or set another cluster_root"
    ] * refused
