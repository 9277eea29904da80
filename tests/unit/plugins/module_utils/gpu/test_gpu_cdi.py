# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a CDI description names, in each way of writing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import UnfitError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu import cdi
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.cdi import gather_cdi, parse_cdi
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.description import faults
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.gpu import CDI
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

FIXTURES = Path(__file__).parents[1] / "fixtures/gpu"

NAMES = st.lists(st.sampled_from(["0", "0:1", "gpu0", "all", "GPU-0aF", "MIG-1b"]), unique=True, max_size=6)
NODES = st.lists(
    st.sampled_from([*(f"/dev/nvidia{end}" for end in ("0", "12", "ctl", "-uvm")), "/dev/dri/card0"]), unique=True
)


def description(names: list[str], nodes: list[str]) -> dict[str, Any]:
    """Return a description of the form that nvidia-ctk writes, with what must not be taken for either."""
    hooks = [{"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook", "args": ["nvidia-cdi-hook", "x"]}]
    return {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "containerEdits": {
            "deviceNodes": [{"path": path, "hostPath": f"/host{path}"} for path in nodes],
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "hooks": hooks,
            "mounts": [{"containerPath": "/dev/other", "hostPath": "/dev/other", "options": ["ro"]}],
        },
        "devices": [{"containerEdits": {"deviceNodes": [], "hooks": hooks}, "name": name} for name in names],
    }


@settings(max_examples=examples(100))
@given(NAMES, NODES, st.sampled_from(["yaml", "flow", "json", "indented"]))
def test_whatever_way_it_is_written(names: list[str], nodes: list[str], way: str) -> None:
    made = description(names, nodes)
    text = {
        "yaml": yaml.safe_dump(made),
        "flow": yaml.safe_dump(made, default_flow_style=True),
        "json": json.dumps(made, separators=(",", ":")),
        "indented": json.dumps(made, indent=4),
    }[way]
    assert parse_cdi(text) == {"names": sorted(names), "nodes": sorted(nodes)}


@settings(max_examples=examples(200))
@given(st.one_of(st.text(max_size=300), st.text("name: path\"'/dev{,}-\n0", max_size=300)))
def test_whatever_is_in_it_fits_what_the_controller_takes(text: str) -> None:
    CDI(parse_cdi(text))


def test_a_name_that_is_none_is_refused_on_the_controller() -> None:
    with pytest.raises(UnfitError):
        CDI({"names": ["all\n"], "nodes": []})
    with pytest.raises(UnfitError):
        CDI({"names": [], "nodes": ["/etc/shadow"]})


def test_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "nvidia.yaml"
    assert gather_cdi(str(file)) is None and gather_cdi(str(tmp_path)) is None
    file.write_text("devices:\n- name: all\n")
    assert gather_cdi(str(file)) == {"names": ["all"], "nodes": []}
    monkeypatch.setattr(cdi, "_LARGEST", 10)
    assert gather_cdi(str(file)) == {"names": [], "nodes": []}


@pytest.mark.parametrize("name", ["cdi_h100_x8", "cdi_h100_x8_before_uvm"])
def test_what_the_real_toolkit_wrote_is_read_as_yaml_reads_it(name: str) -> None:
    """Recorded: nvidia-ctk 1.18.2 over a mock NVML."""
    text = (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")
    made = yaml.safe_load(text)
    edits = [made["containerEdits"], *(device["containerEdits"] for device in made["devices"])]
    found = parse_cdi(text)
    assert found == {
        "names": sorted(device["name"] for device in made["devices"]),
        "nodes": sorted({node["path"] for edit in edits for node in edit.get("deviceNodes", [])}),
    }
    assert len(found["names"]) == 17 and ("/dev/nvidia-uvm" in found["nodes"]) is (name == "cdi_h100_x8")


def test_what_the_toolkit_wrote_on_a_gpu_has_all_that_cuda_needs() -> None:
    """Recorded on an H200: nvidia-ctk 1.18.2, run by this collection's unit in a server without /dev/nvidia-uvm."""
    found = parse_cdi((FIXTURES / "cdi_h200_recorded.txt").read_text(encoding="utf-8"))
    gpu = {"gpus": [{"uuid": "GPU-00000000-0000-0000-0000-0000000000a1"}]}
    assert faults(found, gpu) == []
    assert faults(found, {"gpus": [*gpu["gpus"], {"uuid": "GPU-2"}]}) == [f"{cdi.DESCRIPTION} lacks GPU-2"]
    assert {"/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidiactl"} <= set(found["nodes"])
