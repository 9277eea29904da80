# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a scenario needs of the lab (its ``vars/needs.yml``), compared with the lab before anything is changed.

Usage: python -m tests.needs SCENARIO
Ends with 1 and one sentence on stderr where the lab will not do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from tests.playbook_run import LAB, ROOT, lab_inventory, ssh

# Runs on a node. dpkg's locks are those of fcntl. A fresh Debian may be at its own daily apt: that ends by itself.
_GATHER = r"""
import fcntl, glob, json, os, shutil, subprocess, time

def locked():
    for name in glob.glob("/var/lib/dpkg/lock*") + glob.glob("/var/lib/apt/lists/lock"):
        with open(name, "r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
    return False

def trains():
    for name in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(name, "rb") as file:
                if any(item.startswith(b"SWARMSPEED_JOB=") for item in file.read().split(b"\0")):
                    return True
        except OSError:
            pass
    return False

end = time.monotonic() + 60
while locked() and time.monotonic() < end:
    time.sleep(2)
disk = os.statvfs("/var/lib/docker")
print(json.dumps({
    "locked": locked(),
    "interrupted": bool(os.listdir("/var/lib/dpkg/updates") or subprocess.check_output(["dpkg", "--audit"])),
    "trains": trains(),
    "bare": not shutil.which("dockerd", path="/usr/bin:/usr/sbin") and not os.path.exists("/srv/swarmspeed"),
    "disk_gib": disk.f_bavail * disk.f_frsize / 2**30,
}))
"""


@dataclass(frozen=True)
class Needs:
    """What a scenario needs. The numbers are free memory and disk of the machine, which all nodes share."""

    nodes: int
    more_nodes: bool = False
    """Whether there may be more nodes, which it leaves alone."""
    state: Literal["any", "bare", "replaced"] = "any"
    """``bare``: no Docker and nothing of this collection; ``replaced``: it re-creates the nodes itself."""
    disk_gib: int = 5
    memory_gib: int = 2
    root: bool = False
    """It writes rules for the machine's packet filter."""


def needs_of(scenario: str) -> Needs:
    file = ROOT / "molecule" / scenario / "vars" / "needs.yml"
    return Needs(**yaml.safe_load(file.read_text(encoding="utf-8")))


def gather(name: str) -> dict[str, Any]:
    """Return what is so on a node; only ``problem`` where it does not answer."""
    command = [*ssh(name, "python3 -")]
    answer = subprocess.run(command, input=_GATHER, capture_output=True, text=True, check=False, timeout=120)
    if answer.returncode != 0:
        return {"problem": (answer.stderr.strip().splitlines() or ["it did not answer"])[-1]}
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def free_memory_gib() -> float:
    """Return what the kernel says could be used without swapping."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) / 2**20


def of_nodes(needs: Needs, gathered: dict[str, dict[str, Any]]) -> list[str]:
    """What is wrong with the nodes, which new ones put right."""
    found = []
    if len(gathered) < needs.nodes or (len(gathered) > needs.nodes and not needs.more_nodes):
        found.append(
            f"it needs {needs.nodes}{' or more' if needs.more_nodes else ''} nodes, and the lab has {len(gathered)}"
        )
    if needs.state == "replaced":
        return found
    for name, seen in gathered.items():
        if "problem" in seen:
            found.append(f"{name} does not answer ({seen['problem']})")
            continue
        if seen["interrupted"]:
            found.append(f"on {name} dpkg was interrupted")
        if seen["locked"]:
            found.append(f"on {name} packages have been installed for more than a minute")
        if seen["trains"]:
            found.append(f"on {name} a job is running")
        if needs.state == "bare" and not seen["bare"]:
            found.append(f"{name} is not bare")
    return found


def refusal(
    scenario: str, needs: Needs, gathered: dict[str, dict[str, Any]], *, memory_gib: float, root: bool, lab: str
) -> str:
    """Return why the scenario does not run here, with what to do; empty where it does."""
    found = of_nodes(needs, gathered)
    remedies = []
    if found:
        remedies.append(f"make fresh-lab{'' if lab == 'swarmspeed' else f' LAB_NAME={lab}'}")
    disk = min((seen["disk_gib"] for seen in gathered.values() if "disk_gib" in seen), default=None)
    if disk is not None and disk < needs.disk_gib:
        found.append(f"it needs {needs.disk_gib} GiB of free disk, and there are {disk:.1f}")
        remedies.append("make room where Docker keeps its data")
    if memory_gib < needs.memory_gib:
        found.append(f"it needs {needs.memory_gib} GiB of free memory, and there are {memory_gib:.1f}")
        remedies.append("end what else runs on this machine")
    if needs.root and not root:
        found.append("it needs root on this machine, for its packet filter")
        remedies.append("run it as root")
    if not found:
        return ""
    return (
        f"Scenario {scenario} cannot run here: {'; '.join(found)}. Nothing was changed. Remedy: {'; '.join(remedies)}."
    )


def main(scenario: str) -> int:
    names = list(lab_inventory()["_meta"]["hostvars"])
    with ThreadPoolExecutor(max(1, len(names))) as pool:
        gathered = dict(zip(names, pool.map(gather, names), strict=True))
    needs, memory = needs_of(scenario), free_memory_gib()
    reported = refusal(scenario, needs, gathered, memory_gib=memory, root=os.geteuid() == 0, lab=LAB)
    if reported:
        print(reported, file=sys.stderr)
    return 1 if reported else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
