# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role nvidia_container_toolkit: what it plans, refuses and needs consent for; and searched."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.state import engine_settings
from ansible_collections.swarmspeed.cluster.plugins.modules import package_preview
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.planner import DockerPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.gathered import (
    GATHERED,
    PACKAGES,
    RECORD_PATH,
    SOURCES_PATH,
    SPEC_PATH,
    STALE_SOURCES,
    STAMP_PATH,
    UNIT_PATH,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.planner import (
    KEY_FILE,
    NOTHING,
    STAND_IN,
    NvidiaContainerToolkitPlanner,
    request,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.smoke import PROGRAM
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.planner import NvidiaDriverPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs, Unknown
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Planner, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.requested import Requested
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import drift_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.facts import FACT_CHECKS, Facts
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.driver_hosts import facts as driver_facts
from tests.effort import examples
from tests.engine_hosts import INPUTS as ENGINE_INPUTS
from tests.role_values import ROLES
from tests.toolkit_hosts import CDI_INFO, CUDA, INSTALLED, KEY, WISHES, act, done, kept, node, planned, shown

ROLE = "nvidia_container_toolkit"
RUNNING = {"containers": {"job": {"state": "running"}}}

# What is gathered


def test_whatever_is_compared_is_gathered() -> None:
    entries = {entry["path"]: entry for entry in GATHERED.files}
    every = {entry["path"] for entry in act(planned(node()))["files"]} | set(STALE_SOURCES)
    assert every | {RECORD_PATH, STAMP_PATH, SPEC_PATH, SOURCES_PATH} == set(entries)
    assert entries[RECORD_PATH]["content"] is entries[STAMP_PATH]["content"] is True  # they are read
    assert set(PACKAGES) <= set(GATHERED.packages)


def test_the_key_is_that_of_the_role_unless_another_is_given() -> None:
    assert list(NvidiaContainerToolkitPlanner().files(WISHES)) == [KEY_FILE]
    assert (ROLES / KEY_FILE.removeprefix("role:")).read_text(encoding="utf-8").startswith("-----BEGIN PGP")
    assert request(WISHES, CUDA)["repository_key"] == KEY.rstrip()
    assert request({**WISHES, "nvidia_container_toolkit_repository_key": "other"}, CUDA)["repository_key"] == "other"


def test_other_roles_variables_have_their_defaults_where_the_role_is_alone() -> None:
    alone = request(WISHES, CUDA)
    assert (alone["engine_source"], alone["engine_config"], alone["restart"]) == ("distribution", {}, False)
    assert alone["swarm"] is True
    given_ = {"docker_allow_restart": "yes", "docker_daemon_config": {"debug": True}, "cluster_network_mode": "host"}
    requested = request({**WISHES, **given_}, CUDA)
    assert (requested["restart"], requested["engine_config"], requested["swarm"]) == (True, {"debug": True}, False)


# Where it applies


@pytest.mark.parametrize(
    ("cluster", "wished", "gpu", "there"),
    [
        ({"accelerator": "cuda"}, {}, True, True),
        ({"accelerator": "cuda"}, {"deepspeed_launch_runtime": "host"}, True, False),
        ({"accelerator": "cpu"}, {}, True, False),
        ({}, {}, True, True),
        ({}, {}, False, False),
        ({}, {"cluster_accelerator": "cpu"}, True, False),
        ({}, {"cluster_accelerator": "cuda"}, False, True),
    ],
)
def test_where_no_container_is_to_have_gpus_nothing_is_planned(
    cluster: dict[str, Any], wished: dict[str, Any], gpu: bool, there: bool
) -> None:
    found = node(packages=INSTALLED) if gpu else node(packages=INSTALLED, gpu={"present": False, "pci_devices": []})
    made = planned(found, Inputs(cluster, {KEY_FILE: KEY}), **wished)
    assert made.pending(ROLE, "gpu1") is there
    if not there:
        assert act(made) == NOTHING and made.facts["gpu1"] is found


def test_teardown_knows_the_record_on_cpus_too() -> None:
    assert act(planned(done(), Inputs({"accelerator": "cpu"})))["recorded"] == sorted(PACKAGES)


# Changes


def test_a_host_without_the_toolkit() -> None:
    made = planned(node())
    assert shown(made) == [
        ("+", UNIT_PATH),
        ("+", SOURCES_PATH),
        *(("+", f"package {name}") for name in PACKAGES),
        ("+", "/etc/docker/daemon.json features"),
        ("+", SPEC_PATH),
        ("~", "service docker.service"),
        *(("+", f"hold on {name}") for name in PACKAGES),
        ("+", RECORD_PATH),
        ("+", "test in a container"),
    ]
    by_name = {change.what: change for change in made.changes}
    assert by_name[f"package {PACKAGES[0]}"].after == Unknown("version 1.18.2, as apt has it")
    assert by_name["test in a container"].after == Unknown("of what is then installed")
    assert not made.missing_consents and not made.refusals
    todo = act(made)
    assert todo["config"] == {"features": {"cdi": True}} and todo["unit"] is todo["reload_units"] is True
    assert todo["device_requests"] == [{"driver": "cdi", "device_ids": ["nvidia.com/gpu=all"]}]
    assert todo["smoke"] == {
        "image": STAND_IN,
        "makes_image": True,
        "program": PROGRAM,
        "node": "/dev/nvidia-uvm",
        "not_there": [126, 127],
        "stamp": todo["smoke"]["stamp"],
    }
    assert todo["before"]["installs"] is True and todo["before"]["packages"] == [] and todo["hook"] is False


def test_source_files_of_former_instructions_go_with_an_installation() -> None:
    stale = {STALE_SOURCES[0]: {"exists": True, "sha256": "x", "mode": "0644", "owner": 0, "group": 0}}
    made = planned(node(files=stale))
    assert ("-", STALE_SOURCES[0]) in shown(made)
    assert [entry["path"] for entry in act(made)["files"]] == [UNIT_PATH, SOURCES_PATH, STALE_SOURCES[0]]


def test_apt_is_asked_before_anything_is_changed() -> None:
    made = planned(done(packages=dict.fromkeys(PACKAGES, "1.19.1-1")))
    preview = act(made)["preview"]
    # Nothing that conflicts may go.
    assert set(preview) == set(yaml.safe_load(package_preview.DOCUMENTATION)["options"]) - {"may_go"}
    assert preview["without"] == [*STALE_SOURCES, SOURCES_PATH]
    assert preview["holds"] == sorted(PACKAGES) and preview["address"] == "https://m.example.com/deb"
    assert act(made)["before"]["version"] == "1.19.1-1"


def test_with_the_hook_the_engine_is_restarted_for_it() -> None:
    made = planned(node("20.10.24"))
    assert act(made)["hook"] is True and SPEC_PATH not in [what for dummy, what in shown(made)]
    assert act(made)["run_arguments"] == ["--gpus", "all"]


def test_nothing_is_planned_where_all_is_done() -> None:
    made = planned(done(docker={"images": {"train:1": "sha256:1"}}))
    assert shown(made) == [] and not made.pending(ROLE, "gpu1") and act(made)["missing"] == []
    assert act(made)["smoke"]["image"] == act(made)["image"] == "train:1"
    chosen = planned(done(), smoke_image="mine")
    assert (act(chosen)["smoke"]["image"], act(chosen)["smoke"]["makes_image"]) == ("mine", False)


def test_a_smoke_test_is_due_when_the_driver_is_another() -> None:
    gpu = {**node()["gpu"], "driver": {"version": "590.1"}}
    made = planned(done(gpu=gpu))
    (change,) = made.changes
    assert change.what == "test in a container" and '"driver": "590.1"' in change.after
    assert not planned(done(gpu=gpu), smoke_test=False).changes
    unknown = planned(done(gpu={**gpu, "driver": {"version": "580.(known after apply)"}}))
    assert unknown.changes[0].after == Unknown("of what is then installed")


@pytest.mark.parametrize("codename", ["jammy", "noble"])
def test_a_fresh_ubuntu_host_is_planned_with_the_engine_that_it_gets(codename: str) -> None:
    """F12: Ubuntu's engine is 29.1, so neither NVIDIA's hook nor its cgroups are planned."""
    bare = node(docker={"installed": False, "running": False, "version": None}, packages={"docker.io": None})
    made = planned({**bare, "system": {**bare["system"], "distribution": "ubuntu", "codename": codename}})
    assert act(made)["device_requests"] == [{"driver": "cdi", "device_ids": ["nvidia.com/gpu=all"]}]
    assert not any("exec-opts" in change.what or "runtimes" in change.what for change in made.changes)


def test_it_plans_with_the_engine_as_the_role_docker_leaves_it() -> None:
    bare = node(docker={"installed": False, "running": False, "version": None}, packages={"docker.io": None})
    inputs = Inputs({**ENGINE_INPUTS.cluster, **CUDA.cluster}, {**ENGINE_INPUTS.files, **CUDA.files}, "k" * 40)
    wishes = {"gpu1": WISHES}
    planners: list[Planner] = [DockerPlanner(), NvidiaContainerToolkitPlanner()]
    made = fold(planners, {"gpu1": {**bare, "groups": {"docker": []}}}, wishes, inputs)
    # Debian 13 brings 26.1, which hands out devices by CDI.
    assert ("+", "/etc/docker/daemon.json features") in shown(made)
    assert made.changes[-1].after == Unknown("of what is then installed") and not made.refusals
    assert not fold(planners, made.facts, wishes, inputs).changes


def test_from_a_host_with_nothing_installed_to_containers_that_get_gpus() -> None:
    """All three roles on the facts as those before leave them, and then again: nothing is left to do."""
    gpu = driver_facts("debian13")
    bare = node(docker={"installed": False, "running": False, "version": None}, packages={"docker.io": None})
    facts = {**gpu, **{name: bare[name] for name in ("packages", "held", "engine", "docker")}, "groups": {"docker": []}}
    inputs = Inputs({**ENGINE_INPUTS.cluster, **CUDA.cluster}, {**ENGINE_INPUTS.files, **CUDA.files}, "k" * 40)
    wishes = {"gpu1": {**WISHES, "nvidia_driver_source": "distribution"}}
    planners: list[Planner] = [NvidiaDriverPlanner(), DockerPlanner(), NvidiaContainerToolkitPlanner()]
    made = fold(planners, {"gpu1": facts}, wishes, inputs)
    assert made.refusals == () and not made.missing_consents
    for role in made.roles:
        assert made.of(role, "gpu1"), role
    assert made.of(ROLE, "gpu1")[-1].after == Unknown("of what is then installed")
    assert fold(planners, made.facts, wishes, inputs).changes == ()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"held": list(PACKAGES[1:])}, f"hold on {PACKAGES[0]} is missing"),
        ({"files": {RECORD_PATH: kept(RECORD_PATH, "// edited\n")}}, f"{RECORD_PATH} has other content"),
        ({"files": {UNIT_PATH: kept(UNIT_PATH, "[Unit]\n\n")}}, f"{UNIT_PATH} has other content"),
        ({"files": {SPEC_PATH: {"exists": False}}}, f"{SPEC_PATH} is missing"),
        (
            {"config": {}, "docker": {"settings": engine_settings({"CgroupDriver": "systemd"})}},
            "/etc/docker/daemon.json features is missing",
        ),
        ({"files": {STAMP_PATH: {"exists": False}}}, "test in a container is missing"),
        (
            {"packages": {**INSTALLED, PACKAGES[3]: "1.17.8-1"}},
            f"package {PACKAGES[3]} is 1.17.8-1, wanted is version 1.18.2, as apt has it",
        ),
    ],
)
def test_verify_names_what_differs(edit: dict[str, Any], words: str) -> None:
    assert words in [drift_text(change) for change in planned(done(**edit)).changes]


