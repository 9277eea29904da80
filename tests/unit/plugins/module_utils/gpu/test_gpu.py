# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""gpu_info's logic over hosts from texts.

Every output of nvidia-smi and of the driver that stands in this file is COMPOSED after NVIDIA's documentation and
public reports; versions and devices in them are examples. The fixtures' README says which of those are recorded; one
test reads what nvidia-smi printed of an H100.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import TIMED_OUT, CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.explain import explain
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.gather import gather_gpu
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.gpu_hosts import (
    AUDIO,
    FIXTURES,
    GPU_0,
    GPU_1,
    H100,
    INSTANCE,
    MATRIX,
    MIB,
    NVSWITCH,
    OLD_QUERY,
    OPEN,
    PROPRIETARY,
    QUERY,
    ROW_0,
    UUID_0,
    UUID_1,
    FakeGpuIO,
    broken,
    fabric,
    gpu_xml,
    healthy,
    one,
    report,
)


def test_two_working_gpus() -> None:
    io = healthy()
    hopper = {"generation": "Hopper", "flavours": ["open", "proprietary"], "last_branch": None, "vgpu": False}
    device = {"class": "0x030200", "device_id": "0x2330", "driver": "nvidia"}
    gpu = {
        "name": "NVIDIA H100 80GB HBM3",
        "memory_bytes": 81559 * MIB,
        "compute_capability": "9.0",
        "generation": "Hopper",
        "persistence": True,
        "power_limit_watts": None,
        "ecc": dict.fromkeys(
            ("enabled", "uncorrected_volatile", "uncorrected_aggregate", "repair_pending", "repair_failed")
        ),
        "mig": {"enabled": False, "pending": False, "instances": []},
        "nvlink": True,
        "fabric_state": None,
        "license": None,
    }
    first = {"address": "0000:3b:00.0", "numa_node": 0, "cpu_affinity": "0-55"}
    assert gather_gpu(io) == {
        "present": True,
        "pci_devices": [
            {**first, **device, **hopper},
            {"address": "0000:86:00.0", "numa_node": None, "cpu_affinity": None, **device, **hopper},
        ],
        "nvswitches": [],
        "driver": {
            "loaded": True,
            "version": "550.163.01",
            "flavour": "proprietary",
            "library_version": "550.163.01",
            "matches": True,
            "nouveau_loaded": False,
        },
        "cuda_version": "12.4",
        "gpus": [
            {"index": 0, "uuid": UUID_0, **gpu, **first},
            # What sysfs does not know of the second one, the topology does.
            {
                "index": 1,
                "uuid": UUID_1,
                **gpu,
                "address": "0000:86:00.0",
                "numa_node": None,
                "cpu_affinity": "56-111",
            },
        ],
        "topology": {
            "gpus": {"0": {"1": "NV18"}, "1": {"0": "NV18"}},
            "nics": {"mlx5_0": {"0": "PIX", "1": "SYS"}},
        },
        "fabric": {"state": None, "manager_running": None, "manager_version": None},
        "secure_boot": None,
        "slots": 2,
        "problems": [],
        "notes": [],
    }
    assert io.calls == [(QUERY, "--format=csv,noheader,nounits"), ("-q", "-x"), ("topo", "-m")]


