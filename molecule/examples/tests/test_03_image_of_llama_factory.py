"""The example with another DeepSpeed, in an image of its own."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests.example_runs import CHECKPOINTS, adapter, extra, rank_log, succeeded, trained
from tests.playbook_run import CLUSTER_ROOT, JOBS, ROOT, Run, inside, on, playbook


@pytest.fixture(scope="module")
def llama_factory_sft() -> Run:
    return trained("llama_factory_sft")


def test_llama_factory_sft(llama_factory_sft: Run) -> None:
    succeeded(llama_factory_sft, "llama_factory_sft", 3, 3, r"loss [56]\.\d+ -> [01]\.\d+, target 2.0 reached")


@pytest.mark.usefixtures("llama_factory_sft")
def test_the_adapter_is_saved_and_was_trained() -> None:
    layers, smallest = adapter("llama_factory_sft")
    # peft begins with zeros in B: none may be left so.
    assert (layers, smallest > 0) == (14, True)


@pytest.mark.usefixtures("llama_factory_sft")
def test_all_nodes_made_the_same_model_and_data() -> None:
    digests = {re.findall(r"model and data (\w{12}) in", rank_log("llama_factory_sft", rank))[0] for rank in range(3)}
    assert len(digests) == 1


FLAGS = "llama_factory_flags"


@pytest.fixture(scope="module")
def flags(llama_factory_sft: Run) -> Run:
    """LLaMA-Factory's own program, with model and data that the first job has made."""
    assert llama_factory_sft.rc == 0
    on("lab1", f"rm -rf {JOBS}/{FLAGS} {CLUSTER_ROOT}/workspace/checkpoints/{FLAGS}")
    return playbook("launch", *extra("llama_factory_sft"), "-e", "@examples/llama_factory_sft/vars.flags.yml")


def test_its_own_program_trains_with_the_flags_of_the_write_up(flags: Run) -> None:
    flags.done(change=True)
    assert f"Job {FLAGS} succeeded: 3 rank(s) on 3 node(s)." in flags.text
    lines = inside("lab1", f"cat {CHECKPOINTS}/{FLAGS}/trainer_log.jsonl").splitlines()
    losses = [entry["loss"] for entry in map(json.loads, lines) if entry.get("loss") is not None]
    assert losses[0] > 5 and sum(losses[-5:]) / 5 < 2.5, losses
    layers, smallest = adapter(FLAGS)
    assert (layers, smallest > 0) == (14, True)


@pytest.mark.usefixtures("flags")
def test_the_picture_of_plot_loss_comes_to_the_controller_and_only_once() -> None:
    picture = ROOT / "jobs" / FLAGS / "results" / "checkpoints" / FLAGS / "training_loss.png"
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    values = (*extra("llama_factory_sft"), "-e", "@examples/llama_factory_sft/vars.flags.yml")
    playbook("launch", *values).done(change=False)
    # Where it did not arrive, the next run brings it.
    shutil.rmtree(ROOT / "jobs" / FLAGS / "results")
    run = playbook("launch", *values).done(change=True)
    assert f"Results of job {FLAGS}: 1 file(s) in" in run.text, run.output[-4000:]
    assert picture.is_file()


def test_the_adapter_is_merged_into_its_base_and_comes_to_the_controller(llama_factory_sft: Run) -> None:
    assert llama_factory_sft.rc == 0
    name = "llama_factory_merge"
    on("lab1", f"rm -rf {JOBS}/{name} {CLUSTER_ROOT}/workspace/checkpoints/llama_factory_merged")
    shutil.rmtree(ROOT / "jobs" / name, ignore_errors=True)
    run = playbook("launch", *extra("llama_factory_sft"), "-e", "@examples/llama_factory_sft/vars.merge.yml")
    run.done(change=True)
    assert re.search(r"merged into checkpoints/llama_factory_merged, off by 0\.0", run.text), run.output[-4000:]
    merged = ROOT / "jobs" / name / "results" / "checkpoints" / "llama_factory_merged"
    assert (merged / "model.safetensors").stat().st_size > 100_000 and (merged / "config.json").is_file()