def test_a_hold_is_released_when_none_is_asked_for() -> None:
    made = planned(done(), hold=False)
    assert shown(made) == [*(("-", f"hold on {name}") for name in sorted(PACKAGES)), ("-", RECORD_PATH)]
    assert act(made)["release"] == act(made)["recorded"] == sorted(PACKAGES) and act(made)["record"] == ""


def test_kept_nothing_is_changed_and_what_is_missing_is_reported() -> None:
    made = planned(node("20.10.24"), source="keep")
    assert shown(made) == [] and act(made)["missing"] == ["the Docker engine knows no runtime nvidia"]
    assert not any(act(made)[name] for name in ("files", "config", "unit", "hook", "smoke", "hold", "release"))


def test_an_engine_that_has_not_taken_its_configuration_over_is_no_change() -> None:
    made = planned(done(docker={"settings": engine_settings({"CgroupDriver": "systemd"})}))
    assert not made.pending(ROLE, "gpu1")
    assert act(made)["missing"] == ["the Docker engine takes no CDI devices"]


# Consent and refusals


def stops(made: Any) -> list[str]:
    return list(outcome(made, "", [ROLE])["stops"]["gpu1"][ROLE])


def test_a_restart_under_running_containers_needs_consent() -> None:
    assert stops(planned(node(docker=RUNNING))) == [
        "the container toolkit changes, and the engine must be restarted for features in /etc/docker/daemon.json. In "
        "the way: job. Remedy: set docker_allow_restart: true to allow it, or stop the containers first"
    ]
    allowed = planned(node(docker=RUNNING), docker_allow_restart=True)
    assert stops(allowed) == [] and act(allowed)["restart"] == "always"
    assert any(change.consent and change.consent.given for change in allowed.changes)


