# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Root in a container attacks the host, and the console, by what lies in /jobs to be read: one attack a test."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.info_io import JobsReader
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.log_files_io import NodeFolder
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import Container, JobError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.store_io import Store
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node import system_io
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job import table as job_table

from tests.adversary.job_attacks import SECRET, STATE, Engine, call, forge, gather, one_line

# --- what is read


HOSTILE: list[Any] = [
    *(
        "../../../etc",
        "-oProxyCommand=id",
        "a\nb",
        "\x1b]0;x\x07",
        "{{ 7*7 }}",
        "x" * 10_000_000,
        float("nan"),
        float("inf"),
    ),
    *(-1, 10**30, 1.5, True, [], [[]], ["x"], {}, {"x": [1]}, [{"name": 1}], [{"name": "a", "slots": ["../x"]}]),
]
READ = (
    *("state", "run", "run_id", "container", "container_started_at", "heartbeat", "members"),
    *("hosts", "figures", "first_failure", "channel_port", "started_at", "finished_at", "runtime", "spec_hash"),
    *("restarts", "ranks", "shrunk_from", "leader", "tail", "traceback", "exit_code", "gpus", "nccl"),
)


@pytest.mark.parametrize("field", READ)
def test_a_field_of_another_kind_is_reported_or_harmless(jobs: Path, field: str) -> None:
    engine = Engine(Container("id1", "t0", True, {"/jobs": str(jobs)}))
    for value in HOSTILE:
        forge(jobs, **{field: value})
        seen = gather(jobs)
        lines = job_table.table({"gpu1": {"jobs": [seen]}})
        assert all(line.isprintable() and len(line) < 100_000 for line in lines)
        try:
            job = call(jobs, engine, observe=True)["job"]
        except JobError as error:
            assert str(error).isprintable() and "stop.yml -e deepspeed_launch_name=digits" in str(error)
            assert seen["state"] == "unreadable"
            continue
        assert isinstance(job["run"], (int, type(None))) and str(job["container"]).isascii()
        assert all(isinstance(line, str) for line in [*job["hosts"], *job["tail"], *job["traceback"]])
        assert json.loads(json.dumps(job, allow_nan=False)) == job


@pytest.mark.parametrize("text", ['{"state": "running"}', "{}", '{"state": "running", "container": "c", "run": 1}'])
def test_missing_fields_are_one_error(jobs: Path, text: str) -> None:
    (jobs / "digits" / "state.json").write_text(text)
    with pytest.raises(JobError) as caught:
        call(jobs, Engine(), observe=True)
    one_line(caught, "digits/state.json is damaged", "missing")
    stops = job_table.to_stop({"gpu1": {"jobs": [gather(jobs)]}}, "digits")
    assert "does not run" not in " ".join(stops["lines"])
    assert stops["followers"] == [{"node": "gpu1", "name": "digits", "orphan": True}]
    assert stops["lines"][0].startswith("digits: its files are damaged and were put aside (gpu1: ")
    engine = Engine()
    assert (call(jobs, engine)["job"]["state"], engine.launched) == ("absent", [])


def test_a_stop_that_failed_is_not_reported_as_stopped() -> None:
    running = {"name": "digits", "state": "running", "leader": True, "run": 1, "log_path": "/l"}
    stops = job_table.to_stop({"gpu1": {"jobs": [running]}}, "digits")
    failed = [{"item": {"name": "digits", "node": "gpu1"}, "failed": True, "msg": "state.json is damaged"}]
    reported = job_table.stopped(stops, {"gpu1": failed}, previewed=False)
    assert reported["lines"] == [] and "state.json is damaged" in reported["problems"][0]
    assert job_table.stopped(stops, {}, previewed=False)["lines"] == []  # it did not answer at all


DEEP = b'{"state": "running", "tail": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NEVER_LOST = b'{"state": "running", "run": 1, "container": "c", "container_id": "id1", "heartbeat": NaN}'


@pytest.mark.parametrize("data", [DEEP, b'{"state": ["running"]}'])
def test_what_is_no_state_hides_no_other_job(jobs: Path, data: bytes) -> None:
    (jobs / "digits" / "state.json").write_bytes(data)
    assert system_io.job_facts(str(jobs), "k") == {"jobs": {"digits": "unreadable"}, "jobs_succeeded": {}}
    assert gather(jobs)["state"] == "unreadable"
    assert NodeFolder(str(jobs), "digits", "gpu1", 1 << 20).run() in (
        {},
        dict.fromkeys(("run", "run_id", "started_at")),
    )


