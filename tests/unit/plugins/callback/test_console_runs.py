# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Playbooks by ansible-playbook itself, on this machine: what our console shows, and what the log file has."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")
CONSOLE = "swarmspeed.cluster.console"
INVENTORY = f"""\
all:
  vars:
    ansible_connection: local
    ansible_python_interpreter: {sys.executable}
  hosts:
    gpu1:
    gpu2:
  children:
    dead:
      hosts:
        gpu3:
          ansible_connection: ssh
          ansible_host: 127.0.0.1
          ansible_port: 1
"""
PLAYBOOK = """\
- name: Try it
  hosts: gpu1,gpu2
  gather_facts: false
  tasks:
    - name: Do nothing
      ansible.builtin.assert:
        that: true
    - name: Fail quietly
      ansible.builtin.fail:
      ignore_errors: true
    - name: Keep a secret
      ansible.builtin.fail:
        msg: topsecret
      no_log: true
      ignore_errors: true
    - name: Write a file
      ansible.builtin.set_fact:
        written: true
      changed_when: true
      run_once: true
    - name: Tell what was done
      ansible.builtin.debug:
        msg: ["written", "on {{ inventory_hostname }}\\e[31m"]
      run_once: true
"""
COPY = """\
- name: Try it
  hosts: gpu1
  gather_facts: false
  tasks:
    - name: Write a file
      ansible.builtin.copy:
        dest: "{{ playbook_dir }}/written"
        content: "one\\n"
"""
BROKEN = """\
- name: Try it
  hosts: all
  gather_facts: false
  any_errors_fatal: true
  tasks:
    - name: Reach the hosts
      ansible.builtin.set_fact:
        there: "{{ nosuch }}"
      when: inventory_hostname != 'gpu3'
    - name: Not reached
      ansible.builtin.ping:
"""
DEAD = BROKEN.replace("{{ nosuch }}", "x")
BESIDE_PLAYBOOKS = ROOT / "playbooks" / "callback_plugins"


def environment(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "NO_COLOR"))}
    return {
        **kept,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_STDOUT_CALLBACK": CONSOLE,
        "ANSIBLE_SSH_ARGS": "-F none",
        "PYTHONIOENCODING": "utf-8",
        "TERM": "xterm",
        **more,
    }