def test_an_h100_as_it_was_recorded() -> None:
    """The virtual machine of the fixtures' README, without NUMA nodes, NVSwitches or NICs; rdma adds the matrix."""
    device = {"address": "0000:00:06.0", "class": "0x030200", "device": "0x2330", "driver": "nvidia"}
    texts = {QUERY: "query_h100.csv", "-q": "q_h100_580_recorded.xml", "topo": "topo_h100_x1.txt"}
    io = FakeGpuIO(
        [{**device, "numa_node": "-1", "cpus": "0-15"}],
        OPEN.format("580.159.04"),
        "libnvidia-ml.so.580.159.04",
        {name: (FIXTURES / file).read_text(encoding="utf-8") for name, file in texts.items()},
        rdma=True,
    )
    found = gather_gpu(io)
    where = {"address": "0000:00:06.0", "numa_node": None, "cpu_affinity": "0-15"}
    assert found["gpus"] == [
        {
            "index": 0,
            "uuid": UUID_0,
            "name": "NVIDIA H100 80GB HBM3",
            "memory_bytes": 81559 * MIB,
            "compute_capability": "9.0",
            "generation": "Hopper",
            "persistence": True,
            "power_limit_watts": 700.0,
            "ecc": {
                "enabled": True,
                "uncorrected_volatile": 0,
                "uncorrected_aggregate": 0,
                "repair_pending": False,
                "repair_failed": False,
            },
            "mig": {"enabled": False, "pending": False, "instances": []},
            "nvlink": False,
            "fabric_state": None,
            "license": None,
            **where,
        }
    ]
    assert found["topology"] == {"gpus": {"0": {}}, "nics": {}}
    assert found["driver"] == {
        "loaded": True,
        "version": "580.159.04",
        "flavour": "open",
        "library_version": "580.159.04",
        "matches": True,
        "nouveau_loaded": False,
    }
    assert (found["cuda_version"], found["slots"], found["nvswitches"]) == ("13.0", 1, [])
    assert found["fabric"] == {"state": None, "manager_running": None, "manager_version": None}
    assert (found["problems"], found["notes"]) == ([], [])


def test_one_gpu_without_rdma_costs_two_calls_and_with_it_three() -> None:
    io = one()
    found = gather_gpu(io)
    assert (found["topology"], found["gpus"][0]["nvlink"]) == (None, None)
    assert [call[0] for call in io.calls] == [QUERY, "-q"]
    io = one(rdma=True, smi={"topo": "\tGPU0\tNIC0\nGPU0\t X \tPHB\nNIC0\tPHB\t X \n\n  NIC0: mlx5_0\n"})
    found = gather_gpu(io)
    assert (found["topology"], found["gpus"][0]["nvlink"]) == (
        {"gpus": {"0": {}}, "nics": {"mlx5_0": {"0": "PHB"}}},
        False,
    )
    assert len(io.calls) == 3


@pytest.mark.parametrize("answer", [CommandResult(1, "", "Failed to run topology"), CommandResult(255, MATRIX), ""])
def test_a_topology_that_cannot_be_read_is_null(answer: CommandResult | str) -> None:
    found = gather_gpu(healthy(smi={"topo": answer}))
    assert (found["topology"], found["gpus"][0]["nvlink"], found["problems"]) == (None, None, [])


@pytest.mark.parametrize(
    "devices", [[], [AUDIO, NVSWITCH], [{**H100, "class": "0x0c0330"}]], ids=["nothing", "audio-and-switch", "usb"]
)
def test_no_gpu_runs_no_command_and_is_no_problem(devices: list[dict[str, str]]) -> None:
    io = healthy(devices=devices, driver="", library=None)
    found = gather_gpu(io)
    assert io.calls == []
    assert (found["present"], found["slots"], found["gpus"], found["problems"]) == (False, 0, [], [])
    assert found["secure_boot"] is None
    assert found["driver"] == {
        "loaded": False,
        "version": None,
        "flavour": None,
        "library_version": None,
        "matches": None,
        "nouveau_loaded": False,
    }


def test_a_gpu_given_to_a_virtual_machine_is_present_but_no_slot_and_no_problem() -> None:
    io = healthy(devices=[{**H100, "driver": "vfio-pci"}, {**NVSWITCH, "driver": "vfio-pci"}], driver="")
    found = gather_gpu(io)
    assert (found["present"], found["slots"], found["problems"], io.calls) == (True, 0, [], [])


def test_gpu_without_driver_or_tools() -> None:
    found = gather_gpu(healthy(devices=[{**H100, "driver": ""}], driver="", library=None, smi=None))
    assert found["pci_devices"][0]["driver"] is None
    assert found["slots"] == 0
    assert found["problems"] == [
        "NVIDIA's kernel module is not loaded, but this host has NVIDIA GPUs at 0000:3b:00.0. "
        "Install the driver (role nvidia_driver); where it is installed, check `dkms status` and reboot."
    ]


