# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What nvidia-smi, procfs and the fabric manager print. The fixtures' README says which are recorded."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.smi import (
    Details,
    Gpu,
    MigInstance,
    parse_driver,
    parse_fabric_manager,
    parse_gpus,
    parse_library,
    parse_mig,
    parse_report,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.topology import parse_topology
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

FIXTURES = Path(__file__).parents[1] / "fixtures/gpu"
MIB = 1024 * 1024


def text_of(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "version", "flavour"),
    [
        # recorded on an H100; the builder's name was replaced
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (b@h)  \n"
            "GCC version:  gcc version 15.3.0 (GCC) \n",
            "580.159.04",
            "open",
        ),
        # recorded, from public texts
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.195.03  Release Build  "
            "(dvs-builder@U22-I3-H04-03-1)  Sat Sep 20 00:47:16 UTC 2025\n"
            "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)",
            "570.195.03",
            "open",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.142  Release Build  "
            "(dvs-builder@U22-I3-AD05-51-5)  Tue Mar  3 19:14:46 UTC 2026",
            "580.142",
            "open",
        ),
        # composed
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025\n"
            "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)",
            "550.163.01",
            "proprietary",
        ),
        ("NVRM version: NVIDIA UNIX Kernel Module for aarch64  550.54.15  Release Build", "550.54.15", "proprietary"),
        ("something else", None, None),
    ],
)
def test_parse_driver(text: str, version: str | None, flavour: str | None) -> None:
    assert parse_driver(text) == {"loaded": True, "version": version, "flavour": flavour}


def test_no_driver() -> None:
    assert parse_driver(" \n") == {"loaded": False, "version": None, "flavour": None}


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("libnvidia-ml.so.550.163.01", "550.163.01"),
        ("libnvidia-ml.so.1", None),
        ("libnvidia-ml.so", None),
        (None, None),
    ],
)
def test_parse_library(name: str | None, version: str | None) -> None:
    assert parse_library(name) == version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Fabric Manager version is : 580.159.03\n", "580.159.03"),  # recorded
        (
            "Fabric Manager version is : 610.57.04\nBuild Info - Branch: rel/gpu_drv/r610/r610_85-4, Changelist: 0",
            "610.57.04",  # recorded
        ),
        ("nv-fabricmanager: not found", None),
        ("", None),
    ],
)
def test_parse_fabric_manager(text: str, version: str | None) -> None:
    assert parse_fabric_manager(text) == version


def details(uuid: str, address: str, **known: Any) -> Details:
    return Details(uuid=uuid, address=address, **known)


H100 = {
    "device_id": "0x2330",
    "architecture": "Hopper",
    "persistence": True,
    "power_limit_watts": 700.0,
    "ecc": True,
    "ecc_volatile": 0,
    "ecc_aggregate": 0,
    "repair_pending": False,
    "repair_failed": False,
    "mig": False,
    "mig_pending": False,
    "fabric_state": "Completed",
    "fabric_status": "Success",
}
FIRST = "GPU-00000000-0000-0000-0000-000000000000"
REAL = "GPU-11111111-2222-3333-4444-555555555555"
"""Of the H100 that was recorded."""


@pytest.mark.parametrize(
    ("name", "cuda", "count", "first"),
    [
        ("q_h100_x8_580.xml", "13.0", 8, details(FIRST, "0000:53:00.0", **H100)),
        (
            "q_h100_580_recorded.xml",
            "13.0",
            1,
            # NVSwitches of a virtual machine's host are none of its own, so no fabric is reported.
            details(REAL, "0000:00:06.0", **{**H100, "fabric_state": None, "fabric_status": None}),
        ),
        (
            "q_gb200_x4_580.xml",
            "13.0",
            4,
            details(
                FIRST,
                "0008:01:00.0",
                **{**H100, "device_id": "0x2941", "architecture": "Blackwell", "power_limit_watts": 1200.0},
            ),
        ),
        (
            "q_t4_595.xml",
            "13.2",
            1,
            details(
                FIRST,
                "0000:00:1e.0",
                device_id="0x1eb8",
                architecture="Turing",
                persistence=True,
                power_limit_watts=70.0,
                ecc=True,
                ecc_volatile=0,
                ecc_aggregate=0,
                repair_pending=False,
            ),
        ),
        (
            "q_rtx4090_x2_550.xml",
            "12.4",
            2,
            details(
                FIRST,
                "0000:01:00.0",
                device_id="0x2684",
                architecture="Ada Lovelace",
                persistence=False,
                power_limit_watts=450.0,
                ecc=False,
                repair_pending=False,
                repair_failed=False,
            ),
        ),
        (
            "q_rtx3090_525.xml",
            "12.0",
            1,
            details(
                FIRST,
                "0000:0a:00.0",
                device_id="0x2204",
                architecture="Ampere",
                persistence=True,
                power_limit_watts=350.0,
            ),
        ),
        (
            "q_v100_470.xml",
            "11.4",
            1,
            details(
                FIRST,
                "0000:3b:00.0",
                device_id="0x1db1",
                architecture="Volta",
                persistence=True,
                power_limit_watts=300.0,
                ecc=True,
                ecc_volatile=0,
                ecc_aggregate=2,
                repair_pending=False,
            ),
        ),
    ],
)
def test_reports_of_several_generations_of_drivers(name: str, cuda: str, count: int, first: Details) -> None:
    report = parse_report(text_of(name))
    assert report is not None
    assert (report.cuda_version, len(report.gpus)) == (cuda, count)
    assert report.gpus[0] == first
    assert len({gpu.uuid for gpu in report.gpus}) == len({gpu.address for gpu in report.gpus}) == count


