# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The figures in docs/ds_config.md are those that the functions give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.auto import ORDER, choose
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import KNOWN_VERSIONS
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.memory import (
    human,
    plan,
    read_bytes,
    read_gpus,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.model import read
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.presets import PRESETS, available, preset

DOCUMENT = (Path(__file__).parents[5] / "docs/ds_config.md").read_text(encoding="utf-8")
SETTLED = {"sequence_length": 2048, "activation_checkpointing": True}


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under the header row that begins so."""
    table = DOCUMENT[DOCUMENT.index(f"| {heading} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table]


def configuration(name: str) -> dict[str, Any]:
    return {**preset(name, "deepspeed"), "bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": 1}


def test_presets_side_by_side() -> None:
    model, dummy = read({"parameters": "7B", **SETTLED})
    gpus, dummy = read_gpus({"count": 8, "memory": "80GB"})
    assert model is not None and gpus is not None
    expected = []
    for name in PRESETS:
        memory = plan(configuration(name), model, gpus, 8)
        first = next(version for version in KNOWN_VERSIONS if name in available(version))
        stage = preset(name, "deepspeed")["zero_optimization"]["stage"]
        nvme = human(memory.nvme) if memory.nvme else "none"
        expected.append([f"`{name}`", str(first), str(stage), human(memory.gpu), human(memory.host), nvme])
    assert [[*row[:3], *row[4:7]] for row in rows("preset")] == expected
    # the order of the rows is that of `auto`
    assert [row[0].strip("`") for row in rows("preset")][: len(ORDER)] == list(ORDER)


def test_the_task_gives_the_answer_that_is_shown() -> None:
    source = re.search(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    shown = re.search(r"```text\n(.*?)```", DOCUMENT, re.DOTALL)
    assert source is not None and shown is not None
    task = yaml.safe_load(source[1])[0]["swarmspeed.cluster.ds_config"]
    model, problems = read(task["model"])
    gpus, more = read_gpus(task["gpus"])
    assert not problems + more

    def configured(name: str) -> dict[str, Any]:
        return {**configuration(name), **task["config"]}

    choice, problems = choose(configured, model, gpus, task["world_size"], read_bytes(task["host_memory"], "")[0])
    assert choice is not None and not problems
    assert choice.reasons == shown[1].splitlines()


def test_jobs_and_their_answers() -> None:
    for job, answer in rows("job"):
        match = re.fullmatch(r"([0-9.]+B), (\d+) x (\d+) x (\w+), hosts? (\w+)", job)
        assert match is not None, job
        model, dummy = read({"parameters": match[1], **SETTLED})
        gpus, dummy = read_gpus({"count": match[3], "memory": match[4]})
        host = read_bytes(match[5], "host_memory")[0]
        choice, dummy = choose(configuration, model, gpus, int(match[2]) * int(match[3]), host)
        assert choice is not None and f"`{choice.preset}`" == answer, job
    assert len(rows("job")) == 6


def test_every_preset_has_an_entry_in_the_decision_table() -> None:
    advised = " ".join(row[1] for row in rows("you have"))
    assert [name for name in PRESETS if f"`{name}`" not in advised] == []