def test_secure_boot_is_named_where_the_module_is_not_loaded() -> None:
    found = gather_gpu(healthy(devices=[H100], driver="", library=None, smi=None, secure_boot=b"\x06\0\0\0\x01"))
    assert found["secure_boot"] is True
    assert found["problems"][0].endswith(
        "reboot. Secure Boot is on, so the kernel loads only modules signed with a key that it trusts: check `dmesg | "
        "grep -i lockdown` and `mokutil --list-enrolled`."
    )


def test_nouveau_is_named_with_the_way_out() -> None:
    io = healthy(devices=[{**H100, "driver": "nouveau"}], driver="", library=None, smi=None, modules=["nouveau"])
    found = gather_gpu(io)
    assert found["driver"]["nouveau_loaded"] is True
    assert found["problems"][0] == (
        "The nouveau driver holds 0000:3b:00.0, so NVIDIA's driver cannot. "
        "Blacklist nouveau, rebuild the initramfs and reboot."
    )


def test_driver_without_nvidia_smi() -> None:
    found = gather_gpu(healthy(smi=None))
    assert (found["slots"], found["driver"]["loaded"], found["cuda_version"]) == (0, True, None)
    assert found["problems"] == [
        "The driver is loaded but nvidia-smi is not installed, so no GPU can be counted. Install it in the "
        "driver's version (Debian: nvidia-smi, Ubuntu: nvidia-utils-<branch>-server)."
    ]


@pytest.mark.parametrize(
    ("device_id", "driver", "problem"),
    [
        (
            "0x2901",
            PROPRIETARY.format("570.133.20"),
            "The proprietary kernel module is loaded, which cannot drive the GPUs at 0000:3b:00.0 (Blackwell). "
            "Install the open one (nvidia_driver_flavour: auto) and reboot.",
        ),
        (
            "0x1db1",
            OPEN.format("570.133.20"),
            "The open kernel module is loaded, which cannot drive the GPUs at 0000:3b:00.0 (Volta). "
            "Install the proprietary one (nvidia_driver_flavour: auto) and reboot.",
        ),
        (
            "0x1db1",
            PROPRIETARY.format("590.48.01"),
            "Driver 590.48.01 is too new for the GPUs at 0000:3b:00.0 (Volta): the last branch that supports them is "
            "580. Install that one (nvidia_driver_branch: 580).",
        ),
    ],
)
def test_a_driver_that_does_not_suit_the_gpu_is_named(device_id: str, driver: str, problem: str) -> None:
    io = broken("No devices were found", 6, devices=[{**H100, "device": device_id}], driver=driver, library=None)
    problems = gather_gpu(io)["problems"]
    assert problems[0] == problem
    assert problems[1].startswith("nvidia-smi says 'No devices were found': the driver is loaded but uses no GPU.")
    assert len(problems) == 2


def test_the_last_branch_that_knows_a_gpu_is_good_enough() -> None:
    io = one(devices=[{**H100, "device": "0x1db1"}], driver=PROPRIETARY.format("580.105.08"), library=None)
    assert gather_gpu(io)["problems"] == []


def test_a_gpu_the_table_does_not_know_is_no_problem_but_said() -> None:
    found = gather_gpu(one(devices=[{**H100, "device": "0x3f00"}]))
    assert found["pci_devices"][0]["generation"] is None
    assert (found["slots"], found["problems"]) == (1, [])
    assert found["notes"] == [
        "The GPU at 0000:3b:00.0 has a PCI number (0x3f00) that is not in this collection's table, so its generation "
        "is unknown and the flavour of its driver was not checked."
    ]


def test_the_drivers_own_word_for_a_generation_fills_what_the_table_does_not_know() -> None:
    inside = "<product_architecture>Ada Lovelace</product_architecture>"
    assert gather_gpu(one(inside, devices=[{**H100, "device": "0x3f00"}]))["gpus"][0]["generation"] == "Ada"
    inside = "<product_architecture>Something Else</product_architecture>"
    assert gather_gpu(one(inside, devices=[{**H100, "device": "0x3f00"}]))["gpus"][0]["generation"] is None


