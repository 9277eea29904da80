# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The example trainer_full, without PyTorch: its three jobs fit together, and their arguments are known."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Request, build

from tests.example_integration import decided

ROOT = Path(__file__).parents[3]
PLACE = ROOT / "examples/trainer_full"
FILES = ("vars.yml", "vars.convert.yml", "vars.predict.yml", "vars.real.yml")
OF_THE_TRAINER = {
    *("deepspeed", "disable_tqdm", "do_predict", "do_train", "gradient_accumulation_steps", "gradient_checkpointing"),
    *("learning_rate", "logging_steps", "max_steps", "num_train_epochs", "output_dir", "per_device_eval_batch_size"),
    *("per_device_train_batch_size", "report_to", "save_steps", "use_cpu", "warmup_steps"),
}
"""Fields of transformers.TrainingArguments, as release 5.23.0 has them, that the variables use."""


def load(file: str) -> dict[str, Any]:
    found = yaml.safe_load((PLACE / file).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def given(file: str) -> dict[str, str]:
    words = load(file)["deepspeed_launch_args"]
    return dict(word.removeprefix("--").partition("=")[::2] for word in words)


def own() -> set[str]:
    """Return the fields of the script's own arguments."""
    tree = ast.parse((PLACE / "train.py").read_text(encoding="utf-8"), feature_version=(3, 9))
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Own"]
    return {
        node.target.id for node in found.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


@pytest.mark.parametrize("file", FILES)
def test_variables_exist(file: str) -> None:
    known = {
        variable
        for spec in (ROOT / "roles").glob("*/meta/argument_specs.yml")
        for variable in yaml.safe_load(spec.read_text(encoding="utf-8"))["argument_specs"]["main"]["options"]
    }
    assert sorted(set(load(file)) - known - {"gpu_slots"}) == []


@pytest.mark.parametrize("file", ["vars.yml", "vars.predict.yml", "vars.real.yml"])
def test_arguments_are_those_of_the_script_and_the_trainer(file: str) -> None:
    assert set(given(file)) - own() - OF_THE_TRAINER == set()
    assert load(file)["deepspeed_launch_script"] == "train.py"


@pytest.mark.parametrize(("file", "ranks"), [("vars.yml", 2), ("vars.real.yml", 8)])
def test_the_configuration_is_valid(file: str, ranks: int) -> None:
    variables = load(file)
    plan = build(
        Request(
            preset=variables["deepspeed_launch_ds_config_preset"],
            config=variables["deepspeed_launch_ds_config"],
            integration=decided(PLACE, variables).keys,
            world_size=ranks,
        )
    )
    assert [str(problem) for problem in plan.errors] == []
    assert plan.config["zero_optimization"]["stage"] == 2


def test_each_job_reads_what_the_one_before_has_written() -> None:
    first, predict = given("vars.yml"), given("vars.predict.yml")
    checkpoint, weights = load("vars.convert.yml")["deepspeed_launch_args"]
    assert checkpoint == f"{first['output_dir']}/checkpoint-{first['max_steps']}"
    assert predict["weights"] == f"{weights}/pytorch_model.bin"
    assert predict["model_name_or_path"] == first["model_name_or_path"] and predict["test_file"] == first["test_file"]
    assert load("vars.predict.yml")["deepspeed_launch_results"] == [predict["final"]]
    # As the write-up has it: torchrun, a batch size of its own, and no DeepSpeed.
    assert load("vars.predict.yml")["deepspeed_launch_launcher"] == "torchrun"
    assert load("vars.predict.yml")["deepspeed_launch_integration"] == "none"
    assert predict["per_device_eval_batch_size"] == "1"
    names = [load(file)["deepspeed_launch_name"] for file in FILES[:3]]
    assert names == ["trainer_full", "trainer_full_convert", "trainer_full_predict"]


def test_scripts_end_without_finalization() -> None:
    assert "    os._exit(code)\n" in (PLACE / "train.py").read_text(encoding="utf-8")
    ast.parse((PLACE / "tiny.py").read_text(encoding="utf-8"), feature_version=(3, 9))
