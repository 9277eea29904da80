# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The packages of module_utils and plugin_utils: which may import which; docs/architecture.md describes each."""

from __future__ import annotations

import ast
import functools
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import PLANNED

from tests.documents import ROOT, cells, coded

COLLECTION = "ansible_collections.swarmspeed.cluster."
PLUGINS = ROOT / "plugins"
NODE, CONTROLLER = "plugins.module_utils", "plugins.plugin_utils"
COPIED = {f"{NODE}.network_bench.rank"}
"""Programs that a role copies to nodes as they are (bench_run.yml of overlay_network)."""


ROOMS = (
    ("core",),
    ("bundle", "cluster", "connection", "diagnosis", "launch", "validate", "versions"),
    ("plan",),
    PLANNED,
    ("registry", "transfer", "fabric", "job", "bench", "preflight", "report", "init", "console"),
)
"""The packages of plugin_utils from below: imports run downward, and within a room in no circle."""
REPORTED = 25
"""Files of this collection that a task may import that reports a part of a plan: each worker reads them again."""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


MODULES = {name_of(path): path for path in sorted(PLUGINS.glob("*_utils/**/*.py"))}
EVERYTHING = {**MODULES, **{name_of(path): path for path in sorted(PLUGINS.glob("*/*.py"))}}


def imported(name: str, source: str) -> Iterator[str]:
    """Yield the names of this collection that ``source`` imports as ``name``, wherever the import stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found = [entry.name for entry in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = name.split(".")[: -node.level] if node.level else []
            parent = ".".join([*above, *([node.module] if node.module else [])])
            found = [parent, *(f"{parent}.{entry.name}" for entry in node.names)]
        else:
            continue
        for full in found:
            short = full[len(COLLECTION) :] if full.startswith(COLLECTION) else full
            if short.startswith("plugins."):
                yield short


@functools.cache
def imports_of(name: str) -> set[str]:
    return set(imported(name, EVERYTHING[name].read_text(encoding="utf-8")))


def below(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def packages() -> list[str]:
    return sorted({name.rpartition(".")[0] for name in MODULES})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f"from {COLLECTION}{CONTROLLER}.cluster import view", f"{CONTROLLER}.cluster.view"),
        (f"def f():\n    import {COLLECTION}{CONTROLLER}.cluster.view", f"{CONTROLLER}.cluster.view"),
        ("from ....plugin_utils.cluster.view import x", f"{CONTROLLER}.cluster.view"),
        (
            "try:\n    from ....plugin_utils.cluster import view\nexcept ImportError:\n    pass",
            f"{CONTROLLER}.cluster.view",
        ),
    ],
)
def test_no_way_of_importing_is_missed(source: str, expected: str) -> None:
    assert expected in set(imported(f"{NODE}.job.supervisor.main", source))


def test_nothing_that_travels_to_nodes_imports_what_stays_on_the_controller() -> None:
    names = [name for name in EVERYTHING if below(name, NODE) or below(name, "plugins.modules")]
    wrong = {name: sorted(other for other in imports_of(name) if below(other, CONTROLLER)) for name in names}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_what_only_the_controller_needs_is_not_in_module_utils() -> None:
    """Reached from the modules, which may run on a node, or copied there."""
    needed, waiting = set(), [name for name in EVERYTHING if below(name, "plugins.modules") or name in COPIED]
    while waiting:
        name = waiting.pop()
        if name in EVERYTHING and name not in needed:
            needed.add(name)
            waiting += imports_of(name)
    assert sorted(name for name in MODULES if below(name, NODE) and name not in needed) == []


def test_every_import_of_this_collection_is_there() -> None:
    """AnsiballZ leaves out in silence what an import within ``try`` or a function no longer finds."""
    known = {*EVERYTHING, *(name.rpartition(".")[0] for name in EVERYTHING)}
    for name in EVERYTHING:
        for other in imports_of(name):
            if other not in known:  # then it is a name within a module
                assert other.rpartition(".")[0] in EVERYTHING, f"{name} imports {other}"


def test_every_file_is_in_a_package() -> None:
    """And says there which part it is: not the package's name once more, and no underscore."""
    assert [name for name in MODULES if name.count(".") < 3 or name.rpartition(".")[2].startswith("_")] == []


def test_every_package_is_described() -> None:
    rows = {coded(row[0])[0]: row[1] for row in cells("docs/architecture.md", "The packages")}
    assert sorted(rows) == sorted(f"{'/'.join(name.split('.')[1:])}/" for name in packages())
    assert all(rows.values())


def files_of(names: set[str]) -> set[str]:
    """Leave out names within modules, and packages."""
    return {name for name in names if name in EVERYTHING}


def arrows() -> dict[str, set[str]]:
    """Return the packages of plugin_utils with those that each imports."""
    found: dict[str, set[str]] = {}
    for name in MODULES:
        if below(name, CONTROLLER):
            others = {other.split(".")[2] for other in files_of(imports_of(name)) if below(other, CONTROLLER)}
            package = name.split(".")[2]
            found.setdefault(package, set()).update(others - {package})
    return found


def test_every_package_has_a_room() -> None:
    assert sorted(package for room in ROOMS for package in room) == sorted(arrows())


def test_no_import_runs_upward() -> None:
    level = {package: number for number, room in enumerate(ROOMS) for package in room}
    upward = [(one, other) for one, others in arrows().items() for other in others if level[one] < level[other]]
    assert sorted(upward) == []


def test_no_package_imports_itself_by_way_of_others() -> None:
    assert list(graphlib.TopologicalSorter(arrows()).static_order())


def test_reporting_a_plan_imports_no_planner() -> None:
    needed: set[str] = set()
    waiting = ["plugins.action.plan"]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += files_of(imports_at_start(EVERYTHING[name].read_text(encoding="utf-8"), name))
    assert not [name for name in needed if name.endswith(".planner")]
    assert len(needed) <= REPORTED, sorted(needed)


def imports_at_start(source: str, name: str) -> set[str]:
    """Return what a file imports when it is read; what a function imports is left out."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return set(imported(name, ast.unparse(tree)))