@pytest.mark.parametrize(
    ("text", "rc", "starts", "remedy"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
            "NVIDIA driver is installed and running.",
            9,
            "nvidia-smi says 'NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "Check `dkms status`, then `modprobe nvidia`; after an installation, reboot.",
        ),
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.144",
            18,
            "nvidia-smi says 'Failed to initialize NVML: Driver/library version mismatch': the loaded kernel module",
            "Reboot this host.",
        ),
        (
            "No devices were found",
            6,
            "nvidia-smi says 'No devices were found': the driver is loaded",
            "dmesg | grep NVRM",
        ),
        (
            "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",
            15,
            "nvidia-smi says 'Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error': a GPU",
            "power the host off and on.",
        ),
        (
            "Failed to query the GPU: GPU is lost.  Reboot the system to recover this GPU",
            15,
            "nvidia-smi says 'Failed to query the GPU: GPU is lost.",
            "power the host off and on; one that is lost again",
        ),
        ("Failed to initialize NVML: Insufficient Permissions", 4, "nvidia-smi says 'Failed", "become: true"),
        (
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
            12,
            "nvidia-smi says 'NVIDIA-SMI couldn't find libnvidia-ml.so",
            "Debian: libnvidia-ml1",
        ),
        (
            "Something\nnew",
            255,
            "nvidia-smi ended with status 255 and printed: Something new.",
            "Run nvidia-smi on this host",
        ),
        ("", 3, "nvidia-smi ended with status 3 and printed: nothing.", "Xid"),
    ],
)
def test_a_failing_nvidia_smi_gives_one_problem_with_cause_and_remedy(
    text: str, rc: int, starts: str, remedy: str
) -> None:
    io = broken(text, rc, library=None)
    found = gather_gpu(io)
    assert (found["present"], found["slots"], found["gpus"], found["cuda_version"]) == (True, 0, [], None)
    assert len(found["problems"]) == 1
    assert found["problems"][0].startswith(starts)
    assert remedy in found["problems"][0]
    assert len(io.calls) == 1


def test_a_hanging_driver_is_distinguished_from_a_failing_one() -> None:
    reported = explain(CommandResult(TIMED_OUT, stderr="no answer within 60 seconds"))
    assert reported is not None
    assert reported.startswith("nvidia-smi gave no answer within 60 seconds: the driver hangs")


def test_mismatch_takes_the_library_version_from_the_message_where_no_file_tells_it() -> None:
    text = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.144"
    driver = gather_gpu(broken(text, 18, library=None))["driver"]
    assert (driver["version"], driver["library_version"], driver["matches"]) == ("550.163.01", "550.144", False)


def test_versions_that_differ_are_a_problem_even_while_nvidia_smi_still_works() -> None:
    found = gather_gpu(healthy(library="libnvidia-ml.so.550.144.03"))
    assert found["slots"] == 2
    assert found["driver"]["matches"] is False
    assert found["problems"] == [
        "The loaded kernel module is 550.163.01 but the libraries are 550.144.03: "
        "programs started from now on fail. Reboot this host."
    ]


@pytest.mark.parametrize("changes", [{"library": None}, {"driver": ""}], ids=["no-library", "no-module"])
def test_matches_is_unknown_where_one_side_is(changes: dict[str, Any]) -> None:
    assert gather_gpu(healthy(**changes))["driver"]["matches"] is None


def test_a_gpu_that_is_lost_is_no_slot() -> None:
    lost = f"1, {UUID_1}, [GPU is lost], [GPU is lost], [GPU is lost]"
    found = gather_gpu(healthy(smi={QUERY: f"{ROW_0}\n{lost}"}))
    assert found["slots"] == 1
    assert found["problems"] == [
        f"A GPU is listed but broken: {lost}. Check `dmesg | grep Xid`, then reboot this host."
    ]


