# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filters that say what goes into an image: their bounds; what they return is tested where it is worked out."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter import operators, versions

needed = operators.FilterModule().filters()["needed_operators"]
chosen = versions.FilterModule().filters()["chosen_versions"]


def test_operators() -> None:
    assert needed("cuda", None, {"optimizer": {"type": "AdamW"}}) == ["FUSED_ADAM"]


def test_versions() -> None:
    found = chosen("cuda", {"compute_capabilities": ["9.0"], "torch": ""})
    assert (found["stack"], found["capabilities"], found["problems"]) == ("cu130", ["9.0"], [])
    assert chosen("cpu", {})["compiler"] == []


@pytest.mark.parametrize("given", [("tpu", "zero2", {}), ("cuda", "zero2", [])])
def test_operators_of_nonsense(given: tuple[Any, ...]) -> None:
    with pytest.raises(
        AnsibleFilterError, match="needed_operators: expected 'cuda' or 'cpu', a preset and a dictionary"
    ):
        needed(*given)


@pytest.mark.parametrize("given", [("tpu", {}), ("cuda", [])])
def test_versions_of_nonsense(given: tuple[Any, ...]) -> None:
    with pytest.raises(AnsibleFilterError, match="chosen_versions: expected 'cuda' or 'cpu', and a dictionary"):
        chosen(*given)
