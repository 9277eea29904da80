# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The three large examples, without PyTorch: variables exist, configurations are valid, arguments are known."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Plan, Request, build
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.text import render

from tests.example_integration import decided

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
SYSTEMS = ROOT / "tests/unit/plugins/module_utils/fixtures/systems"
WRITE_UPS = SYSTEMS.parent / "write_ups"
NAMES = ("llama_factory_sft", "gdgpt_pipeline", "deepspeed_chat_sft")
FILES = [(name, file) for name in NAMES for file in ("vars.yml", "vars.real.yml")]
THEIR_OWN_SCRIPT = {
    ("gdgpt_pipeline", "vars.real.yml"): "--config",
    ("llama_factory_sft", "vars.real.yml"): "--deepspeed",
}
"""Run gdGPT's script and LLaMA-Factory's module, which are not here; with the argument for the configuration."""

every_file = pytest.mark.parametrize(("name", "file"), FILES)


def load(path: Path) -> dict[str, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def plan(folder: Path, variables: dict[str, Any], ranks: int) -> Plan:
    """What the role asks the module ds_config for."""
    own = {key[len("deepspeed_launch_ds_config_") :]: value for key, value in variables.items() if "_ds_config_" in key}
    return build(
        Request(
            preset=own.get("preset", "zero2") or None,
            config=variables.get("deepspeed_launch_ds_config", {}),
            precision=own.get("precision", "auto"),
            integration=decided(folder, variables).keys,
            script_keys=own.get("script_keys", []),
            deepspeed_version=variables.get("training_image_deepspeed_version", "0.19.8"),
            world_size=ranks,
        )
    )


def flags(script: Path) -> dict[str, Any]:
    """The arguments that a script's parser takes, by its source; True for those without a value."""
    found: dict[str, Any] = {}
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            name, keywords = node.args[0], {word.arg: word.value for word in node.keywords}
            assert isinstance(name, ast.Constant)
            found[str(name.value)] = "action" in keywords
        if isinstance(node, ast.Attribute) and node.attr == "add_config_arguments":
            found["--deepspeed_config"], found["--deepspeed"] = False, True
    return found


@every_file
def test_variables_exist(name: str, file: str) -> None:
    known = {
        variable
        for spec in (ROOT / "roles").glob("*/meta/argument_specs.yml")
        for variable in load(spec)["argument_specs"]["main"]["options"]
    }
    assert sorted(set(load(EXAMPLES / name / file)) - known) == []


@every_file
def test_a_folder_is_a_job(name: str, file: str) -> None:
    variables = load(EXAMPLES / name / file)
    assert variables["deepspeed_launch_name"] == name
    if (name, file) not in THEIR_OWN_SCRIPT:
        assert variables["workspace_source"].endswith(f"/../examples/{name}" if "real" in file else f"/examples/{name}")
        assert (EXAMPLES / name / variables["deepspeed_launch_script"]).is_file()


@every_file
def test_arguments_are_those_of_the_script(name: str, file: str) -> None:
    variables = load(EXAMPLES / name / file)
    if (name, file) in THEIR_OWN_SCRIPT:
        assert decided(EXAMPLES / name, variables).argument == THEIR_OWN_SCRIPT[name, file]
        return
    known, given = flags(EXAMPLES / name / variables["deepspeed_launch_script"]), variables["deepspeed_launch_args"]
    assert [word for word in given if not isinstance(word, str)] == [], "arguments are text"
    assert [word for word in given if word.startswith("--") and word not in known] == []
    assert decided(EXAMPLES / name, variables).argument in known
    # DeepSpeed's launcher gives it to every rank.
    assert "--local_rank" in known
    named = [word for word in given if (EXAMPLES / name / word).suffix in (".yaml", ".yml", ".py")]
    assert [word for word in named if not (EXAMPLES / name / word).is_file()] == []


@every_file
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8, 16])
def test_the_configuration_is_valid(name: str, file: str, ranks: int) -> None:
    variables = load(EXAMPLES / name / file)
    if "train_batch_size" in variables["deepspeed_launch_ds_config"] and ranks == 3:
        pytest.skip("a fixed batch size for servers with a power of two of GPUs")
    found = plan(EXAMPLES / name, variables, ranks)
    assert [str(problem) for problem in found.errors] == []