def test_a_reload_of_systemd_under_a_job_needs_consent() -> None:
    new = node("29.1.0", docker=RUNNING)
    assert stops(planned(new)) == [] and "systemd" not in [what for dummy, what in shown(planned(new))]
    (sentence,) = stops(planned({**new, "jobs": {"a": "running"}}))
    assert sentence.startswith(
        "the container toolkit changes, which reloads systemd, and that can take GPUs from a job that runs. In the "
        "way: job. Remedy: set docker_allow_restart: true"
    )
    assert stops(planned({**new, "jobs": {"a": "running"}}, docker_allow_restart=True)) == []


def test_another_unit_alone_reloads_systemd_too() -> None:
    """As after an upgrade of this collection: nothing of the toolkit differs but the unit."""
    before = done(files={UNIT_PATH: kept(UNIT_PATH, "[Unit]\n")}, docker=RUNNING)
    assert stops(planned(before)) == []
    (sentence,) = stops(planned({**before, "jobs": {"a": "running"}}))
    assert sentence.startswith("the container toolkit changes, which reloads systemd, and that can take GPUs")
    assert stops(planned({**done(docker=RUNNING), "jobs": {"a": "running"}})) == []


def test_where_something_is_refused_nothing_is_begun_and_preflight_reports_it() -> None:
    made = planned(node(packages=dict.fromkeys(PACKAGES, "1.17.8-1"), held=["libnvidia-container1"]))
    assert made.changes == () and act(made)["before"] == {}
    refused = outcome(made, "", [ROLE])["refused"]
    (problem,) = FACT_CHECKS[ROLE](Facts({"gpu1": {"x": 1}, "gpu2": {"x": 1}}, Requested("c", refused=refused)))
    assert (problem.subject, problem.text) == (
        "gpu1",
        "libnvidia-container1 is on hold in version 1.17.8-1, and version 1.18.2 is requested",
    )
    assert problem.remedy.startswith("apt-mark unhold libnvidia-container1")


