"""A tag alone changes nothing on a whole cluster; those of what was broken repair it."""

from __future__ import annotations

import pytest

from tests.damages import DAMAGES
from tests.engines import ready
from tests.playbook_run import Run, container, inside, leave_swarm, on, site, tags_alone, whole

# All gather and plan the same; scenario `drifts` runs every tag.
TAGS = ("preflight", "docker", "training_container", "launch")


@pytest.fixture(scope="module")
def alone() -> dict[str, Run]:
    return tags_alone(TAGS)


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_alone_changes_nothing(tag: str, alone: dict[str, Run]) -> None:
    alone[tag].done(change=False)


def test_the_tags_of_what_was_broken_repair_it() -> None:
    # All at once, as each run gathers facts of every node first; one at a time they are broken in scenario `drifts`.
    for damage in DAMAGES.values():
        on(damage.node, damage.command)
    tags = dict.fromkeys(damage.tag for damage in DAMAGES.values())
    site("--tags", ",".join(tags)).done(change=True)
    assert [name for name, damage in DAMAGES.items() if not damage.repaired()] == []


def test_a_tag_repairs_a_container_that_is_gone_and_one_that_was_stopped() -> None:
    on("lab2", f"docker rm -f {container('lab2')}")
    on("lab3", f"docker stop -t 1 {container('lab3')}")
    run = site("--tags", "training_container").done(change=True)
    assert run.changed["lab1"] == 0 and run.changed["lab2"] and run.changed["lab3"]
    assert inside("lab3", "ssh lab2 hostname") == container("lab2")
    assert inside("lab1", "ssh lab3 hostname") == container("lab3")


def test_a_node_that_left_the_swarm_comes_back() -> None:
    leave_swarm("lab3")
    # Its container goes on, cut off from the overlay: verify.yml names the other tag.
    site("--tags", "swarm,training_container").done(change=True)
    assert ready("lab1").count("lab3") == 1
    assert inside("lab1", "ssh lab3 hostname") == container("lab3")


def test_nothing_is_left_to_repair() -> None:
    whole()