@pytest.mark.parametrize(("name", "write_up"), [("llama_factory_sft", "s1"), ("cifar10", "s2")])
def test_real_values_are_those_of_the_write_up(name: str, write_up: str) -> None:
    found = plan(
        EXAMPLES / name, load(EXAMPLES / name / "vars.real.yml"), ranks=2 if name == "llama_factory_sft" else 1
    )
    written = json.loads((WRITE_UPS / f"{write_up}.json").read_text(encoding="utf-8"))
    written["zero_optimization"].pop("cpu_offload", None)
    assert found.errors == []
    assert json.loads(render(found.config)) == written


def test_real_values_of_gdgpt() -> None:
    found = plan(EXAMPLES / "gdgpt_pipeline", load(EXAMPLES / "gdgpt_pipeline/vars.real.yml"), 8)
    config, written = dict(found.config), json.loads((SYSTEMS / "s1b.json").read_text(encoding="utf-8"))
    # Where the weights lie in the container.
    config["model_path"] = written["model_path"]
    # Without it the module would derive an accumulation for eight replicas, where there is one in eight stages.
    assert config.pop("pipeline") == {"stages": "auto"}
    assert "gradient_accumulation_steps" not in config
    assert render(config) == render(written)


def test_real_values_of_deepspeed_chat() -> None:
    """Every value of DeepSpeed-Chat's own configuration, with LoRA's optimizer in the file instead of in the script."""
    found = plan(EXAMPLES / "deepspeed_chat_sft", load(EXAMPLES / "deepspeed_chat_sft/vars.real.yml"), 16).config
    written = json.loads((SYSTEMS / "s4.json").read_text(encoding="utf-8"))
    for key in (
        "bf16",
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "prescale_gradients",
    ):
        assert found[key] == written[key], key
    assert written["zero_optimization"].items() <= found["zero_optimization"].items()
    assert found["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"] is False


def test_the_lab_trains_a_pipeline_without_zero_above_1() -> None:
    config = plan(EXAMPLES / "gdgpt_pipeline", load(EXAMPLES / "gdgpt_pipeline/vars.yml"), 3).config
    assert config["zero_optimization"]["stage"] <= 1
    assert config["model_topo"]["process_topology"]["dims"].count(-1) == 1
    # the job's keys that DeepSpeed does not know are all read by the script
    source = (EXAMPLES / "gdgpt_pipeline/train.py").read_text(encoding="utf-8")
    keys = load(EXAMPLES / "gdgpt_pipeline/vars.yml")["deepspeed_launch_ds_config_script_keys"]
    assert [key for key in keys if f'"{key}"' not in source] == []


@pytest.mark.parametrize("kind", ["bloom", "llama"])
def test_other_architectures_change_only_the_layers(kind: str) -> None:
    variables = load(EXAMPLES / f"gdgpt_pipeline/vars.{kind}.yml")
    assert set(variables) == {"deepspeed_launch_name", "deepspeed_launch_args"}
    assert variables["deepspeed_launch_args"] == ["--model", kind, "--target", "3.0"]
    source = (EXAMPLES / "gdgpt_pipeline/layers.py").read_text(encoding="utf-8")
    assert f'"{kind}"' in source and f"class {kind.title()}Block(Block):" in source


@pytest.mark.parametrize("name", NAMES)
def test_scripts_compile_for_python_3_9_and_end_without_finalization(name: str) -> None:
    for script in (EXAMPLES / name).glob("*.py"):
        source = script.read_text(encoding="utf-8")
        compile(source, str(script), "exec")
        ast.parse(source, feature_version=(3, 9))
    assert "    os._exit(code)\n" in (EXAMPLES / name / "train.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", ["vars.flags.yml", "vars.merge.yml"])
