# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""cifar10, torchrun_single and lightning_ddp: what their variables ask for is there, and their scripts take it.

The scripts themselves need torch and run in the lab; here they are compiled, and their arguments read.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Request, build
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.variables import role_specs

from tests.example_integration import decided

ROOT = Path(__file__).parents[3]
EXAMPLES = ("cifar10", "torchrun_single", "lightning_ddp")
FILES = ("vars.yml", "vars.real.yml")
REQUESTED_BY_LAUNCHER = {"cifar10": "deepspeed", "torchrun_single": "torchrun", "lightning_ddp": "per_node"}

every_example = pytest.mark.parametrize("example", EXAMPLES)
every_file = pytest.mark.parametrize("file", FILES)


def variables(example: str, file: str) -> dict[str, Any]:
    found = yaml.safe_load((ROOT / "examples" / example / file).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def known() -> set[str]:
    return set(role_specs().options)


def script(example: str, name: str = "") -> ast.Module:
    path = ROOT / "examples" / example / (name or variables(example, "vars.yml")["deepspeed_launch_script"])
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def options(example: str) -> dict[str, dict[str, Any]]:
    """Return the arguments that a script declares: flag to the plain values given to add_argument."""
    found = {}
    for node in ast.walk(script(example)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            flag = ast.literal_eval(node.args[0])
            found[flag] = {
                word.arg: ast.unparse(word.value) if word.arg == "type" else ast.literal_eval(word.value)
                for word in node.keywords
                if word.arg
            }
    return found


def target(example: str, file: str) -> float:
    """Return the accuracy below which a job fails; LightningCLI reads it from its configuration."""
    words = variables(example, file)["deepspeed_launch_args"]
    if example == "lightning_ddp":
        return float(configuration(file)["model"]["target"])
    return float(flags(example, words)["--target"] or 0)


def configuration(file: str) -> dict[str, Any]:
    """Return the configuration that lightning_ddp's command is given."""
    words = variables("lightning_ddp", file)["deepspeed_launch_args"]
    assert words[:2] == ["fit", "-c"] and len(words) == 3
    found = yaml.safe_load((ROOT / "examples/lightning_ddp" / words[2]).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def flags(example: str, words: list[str]) -> dict[str, str | None]:
    """Read ``words`` as argparse would; a flag that the script does not have, or a value too many, fails the test."""
    declared, read, rest = options(example), {}, list(words)
    while rest:
        flag = rest.pop(0)
        assert flag in declared, f"{example}/train.py has no argument {flag}"
        read[flag] = None if declared[flag].get("action") == "store_true" else rest.pop(0)
    return read


@every_example
@every_file
def test_only_variables_that_exist_are_set(example: str, file: str) -> None:
    assert set(variables(example, file)) - known() == set()


@every_example
@every_file
def test_the_script_is_there_and_compiles(example: str, file: str) -> None:
    found = variables(example, file)
    assert found["workspace_source"].endswith(f"/examples/{example}")
    path = ROOT / "examples" / example / found["deepspeed_launch_script"]
    compile(path.read_text(encoding="utf-8"), str(path), "exec")


@pytest.mark.parametrize("example", ["cifar10", "torchrun_single"])
@every_file
def test_the_script_takes_the_arguments_it_is_given(example: str, file: str) -> None:
    found = variables(example, file)
    words = [*found["deepspeed_launch_args"], *found.get("deepspeed_launch_resume_args", [])]
    assert all(isinstance(word, str) for word in words)
    declared = options(example)
    for flag, value in flags(example, words).items():
        if declared[flag].get("type") == "int":
            assert value is not None
            assert value.isdigit()


@every_example
@every_file
def test_the_launcher_is_the_one_the_script_is_written_for(example: str, file: str) -> None:
    found = variables(example, file)
    assert found["deepspeed_launch_launcher"] == REQUESTED_BY_LAUNCHER[example]
    reads_configuration = "--deepspeed_config" in options(example)
    assert reads_configuration == decided(ROOT / "examples" / example, found).configured


@every_example
@every_file
def test_every_job_fails_below_an_accuracy(example: str, file: str) -> None:
    assert 0.5 < target(example, file) < 1


@every_example
def test_no_two_examples_share_a_job_or_a_folder_of_checkpoints(example: str) -> None:
    names = {other: variables(other, "vars.yml")["deepspeed_launch_name"] for other in EXAMPLES}
    assert names[example] == example
    name = "fit.yaml" if example == "lightning_ddp" else "train.py"
    source = (ROOT / "examples" / example / name).read_text(encoding="utf-8")
    assert f"/workspace/checkpoints/{example}" in source


@every_example
def test_the_process_ends_without_pythons_own_end(example: str) -> None:
    end = ast.unparse(script(example).body[-1])
    assert end.splitlines()[-1].strip() == "os._exit(code)"
    assert "dist.destroy_process_group()" in ast.unparse(script(example))


@every_file
def test_the_configuration_of_cifar10_is_one_that_deepspeed_takes(file: str) -> None:
    found = variables("cifar10", file)
    # The write-up's batch is that of one GPU.
    ranks = 1 if "real" in file else 3
    plan = build(
        Request(
            preset=found["deepspeed_launch_ds_config_preset"],
            config=found["deepspeed_launch_ds_config"],
            precision=found.get("deepspeed_launch_ds_config_precision", "auto"),
            world_size=ranks,
        )
    )
    assert plan.errors == []
    assert plan.batch is not None
    assert plan.batch["train_batch_size"] == 16 * ranks
    assert plan.config["scheduler"]["type"] == "WarmupLR"
    assert plan.config["tensorboard"]["enabled"] is True
    assert any(word.startswith("tensorboard") for word in found["training_image_python_packages"])


@every_file
def test_cores_are_bound_by_a_transport_that_hands_the_flag_on(file: str) -> None:
    found = variables("cifar10", file)
    assert "--bind_cores_to_rank" in found["deepspeed_launch_launcher_args"]
    assert found["deepspeed_launch_transport"] == "direct"


def test_moe_is_not_asked_for_with_stage_3() -> None:
    read = flags("cifar10", variables("cifar10", "vars.yml")["deepspeed_launch_args"])
    assert "--moe" in read
    assert read["--stage"] in ("0", "1", "2")


def test_torchrun_has_as_many_slots_on_its_node_as_it_includes() -> None:
    found = variables("torchrun_single", "vars.yml")
    node, slots = found["deepspeed_launch_include"].split(":")
    assert node == "lab1"
    assert slots.split(",") == [str(slot) for slot in range(found["gpu_slots"])]


@pytest.mark.parametrize("start", ["launch", "spawn"])
def test_the_other_starts_change_only_how_ranks_are_started(start: str) -> None:
    found, usual = variables("torchrun_single", f"vars.{start}.yml"), variables("torchrun_single", "vars.yml")
    assert set(found) - known() == set()
    assert found["deepspeed_launch_launcher"] == "per_node"
    assert found["deepspeed_launch_name"] == f"torchrun_single_{start}"
    words = list(found["deepspeed_launch_args"])
    if start == "launch":
        assert found["deepspeed_launch_script"] == "-m torch.distributed.launch"
        assert words[:2] == [f"--nproc_per_node={usual['gpu_slots']}", usual["deepspeed_launch_script"]]
        words = words[2:]
    else:
        path = ROOT / "examples/torchrun_single" / found["deepspeed_launch_script"]
        source = compile(path.read_text(encoding="utf-8"), str(path), "exec", ast.PyCF_ONLY_AST)
        assert "multiprocessing.spawn(" in ast.unparse(source) and "from train import arguments, run" in ast.unparse(
            source
        )
    assert words == usual["deepspeed_launch_args"]


def test_the_write_ups_network_is_in_lightnings_real_values() -> None:
    found = variables("lightning_ddp", "vars.real.yml")
    assert found["cluster_network_mode"] == "host"
    assert found["training_container_shm_size"] == "100g"
    assert found["nccl_env_settings"]["NCCL_SOCKET_IFNAME"] == found["nccl_env_environment"]["GLOO_SOCKET_IFNAME"]
    assert {"NCCL_PXN_DISABLE", "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT"} <= set(found["nccl_env_settings"])
    assert all(isinstance(value, str) for value in found["nccl_env_settings"].values())


@every_file
def test_lightnings_command_and_strategy_are_those_of_the_write_up(file: str) -> None:
    found, config = variables("lightning_ddp", file), configuration(file)["trainer"]
    assert found["deepspeed_launch_script"] == "cli.py"
    assert found["deepspeed_launch_environment"]["LOCAL_RANK"] == "0"
    strategy = config["strategy"]
    assert strategy["class_path"] == "lightning.pytorch.strategies.DDPStrategy"
    # Text, and no number of seconds in base 60, as YAML 1.1 reads some of such form.
    assert strategy["init_args"]["timeout"] == "00:10:00"
    assert strategy["init_args"]["find_unused_parameters"] is True
    nodes = len(found["deepspeed_launch_include"].split("@")) if "real" in file else 3
    assert config["num_nodes"] == nodes
    if "real" in file:
        assert config["devices"] == [0] and found["deepspeed_launch_master_port"] == 25678


@every_file
def test_lightnings_configuration_has_keys_that_the_classes_take(file: str) -> None:
    taken = {
        node.name: {argument.arg for argument in function.args.args[1:]}
        for node in script("lightning_ddp", "voice.py").body
        if isinstance(node, ast.ClassDef)
        for function in node.body
        if isinstance(function, ast.FunctionDef) and function.name == "__init__"
    }
    config = configuration(file)
    assert set(config) == {"trainer", "model", "data"}
    assert set(config["model"]) <= taken["Listener"]
    assert set(config["data"]) <= taken["Vowels"]
