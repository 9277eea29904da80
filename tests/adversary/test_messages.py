# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a node or a container prints reaches no terminal as it is: ansible-core writes a failed task's message raw."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.filter.visible import FilterModule
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.node_action import NodeAction

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for pattern in ("roles/*/tasks/**/*.yml", "roles/*/handlers/*.yml", "roles/*/vars/*.yml", "playbooks/**/*.yml")
    for path in ROOT.glob(pattern)
)
MESSAGES = ("msg", "fail_msg", "success_msg")
PRINTED = re.compile(
    r"(?:\.|\[\s*['\"]|attribute\s*=\s*['\"]|(?:map|get)\(\s*['\"])"
    r"(?:stdout|stderr|stdout_lines|stderr_lines|msg|log|module_stdout|module_stderr|reason)\b(?!\s*\()"
)
"""How an expression takes what was printed elsewhere."""
EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
CONDITION = re.compile(r"\{%.*?%\}", re.DOTALL)
VISIBLE = ("swarmspeed.cluster.visible", "regex_replace('[^!-~]+', ' ')", "swarmspeed.cluster.network_bench_table")
"""What leaves no control character."""
HARMLESS = re.compile(r"\|\s*(?:int|length|bool)\s*(?:\(\s*\))?\s*$")
"""Ends of an expression after which no text of another's is left."""
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\x08\r\x7f\u202e"


CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Loader(yaml.SafeLoader):
    """Takes Ansible's own tags as text."""


Loader.add_multi_constructor("!", lambda loader, suffix, node: str(node.value))


def texts(value: Any) -> Iterator[str]:
    """Every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)


def messages(value: Any) -> Iterator[str]:
    """Texts of a file that are shown to people, wherever in it they stand."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key in MESSAGES:
                yield from texts(part)
            else:
                yield from messages(part)
    elif isinstance(value, list):
        for part in value:
            yield from messages(part)


def variables(value: Any) -> Iterator[tuple[str, str]]:
    """Variables that a file sets, with their expressions."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key in ("vars", "ansible.builtin.set_fact", "set_fact") and isinstance(part, dict):
                for name, inner in part.items():
                    yield from ((name, text) for text in texts(inner))
            yield from variables(part)
    elif isinstance(value, list):
        for part in value:
            yield from variables(part)


def unseen(text: str, names: frozenset[str] = frozenset()) -> list[str]:
    """Expressions that show what was printed elsewhere, or such a variable, without the filter."""
    found = []
    for expression in EXPRESSION.findall(CONDITION.sub("", text)):
        printed = PRINTED.search(expression) or names & set(re.findall(r"\w+", expression))
        if printed and not any(one in expression for one in VISIBLE) and not HARMLESS.search(expression):
            found.append(" ".join(expression.split()))
    return found


CONTENT = {path: yaml.load(path.read_text(encoding="utf-8"), Loader) for path in FILES}


def raw_variables() -> frozenset[str]:
    """Variables that hold what was printed elsewhere, also by way of others."""
    names: frozenset[str] = frozenset()
    while True:
        more = {name for value in CONTENT.values() for name, text in variables(value) if unseen(text, names)}
        if more <= names:
            return names
        names |= more


RAW = raw_variables()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_message_has_what_was_printed_elsewhere_as_it_is(path: Path) -> None:
    assert [found for text in messages(CONTENT[path]) for found in unseen(text, RAW)] == []


@pytest.mark.parametrize(
    "text",
    [
        "{{ _a.stdout }}",
        "it printed {{ (_a.stderr or _a.stdout) | trim }}.",
        "{{ _a['stdout'] }}",
        "{{ _a.stdout_lines | join('; ') }}",
        "{{ _a.results | map(attribute='msg') | join }}",
        "{{ (_a.stdout | from_json)[0].ID }}",
        "{% if _a is failed %}{{ ansible_failed_result.msg }}{% endif %}",
        "{{ hostvars['a']['_a'].stdout | default('') }}",
        "{{ _a.get('stdout') }}",
    ],
)
def test_the_search_finds_each_way_to_show_it(text: str) -> None:
    assert unseen(text)
    end = text.rindex("}}")
    assert unseen(f"{text[:end]} | {VISIBLE[0]} {text[end:]}") == []


def test_the_search_finds_something_and_reads_every_file() -> None:
    assert len(FILES) > 100 and sum(bool(list(messages(value))) for value in CONTENT.values()) > 50
    shown = [text for value in CONTENT.values() for text in messages(value) if VISIBLE[0] in text]
    assert len(shown) > 10


@pytest.mark.parametrize("value", [ESCAPES, [ESCAPES], {"a": ESCAPES}, f"line\n\t{ESCAPES}", None, 5])
def test_the_filter_leaves_no_control_character(value: Any) -> None:
    shown = FilterModule().filters()["visible"](value)
    assert not CONTROL.search(shown)


MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("[a-z]*.py"))
ROUTES = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))["plugin_routing"]["modules"]
"""Modules whose action has another name; for any other without an action, ansible-core would take its own."""


def action_of(name: str) -> Any:
    used = ROUTES[name]["action_plugin"] if name in ROUTES else f"swarmspeed.cluster.{name}"
    collection, dummy, plugin = used.rpartition(".")
    return importlib.import_module(f"ansible_collections.{collection}.plugins.action.{plugin}")


ACTIONS = {name: action_of(name) for name in MODULES}
"""Imported before any test installs Ansible's own finder of collections, which knows none of a checkout."""


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_a_node_is_run_by_an_action_that_spells_them_out(name: str) -> None:
    action = ACTIONS[name]
    assert issubclass(action.ActionModule, NodeAction) or "_execute_module" not in inspect.getsource(action)


