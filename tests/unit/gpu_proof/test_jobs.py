# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a proof launches, and how: the roles know its variables, DeepSpeed's checks take its configurations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Request, build
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.gpus import Gpus
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.memory import (
    GPU_RESERVE,
    GPU_RESERVE_SHARE,
    plan,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.model import read as read_model
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.host_io import SMI_PLACES
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.facts import FACT_CHECKS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import INVENTORY_CHECKS

from tests.documents import ROOT, text
from tests.gpu_proof import environment, jobs, memory
from tests.gpu_proof.parts import Failed, Skipped

CASES = [*memory.cases(), *memory.cases(rehearsal=True)]


def options() -> set[str]:
    found = (
        yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "roles").glob("*/meta/argument_specs.yml")
    )
    return {name for specs in found for spec in specs["argument_specs"].values() for name in spec.get("options", {})}


@pytest.mark.parametrize("accelerator", ["cuda", "cpu"])
def test_the_roles_know_its_variables(accelerator: str) -> None:
    given = jobs.inventory(accelerator)["cluster"]["vars"]
    given.update(jobs.job_variables("x", "x.py", [], jobs.transformer_config(3, True, True)))
    given.update(jobs.job_variables("x", "x.py", [], None))
    assert set(given) - options() == set()
    assert set(jobs.LEFT_OUT) <= {*FACT_CHECKS, *INVENTORY_CHECKS}
    tags = {
        word.strip()
        for line in text("playbooks/site.yml").splitlines()
        if "tags:" in line
        for word in line.partition("[")[2].partition("]")[0].split(",")
    }
    assert set(jobs.TAGS.split(",")) <= tags


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize("fused", [True, False])
def test_configurations_are_taken(stage: int, fused: bool) -> None:
    for offload in (False, True) if stage else (False,):
        config = jobs.transformer_config(stage, fused, offload)
        made = build(Request(preset=f"zero{stage}", config=config, precision="bf16", world_size=1))
        assert made.errors == []
        assert ("torch_adam" in config["optimizer"]["params"]) is not (fused or offload)


LOG = """gpu | digits: epoch 1/12 loss 1.0131 accuracy 0.8384
digits: epoch 1 of 12 (8 %), loss 1.0131
gpu | digits: epoch 2/12 loss 0.2092 accuracy 0.9053
"""


def test_the_log_of_digits_is_read() -> None:
    assert jobs.read_digits(LOG) == {"losses": [1.0131, 0.2092], "accuracy": 0.9053}


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("", "the log shows fewer than two epochs"),
        (LOG.replace("0.2092", "1.5"), "the loss did not fall: 1.0131 after the first epoch, 1.5 after the last"),
    ],
)
def test_a_loss_that_does_not_fall(log: str, reason: str) -> None:
    with pytest.raises(Failed) as caught:
        jobs.read_digits(log)
    assert str(caught.value) == reason


