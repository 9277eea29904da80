"""The examples in containers: each trains across the nodes, and leaves what its README says where it says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.journey import (
    CLUSTER_ROOT,
    JOBS,
    NODES,
    ROOT,
    as_the_readme_says,
    inside,
    job,
    on,
    playbook,
    send,
    variables,
)

CHECKPOINTS = "/workspace/checkpoints"
# By image, so that each of the three is built and given to the nodes once.
EXAMPLES = {
    "torchrun_single": (2, 1, r"accuracy on held-out digits 0\.9\d+, target 0.95 reached"),
    "gdgpt_pipeline": (3, 3, r"held-out loss 5\.\d+ -> [12]\.\d+, target 3.0 reached"),
    "cifar10": (3, 3, r"accuracy on held-out pictures \S+, target 0.9 reached"),
    "lightning_ddp": (3, 3, r"accuracy on held-out voices \S+, target 0.9 reached"),
    "deepspeed_chat_sft": (3, 3, r"perplexity \d{3}\.\d+ -> [12]\.\d+, target 3.0 reached"),
    "llama_factory_sft": (3, 3, r"loss [56]\.\d+ -> [01]\.\d+, target 2.0 reached"),
}
SFT = "deepspeed_chat_sft"


def extra(example: str, **values: Any) -> tuple[str, ...]:
    return ("-e", f"@examples/{example}/vars.yml", *(variables(**values) if values else ()))


def log(name: str) -> str:
    return on("lab1", f"cat {JOBS}/{name}/launcher.log")


def rank_log(example: str, rank: int) -> str:
    """Return what a rank printed, from its own node."""
    return on(NODES[rank], f"cat {JOBS}/{example}/ranks/rank-{rank:05d}.log")


def python(name: str, code: str) -> Any:
    """Run Python in a node's container; return what it printed, which is JSON."""
    return json.loads(inside(name, f"python3 -c '{code}' 2>/dev/null"))


@pytest.mark.parametrize("example", EXAMPLES)
def test_it_trains_and_a_second_run_changes_nothing(example: str) -> None:
    ranks, nodes, reached = EXAMPLES[example]
    # Where the tests run a second time on the same lab.
    on("lab1", f"rm -rf {JOBS}/{example} {CLUSTER_ROOT}/workspace/checkpoints/tensorboard/{example}")
    run = as_the_readme_says(example)
    assert f"Job {example} succeeded: {ranks} rank(s) on {nodes} node(s)." in run.text
    assert re.search(reached, run.text), run.output[-4000:]
    state = job(example)
    assert (state["state"], state["world_size_seen"], state["nodes_seen"]) == ("succeeded", ranks, nodes)
    assert [rank["exit_code"] for rank in state["ranks"].values()] == [0] * ranks
    again = as_the_readme_says(example).done(change=False)
    assert re.search(rf"Job {example} succeeded at \S+: not started again\.", again.text)
    # And launch.yml is the same, once the image is there.
    playbook("launch", *extra(example)).done(change=False)


def test_torchrun_leaves_its_checkpoint_on_the_one_node_it_uses() -> None:
    code = f'import torch; print(torch.load("{CHECKPOINTS}/torchrun_single/last.pt", weights_only=True)["epoch"])'
    assert python("lab1", code) == 10
    for name in NODES[1:]:
        assert on(name, f"ls {CLUSTER_ROOT}/workspace/checkpoints/torchrun_single 2>/dev/null; true") == ""


def test_each_node_keeps_the_layers_of_its_stage_and_training_goes_on_from_there() -> None:
    layers = {name: inside(name, f"ls {CHECKPOINTS}/gdgpt_pipeline/step00060").split() for name in NODES}
    kept = {name: {int(file[6:8]) for file in files if file.startswith("layer_")} for name, files in layers.items()}
    assert set.union(*kept.values()) == set(range(8))  # an embedding, six blocks and a head
    assert sum(map(len, kept.values())) == 8
    # site.yml, as the containers are those of the last example's image.
    run = playbook("site", *extra("gdgpt_pipeline", deepspeed_launch_args=["--target", "3.0", "--resume"]))
    run.done(change=True)
    assert re.search(r"3 ranks, 3 stages, backend gloo, \d+ bytes of text, from step 60", run.text)


@pytest.mark.parametrize("rank", range(3))
def test_ranks_are_bound_to_cores_and_to_their_memory(rank: int) -> None:
    seen = rank_log("cifar10", rank)
    # Without numactl the kernel says default. Its cores may be all there are, where one rank has them all.
    assert re.search(rf"cifar10: rank {rank} on cores [\d,]+ of \d+, memory bind:\d", seen), seen[-2000:]


def test_tensorboard_has_a_curve_that_falls() -> None:
    code = (
        "import json; from tensorboard.backend.event_processing.event_accumulator import EventAccumulator as Events; "
        f'events = Events("{CHECKPOINTS}/tensorboard/cifar10").Reload(); '
        'print(json.dumps([one.value for one in events.Scalars("Train/Samples/train_loss")]))'
    )
    losses = python("lab1", code)
    assert len(losses) == 96, losses  # 1,536 pictures, 16 a rank and step, three ranks, three epochs
    assert sum(losses[-10:]) < sum(losses[:10]) / 2


