"""For each drift of the table verify fails and names node and role, the role's tag repairs it, and verify passes.

Three runs of a playbook for each round of the table.
"""

from __future__ import annotations

import pytest

from tests.drifts.table import Round, filled, rounds
from tests.playbook_run import CLUSTER_ROOT, ETC, NODES, container, on, playbook, site, variables


def places(name: str) -> dict[str, str]:
    """Return what stands for the placeholders of the table on a node."""
    return {
        "etc": ETC,
        "root": CLUSTER_ROOT,
        "container": container(name),
        "image": on(name, f"docker inspect --format '{{{{.Config.Image}}}}' {container(name)}").strip(),
    }


def test_nothing_differs_before(given: tuple[str, ...]) -> None:
    playbook("verify", *given).done(change=False)


@pytest.mark.parametrize("several", rounds(), ids=lambda several: several.name.replace(" ", "-"))
def test_verify_names_each_drift_and_its_tag_repairs_it(several: Round, given: tuple[str, ...]) -> None:
    arguments = (*given, *(variables(**several.variables) if several.variables else ()))
    found_on = {name: places(name) for name in NODES}
    if several.containers_first:
        for name in NODES:
            on(name, f"docker rm --force {container(name)}")
    for drift in several.drifts:
        on(drift.where, filled(drift.make, found_on[drift.where]))
    found = playbook("verify", *arguments).refused()
    missing = [drift.missing_in(found.text, found_on[drift.node]) for drift in several.drifts]
    # Whatever verify said, so that the next round finds a whole cluster.
    repaired = site("--tags", several.tags, *arguments)
    assert [line for line in missing if line] == [], found.output[-6000:]
    repaired.done(change=True)
    playbook("verify", *arguments).done(change=False)


def test_nothing_is_left_to_change(given: tuple[str, ...]) -> None:
    site(*given).done(change=False)
