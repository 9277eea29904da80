# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which ansible-core is refused, and which is only warned of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Problem
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.controller import (
    CURRENT,
    ENDED,
    LEAST,
    Controller,
    check_ansible_version,
    check_copies,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.controller_io import copies
from hypothesis import given
from hypothesis import strategies as st

INSTALL = "pip install --upgrade 'ansible>=14', which brings ansible-core 2.21"
NEWER_PYTHON = "run Ansible with Python 3.12 or later (this is 3.11.7): "


def found(core: str, python: str = "3.13.5") -> list[Problem]:
    return list(check_ansible_version(Controller(core, python)))


@pytest.mark.parametrize("core", ["2.18.19", "2.18.3", "2.17.14", "2.9.27", "2.18"])
def test_too_old(core: str) -> None:
    (problem,) = found(core)
    assert problem.fatal
    assert problem.line() == (
        f"ansible-core {core}: is older than 2.19.0, the first release whose templates keep null and numbers as they "
        f"are. Remedy: {INSTALL}."
    )


def test_a_python_that_no_newer_ansible_runs_on_is_named() -> None:
    (problem,) = found("2.17.0", "3.11.7")
    assert problem.remedy == NEWER_PYTHON + INSTALL


@pytest.mark.parametrize(
    ("core", "python", "end", "remedy"),
    [
        ("2.19.14", "3.11.7", "November 2026", NEWER_PYTHON + INSTALL),
        ("2.19.0", "3.13.0", "November 2026", INSTALL),
    ],
)
def test_end_of_life_is_a_warning(core: str, python: str, end: str, remedy: str) -> None:
    (problem,) = found(core, python)
    assert not problem.fatal
    assert problem.line() == (
        f"ansible-core {core}: reached its end of life in {end} and no longer gets fixes, not even for security. "
        f"Remedy: {remedy}; or leave this check out with preflight_skip."
    )


@pytest.mark.parametrize("core", ["2.20.0", "2.20.10", "2.21.5", "2.22.0b1", "2.21.0.dev0", "3.0", "unknown", ""])
def test_nothing_is_reported_of_the_others(core: str) -> None:
    assert found(core) == []
    assert list(check_ansible_version(None)) == []


@given(st.text(), st.text())
def test_any_text_ends_in_at_most_one_problem(core: str, python: str) -> None:
    assert len(found(core, python)) <= 1


def test_the_least_and_the_current_release_are_distinguished_from_those_that_ended() -> None:
    assert (".".join(map(str, LEAST[:2])) in ENDED, CURRENT in ENDED) == (True, False)


def of_copies(*versions: str) -> list[Problem]:
    folders = [(f"/{letter}", version) for letter, version in zip("abc", versions)]
    return list(check_copies(Controller("2.21.5", "3.13.5", folders)))


def test_a_newer_copy_that_is_not_used_is_a_warning() -> None:
    (problem,) = of_copies("1.9.0", "1.10.0", "2.0.0")
    assert not problem.fatal
    assert problem.line() == (
        "swarmspeed.cluster 1.9.0: is used instead of 1.10.0 in /b or 2.0.0 in /c, because collections_path lists "
        "the folder of /a first. Remedy: remove the older copy, or change the order in collections_path."
    )


@pytest.mark.parametrize(
    "versions", [(), ("1.0.0",), ("1.10.0", "1.9.0"), ("1.0.0", "1.0.0"), ("", "1.0.0"), ("1.0.0", "")]
)
def test_copies_of_which_the_newest_is_used_are_not_reported(versions: tuple[str, ...]) -> None:
    assert of_copies(*versions) == []
    assert list(check_copies(None)) == []


def test_copies_are_found_in_the_order_in_which_ansible_looks(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("first", "empty", "link", "broken", "second")]
    roots = [place / "ansible_collections/swarmspeed/cluster" for place in places]
    for place, root, version in zip(places, roots, ("1.0.0", None, None, "", "2.0.0")):
        place.mkdir()
        if version is not None:
            root.mkdir(parents=True)
            manifest = json.dumps({"collection_info": {"version": version}}) if version else "[]"
            (root / "MANIFEST.json").write_text(manifest, encoding="utf-8")
    roots[2].parent.mkdir(parents=True)
    roots[2].symlink_to(roots[0])
    (dummy, version), *others = copies(map(str, places))
    assert version == ""  # that of the tests, which has no manifest
    assert others == [(str(roots[0]), "1.0.0"), (str(roots[3]), ""), (str(roots[4]), "2.0.0")]
