# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which ansible-core is refused, and which is only warned of."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Problem
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.controller import (
    CURRENT,
    ENDED,
    LEAST,
    Controller,
    check_ansible_version,
)
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
        f"ansible-core {core}: is older than 2.19.0, the first whose templates keep null and numbers as they are. "
        f"Remedy: {INSTALL}."
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
