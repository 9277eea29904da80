# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Playbooks that are started, watched and killed; and what the callback writes, by a real run on this machine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench.playbooks import tree
from tests.chaos import runs
from tests.chaos.runs import Durations, Running, Runs
from tests.chaos.verdict import changed_tasks, current_task, final_lines, recap

Words = Callable[[list[str]], None]
# A parent that starts a child, says so, and waits, as a controller with a worker does.
PARENT = (
    "import subprocess; child = subprocess.Popen(['sleep', '60'], start_new_session=True); "
    "print(child.pid, flush=True); child.wait()"
)


@pytest.fixture
def instead(monkeypatch: pytest.MonkeyPatch) -> Words:
    """Run other words in place of a playbook."""

    def given(words: list[str]) -> None:
        monkeypatch.setattr(runs, "command", lambda *dummy: words)

    return given


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def child_of(running: Running) -> int:
    deadline = time.monotonic() + 20
    while len(lines := running.log.read_text(encoding="utf-8").splitlines()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert int(lines[1]) in tree(running.process.pid)
    return int(lines[1])


def until_dead(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def test_the_whole_tree_is_killed_though_its_parts_have_sessions_of_their_own(tmp_path: Path, instead: Words) -> None:
    instead([sys.executable, "-c", PARENT])
    running = Running(tmp_path / "x.log", "site")
    child = child_of(running)
    running.kill("tree")
    assert until_dead(running.process.pid) and until_dead(child)


def test_the_main_process_alone_leaves_its_workers_until_they_are_swept_up(tmp_path: Path, instead: Words) -> None:
    instead([sys.executable, "-c", PARENT])
    started = Runs(tmp_path, Durations(tmp_path / "durations.json"))
    running = started.start("site", "site")
    child = child_of(running)
    running.kill("main")
    assert running.process.poll() == -9 and alive(child)
    started.sweep()
    assert until_dead(child)


def test_a_number_that_another_process_has_got_since_is_left_alone(tmp_path: Path, instead: Words) -> None:
    instead([sys.executable, "-c", PARENT])
    running = Running(tmp_path / "x.log", "site")
    child = child_of(running)
    running.kill("main")
    running.killed = {child: "12345"}
    running.sweep()
    assert alive(child)
    running.killed = {child: runs._started(child)}
    running.sweep()
    assert until_dead(child)


def test_a_run_that_takes_too_long_is_cut_off(tmp_path: Path, instead: Words) -> None:
    instead([sys.executable, "-c", PARENT])
    started = Runs(tmp_path, Durations(tmp_path / "durations.json"))
    running = started.start("site", "site")
    child = child_of(running)
    ended = running.finish(0.2)
    assert (ended.rc, ended.verdict(("lab1",)).why) == (None, "it did not end in time")
    assert until_dead(child)


def test_durations_are_learnt_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "durations.json"
    first = Durations(path)
    assert first.expected("site") == runs.EXPECTED["site"]
    first.learn("site", 41.27)
    assert Durations(path).expected("site") == 41.3
    assert json.loads(path.read_text(encoding="utf-8")) == {"site": 41.3}
    with pytest.raises(KeyError):
        first.expected("sight")


PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Change something
      ansible.builtin.command: "true"
    - name: Ignored
      ansible.builtin.fail: {msg: not this}
      ignore_errors: true
    - name: Rescued
      block:
        - name: Fail in a block
          ansible.builtin.fail: {msg: nor this}
      rescue:
        - name: Go on
          ansible.builtin.debug: {msg: x}
    - name: Of a loop
      ansible.builtin.assert:
        that: item != 2
        fail_msg: "lab1: item {{ item }} is odd. Remedy: make it even."
        quiet: true
      loop: [1, 2]
"""


def test_the_callback_writes_what_a_real_playbook_does(tmp_path: Path, instead: Words) -> None:
    (tmp_path / "x.yml").write_text(PLAYBOOK, encoding="utf-8")
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    words = [program, "-i", "lab1,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}"]
    instead([*words, str(tmp_path / "x.yml")])
    ended = Running(tmp_path / "x.log", "site").finish(60)
    assert ended.rc == 2, ended.output
    assert changed_tasks(ended.events) == ["lab1: Change something"]
    assert current_task(ended.events) == "Of a loop"
    assert final_lines(ended.events) == [("lab1", "lab1: item 2 is odd. Remedy: make it even.")]
    assert recap(ended.events)["lab1"]["failures"] == 1
    found = ended.verdict(("lab1",))
    assert (found.kind, [one.remedy for one in found.refusals]) == ("refused", ["make it even"])