def test_mig_instances() -> None:
    report = parse_report(text_of("q_a100_mig_535.xml"))
    assert report is not None
    gpu = report.gpus[0]
    assert (gpu.mig, gpu.mig_pending, len(gpu.instances)) == (True, True, 7)
    assert gpu.instances[6] == MigInstance(index=6, gpu_instance=13, compute_instance=0, memory_bytes=4864 * MIB)
    assert gpu.ecc_volatile == 0  # the GPU's own counters, not those inside the instances


def test_mig_names() -> None:
    names = parse_mig(text_of("list_a100_mig.txt"))
    assert len(names) == 7
    assert names[("GPU-48aeb943-9458-4282-da24-e5f49e0db44b", 6)] == (
        "1g.5gb",
        "MIG-37e055e8-8890-567f-a646-ebf9fde3ce7a",
    )


def test_a_list_without_mig_names_no_instance() -> None:
    assert parse_mig(text_of("list_h100.txt")) == {}


def test_mig_names_of_drivers_before_470_and_of_two_gpus() -> None:
    text = (
        "GPU 0: A100-SXM4-40GB (UUID: GPU-a)\n"
        "  MIG 3g.20gb Device 0: (UUID: MIG-GPU-a/1/0)\n"
        "GPU 1: A100-SXM4-40GB (UUID: GPU-b)\n"
        "  MIG 1c.3g.20gb Device 0: (UUID: MIG-GPU-b/2/0)\n"
    )
    assert parse_mig(text) == {
        ("GPU-a", 0): ("3g.20gb", "MIG-GPU-a/1/0"),
        ("GPU-b", 0): ("1c.3g.20gb", "MIG-GPU-b/2/0"),
    }


def report_with(inside: str) -> Details:
    report = parse_report(f"<nvidia_smi_log><gpu id='00000000:01:00.0'>{inside}</gpu></nvidia_smi_log>")
    assert report is not None
    return report.gpus[0]


@pytest.mark.parametrize(
    ("inside", "attribute", "value"),
    [
        ("<gpu_recovery_action>Reset</gpu_recovery_action>", "recovery", "Reset"),
        ("<gpu_recovery_action>Drain P2P</gpu_recovery_action>", "recovery", "Drain P2P"),
        ("<gpu_recovery_action>None</gpu_recovery_action>", "recovery", None),
        ("<gpu_recovery_action>N/A</gpu_recovery_action>", "recovery", None),
        ("<gpu_reset_status><reset_required>Yes</reset_required></gpu_reset_status>", "recovery", "Reset"),
        (
            "<gpu_reset_status><reset_required>No</reset_required>"
            "<drain_and_reset_recommended>Yes</drain_and_reset_recommended></gpu_reset_status>",
            "recovery",
            "Drain and Reset",
        ),
        ("<fb_memory_usage><total>GPU is lost</total></fb_memory_usage>", "lost", "GPU is lost"),
        ("<temperature><gpu_temp>GPU requires reset</gpu_temp></temperature>", "lost", "GPU requires reset"),
        ("<temperature><gpu_temp>ERR!</gpu_temp></temperature>", "unreadable", ("gpu_temp",)),
        ("<p><power_draw>Unknown Error</power_draw></p>", "unreadable", ("power_draw",)),
        ("<fan_speed>ERR!</fan_speed>", "unreadable", ()),  # a fan's sensor alone stops nothing
        ("<remapped_rows><remapped_row_pending>Yes</remapped_row_pending></remapped_rows>", "repair_pending", True),
        ("<remapped_rows><remapped_row_failure>Yes</remapped_row_failure></remapped_rows>", "repair_failed", True),
        ("<retired_pages><pending_blacklist>Yes</pending_blacklist></retired_pages>", "repair_pending", True),
        (
            "<ecc_errors><volatile><sram_correctable>9</sram_correctable>"
            "<sram_uncorrectable_parity>1</sram_uncorrectable_parity>"
            "<sram_uncorrectable_secded>2</sram_uncorrectable_secded>"
            "<dram_uncorrectable>4</dram_uncorrectable></volatile></ecc_errors>",
            "ecc_volatile",
            7,
        ),
        ("<ecc_errors><volatile/></ecc_errors>", "ecc_volatile", None),
        ("<persistence_mode>Requested functionality has been deprecated</persistence_mode>", "persistence", None),
        ("<power_readings><power_limit>N/A</power_limit></power_readings>", "power_limit_watts", None),
        ("<fabric><state>In Progress</state></fabric>", "fabric_state", "In Progress"),
    ],
)
def test_single_values_of_a_report(inside: str, attribute: str, value: object) -> None:
    assert getattr(report_with(inside), attribute) == value


