# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Servers with an engine of their own: runc's description, how two are joined, and what a playbook's recap says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.gpu_proof import containers, machines, memory, models, training_image
from tests.gpu_proof.machines import MACHINES
from tests.gpu_proof.parts import FAILED, Failed, Proof

RECAP = """
PLAY RECAP ****
gpu1                       : ok=95   changed=20   unreachable=0    failed=0    skipped=35
gpu2                       : ok=59   changed=0    unreachable=0    failed=0    skipped=28
localhost                  : ok=1    changed=0    unreachable=0    failed=0
"""


def test_a_server_has_namespaces_of_its_own_and_the_devices_it_is_given() -> None:
    made = machines.description(MACHINES[0], [Path("/dev/null")], driver=False)
    assert {entry["type"] for entry in made["linux"]["namespaces"]} == {
        "pid", "network", "ipc", "uts", "mount", "cgroup",
    }  # fmt: skip
    (device,) = made["linux"]["devices"]
    assert (device["path"], device["type"], device["major"], device["minor"]) == ("/dev/null", "c", 1, 3)
    sources = {mount["destination"]: mount["source"] for mount in made["mounts"]}
    assert sources["/var/lib/docker"] == str(MACHINES[0].folder / "docker")
    assert str(machines.DRIVER) not in sources


def test_the_driver_of_the_machine_cannot_be_written() -> None:
    made = machines.description(MACHINES[0], [], driver=True)
    (mount,) = (mount for mount in made["mounts"] if mount["destination"] == str(machines.DRIVER))
    assert "ro" in mount["options"]


def test_what_is_no_device_is_not_handed_on() -> None:
    with pytest.raises(Failed, match=r"/etc/passwd is no character device"):
        machines.device(Path("/etc/passwd"))


def test_no_capability_is_asked_for_that_root_lacks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *dummy, **options: "Name:\tx\nCapBnd:\t0000000000000003\n")
    assert machines.held_capabilities() == ["CHOWN", "DAC_OVERRIDE"]


def test_both_ends_of_the_cable_get_their_addresses() -> None:
    commands = list(machines.joining(101, 202))
    added = [command for command in commands if "addr" in command]
    assert [command[command.index("add") + 1] for command in added] == ["198.18.78.1/24", "198.18.78.2/24"]
    assert ["--target=101" in command for command in added] == [True, False]


@pytest.mark.parametrize(
    ("code", "printed", "error", "expected"),
    [(1, "a\nno such thing\n", "", "no such thing"), (1, "", "", "it printed")],
)
def test_what_a_command_said_last_is_the_reason(code: int, printed: str, error: str, expected: str) -> None:
    with pytest.raises(Failed, match=expected):
        machines.must(["sh", "-c", f"printf '{printed}' >&2; exit {code}"])


def test_a_command_that_takes_too_long_has_a_status_of_its_own() -> None:
    assert machines.done(["sleep", "5"], 0.1).returncode == 124


def test_the_recap_names_what_changed_on_each_server() -> None:
    assert containers.recap(RECAP) == {"gpu1": 20, "gpu2": 0, "localhost": 0}


def test_a_recap_without_a_server_is_no_result() -> None:
    with pytest.raises(Failed, match="the recap lacks a server"):
        containers.recap(RECAP.replace("gpu2", "gpu3"))


def test_the_first_server_is_the_manager_and_each_is_reached_at_its_address() -> None:
    cluster = containers.inventory("cuda")["cluster"]
    assert list(cluster["children"]["managers"]["hosts"]) == ["gpu1"]
    assert cluster["children"]["workers"]["hosts"]["gpu2"]["ansible_host"] == MACHINES[1].address
    assert cluster["vars"]["training_image_name"] == training_image.NAME


def test_after_a_step_that_failed_those_that_need_it_are_skipped() -> None:
    held = Proof(results=[{"name": "containers image", "state": FAILED}])
    results = {part.name: part for part in containers.parts("cpu", held, 1)}
    (only,) = Proof().run(iter([results["containers site.yml"]]))
    assert (only["state"], only["reason"]) == ("skipped", "containers image did not pass")