def play(folder: Path, text: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Write a playbook and its inventory, unless that is there, and run it without a terminal."""
    (folder / "play.yml").write_text(text, encoding="utf-8")
    inventory = folder / "hosts.yml"
    if not inventory.exists():
        inventory.write_text(INVENTORY, encoding="utf-8")
    return subprocess.run(
        [str(ANSIBLE), "-i", "hosts.yml", "play.yml", *arguments],
        cwd=folder,
        env=environment(folder, more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def without_times(text: str) -> list[str]:
    """Return the lines without how long something took."""
    text = re.sub(r" \(\d+ (?:s|min)[^)]*\)", "", text)
    return re.sub(r"(in|after) \d+ (?:s|min)(?: \d+ s)?", r"\1 1 s", text).splitlines()


def test_few_lines_on_the_screen_and_all_of_them_in_the_log(tmp_path: Path) -> None:
    done = play(tmp_path, PLAYBOOK, ANSIBLE_LOG_PATH=str(tmp_path / "log"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert without_times(done.stdout) == [
        "Try it: gpu1, gpu2",
        "  ~ Write a file: gpu1",
        "  written",
        "  on gpu1\\x1b[31m",
        "✓ Done in 1 s: 1 change (1 on gpu1). 4 failures ignored.",
    ]
    log = (tmp_path / "log").read_text(encoding="utf-8")
    for part in ("TASK [Do nothing]", "fatal: [gpu1]: FAILED! =>", "...ignoring", "PLAY RECAP", "changed: [gpu1]"):
        assert part in log
    assert "topsecret" not in log + done.stdout + done.stderr


def test_check_mode_shows_what_would_differ(tmp_path: Path) -> None:
    done = play(tmp_path, COPY, "--check", "--diff")
    lines = without_times(done.stdout)
    assert lines[1:6] == [
        "  ~ Write a file: gpu1",
        "--- before",
        f"+++ after: {tmp_path}/written",
        "@@ -0,0 +1 @@",
        "+one",
    ]
    assert lines[-1].startswith("✓ Checked in 1 s: 1 change to make (1 on gpu1).")


def test_verbose_it_prints_what_the_default_callback_prints(tmp_path: Path) -> None:
    text = PLAYBOOK.replace("no_log: true", "no_log: false")
    ours, theirs = (play(tmp_path, text, "-v", ANSIBLE_STDOUT_CALLBACK=name) for name in (CONSOLE, "default"))
    # In the order in which the hosts end.
    assert sorted(ours.stdout.splitlines()) == sorted(theirs.stdout.splitlines())
    assert "PLAY RECAP" in ours.stdout
    assert "topsecret" not in play(tmp_path, PLAYBOOK, "-vvv").stdout


def test_an_error_of_all_hosts_is_shown_once_with_its_place(tmp_path: Path) -> None:
    done = play(tmp_path, BROKEN)
    assert done.returncode == 2
    assert without_times(done.stdout) == [
        "Try it: gpu1, gpu2, gpu3",
        "✗ Reach the hosts (gpu1, gpu2)",
        "  Finalization of task args for 'ansible.builtin.set_fact' failed: Error while resolving value for 'there': "
        "'nosuch' is undefined",
        f"  at {tmp_path}/play.yml:8:16",
        "✗ Failed after 1 s: gpu1, gpu2. All output: run it with -v.",
    ]


def test_a_dead_host_has_one_line(tmp_path: Path) -> None:
    done = play(tmp_path, DEAD, ANSIBLE_TIMEOUT="5", ANSIBLE_CALLBACK_PLUGINS=str(BESIDE_PLAYBOOKS))
    assert done.returncode == 4
    # The callback beside the playbooks, which names lost hosts at the end, leaves it to the console.
    (line,) = [line for line in done.stdout.splitlines() if "gpu3: stopped responding during 'Not reached'" in line]
    assert line.startswith("✗ ") and "Connection refused" in line
    assert done.stdout.splitlines()[-1].endswith("no connection to gpu3. All output: run it with -v.")


def test_batches_follow_one_another_and_another_strategy_is_the_default_callbacks(tmp_path: Path) -> None:
    text = """\
- name: "Try {0}"
  hosts: gpu1,gpu2
  gather_facts: false
  {0}
  tasks:
    - name: Set
      ansible.builtin.set_fact: {{x: 1}}
      changed_when: true
"""
    done = play(tmp_path, "".join(map(text.format, ["serial: 1", "strategy: free"])))
    lines = [line.rstrip("* ") for line in done.stdout.splitlines() if line]
    assert lines[:4] == ["Try serial: 1: gpu1", "  ~ Set: gpu1", "Try serial: 1: gpu2", "  ~ Set: gpu2"]
    assert lines[4:6] == ["PLAY [Try strategy: free]", "TASK [Set]"]
    assert sorted(lines[6:-1]) == ["changed: [gpu1]", "changed: [gpu2]"]
    assert lines[-1].startswith("✓ Done in ")


ENABLED = {"ANSIBLE_INVENTORY_ENABLED": "swarmspeed.cluster.syntax,host_list,script,auto,yaml,ini,toml"}


@pytest.mark.parametrize(("name", "more"), [("hosts.yml", ENABLED), ("group_vars/all.yml", {})])
def test_a_syntax_error_of_the_inventory_is_one_sentence(tmp_path: Path, name: str, more: dict[str, str]) -> None:
    """In the file of the hosts by the inventory plugin, as Ansible reads it before there is a callback."""
    (tmp_path / "group_vars").mkdir()
    (tmp_path / name).write_text("all:\n\tvars: {}\n", encoding="utf-8")
    done = play(tmp_path, PLAYBOOK, **more)
    assert (done.returncode, done.stdout) == (4, "")
    sentence = f"{name}, line 2: is indented with a tab, which YAML does not allow. Remedy: write spaces."
    assert done.stderr == f"[ERROR]: {sentence}\n"


def test_the_inventory_plugin_leaves_good_files_to_the_others(tmp_path: Path) -> None:
    done = play(tmp_path, PLAYBOOK, ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="1", **ENABLED)
    assert (done.returncode, done.stderr) == (0, "")


def test_json_is_json_and_nothing_else(tmp_path: Path) -> None:
    more = {"ANSIBLE_STDOUT_CALLBACK": "json", "ANSIBLE_CALLBACK_PLUGINS": str(BESIDE_PLAYBOOKS)}
    done = play(tmp_path, DEAD, ANSIBLE_TIMEOUT="5", **more)
    assert json.loads(done.stdout)["stats"]["gpu3"]["unreachable"] == 1
    assert "gpu3: stopped responding during 'Not reached'" in done.stderr


@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals(tmp_path: Path, more: dict[str, str], coloured: bool) -> None:
    (tmp_path / "play.yml").write_text(PLAYBOOK, encoding="utf-8")
    (tmp_path / "hosts.yml").write_text(INVENTORY, encoding="utf-8")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(ANSIBLE), "-i", "hosts.yml", "play.yml"],
        cwd=tmp_path,
        env=environment(tmp_path, more),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        text = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            text += read
    os.close(ours)
    assert (b"\x1b[0;33m  ~ Write a file" in text) is coloured
    assert b"Done in " in text
