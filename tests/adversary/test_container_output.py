# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Root in a container has its python3 print what it likes, for as long as it likes, to a host that waits for an answer.

A STAND-IN for the docker command runs that python3 as a process of this machine; all else is the collection's own code.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action.overlay_reach import ActionModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import (
    FLOODED,
    TIMED_OUT,
    CommandResult,
    run_program,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.marked_answer import ANSWER_BYTES
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric import peer, probe_io, reach, reach_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.probe_io import Gone, SystemPeerIO
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import probe
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.probe_io import SystemProbeIO
from ansible_collections.swarmspeed.cluster.plugins.modules import job_precheck, network_mesh_test
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection import following
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.container import run_inside

MARKS = (peer.MARK, reach.MARK, probe.MARK)
FLOODS = {
    "one line": "while True: os.write(1, b'x' * 65536)",
    "errors": "while True: os.write(2, b'x\\n' * 30000)",
    "both": "while True: os.write(1, b'x' * 4096); os.write(2, b'y' * 4096)",
    "answers": f"while True: os.write(1, b'{probe.MARK}' + b'[' * 60000 + b'\\n')",
    "by another process": "subprocess.Popen(['yes']).wait()",
}
HANGS = {
    "is silent": "time.sleep(600)",
    "trickles": "while True: os.write(1, b'x'); time.sleep(0.05)",
    "closes its outputs": "os.close(1); os.close(2); time.sleep(600)",
    "ignores to be ended": "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 13, 15)]; time.sleep(600)",
    "leaves a child": "subprocess.Popen(['sleep', '600']); os._exit(0)",
}


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """The docker command of a host, whose container runs this program instead of what it is sent."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")

    def arrange(program: str) -> Path:
        pid = tmp_path / "pid"
        (place / "docker").write_text(
            f"#!{sys.executable}\nimport os, signal, subprocess, sys, time\n"
            f"with open({str(pid)!r}, 'w') as file: file.write(str(os.getpid()))\n{program}\n"
        )
        (place / "docker").chmod(0o755)
        return pid

    return arrange


def group(pid: Path) -> list[int]:
    """Which processes of the session of this one there still are."""
    leader, found = int(pid.read_text()), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[3]) == leader and words[0] != "Z":
            found.append(int(process.name))
    return found


def ended(pid: Path) -> bool:
    until = time.monotonic() + 10
    while group(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not group(pid)


# --- what a module reads while it runs


@pytest.mark.parametrize("program", [*FLOODS, *HANGS])
def test_a_module_reads_no_more_and_waits_no_longer_than_it_may(container: Callable[[str], Path], program: str) -> None:
    pid = container({**FLOODS, **HANGS}[program])
    begun = time.monotonic()
    done = SystemProbeIO(SimpleNamespace(), timeout=2.0).run(["docker", "exec", "-i", "c", "python3"], "x" * (4 << 20))
    assert done.rc == (FLOODED if program in FLOODS else TIMED_OUT)
    assert len(done.text) < 300 and time.monotonic() - begun < 5
    assert ended(pid), "it outlives the module"


@pytest.mark.parametrize("program", ["one line", "errors", "closes its outputs", "leaves a child"])
def test_so_do_facts(container: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(reach_io, "SECONDS", 1)
    monkeypatch.setattr(reach_io, "SLACK", 1.0)
    pid = container({**FLOODS, **HANGS}[program])
    requested = {"container": "c", "hosts": {"gpu2": "c2"}, "port": 22}
    begun = time.monotonic()
    beside = reach_io.Beside(requested, {"containers": {"c": {"state": "running"}}})
    assert beside.result() == {} and time.monotonic() - begun < 6
    assert ended(pid)


def test_what_may_be_printed_is_all_that_it_costs(tmp_path: Path) -> None:
    """In a process of its own, with 300 MiB printed."""
    program = (
        "import resource, sys\n"
        "from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import run_program\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "run_program(['head', '-c', str(300 << 20), '/dev/zero'], 60, '', 8 << 20)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert int(done.stdout) < 60_000  # KiB


def test_what_a_program_of_the_host_leaves_running_in_good_order_stays() -> None:
    done = run_program(["sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $!"], 10)
    assert done.rc == 0
    os.kill(int(done.stdout), 9)


# --- what a task reads, through Ansible's own module


def task(*, limit: str = "240") -> subprocess.Popen[bytes]:
    """As a role runs it; only that it may take less long."""
    words = [word.replace("timeout -k 5 240 ", f"timeout -k 1 {limit} ") for word in run_inside("c", "cat", "/x")]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("program", FLOODS)
def test_a_task_reads_no_more_than_it_may(container: Callable[[str], Path], program: str) -> None:
    pid = container(FLOODS[program])
    process = task()
    found = process.communicate(timeout=20)
    assert process.returncode != 124 and max(len(output) for output in found) <= 65536
    assert ended(pid)


@pytest.mark.parametrize("program", ["is silent", "trickles", "ignores to be ended"])
def test_a_task_waits_no_longer_than_it_may(container: Callable[[str], Path], program: str) -> None:
    pid = container(HANGS[program])
    process = task(limit="1")
    process.communicate(timeout=20)
    assert process.returncode in (124, 137)
    assert ended(pid)


def test_a_task_reads_both_outputs_and_how_it_ended(container: Callable[[str], Path]) -> None:
    container("print(sys.argv[1:]); sys.stderr.write('No such container'); sys.exit(7)")
    process = task()
    assert process.communicate(timeout=20) == (b"['exec', 'c', 'cat', '/x']\n", b"No such container")
    assert process.returncode == 7


# --- what outlives a module


def end_of(tmp_path: Path, life: float) -> SystemPeerIO:
    system = SystemPeerIO("run", str(tmp_path / "run"))
    system.start("inner", ["docker", "exec", "-i", "c", "python3"], {"life": life})
    return system


def size(folder: Path) -> int:
    found = 0
    for place, dummy, names in os.walk(folder):  # which passes over folders that go meanwhile, as rglob does not
        for name in names:
            with contextlib.suppress(OSError):
                found += Path(place, name).stat().st_size
    return found


@pytest.mark.parametrize("program", [*FLOODS, *HANGS])
def test_no_file_of_the_host_grows_and_no_process_stays(
    container: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(probe_io, "SLACK", 3.0)
    pid = container({**FLOODS, **HANGS}[program])
    largest = 0
    end_of(tmp_path, 1.0)  # and the module ends: no one reads
    until = time.monotonic() + 30
    while (tmp_path / "run").exists() and time.monotonic() < until:
        largest = max(largest, size(tmp_path / "run"))
        time.sleep(0.01)
    assert not (tmp_path / "run").exists(), "its folder stays"
    assert largest <= 2 * ANSWER_BYTES + 1000
    assert ended(pid), "it outlives its time"


@pytest.mark.parametrize("program", FLOODS)
def test_who_waits_for_an_answer_reads_each_byte_once(
    container: Callable[[str], Path], tmp_path: Path, program: str
) -> None:
    pid = container(FLOODS[program])
    system = end_of(tmp_path, 30.0)
    begun, used = time.monotonic(), time.process_time()
    with pytest.raises(Gone) as caught:
        system.wait("inner", "ready", 10)
    assert time.monotonic() - begun < 8 and time.process_time() - used < 4
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400
    assert ended(pid)


# --- the form of an answer

ODD: list[Any] = [
    *(None, 1, True, 1.5, "x", "\x1b[2J", [], [1], [[]], [None], {}, {"x": 1}, {"gpu2": [1]}, {"gpu2": None}),
    *([{"to": 1}], [{"to": "gpu2", "check": "tcp", "ok": "yes"}], [{"path": 1, "state": "dead", "error": None}]),
    {"stage": "done"},
    {"stage": [], "error": ""},
    {"stage": "done", "error": {"x": 1}},
]
TEXTS = ["[" * 100_000, "{" * 100_000, "[" * 40 + "]" * 40, "", "x", "1" * 5000, "NaN", '"\\ud800"', "{}", "[]", "null"]


def printed(mark: str, answer: Any) -> str:
    return f"\n{mark}{answer if isinstance(answer, str) and answer in TEXTS else json.dumps(answer)}\n"


def plain(found: Any) -> None:
    """It can be returned, and holds no control characters."""
    json.dumps(found)
    if isinstance(found, str):
        assert found.replace("\n", "").isprintable()
    elif isinstance(found, (dict, list)):
        for one in [*found, *found.values()] if isinstance(found, dict) else found:
            plain(one)


@pytest.mark.parametrize("number", range(len(ODD) + len(TEXTS)))
@pytest.mark.parametrize("field", ["", "locks", "names", "versions"])
def test_a_precheck_whose_answer_is_not_of_its_form(number: int, field: str) -> None:
    odd = [*ODD, *TEXTS][number]
    answer = {field: odd} if field else odd

    class Host:
        def inspect(self, _container: str) -> dict[str, Any]:
            return {"running": True, "reference": "r", "id": "i", "content": "c"}

        def run(self, _command: Any, _data: str) -> CommandResult:
            return CommandResult(0, printed(probe.MARK, answer))

    params: dict[str, Any] = {"container": "c", "wrapper": [], "python": "python3", "node": "gpu1", "slots": [0]}
    params.update(
        dict.fromkeys(("subnet", "ssh_config", "chdir", "code", "script", "checkpoints", "ds_config", "hostfile"), "")
    )
    params.update(torch_extensions="", master_port=0, accelerator="cpu", transport="direct", checkpoint_gib=0)
    params.update({key: [] for key in ("packages", "programs", "operators", "data_paths", "modules")})
    params["members"] = [{"name": "gpu1", "host": ""}]
    plain(job_precheck.gather(params, False, Host()))


@pytest.mark.parametrize("number", range(len(ODD) + len(TEXTS)))
@pytest.mark.parametrize("name", [None, "gpu2"])
def test_a_reach_whose_answer_is_not_of_its_form(number: int, name: str | None) -> None:
    odd = [*ODD, *TEXTS][number]
    text = printed(reach.MARK, odd if name is None else {name: odd})
    try:
        found = reach_io.reached(lambda _command, _data: CommandResult(0, text), "c", {"gpu2": "c2"}, 22)
    except reach_io.ReachError:
        return
    assert found == {"gpu2": {"stage": "name", "error": "no answer"}}


@pytest.mark.parametrize("number", range(len(ODD) + len(TEXTS)))
@pytest.mark.parametrize("kind", ["ready", "pairs", "collective", "ended", "line"])
def test_an_end_whose_answer_is_not_of_its_form(
    container: Callable[[str], Path], tmp_path: Path, number: int, kind: str
) -> None:
    odd = [*ODD, *TEXTS][number]
    fields = {"ready": "error", "pairs": "results", "ended": "seen", "collective": "log"}
    honest: dict[str, dict[str, Any]] = {
        "ready": {"address": "10.0.0.1", "port": 1, "store_port": 2},
        "pairs": {"results": [{"to": "gpu2", "check": "tcp", "ok": True, "value": 1, "said": ""}]},
        "ended": {"seen": {}},
        "collective": {"ok": True},
    }
    folder = tmp_path / "run" / "run" / "inner"
    folder.mkdir(parents=True)
    text = printed(peer.MARK, odd) if kind == "line" else ""
    for one, answer in honest.items():
        text += printed(peer.MARK, {"kind": one, **answer, **({fields[one]: odd} if one == kind else {})})
    (folder / "out").write_text(text, encoding="utf-8")
    (folder / "err").write_text("")
    os.mkfifo(folder / "in")
    reader = os.open(folder / "in", os.O_RDWR)
    try:
        system = SystemPeerIO("run", str(tmp_path / "run"))
        params: dict[str, Any] = {
            "node": "gpu1",
            "hosts": ["gpu1", "gpu2"],
            "container": "c",
            "python": "python3",
            "outer": None,
        }
        params.update(backend="gloo", peers={"gpu1": {"inner": honest["ready"]}})
        for step in ("paired", "end"):
            plain(network_mesh_test.step({**params, "step": step}, system, sys.executable))
        container("")
        params.update(token="t", subnet="10.0.0.0/24", ports=[1, 2], addresses={}, names={}, ssh=False)
        params.update(life=1, env_file="", wrapper=[], step="start")

        class Started(SystemPeerIO):
            def start(self, name: str, command: Any, requested: Mapping[str, Any]) -> None:
                pass

        plain(network_mesh_test.step(params, Started("run", str(tmp_path / "run")), sys.executable))
    finally:
        os.close(reader)


@pytest.mark.parametrize("odd", [*ODD, {"stage": "done", "error": "", "more": 1}])
@pytest.mark.parametrize("name", [None, "gpu2", "\x1b[2J"])
def test_the_controller_reads_what_a_node_returns(monkeypatch: pytest.MonkeyPatch, odd: Any, name: str | None) -> None:
    monkeypatch.setattr(following, "display", SimpleNamespace(display=plain))
    monkeypatch.setattr(ActionBase, "run", lambda *_args: {})

    class Action(ActionModule):
        def __init__(self) -> None:
            self._task, self.now = SimpleNamespace(args={"patience": 5}, action="overlay_reach"), 0.0

        def _clock(self) -> float:
            return self.now

        def _sleep(self, seconds: float) -> None:
            self.now += seconds

        def _execute_module(self, module_name: str, module_args: Any, task_vars: Any) -> dict[str, Any]:
            return {"reached": odd if name is None else {name: odd}}

    found = Action().run(task_vars={"inventory_hostname": "gpu1"})
    if isinstance(found["reached"], dict):
        plain(found)
        assert all(how == {"stage": "name", "error": "no answer"} for how in found["reached"].values())