@pytest.mark.parametrize("reported", ["GPU is lost", "GPU requires reset"])
def test_a_gpu_whose_failure_only_the_report_tells_is_no_slot(reported: str) -> None:
    failed = gpu_xml(UUID_1, "0000:86:00.0", f"<temperature><gpu_temp>{reported}</gpu_temp></temperature>")
    found = gather_gpu(healthy(smi={"-q": report(GPU_0, failed)}))
    assert [gpu["index"] for gpu in found["gpus"]] == [0]
    assert found["slots"] == 1
    assert found["problems"] == [
        f"A GPU is listed but broken: 1, {UUID_1}, NVIDIA H100 80GB HBM3: {reported}. "
        "Check `dmesg | grep Xid`, then reboot this host."
    ]


def test_a_gpu_that_does_not_answer_is_named() -> None:
    found = gather_gpu(healthy(smi={QUERY: ROW_0}))
    assert found["slots"] == 1
    assert found["problems"] == [
        "Only 1 of 2 NVIDIA GPUs (0000:3b:00.0, 0000:86:00.0) answer. "
        "Check `dmesg | grep -e Xid -e NVRM`; one that has fallen off the bus comes back with a power cycle."
    ]


def test_an_old_driver_is_asked_again_without_what_it_does_not_know() -> None:
    refusal = CommandResult(2, 'Field "compute_cap" is not a valid field to query.\n')
    io = healthy(
        devices=[{**H100, "device": "0x1db1"}],
        driver=PROPRIETARY.format("470.256.02"),
        library="libnvidia-ml.so.470.256.02",
        smi={
            QUERY: refusal,
            OLD_QUERY: "0, GPU-00000000-0000-0000-0000-000000000000, 16160, Tesla V100-SXM2-16GB",
            "-q": (FIXTURES / "q_v100_470.xml").read_text(encoding="utf-8"),
        },
    )
    found = gather_gpu(io)
    (gpu,) = found["gpus"]
    assert (gpu["name"], gpu["memory_bytes"], gpu["power_limit_watts"]) == ("Tesla V100-SXM2-16GB", 16160 * MIB, 300.0)
    assert (gpu["generation"], gpu["compute_capability"]) == ("Volta", "7.0")  # by the PCI number
    assert gpu["ecc"]["uncorrected_aggregate"] == 2
    assert (found["cuda_version"], found["problems"], len(io.calls)) == ("11.4", [], 3)
    assert found["notes"] == ["GPU 0 has had memory errors in its life (2), none lately."]


def test_a_missing_cuda_library_is_named() -> None:
    found = gather_gpu(healthy(smi={"-q": report(GPU_0, GPU_1, cuda="N/A")}))
    assert (found["slots"], found["cuda_version"]) == (2, None)
    assert found["problems"] == [
        "nvidia-smi names no CUDA version: the driver's CUDA library is missing. Install it in the driver's "
        "version (Debian: libcuda1, Ubuntu: libnvidia-compute-<branch>-server)."
    ]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (
            "<nvidia_smi_log><gpu>",
            "nvidia-smi -q -x returned an incomplete document, so MIG, ECC and the fabric were not checked. Run it on "
            "this host. Check `dmesg | grep -e Xid -e NVRM`.",
        ),
        (
            CommandResult(TIMED_OUT, stderr="no answer within 60 seconds"),
            "nvidia-smi gave no answer within 60 seconds: the driver hangs, often on a GPU that has failed. Check "
            "`dmesg | grep -e Xid -e NVRM`, then reboot this host.",
        ),
    ],
)
def test_a_report_that_does_not_come_keeps_the_gpus_and_is_one_problem(
    answer: CommandResult | str, problem: str
) -> None:
    found = gather_gpu(healthy(smi={"-q": answer}))
    assert (found["slots"], found["cuda_version"], found["gpus"][0]["mig"]["enabled"]) == (2, None, None)
    assert found["problems"] == [problem]