@pytest.mark.parametrize(
    ("element", "version"),
    [
        ("<cuda_version>12.4</cuda_version>", "12.4"),
        ("<cuda_umd_version>13.3</cuda_umd_version>", "13.3"),
        ("<cuda_version>N/A</cuda_version>", None),
        ("<cuda_version>Not Found</cuda_version>", None),
        ("", None),
    ],
)
def test_cuda_version(element: str, version: str | None) -> None:
    report = parse_report(f"<nvidia_smi_log>{element}</nvidia_smi_log>")
    assert report is not None
    assert report.cuda_version == version


def test_a_warning_round_the_document_does_no_harm() -> None:
    text = f"a warning\n{text_of('q_t4_595.xml')}WARNING: infoROM is corrupted at gpu 0000:00:1E.0\n"
    report = parse_report(text)
    assert report is not None
    assert len(report.gpus) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No devices were found",
        "<nvidia_smi_log><gpu>",
        "</nvidia_smi_log><nvidia_smi_log>",
        "<nvidia_smi_log><gpu></nvidia_smi_log>",
        "<nvidia_smi_log>&e;</nvidia_smi_log>",
        "<nvidia_smi_log>\x00</nvidia_smi_log>",
        "<nvidia_smi_log>\ud800</nvidia_smi_log>",
    ],
)
def test_what_is_no_whole_document_is_none(text: str) -> None:
    assert parse_report(text) is None


def test_a_prologue_that_defines_something_is_not_read() -> None:
    prologue = '<!DOCTYPE nvidia_smi_log [<!ENTITY e "boom">]>'
    assert parse_report(f"{prologue}<nvidia_smi_log><cuda_version>&e;</cuda_version></nvidia_smi_log>") is None


TAGS = st.sampled_from(
    ["gpu", "uuid", "pci", "pci_bus_id", "mig_mode", "current_mig", "mig_devices", "mig_device", "index", "ecc_errors"]
) | st.sampled_from(["volatile", "double_bit", "total", "dram_uncorrectable", "fabric", "state", "gpu_temp"])
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="<>&\x00"), max_size=20)
TREES: st.SearchStrategy[str] = st.recursive(
    WORDS,
    lambda inner: st.builds("<{0}>{1}</{0}>".format, TAGS, st.lists(inner, max_size=4).map("".join)),
    max_leaves=25,
)


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(TREES)
def test_no_document_makes_it_crash(tree: str) -> None:
    parse_report(f"<nvidia_smi_log><gpu>{tree}</gpu></nvidia_smi_log>")


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(st.text(max_size=300))
def test_no_text_makes_the_other_parsers_crash(text: str) -> None:
    parse_driver(text)
    parse_library(text)
    parse_fabric_manager(f"version is : {text}")
    parse_gpus(f"0, GPU-{text}")
    parse_mig(f"GPU 0: x (UUID: GPU-{text})\n  MIG {text} Device 0: (UUID: MIG-{text})")
    parse_topology(f"\tGPU0\tGPU1\t{text}\nGPU0\tX\tNV1\t{text}\nNIC0: {text}")


def test_a_recorded_query() -> None:
    gpu = Gpu(0, "NVIDIA H100 80GB HBM3", REAL, 81559 * MIB, "9.0")
    assert parse_gpus(text_of("query_h100.csv")) == ([gpu], [])


def test_gpu_that_shares_the_hosts_memory_has_none_of_its_own() -> None:
    gpus, failed = parse_gpus("0, GPU-1, [N/A], 12.1, NVIDIA GB10")
    assert gpus == [Gpu(0, "NVIDIA GB10", "GPU-1", None, "12.1")]
    assert failed == []


