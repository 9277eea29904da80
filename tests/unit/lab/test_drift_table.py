# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The table of drifts is whole: enough of them, of every role, none hidden by another one of the same round."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.drifts.table import Drift, Round, elsewhere, filled, rounds

ROOT = Path(__file__).parents[3]
ROUNDS = rounds()
DRIFTS = [drift for several in ROUNDS for drift in several.drifts]
ROLES = {path.name for path in (ROOT / "roles").iterdir() if path.is_dir()} - {"preflight"}
"""Preflight changes nothing."""
NODES = ("lab1", "lab2", "lab3")


def test_there_are_enough_each_with_a_name_of_its_own() -> None:
    assert len(DRIFTS) >= 40
    assert len({drift.id for drift in DRIFTS}) == len(DRIFTS)


def test_every_role_that_changes_something_has_two_or_more() -> None:
    count = Counter(drift.role for drift in DRIFTS)
    assert set(count) == ROLES - set(elsewhere())
    assert {role for role, number in count.items() if number < 2} == set()
    assert all((ROOT / path).is_file() for path in elsewhere().values())


@pytest.mark.parametrize("several", ROUNDS, ids=lambda several: several.name)
def test_no_drift_of_a_round_is_found_or_repaired_with_another(several: Round) -> None:
    places = Counter((drift.role, drift.node) for drift in several.drifts)
    assert {place for place, number in places.items() if number > 1} == set()
    assert set(several.tags.split(",")) <= ROLES


@pytest.mark.parametrize("drift", DRIFTS, ids=lambda drift: drift.id)
def test_a_drift_names_a_node_and_what_to_do_there(drift: Drift) -> None:
    assert drift.node in NODES and drift.where in NODES
    assert re.fullmatch(r"[a-z0-9-]+", drift.id) and drift.shown and drift.make
    left = filled(drift.make + drift.shown, {"etc": "", "root": "", "container": "", "image": ""})
    assert re.findall(r"@\w+@", left) == []


DRIFT = Drift("names-gone", "host", "lab2", "@etc@/env is missing", "rm")
PLACES = {"etc": "/srv/etc"}
LINE = (
    "lab2: role host: /etc/hosts has other content; /srv/etc/env is missing. "
    "Remedy: ansible-playbook site.yml --tags host"
)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (LINE, ""),
        (f"msg: '{LINE.replace('/etc/hosts has', '[' + 2 * chr(39) + 'x' + 2 * chr(39) + '] has')}'", ""),
        (f"lab1: role host: x. Remedy: ansible-playbook site.yml --tags host {LINE}", ""),
        (LINE.replace("lab2", "lab1"), "names-gone: /srv/etc/env is missing (said: nothing)"),
        (LINE.replace("role host", "role docker"), "names-gone: /srv/etc/env is missing (said: nothing)"),
        (LINE.replace("--tags host", "--tags docker"), "names-gone: /srv/etc/env is missing (said: nothing)"),
        (
            LINE.replace("/env", "/other"),
            "names-gone: /srv/etc/env is missing (said: ['/etc/hosts has other content; /srv/etc/other is missing'])",
        ),
        ("", "names-gone: /srv/etc/env is missing (said: nothing)"),
    ],
)
def test_verify_must_name_node_role_and_what_differs(text: str, reported: str) -> None:
    assert DRIFT.missing_in(text, PLACES) == reported
