"""The example with another DeepSpeed, in an image of its own."""

from __future__ import annotations

import re

import pytest

from tests.example_runs import adapter, rank_log, succeeded, trained
from tests.playbook_run import Run


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