def test_two_calls_that_fail_alike_are_one_problem() -> None:
    reported = "Unable to determine the device handle for GPU0000:86:00.0: Unknown Error"
    found = gather_gpu(
        healthy(
            smi={
                QUERY: CommandResult(15, f"{ROW_0}\n{reported}"),
                "-q": CommandResult(15, f"<nvidia_smi_log>\n{reported}"),
            }
        )
    )
    assert [problem.split(":")[0] for problem in found["problems"]] == [
        "nvidia-smi says 'Unable to determine the device handle for GPU0000",
        "Only 1 of 2 NVIDIA GPUs (0000",
    ]


def ecc(volatile: int, aggregate: int) -> str:
    counters = "<{0}><dram_uncorrectable>{1}</dram_uncorrectable></{0}>"
    return (
        "<ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>"
        f"<ecc_errors>{counters.format('volatile', volatile)}{counters.format('aggregate', aggregate)}</ecc_errors>"
    )


@pytest.mark.parametrize(
    ("inside", "problem"),
    [
        (
            ecc(3, 5),
            "GPU 0 has had memory errors since its last reset that ECC could not correct (3); what was computed on it "
            "then is wrong. Check `dmesg | grep -e Xid -e NVRM`, then stop what runs on it and `nvidia-smi "
            "--gpu-reset -i 0`, or reboot. If such errors come again, replace the GPU.",
        ),
        (
            "<remapped_rows><remapped_row_pending>Yes</remapped_row_pending></remapped_rows>",
            "GPU 0 has failing memory that goes out of use at its next reset. Stop what runs on it, then `nvidia-smi "
            "--gpu-reset -i 0`, or reboot.",
        ),
        (
            "<remapped_rows><remapped_row_failure>Yes</remapped_row_failure></remapped_rows>",
            "GPU 0 could not retire more failing memory. Replace it.",
        ),
        (
            "<gpu_recovery_action>Reboot</gpu_recovery_action>",
            "GPU 0 wants to be recovered (nvidia-smi says 'Reboot'). Reboot this host.",
        ),
        (
            "<gpu_recovery_action>Drain and Reset</gpu_recovery_action>",
            "GPU 0 wants to be recovered (nvidia-smi says 'Drain and Reset'). Let what runs on it end and start "
            "nothing new, then `nvidia-smi --gpu-reset -i 0`.",
        ),
        (
            "<gpu_recovery_action>Dance</gpu_recovery_action>",
            "GPU 0 wants to be recovered (nvidia-smi says 'Dance'). Check `dmesg | grep -e Xid -e NVRM`.",
        ),
        (
            "<temperature><gpu_temp>ERR!</gpu_temp></temperature>",
            "GPU 0 gives ERR! instead of gpu_temp: it or its driver has failed. Check `dmesg | grep -e Xid -e "
            "NVRM`, then reboot this host.",
        ),
    ],
)
def test_a_gpu_that_answers_but_is_not_well(inside: str, problem: str) -> None:
    found = gather_gpu(one(inside))
    assert (found["slots"], found["problems"], found["notes"]) == (1, [problem], [])


def test_persistence_and_old_errors_are_notes() -> None:
    off = GPU_1.replace("<persistence_mode>Enabled", "<persistence_mode>Disabled")
    found = gather_gpu(healthy(smi={"-q": report(gpu_xml(UUID_0, "0000:3b:00.0", ecc(0, 1)), off)}))
    assert found["problems"] == []
    assert found["notes"] == [
        "Persistence mode is off (GPU 1): each program that starts waits for the GPU to be initialised. "
        "Where this collection installed the driver, nvidia_driver_persistence: true turns it on; elsewhere, start "
        "nvidia-persistenced without --no-persistence-mode, which Ubuntu's unit has, or `nvidia-smi -pm 1`.",
        "GPU 0 has had memory errors in its life (1), none lately.",
    ]