REPLIES = {
    "a failure": {"failed": True, "msg": ESCAPES},
    "a failure with a list": {"failed": True, "msg": [ESCAPES, {"a": ESCAPES}]},
    "a warning": {"warnings": [ESCAPES], "deprecations": [{"msg": ESCAPES, "version": "1"}], "msg": "fine"},
    "no module at all": {"failed": True, "msg": "MODULE FAILURE", "module_stdout": ESCAPES, "module_stderr": ESCAPES},
    "a traceback": {"failed": True, "msg": "x", "exception": f"Traceback\n{ESCAPES}"},
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_what_a_node_replies_is_spelt_out(reply: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class Action(NodeAction):
        def __init__(self) -> None:
            self._task = SimpleNamespace(action="swarmspeed.cluster.gpu_info")
            self._play_context = SimpleNamespace(remote_addr="10.0.0.7")

        def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
            raise NotImplementedError

    monkeypatch.setattr(ActionBase, "_execute_module", lambda *_given, **_named: dict(reply))
    assert not CONTROL.search("".join(texts(Action()._execute_module())))


PYTHON = """#!/bin/sh
# A stand-in for the Python of a node, which its root has replaced.
printf '%s' '{"failed": true, "msg": "one\\u001b]0;owned\\u0007 \\u009b31m two", "warnings": ["\\u001b[2J"]}'
"""
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - swarmspeed.cluster.gpu_info:
      ignore_errors: "{{ later | default(false) }}"
      register: replied
    - ansible.builtin.fail:
        msg: "{{ '\\e]0;owned\\a' | swarmspeed.cluster.visible }}"
"""


@pytest.mark.parametrize("later", [False, True])
def test_a_node_writes_nothing_to_the_terminal_of_the_operator(later: bool, tmp_path: Path) -> None:
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "play.yml").write_text(PLAY)
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("ansible-playbook")), "-c", "local", "-i", "localhost,"),
            *("-e", f"ansible_python_interpreter={tmp_path / 'python'}", "-e", json.dumps({"later": later})),
            str(tmp_path / "play.yml"),
        ],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        timeout=25,
        check=False,
    )
    shown = done.stdout + done.stderr
    assert done.returncode == 2 and b"owned" in shown and b"two" in shown
    assert b"\x1b" not in shown and b"\x07" not in shown and b"\xc2\x9b" not in shown