# Searched

FACTS = st.builds(
    lambda version, packages, held, config, files, containers, jobs, info: {
        **node(
            version,
            packages=packages,
            held=held,
            config=config,
            files={path: kept(path, text) for path, text in files.items()},
            docker={"containers": containers, "settings": engine_settings(info)},
        ),
        "jobs": jobs,
    },
    st.sampled_from(["20.10.24", "26.1.5", "28.5.0"]),
    st.sampled_from([{}, INSTALLED, dict.fromkeys(PACKAGES, "1.17.8-1"), {**INSTALLED, PACKAGES[1]: None}]),
    st.lists(st.sampled_from(PACKAGES), unique=True),
    st.sampled_from([{}, {"features": {"cdi": True}}, {"features": {"cdi": False}}, {"exec-opts": ["native.umask=x"]}]),
    st.fixed_dictionaries(
        {},
        optional={
            RECORD_PATH: st.sampled_from([str(done()["files"][RECORD_PATH]["content"]), "// edited\n"]),
            STAMP_PATH: st.sampled_from([str(done()["files"][STAMP_PATH]["content"]), "{}\n"]),
            SPEC_PATH: st.just("x"),
            SOURCES_PATH: st.just("x"),
            STALE_SOURCES[1]: st.just("x"),
        },
    ),
    st.sampled_from([{}, RUNNING["containers"]]),
    st.sampled_from([{}, {"a": "running"}]),
    st.sampled_from([CDI_INFO, {"CgroupDriver": "systemd"}, {"CgroupDriver": "cgroupfs"}]),
)
REQUESTED = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from(["repository", "keep"]),
        "version": st.sampled_from(["", "1.18.2", "1.17"]),
        "hold": st.booleans(),
        "mode": st.sampled_from(["auto", "runtime", "cdi"]),
        "default_runtime": st.booleans(),
        "cgroups": st.sampled_from(["auto", "keep"]),
        "smoke_test": st.booleans(),
        "docker_allow_restart": st.sampled_from([True, False, "no"]),
    },
)


