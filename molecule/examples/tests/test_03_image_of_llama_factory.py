"""The example with another DeepSpeed, in an image of its own."""

from __future__ import annotations

import json
import re

import pytest

from tests.example_runs import CHECKPOINTS, adapter, extra, rank_log, succeeded, trained
from tests.playbook_run import CLUSTER_ROOT, JOBS, Run, inside, on, playbook


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
def test_plot_loss_leaves_a_picture_on_the_node_of_rank_0() -> None:
    assert inside("lab1", f"head -c 8 {CHECKPOINTS}/{FLAGS}/training_loss.png | od -An -tx1").split() == [
        *("89", "50", "4e", "47", "0d", "0a", "1a", "0a")  # the signature of PNG
    ]
