# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Docker on a node: its data wiped, its disk full, its container paused, images kept in the other kind of store."""

from __future__ import annotations

from tests.chaos.faults.base import Attempt, Fault, Unsuited
from tests.chaos.lab import Lab, LabError
from tests.chaos.scripts import ETC, STAND_IN, STOP_ENGINE, image_store, small_disk
from tests.playbook_run import container

DATA = "/var/lib/docker"
FIRST_WITH_STORE = 24
"""The first release of the engine whose image store of containerd's is to be relied on."""
# Layers and networks of containers that were killed with their engine are still mounted there.
WIPE = f"""
{STOP_ENGINE}
awk '$2 ~ "^{DATA}/" {{ print $2 }}' /proc/mounts | sort -r | while read -r place; do umount -l "$place" || true; done
find {DATA} -mindepth 1 -maxdepth 1 -exec rm -rf '{{}}' +
systemctl start docker
"""
# A file that is missing has to be written again. dd ends with an error when nothing more fits, as it should.
FULL = f"""
{small_disk(ETC, 16)}
rm -f {ETC}/hostfile
dd if=/dev/zero of={ETC}/ballast bs=4k 2>/dev/null || true
"""


def engine_wiped(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, WIPE, timeout=300)


def disk_full(attempt: Attempt) -> None:
    """A full disk of 16 MiB under the folder of the node's files, where one is missing and to be written."""
    attempt.lab.run(attempt.target, FULL)


def room_in_etc(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, f"rm -f {ETC}/ballast")


def small_disk_gone(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, f"umount -l {ETC}")


def engine_disk_full(attempt: Attempt) -> None:
    attempt.lab.run(
        attempt.target,
        f"{STOP_ENGINE}\nmount -t tmpfs -o size=64m,mode=710 {STAND_IN} {DATA}\nsystemctl start docker",
        timeout=180,
    )


def room_for_engine(attempt: Attempt) -> None:
    """The disk that it had before, with all that is on it."""
    back = f"{STOP_ENGINE}; umount -l {DATA}; systemctl start docker"
    attempt.lab.run(attempt.target, f"if grep -q '^{STAND_IN} {DATA} ' /proc/mounts; then {back}; fi", timeout=180)


def container_paused(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, f"docker pause {container(attempt.target)}")


def container_still_paused(attempt: Attempt) -> str:
    state = attempt.lab.training_container(attempt.target)
    return "" if state == "running" else f"the container on {attempt.target} is {state or 'gone'}"


def with_store(lab: Lab, drawn: str) -> str:
    """Return the node drawn, else the next whose engine has the store and does not use it."""
    start = lab.nodes.index(drawn)
    for name in lab.nodes[start:] + lab.nodes[:start]:
        try:
            found = lab.info(name)
        except LabError:
            continue
        release = int(found["ServerVersion"].split(".")[0])
        if release >= FIRST_WITH_STORE and "io.containerd.snapshotter" not in str(found["DriverStatus"]):
            return name
    raise Unsuited(f"no node has an engine of release {FIRST_WITH_STORE} or later without containerd's image store")


def store_switched(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, image_store(of_containerd=True), timeout=180)


def store_back(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, image_store(of_containerd=False), timeout=180)


ROOM = r"No space left|is full|GiB are free|MiB are free|free space|[Mm]ake room"
SWARM_GONE = r"Docker swarm|swarm that is not working|without a node ID"
ENGINE = (
    Fault(
        "engine-wiped-manager",
        "all data of the manager's engine removed, its swarm with it",
        engine_wiped,
        among="manager",
        refusal=SWARM_GONE,
    ),
    Fault("engine-wiped-worker", "all data of a worker's engine removed", engine_wiped, among="worker"),
    Fault(
        "disk-full",
        "no room on a node where its files are (a small disk stands in)",
        disk_full,
        refusal=ROOM,
        by_hand=room_in_etc,
        undo=small_disk_gone,
    ),
    Fault(
        "engine-disk-full",
        "a node's engine starts from scratch on a disk of 64 MiB (a stand-in)",
        engine_disk_full,
        refusal=f"{ROOM}|{SWARM_GONE}",
        by_hand=room_for_engine,
        undo=room_for_engine,
    ),
    Fault("container-paused", "a node's training container paused", container_paused, left=container_still_paused),
    Fault(
        "image-store-switched",
        "an engine switched to containerd's image store, and back",
        store_switched,
        choose=with_store,
        undo=store_back,
    ),
)
