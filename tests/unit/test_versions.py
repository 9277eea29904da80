# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One answer to which ansible-core is supported, wherever it is written down."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.controller import (
    CURRENT,
    CURRENT_PACKAGE,
    CURRENT_PYTHON,
    ENDED,
    LEAST,
)

ROOT = Path(__file__).parents[2]


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def pinned() -> dict[tuple[str, str], str]:
    """Return the release of requirements.txt by package and comparison with the Python that the newest needs."""
    pins = re.findall(r'^(\S+)==(\S+); python_version (\S+) "([0-9.]+)"$', text("requirements.txt"), re.MULTILINE)
    assert {python for *_pin, python in pins} == {dotted(CURRENT_PYTHON)}
    return {(package, comparison): release for package, release, comparison, _python in pins}


def rows() -> dict[str, list[str]]:
    """Return the table of docs/controllers.md by release, without those that are refused."""
    lines = re.findall(r"^\| (2\.\d+) \| (.*) \|$", text("docs/controllers.md"), re.MULTILINE)
    return {release: rest.split(" | ") for release, rest in lines}


@pytest.fixture(name="cores", scope="module")
def load_cores() -> ModuleType:
    """tests/cores, a program without a suffix."""
    loader = importlib.machinery.SourceFileLoader("tests_cores", str(ROOT / "tests" / "cores"))
    spec = importlib.util.spec_from_loader("tests_cores", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules["tests_cores"] = module
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = writes
    return module


def test_the_least_release_is_the_same_for_ansible_preflight_and_readers() -> None:
    assert yaml.safe_load(text("meta/runtime.yml"))["requires_ansible"] == f">={dotted(LEAST)}"
    assert min(rows(), key=numbers) == dotted(LEAST[:2])
    assert f"ansible-core {dotted(LEAST[:2])}" in text("docs/installation.md")


def test_requirements_have_the_newest_release_and_the_last_for_an_older_python() -> None:
    pins = pinned()
    assert set(pins) == {(name, sign) for name in ("ansible", "ansible-core") for sign in ("<", ">=")}
    assert pins["ansible-core", ">="].startswith(f"{CURRENT}.")
    assert pins["ansible", ">="].startswith(f"{CURRENT_PACKAGE}.")
    assert pins["ansible-core", "<"].startswith(f"{dotted(LEAST[:2])}.")
    assert pins["ansible-core", "<"].rpartition(".")[0] in ENDED
    assert (rows()[CURRENT][1], rows()[dotted(LEAST[:2])][1]) == (pins["ansible", ">="], pins["ansible", "<"])


def test_the_page_of_requirements_names_every_supported_release() -> None:
    supported = [release for release in rows() if release not in ENDED]
    assert (
        f"Python {dotted(CURRENT_PYTHON)} or later with ansible-core {' or '.join(sorted(supported, key=numbers))};"
        in (text("docs/installation.md"))
    )


def test_the_end_of_life_of_the_page_is_preflights() -> None:
    for release, cells in rows().items():
        assert ("end of life in" in cells[3], release in ENDED) in ((True, True), (False, False))
        assert ENDED.get(release, "supported") in cells[3]


def test_every_supported_release_is_tried(cores: ModuleType) -> None:
    tried = {controller.core: controller for controller in cores.CONTROLLERS}
    assert set(tried) == {release for release in rows() if release not in ENDED}
    assert tried[CURRENT].pins == ()
    for release, controller in tried.items():
        core = [pin for pin in controller.pins if pin.startswith(f"ansible-core=={release}.")]
        assert len(core) == (release != CURRENT)
        assert not controller.pins or f"ansible=={rows()[release][1]}" in controller.pins


def test_sanity_has_an_ignore_list_for_each_release_and_for_no_other() -> None:
    assert {path.name for path in (ROOT / "tests/sanity").iterdir()} == {f"ignore-{release}.txt" for release in rows()}


def test_collections_are_asked_for_in_releases_that_the_package_ansible_brings() -> None:
    dependencies: dict[str, str] = yaml.safe_load(text("galaxy.yml"))["dependencies"]
    listed: dict[str, Any] = {
        entry["name"]: entry["version"] for entry in yaml.safe_load(text("requirements.yml"))["collections"]
    }
    assert set(listed) == set(dependencies)
    docker = numbers(dependencies["community.docker"].removeprefix(">="))
    assert (4, 8, 3) <= docker <= min(numbers(cells[2]) for cells in rows().values())
    assert numbers(listed["community.docker"].removeprefix(">=")) >= (5, 0, 6)