def test_the_further_jobs_of_llama_factory_read_what_the_first_has_made(file: str) -> None:
    first, more = (load(EXAMPLES / "llama_factory_sft" / name) for name in ("vars.yml", file))
    made = first["deepspeed_launch_args"][first["deepspeed_launch_args"].index("--tiny") + 1]
    assert more["deepspeed_launch_name"] not in {first["deepspeed_launch_name"], ""}
    text = " ".join(more["deepspeed_launch_args"])
    assert f"{made}/model" in text
    if file == "vars.merge.yml":
        settings = load(EXAMPLES / "llama_factory_sft/sft.yaml")
        assert more["deepspeed_launch_args"][1] == settings["output_dir"]
        assert (EXAMPLES / "llama_factory_sft" / more["deepspeed_launch_script"]).is_file()
        assert more["deepspeed_launch_results"] == more["deepspeed_launch_args"][2:]


def test_the_old_release_of_deepspeed_is_the_one_that_is_fetched() -> None:
    version = load(EXAMPLES / "llama_factory_sft/vars.yml")["training_image_deepspeed_version"]
    assert f"deepspeed=={version}\n" in (ROOT / "molecule/default/example_wheels").read_text(encoding="utf-8")


WRITTEN = (
    *("stage", "model_name_or_path", "do_train", "dataset", "template", "finetuning_type", "lora_target", "output_dir"),
    *("overwrite_cache", "overwrite_output_dir", "per_device_train_batch_size", "gradient_accumulation_steps"),
    *("lr_scheduler_type", "logging_steps", "save_steps", "learning_rate", "num_train_epochs", "plot_loss", "fp16"),
)
"""The flags of the write-up on LLaMA-Factory, in its order."""


@pytest.mark.parametrize("file", ["vars.flags.yml", "vars.real.yml"])
def test_llama_factory_gets_the_flags_of_the_write_up(file: str) -> None:
    variables = load(EXAMPLES / "llama_factory_sft" / file)
    assert variables["deepspeed_launch_script"] == "-m llamafactory.launcher"
    given = dict(word.removeprefix("--").partition("=")[::2] for word in variables["deepspeed_launch_args"])
    wanted = [name for name in WRITTEN if name != "fp16" or "real" in file]  # CPUs train in fp32
    assert list(given)[: len(wanted)] == wanted
    if "real" in file:
        values = (
            "sft",
            "alpaca_gpt4_zh",
            "chatglm2",
            "lora",
            "query_key_value",
            "4",
            "4",
            "cosine",
            "10",
            "10000",
            "5e-5",
            "0.25",
        )
        assert tuple(value for value in (given[name] for name in WRITTEN) if value and "/" not in value) == (
            *values[:5],
            "chatglm2_sft",
            *values[5:],
        )


CHAT = (
    *("data_path", "data_split", "model_name_or_path", "per_device_train_batch_size", "per_device_eval_batch_size"),
    *("max_seq_len", "learning_rate", "weight_decay", "num_train_epochs", "gradient_accumulation_steps"),
    *("lr_scheduler_type", "num_warmup_steps", "seed", "gradient_checkpointing", "zero_stage", "lora_dim"),
    *("lora_module_name", "deepspeed", "output_dir"),
)
"""The flags of the write-up on DeepSpeed-Chat, in its order."""


@pytest.mark.parametrize("file", ["vars.yml", "vars.real.yml"])
def test_deepspeed_chat_gets_the_flags_of_the_write_up(file: str) -> None:
    variables = load(EXAMPLES / "deepspeed_chat_sft" / file)
    words = variables["deepspeed_launch_args"]
    made = ("data_path", "model_name_or_path", "target")  # on the spot
    given = [word.removeprefix("--") for word in words if word.startswith("--")]
    wanted = [name for name in CHAT if "real" in file or name not in made]
    assert [name for name in given if name != "target"] == wanted
    # What the configuration has as well is the same there, so that the file says what happens.
    value = dict(zip(words, words[1:]))
    config = variables["deepspeed_launch_ds_config"]
    assert float(value["--learning_rate"]) == config["optimizer"]["params"]["lr"]
    assert float(value["--weight_decay"]) == config["optimizer"]["params"]["weight_decay"]
    assert int(value["--per_device_train_batch_size"]) == config["train_micro_batch_size_per_gpu"]
    assert variables["deepspeed_launch_ds_config_preset"] == f"zero{value['--zero_stage']}"