def test_a_core_that_is_named_is_the_one_that_is_used() -> None:
    short = ["--moe", "--epochs", "1", "--stage", "2", "--target", "0", "--checkpoints="]
    values = {"deepspeed_launch_name": "bound", "deepspeed_launch_args": short}
    cores = ["--bind_cores_to_rank", "--bind_core_list", "1"]
    run = playbook("site", *extra("cifar10", **values, deepspeed_launch_launcher_args=cores)).done(change=True)
    assert re.search(r"cifar10: rank 0 on cores 1 of \d+, memory bind:\d", run.text), run.output[-3000:]


def test_every_rank_has_an_expert_of_its_own() -> None:
    assert "3 ranks, backend gloo, 3 experts, ZeRO stage 2" in log("cifar10")
    for rank, name in enumerate(NODES):
        files = inside(name, f"ls {CHECKPOINTS}/cifar10/epoch03").split()
        experts = [file for file in files if "_expert_" in file and file.endswith("model_states.pt")]
        assert [re.findall(r"_expert_(\d+)_", file) for file in experts] == [[str(rank)]], files


def test_lightning_saves_on_the_node_of_rank_0() -> None:
    code = f'import torch; print(torch.load("{CHECKPOINTS}/lightning_ddp/last.ckpt", weights_only=False)["epoch"])'
    assert python("lab1", code) == 3  # the last of four
    assert "lightning_ddp: 3 ranks on 3 nodes, backend gloo" in log("lightning_ddp")


@pytest.mark.parametrize(("example", "layers"), [(SFT, 8), ("llama_factory_sft", 14)])
def test_the_adapter_is_saved_and_was_trained(example: str, layers: int) -> None:
    code = (
        "import json; from safetensors.torch import load_file; "
        f'found = load_file("{CHECKPOINTS}/{example}/adapter_model.safetensors"); '
        'lora = [part for name, part in found.items() if "lora_B" in name]; '
        "print(json.dumps([len(lora), min(float(part.abs().max()) for part in lora)]))"
    )
    number, smallest = python("lab1", code)
    # peft begins with zeros in B: none may be left so.
    assert (number, smallest > 0) == (layers, True)


def test_what_was_saved_is_as_good_as_what_was_trained() -> None:
    after, again = re.findall(r"sft: perplexity (?:\S+ -> )?([\d.]+)", log(SFT))
    assert float(again) == pytest.approx(float(after), rel=0.05)


def test_all_nodes_made_the_same_model_and_data() -> None:
    digests = {re.findall(r"model and data (\w{12}) in", rank_log("llama_factory_sft", rank))[0] for rank in range(3)}
    assert len(digests) == 1


def pressed(name: str, folder: Path, *more: str) -> str:
    """Start a configuration of launch.json in lab1's container as VS Code would; return what it showed."""
    # In the workspace, as what an editor brings along would lie in the container.
    place, seen = f"{CLUSTER_ROOT}/workspace/.editor", "/workspace/.editor"
    (wheel,) = (ROOT / ".lab" / "cache" / "wheelhouse-examples").glob("debugpy-*.whl")
    with ZipFile(wheel) as packed:
        packed.extractall(folder)
    shutil.copy(ROOT / "molecule" / "examples" / "editor.py", folder)
    send(folder, "lab1", place)
    words = [f"{seen}/editor.py", "/workspace/.vscode/launch.json", f"'swarmspeed: {name}'", "--debugpy", seen, *more]
    try:
        return inside("lab1", f"timeout 600 python3 {' '.join(words)} 2>&1")
    finally:
        on("lab1", f"rm -rf {place}")


def test_vs_code_starts_the_job_on_all_nodes(tmp_path: Path) -> None:
    as_the_readme_says(SFT)  # its image and its code, whatever was run since
    said = pressed(SFT, tmp_path)
    assert "editor: ended with 0, terminal with [0]" in said, said[-4000:]
    assert "sft: 3 ranks, backend gloo" in said
    assert re.search(r"sft: perplexity \S+ -> \S+, target 3.0 reached", said)


def test_vs_code_stops_in_the_script_where_the_job_is_on_one_node(tmp_path: Path) -> None:
    alone = {"deepspeed_launch_name": "alone", "deepspeed_launch_include": "lab1"}
    playbook("launch", *extra(SFT, **alone)).done(change=True)
    source = (ROOT / "examples" / SFT / "train.py").read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(source, 1) if "engine.backward(loss)" in text)
    said = pressed("alone", tmp_path, "--break", f"/workspace/train.py:{line}")
    assert re.search(rf"editor: stopped in Subprocess \d+ at /workspace/train.py:{line}$", said, re.M), said[-4000:]
    assert "editor: ended with 0, terminal with [0]" in said