def test_a_mig_mode_that_is_to_change_is_a_note() -> None:
    inside = "<mig_mode><current_mig>Disabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>"
    text = report(GPU_0.replace("</mig_mode>", "</mig_mode>", 1)).replace(
        "<mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>", inside
    )
    found = gather_gpu(one(smi={"-q": text}))
    assert (found["slots"], found["notes"]) == (1, ["GPU 0 enters MIG mode at its next reset."])


def test_one_gpu_in_mig_instances_is_one_slot_with_a_note() -> None:
    listing = f"GPU 0: NVIDIA H100 (UUID: {UUID_0})\n  MIG 3g.40gb     Device  0: (UUID: MIG-abc)\n"
    io = one(INSTANCE, "Enabled", smi={"-L": listing})
    found = gather_gpu(io)
    assert (found["slots"], found["problems"]) == (1, [])
    assert found["gpus"][0]["mig"] == {
        "enabled": True,
        "pending": True,
        "instances": [
            {
                "index": 0,
                "gpu_instance": 1,
                "compute_instance": 0,
                "memory_bytes": 40448 * MIB,
                "profile": "3g.40gb",
                "uuid": "MIG-abc",
            }
        ],
    }
    assert found["notes"] == [
        "GPU 0 is in MIG mode (instances: 1). A CUDA process sees one of them and NCCL joins instances of one GPU "
        "only experimentally and over the host's memory (from 2.32 on), so this host counts as one slot: the first "
        "instance, or the one that CUDA_VISIBLE_DEVICES names."
    ]
    assert [call[0] for call in io.calls] == [QUERY, "-q", "-L"]


def test_instances_stay_without_their_names_where_the_list_does_not_come() -> None:
    instance = gather_gpu(one(INSTANCE, "Enabled"))["gpus"][0]["mig"]["instances"][0]
    assert (instance["index"], instance["profile"], instance["uuid"]) == (0, None, None)


def test_mig_beside_another_gpu_makes_the_host_one_slot_and_is_a_problem() -> None:
    divided = gpu_xml(UUID_1, "0000:86:00.0", INSTANCE, "Enabled")
    found = gather_gpu(healthy(smi={"-q": report(GPU_0, divided)}))
    assert found["slots"] == 1
    assert found["problems"] == [
        "GPU 1 is in MIG mode, divided into instances: a CUDA process on this host then sees one instance and no other "
        "GPU, so this host counts as one slot. Turn MIG off (`nvidia-smi -i 1 -mig 0`), or keep this host out."
    ]


def test_mig_mode_without_an_instance_is_no_slot() -> None:
    found = gather_gpu(healthy(smi={"-q": report(GPU_0, gpu_xml(UUID_1, "0000:86:00.0", mig="Enabled"))}))
    assert found["slots"] == 1
    assert found["problems"] == [
        "GPU 1 is in MIG mode without an instance, so no program can compute there. Turn MIG off (`nvidia-smi -i 1 "
        "-mig 0`), or create instances (`nvidia-smi mig -cgi … -C`)."
    ]
    assert gather_gpu(one(mig="Enabled"))["slots"] == 0


VERSION = "Fabric Manager version is : 550.163.01\n"
START = (
    "Install the fabric manager in the driver's version (Debian and Ubuntu: nvidia-fabricmanager-<branch>) and start "
    "it (`systemctl enable --now nvidia-fabricmanager`)"
)


def test_a_fabric_that_works() -> None:
    io = fabric("Completed", fabric_manager=VERSION)
    found = gather_gpu(io)
    assert found["nvswitches"] == [{"address": "0000:05:00.0", "device_id": "0x22a3", "driver": "nvidia-nvswitch"}]
    assert found["fabric"] == {"state": "Completed", "manager_running": True, "manager_version": "550.163.01"}
    assert (found["gpus"][0]["fabric_state"], found["slots"], found["problems"]) == ("Completed", 1, [])
    assert [call[0] for call in io.calls] == [QUERY, "-q", "nv-fabricmanager"]