def test_four_sizes_in_every_way() -> None:
    found = {(case.size, case.way) for case in memory.cases()}
    assert len({size for size, dummy in found}) >= 4
    assert {(size, way) for size in memory.SIZES for way, *dummy in memory.WAYS} <= found
    stages = {case.config["zero_optimization"]["stage"] for case in memory.cases()}
    assert stages == {0, 1, 2, 3}
    assert len({case.name for case in memory.cases()}) == len(list(memory.cases()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases_are_taken_and_the_plan_counts_their_parameters(case: memory.Case) -> None:
    assert build(Request(config=case.config, world_size=1)).errors == []
    shape = case.shape
    width, layers, words = shape["hidden_size"], shape["num_hidden_layers"], shape["vocab_size"]
    layer = 4 * width**2 + 3 * width * shape["intermediate_size"] + 2 * width
    counted = read_model({"model_type": "llama", **shape, "num_key_value_heads": shape["num_attention_heads"]})[0]
    assert counted is not None and counted.parameters == layers * layer + 2 * words * width + width
    predicted, planned = memory.predict(case)
    assert predicted == planned.gpu - planned.of("gpu", "reserve") > 0


def test_what_several_ranks_share_is_planned_for_each() -> None:
    divided = [case for case in memory.cases() if case.ranks > 1]
    assert {(case.size, case.ranks) for case in divided} == set(memory.DIVIDED)
    assert all(case.config["zero_optimization"]["stage"] and case.name.endswith(" ranks") for case in divided)
    # with offload a GPU has little of what is divided
    for case in (case for case in divided if not case.way.endswith("offload")):
        assert memory.predict(case)[0] < memory.predict(replace(case, ranks=1))[0]


def test_sizes_are_named_after_their_parameters() -> None:
    for case in memory.cases():
        predicted = read_model({"model_type": "llama", **case.shape})[0]
        assert predicted is not None and f"{predicted.parameters / 10**9:.2g}B" == case.size


@pytest.mark.parametrize(("ratio", "word"), [(0.997, "under"), (0.998, "right"), (1.15, "right"), (1.151, "over")])
def test_verdicts(ratio: float, word: str) -> None:
    assert memory.verdict(ratio) == word
    assert memory.verdict(0.98, memory.LEAST_ON_CPU) == "right" and memory.verdict(0.97, memory.LEAST_ON_CPU) == "under"


def test_a_row_keeps_what_was_predicted_and_measured() -> None:
    case = next(memory.cases())
    measured = {"parameters": 5, "requested": 100, "allocated": 102, "phases": {"step": 100}, "losses": [2.0, 1.5, 1.0]}
    assert memory.row(case, 110, measured, 7) == {
        "size": case.size,
        "way": case.way,
        "parameters": 5,
        "predicted": 110,
        "measured": 100,
        "allocated": 102,
        "phases": {"step": 100},
        "ratio": 1.1,
        "verdict": "right",
        "reserve": 7,
        "reserved_by_torch": None,
        "outside_torch": None,
        "losses": [2.0, 1.0],
    }
    # with stand-ins for the others losses mean nothing
    assert memory.row(replace(case, ranks=8), 110, measured, 7)["losses"] == []


def test_the_room_is_that_of_the_smallest_gpu_without_a_warning() -> None:
    case = next(memory.cases())
    predicted, dummy = memory.predict(case)
    model = read_model({"model_type": "llama", **case.shape, "sequence_length": case.sequence_length})[0]
    assert model is not None
    whole = memory.room(predicted) + GPU_RESERVE
    tight = [plan(case.config, model, Gpus(count=1, memory=size), 1).tight for size in (whole - 10, whole + 10)]
    assert tight == [True, False]


def test_the_tight_room_is_that_of_the_smallest_gpu_that_the_plan_fits() -> None:
    case = next(memory.cases())
    predicted, dummy = memory.predict(case)
    model = read_model({"model_type": "llama", **case.shape, "sequence_length": case.sequence_length})[0]
    assert model is not None
    whole = memory.room(predicted, GPU_RESERVE_SHARE) + GPU_RESERVE
    fits = [plan(case.config, model, Gpus(count=1, memory=size), 1).fits_gpu for size in (whole - 10, whole + 10)]
    assert fits == [False, True]


def stand_in(folder: Path, code: int) -> None:
    """Write a program unshare that ends so."""
    program = folder / "unshare"
    program.write_text(f"#!/bin/sh\nexit {code}\n", encoding="utf-8")
    program.chmod(0o755)


def test_who_is_not_root_is_root_in_a_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert jobs.as_root() == []
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    stand_in(tmp_path, 0)
    assert jobs.as_root()[:2] == ["unshare", "--map-root-user"]
    stand_in(tmp_path, 1)
    with pytest.raises(Skipped, match=r"^you are not root, and this machine allows no user namespaces"):
        jobs.as_root()


def test_ranks_find_cuda_where_the_caller_does() -> None:
    assert jobs.handed_on({"CUDA_HOME": "/opt/cuda", "LD_LIBRARY_PATH": "", "HF_TOKEN": "secret"}) == {
        "CUDA_HOME": "/opt/cuda"
    }


def test_nvidia_smi_is_searched_for_where_gpu_info_looks() -> None:
    assert [str(Path(place).parent) for place in SMI_PLACES] == list(environment.SMI_FOLDERS)
