# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The command lines that a scenario runs: those of its sequence, and of the calls in its tests.

Files are parsed, so that a name in a comment, or an uncalled function, is no run. What a call becomes is asked
of the very helper that the tests call, whose process is not started. Inventories and paths are left out of the lines.
"""

from __future__ import annotations

import ast
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from tests import init_runs, playbook_run
from tests.installed import Installed

UNKNOWN = "…"
"""Stands for arguments that are not written out where a helper is called."""
VERSION = yaml.safe_load((playbook_run.ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
TARBALL = f"swarmspeed-cluster-{VERSION}.tar.gz"
_PLACES = {"-i", "--inventory", "--output-path", "--collections-path"}
_HARMLESS = {"cluster_plan_file"}
"""Variables that change nothing of a run but where it writes a report."""
_CONFIG = playbook_run.ROOT / ".config/molecule/config.yml"

FUNCTIONS: dict[str, Callable[..., object]] = {
    "playbook": playbook_run.playbook,
    "site": playbook_run.site,
    "start": playbook_run.start,
}


def _init(installed: Installed, servers: str, *arguments: str) -> object:
    """Run the helper of scenario init without a lab, whose key and fingerprints it reads."""
    host = {"ansible_ssh_private_key_file": UNKNOWN}
    installed.place.mkdir()
    with (
        mock.patch.object(init_runs, "lab_inventory", lambda: {"_meta": {"hostvars": {"lab1": host}}}),
        mock.patch.object(init_runs, "fingerprints", lambda: UNKNOWN),
    ):
        return init_runs.User(installed).init(servers, *arguments)


METHODS: dict[str, Callable[..., object]] = {"play": Installed.play, "install": Installed.install, "init": _init}


def line(words: list[str]) -> str:
    """Return a command without its inventory and paths."""
    kept: list[str] = []
    for before, word in zip(["", *words], words):
        name = Path(word).name if word.startswith("/") else word
        if before in _PLACES or word.split("=")[0] in _PLACES or (name != word and before and name != TARBALL):
            continue
        kept.append(name)
    return " ".join(kept)


def runs_of(scenario: Path) -> set[str]:
    """Return the lines that a scenario runs on the lab's inventory."""
    found = set(_sequence(scenario))
    for path in sorted((scenario / "tests").glob("*.py")):
        for name, words in _calls(ast.parse(path.read_text(encoding="utf-8"))):
            found.update(made(name, words))
    return found


def made(helper: str, words: list[str]) -> list[str]:
    """Return the lines that a helper runs with these arguments."""
    seen: list[list[str]] = []

    def process(command: list[str], **dummy: Any) -> mock.Mock:
        seen.append([str(word) for word in command])
        if "build" in command:
            (Path(seen[-1][seen[-1].index("--output-path") + 1]) / TARBALL).touch()
        return mock.Mock(returncode=0, stdout="")

    with (
        mock.patch.object(subprocess, "run", process),
        mock.patch.object(subprocess, "Popen", process),
        tempfile.TemporaryDirectory() as folder,
    ):
        if helper in METHODS:
            METHODS[helper](Installed(Path(folder, "galaxy")), *words)
        else:
            FUNCTIONS[helper](*words)
    return [line(command) for command in seen]


def _sequence(scenario: Path) -> Iterator[str]:
    """Yield what Molecule runs itself: the playbook that converge.yml imports as it is."""
    given = {**_read(_CONFIG), **_read(scenario / "molecule.yml")}
    words = given["ansible"].get("executor", _read(_CONFIG)["ansible"]["executor"])["args"]["ansible_playbook"]
    plays = _read(scenario / "converge.yml")
    names = [
        play.get("ansible.builtin.import_playbook", "") for play in plays if play.get("vars", {}).keys() <= _HARMLESS
    ]
    for name in (name for name in names if name.startswith("swarmspeed.cluster.")):
        command = ["ansible-playbook", f"{name.rpartition('.')[2]}.yml", *words]
        steps = given["scenario"]["test_sequence"]
        yield from (
            line([*command, *more]) for step, more in (("converge", []), ("check", ["--check"])) if step in steps
        )


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _calls(module: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Yield helpers and their arguments from all functions that pytest runs, and from those that these call."""
    functions = {node.name: node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)}
    reached = {name for name, node in functions.items() if name.startswith("test_") or _is_fixture(node)}
    todo = list(reached)
    while todo:
        for call in (node for node in ast.walk(functions[todo.pop()]) if isinstance(node, ast.Call)):
            plain = isinstance(call.func, ast.Name)
            name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
            if plain and name in functions:
                todo += {name} - reached
                reached.add(name)
            elif name in (FUNCTIONS if plain else METHODS):
                words = [word for argument in call.args for word in _words(argument)]
                if "--inventory" not in words and all(keyword.arg != "inventory" for keyword in call.keywords):
                    yield name, words


def _is_fixture(function: ast.FunctionDef) -> bool:
    return any("fixture" in ast.unparse(decorator) for decorator in function.decorator_list)


def _words(argument: ast.expr) -> list[str]:
    if isinstance(argument, ast.Constant):
        return [str(argument.value)]
    if isinstance(argument, ast.Starred) and ast.unparse(argument.value).startswith("variables("):
        return ["--extra-vars", UNKNOWN]
    return [UNKNOWN]


def written(command: str) -> str:
    """Return a command of a document in the same form."""
    return line(shlex.split(command))
