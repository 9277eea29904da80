# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Three files of people's write-ups come out with the same keys and values; fixtures/write_ups/README.md names them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Request, build
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.text import render

FILES = Path(__file__).parents[1] / "fixtures/write_ups"
NAMES = ("s1", "s2", "s4")
LEFT_OUT = (
    "zero_optimization.cpu_offload: false is left out: offload_optimizer has replaced this key and is off where it "
    "is absent"
)


def printed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FILES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def expected(name: str) -> dict[str, Any]:
    found = printed(name)
    if name == "s2":
        assert found["zero_optimization"].pop("cpu_offload") is False
    return found


def requested(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FILES / f"{name}.yml").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_preset_and_overrides_give_the_file(name: str) -> None:
    plan = build(Request(**requested(name)))
    assert plan.errors == []
    # What is written, read back: 5e8 and 500000000 are the same number.
    assert json.loads(render(plan.config)) == expected(name)
    assert [str(problem) for problem in plan.warnings if "cpu_offload" in problem.path] == (
        [LEFT_OUT] if name == "s2" else []
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_file_itself_is_taken_as_it_is(name: str) -> None:
    """Whoever has the file already passes it on: no preset, nothing added."""
    plan = build(
        Request(config=printed(name), integration=requested(name).get("integration", "deepspeed"), world_size=1)
    )
    assert plan.errors == []
    assert json.loads(render(plan.config)) == expected(name)


@pytest.mark.parametrize("key", ["cpu_offload", "cpu_offload_param"])
def test_an_old_switch_that_is_on_stays(key: str) -> None:
    plan = build(Request(config={"train_batch_size": 8, "zero_optimization": {"stage": 3, key: True}}))
    assert plan.config["zero_optimization"][key] is True
    assert any("is deprecated; use offload_" in str(problem) for problem in plan.warnings)
