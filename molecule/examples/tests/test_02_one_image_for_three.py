"""The examples that share one image: each trains across the nodes, and leaves what its README says where it says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.example_runs import CHECKPOINTS, adapter, extra, log, python, rank_log, succeeded, trained
from tests.playbook_run import (
    CLUSTER_ROOT,
    JOBS,
    NODES,
    ROOT,
    Run,
    as_the_readme_says,
    inside,
    on,
    playbook,
    send,
    variables,
)
from tests.vsix import FOLDER, IDENTITY, vsix

SFT = "deepspeed_chat_sft"
FULL = "trainer_full"


@pytest.fixture(scope="module")
def cifar10() -> Run:
    return trained("cifar10")


@pytest.fixture(scope="module")
def lightning_ddp() -> Run:
    return trained("lightning_ddp")


@pytest.fixture(scope="module")
def deepspeed_chat_sft() -> Run:
    return trained(SFT)


def test_cifar10(cifar10: Run) -> None:
    succeeded(cifar10, "cifar10", 3, 3, r"accuracy on held-out pictures \S+, target 0.9 reached")


@pytest.mark.usefixtures("cifar10")
def test_every_class_has_its_accuracy_and_the_archive_is_of_cifar10s_form() -> None:
    found = re.findall(r"cifar10: accuracy of (\w+) ([\d.]+) \((\d+) pictures\)", log("cifar10"))
    assert [name for name, dummy, count in found] == [f"pattern{number}" for number in range(10)]
    assert sum(int(count) for dummy, right, count in found) == 384 and all(float(one[1]) > 0.5 for one in found)
    members = inside("lab1", "tar -tzf /workspace/data/cifar-10-binary.tar.gz").split()
    assert sorted(Path(member).name for member in members) == sorted(
        [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin", "batches.meta.txt"]
    )


@pytest.mark.usefixtures("cifar10")
@pytest.mark.parametrize("rank", range(3))
def test_ranks_are_bound_to_cores_and_to_their_memory(rank: int) -> None:
    seen = rank_log("cifar10", rank)
    # Without numactl the kernel says default. Its cores may be all there are, where one rank has them all.
    assert re.search(rf"cifar10: rank {rank} on cores [\d,]+ of \d+, memory bind:\d", seen), seen[-2000:]


@pytest.mark.usefixtures("cifar10")
def test_every_rank_has_an_expert_of_its_own() -> None:
    assert "3 ranks, backend gloo, 3 experts, ZeRO stage 2" in log("cifar10")
    for rank, name in enumerate(NODES):
        files = inside(name, f"ls {CHECKPOINTS}/cifar10/epoch03").split()
        experts = [file for file in files if "_expert_" in file and file.endswith("model_states.pt")]
        assert [re.findall(r"_expert_(\d+)_", file) for file in experts] == [[str(rank)]], files


@pytest.mark.usefixtures("cifar10")
def test_tensorboard_has_a_curve_that_falls() -> None:
    code = (
        "import json; from tensorboard.backend.event_processing.event_accumulator import EventAccumulator as Events; "
        f'events = Events("{CHECKPOINTS}/tensorboard/cifar10").Reload(); '
        'print(json.dumps([one.value for one in events.Scalars("Train/Samples/train_loss")]))'
    )
    losses = python("lab1", code)
    assert len(losses) == 96, losses  # 1,536 pictures, 16 a rank and step, three ranks, three epochs
    assert sum(losses[-10:]) < sum(losses[:10]) / 2


@pytest.mark.usefixtures("cifar10")
def test_the_curves_are_served_on_the_loopback_address_alone() -> None:
    try:
        run = playbook("tensorboard").done(change=True)
        assert "6006:127.0.0.1:6006" in run.text, run.output[-2000:]
        playbook("tensorboard").done(change=False)
        read = "import urllib.request as web; print(web.urlopen('http://127.0.0.1:6006/data/runs').read().decode())"
        assert "checkpoints/tensorboard/cifar10" in json.loads(on("lab1", f'python3 -c "{read}"'))
        assert on("lab1", "ss -ltnH 'sport = :6006' | awk '{print $4}'").split() == ["127.0.0.1:6006"]
    finally:
        playbook("tensorboard", *variables(tensorboard_state="absent")).done(change=True)
    playbook("tensorboard", *variables(tensorboard_state="absent")).done(change=False)


def test_a_core_that_is_named_is_the_one_that_is_used() -> None:
    data = ["--data", "data/cifar-10-binary.tar.gz", "--make", "1920"]
    short = ["--moe", "--epochs", "1", "--stage", "2", *data, "--target", "0", "--checkpoints="]
    values = {"deepspeed_launch_name": "bound", "deepspeed_launch_args": short}
    cores = ["--bind_cores_to_rank", "--bind_core_list", "1"]
    run = playbook("site", *extra("cifar10", **values, deepspeed_launch_launcher_args=cores)).done(change=True)
    assert re.search(r"cifar10: rank 0 on cores 1 of \d+, memory bind:\d", run.text), run.output[-3000:]


def test_lightning_ddp(lightning_ddp: Run) -> None:
    succeeded(lightning_ddp, "lightning_ddp", 3, 3, r"accuracy on held-out voices \S+, target 0.9 reached")


@pytest.mark.usefixtures("lightning_ddp")
def test_lightning_saves_on_the_node_of_rank_0() -> None:
    code = f'import torch; print(torch.load("{CHECKPOINTS}/lightning_ddp/last.ckpt", weights_only=False)["epoch"])'
    assert python("lab1", code) == 3  # the last of four
    assert "lightning_ddp: 3 ranks on 3 nodes, backend gloo" in log("lightning_ddp")
    # What the write-up waits for.
    assert "All distributed processes registered. Starting with 3 processes" in log("lightning_ddp")


def test_deepspeed_chat_sft(deepspeed_chat_sft: Run) -> None:
    succeeded(deepspeed_chat_sft, SFT, 3, 3, r"perplexity \d{3}\.\d+ -> [12]\.\d+, target 3.0 reached")


@pytest.mark.usefixtures("deepspeed_chat_sft")
def test_the_adapter_is_saved_and_was_trained() -> None:
    layers, smallest = adapter(SFT)
    # peft begins with zeros in B: none may be left so.
    assert (layers, smallest > 0) == (14, True)  # seven in each of two blocks


@pytest.mark.usefixtures("deepspeed_chat_sft")
def test_what_was_saved_is_as_good_as_what_was_trained() -> None:
    after, again = re.findall(r"sft: perplexity (?:\S+ -> )?([\d.]+)", log(SFT))
    assert float(again) == pytest.approx(float(after), rel=0.05)


@pytest.fixture(scope="module")
def trainer_full() -> Run:
    """The three jobs of the example, one after another."""
    for name in ("convert", "predict"):
        on("lab1", f"rm -rf {JOBS}/{FULL}_{name}")
    on("lab1", f"rm -rf {CLUSTER_ROOT}/workspace/checkpoints/{FULL}*")
    shutil.rmtree(ROOT / "jobs" / f"{FULL}_predict", ignore_errors=True)
    run = trained(FULL)
    playbook("launch", *extra(FULL), "-e", f"@examples/{FULL}/vars.convert.yml").done(change=True)
    return run


def test_trainer_full(trainer_full: Run) -> None:
    succeeded(trainer_full, FULL, 2, 1, r"loss [3-6]\.\d+ -> 0\.\d+, step 300")


@pytest.mark.usefixtures("trainer_full")
def test_the_parts_of_both_ranks_become_one_file_of_weights() -> None:
    parts = inside("lab1", f"ls {CHECKPOINTS}/{FULL}/checkpoint-300/global_step300").split()
    assert len([part for part in parts if part.endswith("optim_states.pt")]) == 2, parts
    assert inside("lab1", f"ls {CHECKPOINTS}/{FULL}/fp32").split() == ["pytorch_model.bin"]


@pytest.mark.usefixtures("trainer_full")
def test_the_trained_model_answers_and_comes_to_the_controller() -> None:
    values = (*extra(FULL), "-e", f"@examples/{FULL}/vars.predict.yml")
    run = playbook("launch", *values).done(change=True)
    assert f"Job {FULL}_predict succeeded: 2 rank(s) on 1 node(s)." in run.text
    assert re.search(r"trainer_full: [01]\.\d+ of the answers are right, target 0.9 reached", run.text), run.output[
        -4000:
    ]
    final = ROOT / "jobs" / f"{FULL}_predict" / "results" / "checkpoints" / f"{FULL}_final"
    rows = [json.loads(line) for line in (final / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 40 and sum(row["said"].strip() == row["answer"].strip() for row in rows) >= 36
    # One file of weights, in its own form: a header of JSON after eight bytes with its length.
    weights = (final / "model.safetensors").read_bytes()
    header = json.loads(weights[8 : 8 + int.from_bytes(weights[:8], "little")])
    assert "lm_head.weight" in header and header["lm_head.weight"]["dtype"] == "F32"
    playbook("launch", *values).done(change=False)


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
    reported = pressed(SFT, tmp_path)
    assert "editor: ended with 0, terminal with [0]" in reported, reported[-4000:]
    assert "sft: 3 ranks, backend gloo" in reported
    assert re.search(r"sft: perplexity \S+ -> \S+, target 3.0 reached", reported)


@pytest.mark.usefixtures("deepspeed_chat_sft")
def test_vs_code_stops_in_the_script_where_the_job_is_on_one_node(tmp_path: Path) -> None:
    alone = {"deepspeed_launch_name": "alone", "deepspeed_launch_include": "lab1"}
    playbook("launch", *extra(SFT, **alone)).done(change=True)
    source = (ROOT / "examples" / SFT / "train.py").read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(source, 1) if "engine.backward(loss)" in text)
    reported = pressed("alone", tmp_path, "--break", f"/workspace/train.py:{line}")
    assert re.search(rf"editor: stopped in Subprocess \d+ at /workspace/train.py:{line}$", reported, re.M), reported[
        -4000:
    ]
    assert "editor: ended with 0, terminal with [0]" in reported


def test_extensions_of_vs_code_are_in_the_containers(tmp_path: Path) -> None:
    """A stand-in for an extension: files and list are where VS Code's server reads them, which is not there itself."""
    (tmp_path / "vsix").mkdir()
    vsix(tmp_path / "vsix" / "stand-in.vsix")
    place, folder = "/root/.vscode-server/extensions", f"{CLUSTER_ROOT}/vscode/extensions"
    no_job = extra(SFT, deepspeed_launch_script="")
    brought = variables(
        assets_sources=[{"name": "vscode", "folder": str(tmp_path / "vsix")}],
        assets_cache=str(tmp_path / "cache"),
        deepspeed_launch_vscode_extensions=["vscode/stand-in.vsix"],
    )
    try:
        playbook("site", *no_job, *brought).done(change=True)
        for name in NODES:
            found = json.loads(inside(name, f"cat {place}/{FOLDER}/package.json"))
            assert found == IDENTITY
            (entry,) = json.loads(inside(name, f"cat {place}/extensions.json"))
            assert entry["location"]["path"] == f"{place}/{entry['relativeLocation']}" == f"{place}/{FOLDER}"
        playbook("site", *no_job, *brought).done(change=False)
        playbook("verify", *no_job, *brought).done(change=False)
        # As VS Code's server does when a user uninstalls it.
        inside("lab2", f"echo '[]' > {place}/extensions.json && rm -r {place}/{FOLDER}")
        playbook("verify", *no_job, *brought).refused(
            "VS Code extension vscode/stand-in.vsix is removed from its folder"
        )
        repaired = playbook("site", *no_job, *brought).done(change=True)
        assert [repaired.changed[name] > 0 for name in NODES] == [False, True, False]
    finally:
        playbook("site", *no_job).done(change=True)
    for name in NODES:
        assert on(name, f"ls -A {folder}") == "" and inside(name, f"ls -d {place} || true") == ""
    playbook("site", *no_job).done(change=False)