@pytest.mark.parametrize(
    "row",
    [
        "1, GPU-2, [GPU is lost], [GPU is lost], [GPU is lost]",
        "1, GPU-2, [Unknown Error], 9.0, NVIDIA H100",
        "1, GPU-2, 81559, [GPU requires reset], NVIDIA H100",
        "1, GPU-2, ERR!, 9.0, NVIDIA H100",
        "1, GPU-2, 81559",
    ],
)
def test_a_row_of_a_broken_gpu_is_distinguished(row: str) -> None:
    gpus, failed = parse_gpus(f"0, GPU-1, 81559, 9.0, NVIDIA H100\n{row}\n")
    assert [gpu.index for gpu in gpus] == [0]
    assert failed == [row]


NAMES = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=12).map("NVIDIA, {}".format)


@settings(deadline=None, derandomize=True, max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(1, 300_000), NAMES), max_size=8), st.randoms(use_true_random=False))
def test_parse_gpus_gives_back_what_was_written_in_any_order(found: list[tuple[int, str]], random: Random) -> None:
    written = [Gpu(i, name, f"GPU-{i}", mib * MIB, "9.0") for i, (mib, name) in enumerate(found)]
    lines = [f"{gpu.index}, {gpu.uuid}, {(gpu.memory_bytes or 0) // MIB}, 9.0, {gpu.name}" for gpu in written]
    random.shuffle(lines)
    assert parse_gpus("\n".join(["a warning", *lines])) == (written, [])


@pytest.mark.parametrize(
    ("name", "gpus", "nics", "link", "affinity"),
    [
        ("topo_a100_x8.txt", 8, 10, "NV12", "48-63,176-191"),
        ("topo_h100_x8.txt", 8, 8, "NV18", "0-47,96-143"),
        ("topo_rtx_pro_6000_x2.txt", 2, 0, "NODE", "0-31"),
        ("topo_v100_old_form.txt", 2, 2, "NV2", "0-23,48-71"),
        ("topo_one_gpu_one_nic.txt", 1, 1, None, "0-251"),
        ("topo_h100_x1.txt", 1, 0, None, "0-15"),
    ],
)
def test_topologies(name: str, gpus: int, nics: int, link: str | None, affinity: str) -> None:
    topology = parse_topology(text_of(name))
    assert topology is not None
    numbers = {str(number) for number in range(gpus)}
    assert set(topology.gpus) == numbers
    assert all(set(links) == numbers - {own} for own, links in topology.gpus.items())
    assert topology.gpus["0"].get("1") == link
    assert len(topology.nics) == nics
    assert all(set(links) == numbers for links in topology.nics.values())
    assert topology.cpu_affinity["0"] == affinity


def test_network_devices_have_their_own_names() -> None:
    a100, old = parse_topology(text_of("topo_a100_x8.txt")), parse_topology(text_of("topo_v100_old_form.txt"))
    assert a100 is not None
    assert old is not None
    assert a100.nics["mlx5_3"] == {**dict.fromkeys("014567", "SYS"), "2": "PXB", "3": "PXB"}
    assert old.nics == {"mlx5_0": {"0": "PIX", "1": "PXB"}, "rocep1s0f0": {"0": "SYS", "1": "SYS"}}


@pytest.mark.parametrize("text", ["", "Invalid combination of input arguments.", "GPU0 GPU1", "GPU0\nGPU0 X"])
def test_what_is_no_matrix_is_none_or_empty(text: str) -> None:
    topology = parse_topology(text)
    assert topology is None or topology.gpus == {"0": {}}


@settings(deadline=None, derandomize=True, max_examples=examples(60))
@given(st.integers(1, 10), st.integers(0, 4), st.randoms(use_true_random=False))
def test_a_topology_that_is_written_is_read_again(count: int, nics: int, random: Random) -> None:
    names = [*(f"GPU{n}" for n in range(count)), *(f"NIC{n}" for n in range(nics))]
    link = {(a, b): random.choice(["NV18", "PIX", "PXB", "PHB", "NODE", "SYS"]) for a in names for b in names}
    lines = ["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity"])]
    for a in names:
        tail = ["0-7", "0"] if a.startswith("GPU") else ["", ""]
        lines.append("\t".join([a, *(" X " if a == b else link[a, b] for b in names), *tail]))
    lines += [f"  NIC{n}: mlx5_{n}" for n in range(nics)]
    topology = parse_topology("\n".join(lines))
    assert topology is not None
    for own in range(count):
        others = [other for other in range(count) if other != own]
        assert topology.gpus[str(own)] == {str(other): link[f"GPU{own}", f"GPU{other}"] for other in others}
    assert topology.nics == {
        f"mlx5_{n}": {str(g): link[f"NIC{n}", f"GPU{g}"] for g in range(count)} for n in range(nics)
    }
