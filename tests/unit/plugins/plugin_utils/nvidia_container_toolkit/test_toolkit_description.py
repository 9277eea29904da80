# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""F6: the CDI description against the GPUs of the host. Those of NVIDIA's toolkit are recorded, others invented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.cdi import parse_cdi
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.description import (
    faults,
    fitting,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.gathered import SPEC_PATH
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.toolkit_hosts import done, node, planned, shown, task_input

FIXTURES = Path(__file__).parents[2] / "module_utils/fixtures/gpu"
PAIR = {"gpus": [{"index": 0, "uuid": "GPU-a"}, {"index": 1, "uuid": "GPU-b"}]}
MIG = {
    "gpus": [
        {"uuid": "GPU-a", "mig": {"enabled": True, "instances": [{"uuid": "MIG-1"}, {"uuid": "MIG-2"}]}},
        {"uuid": "GPU-b", "mig": {"enabled": False, "instances": []}},
    ]
}
CONTROL = ["/dev/nvidiactl", "/dev/nvidia-uvm"]


def described(names: list[str], *nodes: str, control: tuple[str, ...] = ("nvidiactl", "nvidia-uvm")) -> dict[str, Any]:
    return {"names": names, "nodes": [*(f"/dev/{name}" for name in control), *nodes]}


@pytest.mark.parametrize(
    ("found", "gpu", "wrong"),
    [
        (described(["0", "1", "GPU-a", "GPU-b", "all"], "/dev/nvidia0", "/dev/nvidia1"), PAIR, []),
        (
            described(["all", "GPU-a", "GPU-b"], control=("nvidiactl", "nvidia-uvm-tools")),
            PAIR,
            ["lacks /dev/nvidia-uvm, so CUDA does not start in containers"],
        ),
        (
            described(["all", "GPU-a", "GPU-b"], control=()),
            PAIR,
            ["lacks /dev/nvidiactl and /dev/nvidia-uvm, so CUDA does not start in containers"],
        ),
        (described(["GPU-a", "GPU-b"]), PAIR, ["has no device nvidia.com/gpu=all, which containers request"]),
        (described(["all", "GPU-a"]), PAIR, ["lacks GPU-b"]),
        (described(["all", "GPU-a", "GPU-b", "GPU-c"]), PAIR, ["has GPU-c, which is no longer there"]),
        # A GPU in MIG mode is described by its instances alone.
        (described(["all", "MIG-1", "MIG-2", "GPU-b"]), MIG, []),
        (
            described(["all", "GPU-a", "GPU-b"]),
            MIG,
            ["lacks MIG-1, MIG-2", "has GPU-a, which is no longer there"],
        ),
        # Named by index alone, as NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES allows.
        (described(["all", "gpu0"], "/dev/nvidia0"), PAIR, ["has 1 of 2 GPUs"]),
        (described(["all", "gpu0", "gpu1"], "/dev/nvidia0", "/dev/nvidia1"), PAIR, []),
        (described(["all", "GPU-a"]), {"gpus": []}, []),
        (None, PAIR, []),
    ],
)
def test_what_does_not_fit(found: Any, gpu: dict[str, Any], wrong: list[str]) -> None:
    assert faults(found, gpu) == [f"{SPEC_PATH} {words}" for words in wrong]


def test_a_long_list_is_cut() -> None:
    many = {"gpus": [{"uuid": f"GPU-{number}"} for number in range(8)]}
    assert faults(described(["all", "GPU-0"]), many) == [
        f"{SPEC_PATH} lacks GPU-1, GPU-2, GPU-3, GPU-4 and 3 more",
    ]


UUIDS = st.lists(st.from_regex(r"(GPU|MIG)-[0-9a-f]{4}", fullmatch=True), unique=True, max_size=4)
GPUS = st.lists(
    st.fixed_dictionaries(
        {
            "uuid": st.one_of(st.none(), st.from_regex(r"GPU-[0-9a-f]{8}", fullmatch=True)),
            "mig": st.one_of(
                st.none(),
                st.builds(
                    lambda on, uuids: {"enabled": on, "instances": [{"uuid": uuid} for uuid in uuids]},
                    st.sampled_from([True, False, None]),
                    UUIDS,
                ),
            ),
        }
    ),
    max_size=8,
)


@settings(max_examples=examples(200))
@given(GPUS)
def test_a_description_made_for_these_gpus_fits_them(gpus: list[dict[str, Any]]) -> None:
    assert faults(fitting({"gpus": gpus}), {"gpus": gpus}) == []


def stale(**more: Any) -> dict[str, Any]:
    """Return a host on which all is done, with a description from before /dev/nvidia-uvm was there."""
    return done(cdi=described(["all", "GPU-a"], control=("nvidiactl",)), **more)


def test_verify_and_plan_say_that_the_node_is_missing_and_the_unit_writes_it_again() -> None:
    wrong = f"{SPEC_PATH} lacks /dev/nvidia-uvm, so CUDA does not start in containers"
    made = planned(stale())
    assert shown(made) == [("~", SPEC_PATH)]
    (change,) = made.changes
    assert (change.before, change.after) == (
        "lacks /dev/nvidia-uvm, so CUDA does not start in containers",
        "written again by swarmspeed-nvidia-devices.service",
    )
    todo = task_input(made)
    assert todo["missing"] == [wrong] and todo["unit"] is True and todo["reload_units"] is False
    assert not planned(stale() | {"cdi": fitting(node()["gpu"])}).changes


def test_a_description_of_the_users_is_reported_and_left() -> None:
    made = planned(stale(), source="keep")
    assert not made.changes and len(task_input(made)["missing"]) == 1 and task_input(made)["unit"] is False


def test_with_the_hook_no_description_matters() -> None:
    made = planned(stale(), mode="runtime")
    assert SPEC_PATH not in [change.what for change in made.changes]
    assert not any(SPEC_PATH in words for words in task_input(made)["missing"])


def test_what_the_real_toolkit_wrote() -> None:
    """Recorded: nvidia-ctk 1.18.2 over a mock NVML with eight H100. Without /dev/nvidia-uvm it succeeded as well."""
    eight = {"gpus": [{"uuid": f"GPU-01000100-0000-0000-0000-{number:012d}"} for number in range(8)]}

    def found(name: str, gpu: dict[str, Any]) -> list[str]:
        return faults(parse_cdi((FIXTURES / name).read_text(encoding="utf-8")), gpu)

    assert found("cdi_h100_x8.txt", eight) == []
    assert found("cdi_h100_x8_before_uvm.txt", eight) == [
        f"{SPEC_PATH} lacks /dev/nvidia-uvm, so CUDA does not start in containers"
    ]
    one_less = {"gpus": eight["gpus"][1:]}
    assert found("cdi_h100_x8.txt", one_less) == [
        f"{SPEC_PATH} has GPU-01000100-0000-0000-0000-000000000000, which is no longer there"
    ]
