"""An operator who wants a node drained says so by a variable of that host; then site keeps it, and verify agrees."""

from __future__ import annotations

import json
from pathlib import Path

from tests.engines import swarm_nodes
from tests.playbook_run import container, inside, playbook, site


def availability() -> list[str]:
    return [f"{found.host} {found.availability}" for found in swarm_nodes("lab1")]


def test_a_node_is_drained_by_a_variable_and_its_container_goes_on(tmp_path: Path, given: tuple[str, ...]) -> None:
    more = tmp_path / "drained.yml"
    more.write_text(json.dumps({"all": {"hosts": {"lab3": {"swarm_availability": "drain"}}}}), encoding="utf-8")
    drained: tuple[str | Path, ...] = (*given, "--inventory", more)
    site("--tags", "swarm", *drained).done(change=True)
    try:
        assert availability() == ["lab1 active", "lab2 active", "lab3 drain"]
        assert inside("lab1", "ssh lab3 hostname") == container("lab3")
        playbook("verify", *drained).done(change=False)
        site("--tags", "swarm", *drained).done(change=False)
    finally:
        site("--tags", "swarm", *given).done(change=True)
    assert availability() == ["lab1 active", "lab2 active", "lab3 active"]