def test_steps_on_a_gpu_are_those_on_a_cpu_and_more() -> None:
    on_cpu, on_gpu = ([part.name for part in containers.parts(where, Proof(), 1)] for where in ("cpu", "cuda"))
    assert [name for name in on_gpu if name in on_cpu] == on_cpu
    assert on_cpu[0] == "containers probe"
    assert "containers CUDA in the training container" in set(on_gpu) - set(on_cpu)


def test_without_what_is_brought_along_there_are_no_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(containers, "ROOT", tmp_path)
    monkeypatch.setattr(containers, "BROUGHT", tmp_path / "machine")
    (result,) = Proof().run(part for part in containers.parts("cpu", Proof(), 1) if part.name == "containers servers")
    assert (result["state"], result["reason"]) == ("skipped", "machine is not there (make gpu-proof-machine)")


@pytest.mark.parametrize(
    ("sizes", "room", "expected"),
    [
        ([3, 3, 3, 3], 12, [[0, 1, 2, 3]]),
        ([3, 3, 3, 3], 7, [[0, 1], [2, 3]]),
        ([9, 3, 3, 3], 7, [[0], [1, 2], [3]]),
        ([9, 9], 1, [[0], [1]]),
    ],
)
def test_cases_run_together_where_the_gpu_has_room(sizes: list[int], room: int, expected: list[list[int]]) -> None:
    assert list(models.together(sizes, room)) == expected


@pytest.mark.parametrize("name", sorted(models.MODELS))
def test_the_plan_counts_every_model_of_the_proof(name: str) -> None:
    for case in models.cases(name):
        predicted, plan = memory.predict(case)
        assert 0 < predicted < plan.gpu < 60 * 10**9
    assert [case.way for case in models.cases(name, rehearsal=True)] == ["zero0", "zero1", "zero2", "zero3"]


def test_the_median_is_that_of_all_rows() -> None:
    parts = [{"found": {"rows": [{"ratio": 1.01}, {"ratio": 0.99}]}}, {"found": {"rows": [{"ratio": 1.04}]}}]
    assert models.median_error(parts) == pytest.approx(0.01)
    assert models.median_error([{"found": {}}]) is None


def step(name: str, printed: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.setattr(containers, "playbook", lambda *dummy: printed)
    everything = [{"name": f"containers {needed}", "state": "passed"} for needed in ("site.yml", "job")]
    parts = containers.parts("cpu", Proof(results=everything), 1)
    (result,) = Proof().run(part for part in parts if part.name == f"containers {name}")
    return result["state"], result["reason"]


def test_a_second_run_that_changes_something_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    state, reason = step("second site.yml", RECAP, monkeypatch)
    assert (state, reason) == ("failed", "the second run changed {'gpu1': 20, 'gpu2': 0, 'localhost': 0}")
    assert step("second site.yml", RECAP.replace("changed=20", "changed=0"), monkeypatch) == ("passed", "")


@pytest.mark.parametrize(
    ("row", "state"), [("transformer  succeeded  1", "passed"), ("transformer  failed  1", "failed"), ("", "failed")]
)
def test_status_must_show_the_job_as_succeeded(row: str, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert step("status.yml", f"JOB  STATE  RUN\n        {row}\n", monkeypatch)[0] == state


@pytest.mark.parametrize("mounted", [False, True])
def test_nothing_is_deleted_that_something_is_mounted_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, mounted: bool
) -> None:
    place = tmp_path / "proof"
    (place / "gpu1").mkdir(parents=True)
    monkeypatch.setattr(containers, "PLACE", place)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(machines, "remove", lambda: None)
    monkeypatch.setattr(containers, "_keep_journals", lambda: None)
    read = Path.read_text
    mounts = f"overlay {place}/gpu1/merged overlay rw 0 0\n" if mounted else "proc /proc proc rw 0 0\n"
    monkeypatch.setattr(
        Path, "read_text", lambda path, **options: mounts if str(path) == "/proc/mounts" else read(path, **options)
    )
    containers.clean()
    assert place.exists() is mounted
