#!/usr/bin/env python3
"""STAND-IN for a machine with GPUs: a sysfs and a proc tree, and nvidia-smi's answers, from recordings.

Usage: machine.py NAME [--secure-boot] [--nouveau]

Writes below /opt/swarmspeed-stand-in, where `fixtures` holds the recordings of tests/unit (their README says what of
them was recorded and what was composed). PCI addresses and device numbers are those that the recording names.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

STAND_IN = Path("/opt/swarmspeed-stand-in")
SECURE_BOOT = "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
NVSWITCH, GPU = "0x068000", "0x030200"


@dataclass(frozen=True)
class Machine:
    """Which recordings make it. ``switches`` are NVSwitches on the bus, which nvidia-smi does not list."""

    report: str
    capability: str
    topology: str | None = None
    listing: str | None = None
    switches: int = 0


MACHINES = {
    "h100": Machine("q_h100_x8_580.xml", "9.0", topology="topo_h100_x8.txt", switches=4),
    "v100": Machine("q_v100_470.xml", "7.0"),
    "a100-mig": Machine("q_a100_mig_535.xml", "8.0", listing="list_a100_mig.txt"),
    "t4": Machine("q_t4_595.xml", "7.5"),
}


def text(element: ElementTree.Element, path: str) -> str:
    return " ".join((element.findtext(path) or "").split())


def device(address: str, kind: str, number: str) -> None:
    folder = STAND_IN / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True)
    values = {"vendor": "0x10de", "class": kind, "device": number, "numa_node": "-1", "local_cpulist": "0-1"}
    for name, value in values.items():
        (folder / name).write_text(f"{value}\n", encoding="ascii")


def build(machine: Machine) -> None:
    """Write the trees and the answers."""
    fixtures, answers = STAND_IN / "fixtures", STAND_IN / "machine"
    for folder in ("machine", "sys", "proc"):
        shutil.rmtree(STAND_IN / folder, ignore_errors=True)
    answers.mkdir()
    shutil.copyfile(fixtures / machine.report, answers / "q.xml")
    rows, listed = [], []
    for index, gpu in enumerate(ElementTree.parse(fixtures / machine.report).getroot().findall("gpu")):
        name, uuid = text(gpu, "product_name"), text(gpu, "uuid")
        memory = text(gpu, "fb_memory_usage/total").removesuffix(" MiB")
        rows.append(f"{index}, {uuid}, {memory}, {machine.capability}, {name}\n")
        listed.append(f"GPU {index}: {name} (UUID: {uuid})\n")
        address = text(gpu, "pci/pci_bus_id").lower().removeprefix("0000")
        device(address, GPU, f"0x{text(gpu, 'pci/pci_device_id')[:4].lower()}")
    for number in range(machine.switches):
        device(f"0000:{number + 3:02x}:00.0", NVSWITCH, "0x22a3")
    (answers / "query.csv").write_text("".join(rows), encoding="utf-8")
    (answers / "list.txt").write_text("".join(listed), encoding="utf-8")
    if machine.listing:
        shutil.copyfile(fixtures / machine.listing, answers / "list.txt")
    if machine.topology:
        shutil.copyfile(fixtures / machine.topology, answers / "topo.txt")
    (STAND_IN / "sys/module").mkdir()
    (STAND_IN / "proc/1").mkdir(parents=True)
    (STAND_IN / "proc/1/comm").write_text("systemd\n", encoding="ascii")


def main() -> None:
    """Build the machine that is named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=MACHINES)
    parser.add_argument("--secure-boot", action="store_true")
    parser.add_argument("--nouveau", action="store_true")
    requested = parser.parse_args()
    build(MACHINES[requested.name])
    if requested.secure_boot:
        variable = STAND_IN / "sys" / SECURE_BOOT
        variable.parent.mkdir(parents=True)
        variable.write_bytes(b"\x06\x00\x00\x00\x01")
    if requested.nouveau:
        (STAND_IN / "sys/module/nouveau").mkdir()


if __name__ == "__main__":
    main()
