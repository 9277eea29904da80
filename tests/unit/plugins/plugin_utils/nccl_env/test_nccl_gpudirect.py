# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether GPUDirect RDMA is possible on a host, by invented facts."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.gpudirect import gpudirect

HCA = {"name": "mlx5_0", "switch_management": False}
TO_SWITCHES = {"name": "mlx5_8", "switch_management": True}
POSSIBLE = "possible (open kernel module, dma_buf)"
CLOSED, OLD = "the kernel module is not the open one", "the kernel has no dma_buf for RDMA"


@pytest.mark.parametrize(
    ("flavour", "kernel", "devices", "text"),
    [
        ("open", "6.1.0-44-amd64", [HCA], POSSIBLE),
        ("open", "5.12", [HCA, TO_SWITCHES], POSSIBLE),
        ("open", "5.4.0-216-generic", [HCA], f"not possible: {OLD}"),
        ("proprietary", "6.8.0-151-generic", [HCA], f"not possible: {CLOSED}"),
        ("proprietary", "5.4.0", [HCA], f"not possible: {CLOSED} and {OLD}"),
        ("open", "unknown", [HCA], f"not possible: {OLD}"),
        ("open", None, [HCA], f"not possible: {OLD}"),
        ("open", "6.1.0", [TO_SWITCHES], ""),
        ("open", "6.1.0", [], ""),
        (None, "6.1.0", [HCA], ""),
    ],
)
def test_by_module_and_kernel(flavour: str | None, kernel: str | None, devices: list[Any], text: str) -> None:
    facts = {
        "gpu": {"driver": {"flavour": flavour}},
        "system": {"kernel": kernel},
        "fabric": {"infiniband": devices},
    }
    assert gpudirect(facts) == text


@pytest.mark.parametrize("facts", [{}, {"gpu": None, "fabric": []}, {"fabric": {"infiniband": ["x"]}, "gpu": {}}])
def test_facts_of_another_form_say_nothing(facts: dict[str, Any]) -> None:
    assert gpudirect(facts) == ""