@pytest.mark.parametrize("state", ["N/A", "Completed"])
def test_nvswitches_without_a_fabric_manager(state: str) -> None:
    assert gather_gpu(fabric(state, processes=frozenset({"systemd"})))["problems"] == [
        "This host has NVSwitches (1) but no fabric manager is running, so CUDA fails with error 802 (system not yet "
        f"initialized). {START}."
    ]


def test_processes_that_cannot_be_seen_are_no_missing_fabric_manager() -> None:
    found = gather_gpu(fabric("N/A", processes=None))
    assert (found["fabric"]["manager_running"], found["problems"]) == (None, [])


@pytest.mark.parametrize("state", ["Not Started", "In Progress"])
@pytest.mark.parametrize("devices", [[NVSWITCH, H100], [H100]], ids=["switch", "switches-elsewhere"])
def test_a_gpu_that_waits_for_the_fabric(state: str, devices: list[dict[str, str]]) -> None:
    found = gather_gpu(fabric(state, devices=devices, processes=frozenset({"systemd"})))
    assert found["fabric"]["state"] == state
    assert found["problems"] == [
        f"GPU 0 ('{state}'): not yet part of the NVLink fabric, so CUDA fails with error 802 (system not yet "
        f"initialized). {START}; in GB200 and GB300 racks it runs on the switch trays instead."
    ]


def test_switches_that_are_no_pci_devices_are_known_by_the_state_of_the_fabric() -> None:
    found = gather_gpu(fabric("Completed", devices=[H100], fabric_manager=VERSION))
    assert found["fabric"] == {"state": "Completed", "manager_running": True, "manager_version": "550.163.01"}
    assert (found["nvswitches"], found["problems"]) == ([], [])


def test_the_fabric_is_as_far_as_the_gpu_that_is_least_far() -> None:
    states = [f"<fabric><state>{state}</state></fabric>" for state in ("Completed", "Not Started")]
    gpus = [gpu_xml(UUID_0, "0000:3b:00.0", states[0]), gpu_xml(UUID_1, "0000:86:00.0", states[1])]
    assert gather_gpu(healthy(smi={"-q": report(*gpus)}))["fabric"]["state"] == "Not Started"


def test_a_fabric_that_could_not_be_set_up() -> None:
    assert gather_gpu(fabric("Completed", "Insufficient Resources"))["problems"] == [
        "GPU 0 ('Insufficient Resources'): the NVLink fabric could not be set up. Check "
        "`journalctl -u nvidia-fabricmanager` and `dmesg | grep SXid`."
    ]


def test_a_fabric_manager_of_another_version() -> None:
    io = fabric("Completed", fabric_manager="Fabric Manager version is : 550.144.03\n")
    assert gather_gpu(io)["problems"] == [
        "The fabric manager is 550.144.03 but the driver is 550.163.01: it refuses any other version than its own. "
        "Install nvidia-fabricmanager in version 550.163.01."
    ]


@settings(deadline=None, derandomize=True, max_examples=examples(150))
@given(st.text(max_size=200), st.integers(0, 255))
def test_no_output_whatever_makes_it_crash(text: str, rc: int) -> None:
    answer = CommandResult(rc, text)
    io = healthy(smi={QUERY: answer, OLD_QUERY: answer, "-q": answer, "topo": answer, "-L": answer}, driver=text)
    found = gather_gpu(io)
    assert found["slots"] == len(found["gpus"])
    assert rc == 0 or found["problems"]


@settings(deadline=None, derandomize=True, max_examples=examples(150))
@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_no_text_beside_good_rows_makes_it_crash(first: str, second: str, third: str) -> None:
    plain = first.replace("<", "").replace("&", "").replace("\x00", "")
    inside = f"{INSTANCE}<fabric><state>{plain}</state></fabric><pci><pci_bus_id>{plain}</pci_bus_id></pci>"
    smi = {"-q": report(gpu_xml(UUID_0, "0000:3b:00.0", inside, "Enabled")), "-L": second, "topo": third}
    io = healthy(smi=smi, driver=f"Kernel Module {second}", library=f"libnvidia-ml.so.{third}", fabric_manager=first)
    assert gather_gpu(io)["slots"] <= 2