@settings(deadline=None, derandomize=True, max_examples=examples(500))
@given(FACTS, REQUESTED)
def test_once_all_is_done_nothing_is_left_to_do(facts: dict[str, Any], wished: Any) -> None:
    before = copy.deepcopy(facts)
    made = planned(facts, **wished)
    assert facts == before
    if made.refusals:
        assert made.changes == () and made.facts["gpu1"] is facts
        return
    after = planned(made.facts["gpu1"], **wished)
    assert [change.what for change in after.changes] == [] and after.refusals == ()
    assert not any(act(after)[name] for name in ("files", "config", "hold", "record", "release", "preview"))


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(FACTS, REQUESTED)
def test_the_role_has_something_to_act_on_for_each_change(facts: dict[str, Any], wished: Any) -> None:
    made = planned(facts, **wished)
    todo = act(made)
    assert json.loads(json.dumps(todo)) == todo and set(todo) == set(NOTHING)
    for change in made.changes:
        what = change.what
        if what.startswith("package "):
            assert what.removeprefix("package ") in todo["preview"]["packages"]
        elif what.startswith("/etc/docker/daemon.json "):
            assert what.removeprefix("/etc/docker/daemon.json ").partition(".")[0] in todo["config"]
        elif what.startswith("hold on "):
            assert what.removeprefix("hold on ") in todo["hold" if change.action == "+" else "release"]
        elif what == RECORD_PATH:
            assert todo["record"] if change.action != "-" else todo["release"]
        elif what == "service docker.service":
            assert todo["config"] or todo["hook"]
        elif what == "test in a container":
            assert todo["smoke"]
        elif what in (SPEC_PATH, "systemd"):
            assert todo["unit"]
        else:
            assert what in [entry["path"] for entry in todo["files"]]


@pytest.mark.parametrize("section", ["gpu", "docker", "system", "files", "jobs", "engine", "packages", "held"])
def test_a_fact_that_is_missing_is_no_exception(section: str) -> None:
    for facts in ({**node(), section: None}, {}):
        json.dumps(outcome(planned(facts), "", [ROLE]), default=str)
