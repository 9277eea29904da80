# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Examinations of live processes without torch, and of what hostile ones leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor import (
    answers,
    causes,
    collect,
    inside,
    rank_side,
    shape,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.processes import Proc

ROOT = Path("/")
SCRIPT = """\
import sys, time
def waits_for_the_night():
    print("ready", flush=True)
    time.sleep(1000)
waits_for_the_night()
"""
DISTRIBUTED = "import torch.distributed\n" + SCRIPT
"""With a package of this name, which is all that rank_side.py sees of torch."""


class Started:
    def __init__(self, folder: Path, **more: str) -> None:
        self.folder, self.environment = folder, {**os.environ, "RANK": "0", **more}
        self.processes: list[subprocess.Popen[bytes]] = []

    def process(self, script: str = SCRIPT, **more: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-u", "-c", script]
        one = subprocess.Popen(words, env={**self.environment, **more}, stdout=subprocess.PIPE)
        self.processes.append(one)
        assert one.stdout
        assert one.stdout.readline() == b"ready\n"
        # The thread that answers begins beside the script: before that, there are stacks alone.
        answers_at, deadline = self.folder / f"thread-{one.pid}", time.monotonic() + 20
        while DISTRIBUTED in script and not (answers_at.exists() and answers_at.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return one

    def examined(self, *processes: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
        ranks = [{"rank": rank, "pid": one.pid, "folder": str(self.folder)} for rank, one in enumerate(processes)]
        found: list[dict[str, Any]] = collect.examine(ROOT, ranks)["ranks"]
        return found


@pytest.fixture(autouse=True)
def without_py_spy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    made = Started(tmp_path / "inside", **inside.environment(tmp_path / "inside", {}))
    yield made
    for one in made.processes:
        one.kill()
        one.wait()
        assert one.stdout
        one.stdout.close()


def functions(rank: dict[str, Any]) -> list[str]:
    return [frame["function"] for thread in rank.get("threads", []) if thread["main"] for frame in thread["frames"]]


def test_the_stack_of_a_rank_without_torch(started: Started) -> None:
    process = started.process()
    (rank,) = started.examined(process)
    assert functions(rank) == ["waits_for_the_night", "<module>"]
    assert (rank["alive"], rank["state"], rank["source"]) == (True, "S", "signal")
    assert process.poll() is None


WRITES = """\
import sys, time
print("ready", flush=True)
with open("/dev/null", "wb", buffering=0) as file:
    while True:
        file.write(b"x" * 100000)
        time.sleep(0.05)
"""
HELPED = """\
import subprocess, sys
with subprocess.Popen([sys.executable, "-c", "print(end='ready', flush=True)\\nwhile True: pass"], stdout=-1) as helper:
    helper.stdout.read(5)
    print("ready", flush=True)
    try:
        helper.wait(60)
    finally:
        helper.kill()
"""


def test_whether_a_rank_and_its_helpers_work(started: Started) -> None:
    idle, writes, helped = started.process(), started.process(WRITES), started.process(HELPED)
    first, second, third = started.examined(idle, writes, helped)
    (helper,) = (child["pid"] for child in third["children"])
    os.kill(helper, 9)
    assert (first["bytes"] < causes.MOVES, first["helpers"]) == (True, 0)
    assert second["bytes"] >= causes.MOVES
    assert third["helpers"] > causes.BUSY / 4  # this machine may do other things beside it


def test_a_report_of_a_rank_that_imports_torch_distributed(started: Started, tmp_path: Path) -> None:
    package = tmp_path / "packages" / "torch" / "distributed"
    package.mkdir(parents=True)
    for path in (package, package.parent):
        (path / "__init__.py").touch()
    modules = os.pathsep.join([started.environment["PYTHONPATH"], str(tmp_path / "packages")])
    process = started.process(DISTRIBUTED, PYTHONPATH=modules)
    (rank,) = started.examined(process)
    assert (rank["source"], rank["joined"]) == ("report", False)
    assert functions(rank) == ["waits_for_the_night", "<module>"]
    assert len(rank["threads"]) == 1  # the thread that answers is not one of the job's
    assert process.poll() is None


RECORDER = """\
import pickle, sys, types
made = [{"record_id": n, "process_group": ("0", ""), "collective_seq_id": n + 1, "time_created_ns": 10**18 + n}
        for n in range(300)]
module = types.ModuleType("torch._C._distributed_c10d")
module._dump_fr_trace = module._dump_nccl_trace = lambda **options: pickle.dumps({"entries": made})
sys.modules["torch._C._distributed_c10d"] = module
"""


def test_a_recorder_that_two_functions_read_is_reported_once(started: Started, tmp_path: Path) -> None:
    package = tmp_path / "packages" / "torch" / "distributed"
    package.mkdir(parents=True)
    for path in (package, package.parent):
        (path / "__init__.py").touch()
    modules = os.pathsep.join([started.environment["PYTHONPATH"], str(tmp_path / "packages")])
    (rank,) = started.examined(started.process(RECORDER + DISTRIBUTED, PYTHONPATH=modules))
    assert [one["sequence"] for one in rank["entries"]] == list(range(181, 301))
    assert rank["entries"][0]["at"] == pytest.approx(1e9)
    assert rank["moved"] is False


def test_a_stopped_rank_is_not_signalled(started: Started) -> None:
    process = started.process()
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    (rank,) = started.examined(process)
    assert (rank["state"], functions(rank)) == ("T", [])
    assert "stopped" in rank["missing"][0]
    pending = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    assert "ShdPnd:\t0000000000000000" in pending


def test_a_process_that_does_not_catch_the_signal_is_left_alone(started: Started) -> None:
    process = started.process(PYTHONPATH="")
    (started.folder / f"stacks-{process.pid}").touch()
    (started.folder / f"thread-{process.pid}").write_text(str(process.pid), encoding="utf-8")
    (rank,) = started.examined(process)
    assert functions(rank) == []
    assert process.poll() is None


def test_a_process_that_has_ended(started: Started) -> None:
    process = started.process()
    process.kill()
    time.sleep(0.1)  # a zombie, as its parent has not waited for it
    gone, never = started.examined(process, process)[0], collect.examine(ROOT, [{"rank": 3, "pid": 0}])["ranks"][0]
    assert gone["alive"] is False
    assert never == {"rank": 3, "pid": 0, "alive": False}


def test_only_ranks_get_something(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    environment = {**os.environ, **inside.environment(folder, {})}
    environment.pop("RANK", None)
    subprocess.run([sys.executable, "-c", "import sys"], env=environment, check=True)
    assert [path.name for path in folder.iterdir() if path.name != "__pycache__"] == ["sitecustomize.py"]


def test_a_rank_that_ends_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    environment = {**os.environ, **inside.environment(folder, {}), "RANK": "1"}
    subprocess.run([sys.executable, "-c", "import sys"], env=environment, check=True)
    assert [path.name for path in folder.iterdir() if path.name != "__pycache__"] == ["sitecustomize.py"]


def test_the_users_sitecustomize_runs_and_its_errors_are_seen(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os; os.environ['OWN'] = __file__; raise ValueError('own')\n")
    environment = {**os.environ, **inside.environment(tmp_path / "inside", {"PYTHONPATH": str(own)}), "RANK": "0"}
    words = [sys.executable, "-c", "import os; print(os.environ['OWN'])"]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(own / "sitecustomize.py")
    assert "ValueError: own" in ran.stderr


def test_pythonpath_comes_behind_ours_and_sizes_stay(tmp_path: Path) -> None:
    found = inside.environment(tmp_path, {"TORCH_FR_BUFFER_SIZE": "5", "PYTHONPATH": "/own"})
    assert found["PYTHONPATH"] == f"{tmp_path}{os.pathsep}/own"
    assert not {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"} & found.keys()
    assert not {"TORCH_FR_BUFFER_SIZE"} & inside.environment(tmp_path, {"TORCH_NCCL_TRACE_BUFFER_SIZE": "5"}).keys()
    assert inside.environment(tmp_path, {})["TORCH_NCCL_TRACE_BUFFER_SIZE"] == "2000"


@pytest.mark.parametrize(
    ("version", "left"),
    [
        ("2.13.0+cpu", {"TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"}),
        ("2.8.0", {"TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"}),
        ("2.7.1", {"TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}),
        ("", {name for both in rank_side.RECORDER for name in both}),
    ],
)
def test_a_torch_gets_the_names_that_it_reads(version: str, left: set[str], tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    (modules / "torch").mkdir(parents=True)
    loads = "from . import version, distributed" if version else "from . import distributed"
    (modules / "torch/__init__.py").write_text(f"{loads}\n")
    (modules / "torch/version.py").write_text(f"__version__ = {version!r}\n")
    (modules / "torch/distributed.py").touch()
    given = {"PYTHONPATH": str(modules)}
    environment = {**inside.environment(tmp_path / "inside", given), "RANK": "0", "PATH": os.environ["PATH"]}
    words = [
        sys.executable,
        "-c",
        "import torch, os; print(*[name for name in os.environ if name.startswith('TORCH')])",
    ]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == left


# --- what hostile ranks leave behind -------------------------------------------------------------------------------


def test_no_link_and_no_pipe_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    assert answers.private(tmp_path / "secret", 100) == "secret"
    assert answers.private(tmp_path / "secret", 5) is None
    assert answers.private(tmp_path / "secret", 3, behind=2) == "ret"
    assert [answers.private(tmp_path / name, 100) for name in ("link", "pipe", "none", ".")] == [None] * 4


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"threads": 1}',
        "[" * 100000,
        '{"threads": [], "recorders": 1, "groups": 1, "entries": {"a": 1}}',
    ],
)
def test_what_is_no_report(content: str) -> None:
    report = answers.read_report(content)
    assert shape.RANK(report) == report or report["entries"] == []


def test_a_report_with_everything_wrong_becomes_harmless() -> None:
    report = {
        "threads": [{"main": "yes", "frames": [{"function": "\x1b[2J" * 50, "file": 1, "line": "x"}] * 70}] * 50,
        "groups": {"0": {"ranks": [1, "x", -1, 1 << 40]}, "x" * 1000: 1},
        "entries": [{"process_group": [1, 2], "collective_seq_id": 1 << 70, "input_sizes": [["x"]]}],
    }
    found = shape.RANK(answers.read_report(json.dumps(report)))
    frames = found["threads"][0]["frames"]
    assert (len(found["threads"]), len(frames)) == (48, 64)
    assert frames[0]["function"].isprintable()
    assert len(frames[0]["function"]) <= 120
    assert found["groups"] == {"0": {"ranks": [1]}}
    assert "sequence" not in found["entries"][0]


def test_an_examination_that_is_too_large_is_cut() -> None:
    frame = {"function": "f" * 100, "file": "x" * 200, "line": 1}
    entry = {"group": "0", "operation": "all_reduce", "sequence": 1}
    rank = {"threads": [{"frames": [frame] * 60}] * 40, "entries": [{**entry, "sequence": n} for n in range(500)]}
    examined = shape.examination({"ranks": [{"rank": number, **rank} for number in range(4)]})
    cut = collect.within(examined, 600_000)
    assert collect.size(cut) <= 600_000
    assert [len(one["threads"]) for one in cut["ranks"]] == [4] * 4
    assert cut["ranks"][0]["entries"][-1]["sequence"] == 499
    assert len(cut["missing"]) == 2


# --- a made-up /proc -------------------------------------------------------------------------------------------------


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_limits_of_a_cgroup(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/mountinfo", "31 24 0:27 / /cg rw - cgroup2 cgroup2 rw\n")
    write(tmp_path / "proc/7/cgroup", "0::/job/rank\n")
    write(tmp_path / "cg/job/rank/cgroup.events", "populated 1\nfrozen 1\n")
    write(tmp_path / "cg/job/rank/cpu.max", "max 100000\n")
    write(tmp_path / "cg/job/cpu.max", "1000 1000000\n")
    write(tmp_path / "cg/job/cpu.stat", "nr_throttled 9\nthrottled_usec 2500000\n")
    write(tmp_path / "cg/job/memory.events", "oom 3\noom_kill 2\n")
    assert Proc(tmp_path).cgroup(7) == {
        "frozen": True,
        "throttled_s": 2.5,
        "throttled_periods": 9,
        "cpu_limit": "1000 1000000",
        "oom_kills": 2,
    }


def test_a_path_outside_of_what_a_container_sees(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/mountinfo", "31 24 0:27 / /cg rw - cgroup2 cgroup2 rw\n")
    write(tmp_path / "proc/7/cgroup", "0::/../../host\n")
    assert Proc(tmp_path).cgroup(7) == {"frozen": False}


def test_thousands_of_threads_are_counted_and_few_described(tmp_path: Path) -> None:
    fields = "S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 5000 0"
    write(tmp_path / "proc/7/stat", f"7 (python) {fields}")
    for tid in range(7, 1007):
        write(tmp_path / f"proc/7/task/{tid}/stat", f"{tid} (worker) {fields}")
    proc = Proc(tmp_path)
    found = proc.rank(7, proc.sample(7), {})
    assert (found["count"], len(found["tasks"]), found["tasks"][0]["tid"]) == (5000, 48, 7)