def test_a_heartbeat_that_is_no_number_does_not_keep_a_job_alive(jobs: Path) -> None:
    (jobs / "digits" / "state.json").write_bytes(NEVER_LOST)
    engine = Engine(Container("id1", "t0", True, {"/jobs": str(jobs)}))
    with pytest.raises(JobError, match="heartbeat is not a time"):
        call(jobs, engine, observe=True)


def plant(place: Path, what: str, victim: Path) -> None:
    place.unlink(missing_ok=True)
    if what == "link":
        place.symlink_to(victim)
    elif what == "pipe":
        os.mkfifo(place)
    else:
        with place.open("wb") as file:
            file.truncate(1 << 30)


READERS: dict[str, Callable[[Path], Any]] = {
    "node_facts": lambda jobs: system_io.job_facts(str(jobs), "k"),
    "read_state": lambda jobs: Store(str(jobs), "digits").read_state(),
    "read_spec": lambda jobs: Store(str(jobs), "digits").read_spec(),
    "read_log": lambda jobs: Store(str(jobs), "digits").read_log(0, 65536, True),
    "training_job": lambda jobs: call(jobs, Engine(), observe=True),
    "training_job_info": gather,
    "job_logs": lambda jobs: NodeFolder(str(jobs), "digits", "gpu1", 1 << 20).run(),
}


@pytest.mark.parametrize(
    ("name", "what"),
    [
        *[("state.json", what) for what in ("link", "pipe", "sparse")],
        *[("spec.json", what) for what in ("link", "pipe", "sparse")],
        *[("summary.json", what) for what in ("pipe", "sparse")],
        *[("launcher.log", what) for what in ("link", "pipe")],
    ],
)
def test_no_reader_follows_waits_or_fills_the_memory(jobs: Path, victim: Path, name: str, what: str) -> None:
    victim.write_text(
        json.dumps({**STATE, "state": "failed", "reason": SECRET, "spec": {"environment": {"A": SECRET}}})
    )
    plant(jobs / "digits" / name, what, victim)
    begun = time.monotonic()
    for read in READERS.values():
        try:
            reported = repr(read(jobs))
        except JobError as error:
            reported = str(error)
            assert reported.isprintable() and "emedy: " in reported
        assert SECRET not in reported and len(reported) < 1 << 20
    assert time.monotonic() - begun < 2


def test_names_that_no_job_can_have_are_not_reported(jobs: Path) -> None:
    for name in ("\x1b[2J", "a\nb", "{{ 7*7 }}", "-x", "x" * 200):
        (jobs / name).mkdir()
        (jobs / name / "state.json").write_text(json.dumps(STATE))
    assert list(system_io.job_facts(str(jobs), "k")["jobs"]) == ["digits"]
    assert JobsReader(str(jobs), {}).names() == ["digits"]


def test_no_control_character_reaches_the_console(jobs: Path) -> None:
    evil = "\x1b]0;owned\x07\u202e\x9b2J"
    forge(jobs, state="failed", reason=evil, first_failure={"node": "gpu1", "cause": evil, "remedy": evil})
    (jobs / "digits" / "launcher.log").write_text(f"{evil}\n")
    seen = gather(jobs)
    shown = job_table.table({"gpu1": {"jobs": [seen]}})
    assert all("\x1b" not in line and "\x9b" not in line and "\u202e" not in line for line in shown)
    assert "\x1b" not in json.dumps(call(jobs, Engine(), observe=True)["job"], ensure_ascii=False)


def test_a_summary_with_other_kinds_of_values_breaks_no_table(jobs: Path) -> None:
    ended = {**STATE, "state": "failed"}
    forge(jobs, state="failed")
    changes: list[dict[str, Any]] = [
        {"members": ["x"]},
        {"figures": [1]},
        {"first_failure": "x"},
        {"first_failure": {"cause": []}},
    ]
    for change in changes:
        (jobs / "digits" / "summary.json").write_text(json.dumps({**ended, **change}))
        assert job_table.table({"gpu1": {"jobs": [gather(jobs)]}})
