# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""gpu_info beside NVML. Both sides are MADE UP here: no GPU answered these tests."""

from __future__ import annotations

from ctypes import Structure, c_uint8
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.modules import gpu_info

from tests.gpu_proof.nvml import compare, ranges, read

UUID = "GPU-11111111-2222-3333-4444-555555555555"


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


class FabricInfo(Structure):
    _fields_ = (("state", c_uint8),)


class FakeNvml:
    """nvidia-ml-py's pynvml for one made-up H100. ``answers`` replaces what a function returns; an error is raised."""

    NVMLError = NVMLError
    NVML_ERROR_NOT_SUPPORTED = 3
    c_nvmlGpuFabricInfo_t = FabricInfo

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {
            "nvmlSystemGetDriverVersion": "580.159.04",
            "nvmlSystemGetCudaDriverVersion_v2": 13000,
            "nvmlDeviceGetCount": 1,
            "nvmlDeviceGetHandleByIndex": "handle",
            "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
            "nvmlDeviceGetUUID": UUID,
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=85520809984),
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetPciInfo": SimpleNamespace(busId="00000000:3B:00.0"),
            "nvmlDeviceGetArchitecture": 9,
            "nvmlDeviceGetPersistenceMode": 1,
            "nvmlDeviceGetPowerManagementLimit": 700000,
            "nvmlDeviceGetEccMode": [1, 1],
            "nvmlDeviceGetTotalEccErrors": 0,
            "nvmlDeviceGetRemappedRows": [0, 0, 0, 0],
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetGpuFabricInfo": 0,
            "nvmlDeviceGetCpuAffinity": [0xFFFF, 1],
            "nvmlDeviceGetTopologyCommonAncestor": 50,
            **answers,
        }

    def __getattr__(self, name: str) -> Any:
        answer = self.answers[name]

        def function(*dummy: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return function


def ours(**gpu: Any) -> dict[str, Any]:
    """Return what gpu_info would say of that H100."""
    ecc = {"enabled": True, "uncorrected_volatile": 0, "uncorrected_aggregate": 0}
    found = {
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": UUID,
        "memory_bytes": 81559 * 1024**2,
        "compute_capability": "9.0",
        "address": "0000:3b:00.0",
        "generation": "Hopper",
        "persistence": True,
        "power_limit_watts": 700.0,
        "ecc": {**ecc, "repair_pending": False, "repair_failed": False},
        "mig": {"enabled": False, "pending": False},
        "fabric_state": None,
        "cpu_affinity": "0-15,64",
        **gpu,
    }
    return {"driver": {"version": "580.159.04"}, "cuda_version": "13.0", "slots": 1, "gpus": [found]}


def differing(one: dict[str, Any], nvml: FakeNvml) -> list[str]:
    return [row["field"] for row in compare(one, read(nvml)) if not row["equal"]]


def test_the_same_gpu_on_both_sides() -> None:
    rows = compare(ours(), read(FakeNvml()))
    assert [row for row in rows if not row["equal"]] == []
    assert {row["field"] for row in rows} >= {"driver.version", "cuda_version", "gpus", "slots", "gpus[0].name"}
    assert {row["field"]: row["tolerance"] for row in rows if row["tolerance"]} == {
        "gpus[0].memory_bytes": "1 MiB: nvidia-smi shows whole MiB",
        "gpus[0].power_limit_watts": "0.01 W: nvidia-smi shows two decimals",
    }


def test_every_field_that_is_compared_is_one_that_gpu_info_returns() -> None:
    documented = yaml.safe_load(gpu_info.RETURN)["gpus"]["contains"]
    for field in read(FakeNvml())["gpus"][0]:
        at = documented
        for key in field.split("."):
            assert key in at, field
            at = at[key].get("contains", {})


@pytest.mark.parametrize(
    ("gpu", "field"),
    [
        ({"memory_bytes": 81559 * 1024**2 - 2 * 1024**2}, "gpus[0].memory_bytes"),
        ({"memory_bytes": None}, "gpus[0].memory_bytes"),
        ({"power_limit_watts": 650.0}, "gpus[0].power_limit_watts"),
        ({"name": "NVIDIA H200"}, "gpus[0].name"),
        ({"uuid": UUID[:-1] + "6"}, "gpus[0].uuid"),
        ({"persistence": False}, "gpus[0].persistence"),
        ({"mig": {"enabled": None, "pending": False}}, "gpus[0].mig.enabled"),
        ({"cpu_affinity": "0-15"}, "gpus[0].cpu_affinity"),
        ({"fabric_state": "Completed"}, "gpus[0].fabric_state"),
    ],
)
def test_what_differs_is_named(gpu: dict[str, Any], field: str) -> None:
    assert differing(ours(**gpu), FakeNvml()) == [field]


def test_names_of_a_machine_are_compared_and_not_written_down() -> None:
    rows = {row["field"]: row for row in compare(ours(), read(FakeNvml()))}
    for field in ("gpus[0].uuid", "gpus[0].address"):
        assert (rows[field]["ours"], rows[field]["nvml"]) == ("hidden", "hidden")
    assert UUID not in str(rows)


def test_what_a_gpu_does_not_have_is_nothing_on_both_sides() -> None:
    """A consumer card: neither ECC nor MIG, and texts as bytes, as older releases of nvidia-ml-py give them."""
    none = NVMLError(FakeNvml.NVML_ERROR_NOT_SUPPORTED)
    nvml = FakeNvml(
        nvmlDeviceGetEccMode=none,
        nvmlDeviceGetTotalEccErrors=none,
        nvmlDeviceGetRemappedRows=none,
        nvmlDeviceGetMigMode=none,
        nvmlDeviceGetName=b"NVIDIA H100 80GB HBM3",
    )
    ecc = dict.fromkeys(("enabled", "uncorrected_volatile", "uncorrected_aggregate", "repair_pending", "repair_failed"))
    assert differing(ours(ecc=ecc, mig={"enabled": None, "pending": None}), nvml) == []


def test_other_errors_of_nvml_are_not_swallowed() -> None:
    with pytest.raises(NVMLError):
        read(FakeNvml(nvmlDeviceGetEccMode=NVMLError(15)))


def test_slots_are_not_compared_where_a_gpu_is_divided() -> None:
    nvml = FakeNvml(nvmlDeviceGetMigMode=[1, 1])
    rows = compare(ours(mig={"enabled": True, "pending": True}), read(nvml))
    assert "slots" not in {row["field"] for row in rows} and all(row["equal"] for row in rows)


def test_processors_that_sysfs_does_not_know_are_not_compared() -> None:
    assert differing(ours(cpu_affinity=None), FakeNvml()) == []


@pytest.mark.parametrize(("numbers", "text"), [({0, 1, 2, 8}, "0-2,8"), ({5}, "5"), (set(), "")])
def test_lists_of_processors_are_written_as_sysfs_writes_them(numbers: set[int], text: str) -> None:
    assert ranges(numbers) == text


@pytest.mark.parametrize(("seen", "wrong"), [("SYS", []), ("NODE", ["topology 0-1"]), ("NV18", []), (None, [])])
def test_how_two_gpus_are_connected_is_compared_but_for_nvlink(seen: str | None, wrong: list[str]) -> None:
    one = ours()
    matrix = {"gpus": {"0": {"1": seen}}} if seen else None
    two = {**one, "slots": 2, "gpus": [*one["gpus"], *one["gpus"]], "topology": matrix}
    assert differing(two, FakeNvml(nvmlDeviceGetCount=2)) == wrong
