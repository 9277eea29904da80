# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a case needs around its ranks, and the faults that the runner injects: namespaces, cgroups, a FUSE.

Everything is made under a name of this run, and removed by the context that made it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
NETNS = Path("/run/netns")
DETACH, FORCE = 2, 1


def command(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=check, capture_output=True, text=True, timeout=30)


def kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


# --- network -----------------------------------------------------------------------------------------------------


@dataclass
class Network:
    """A namespace for each rank, all of them on a bridge in one more namespace."""

    name: str
    world: int
    hosts: list[Path] = field(default_factory=list)

    def namespace(self, rank: int) -> str:
        return f"{self.name}-r{rank}"

    @staticmethod
    def address(rank: int) -> str:
        return f"10.213.0.{10 + rank}"

    def drop(self, rank: int, *rule: str) -> None:
        command("ip", "netns", "exec", self.namespace(rank), "iptables", "-A", *rule, "-j", "DROP")


@contextlib.contextmanager
def network(name: str, world: int, folder: Path) -> Iterator[Network]:
    made = Network(name, world)
    switch = f"{name}-sw"
    try:
        command("ip", "netns", "add", switch)
        inside = ("ip", "-n", switch, "link")
        command(*inside, "add", "br0", "type", "bridge")
        command(*inside, "set", "br0", "up")
        for rank in range(world):
            own = made.namespace(rank)
            command("ip", "netns", "add", own)
            command(*inside, "add", f"p{rank}", "type", "veth", "peer", "name", "eth0", "netns", own)
            command(*inside, "set", f"p{rank}", "master", "br0", "up")
            command("ip", "-n", own, "addr", "add", f"{made.address(rank)}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                command("ip", "-n", own, "link", "set", device, "up")
            hosts = folder / f"hosts-{rank}"
            names = [f"{made.address(other)} rank{other}.hangbench" for other in range(world)]
            hosts.write_text("\n".join(["127.0.0.1 localhost", *names, ""]), encoding="utf-8")
            made.hosts.append(hosts)
        yield made
    finally:
        for own in [*map(made.namespace, range(world)), switch]:
            command("ip", "netns", "delete", own, check=False)


# --- cgroups -----------------------------------------------------------------------------------------------------


def controller(name: str) -> Path | None:
    """Return where cgroups of a controller are made: version 1, version 2, or nowhere."""
    if (CGROUPS / name / "cgroup.procs").exists():
        return CGROUPS / name
    for whole in (CGROUPS, CGROUPS / "unified"):
        file = whole / "cgroup.subtree_control"
        if file.exists() and (name == "freeze" or name in file.read_text().split()):
            return whole
    return None


@contextlib.contextmanager
def cgroup(name: str, run: str) -> Iterator[Path]:
    parent = controller(name)
    if parent is None:
        raise OSError(f"no cgroups of {name}")
    made = parent / run
    made.mkdir()
    try:
        yield made
    finally:
        release(made, parent)


def release(made: Path, parent: Path) -> None:
    """Remove a cgroup; what is left in it runs again first, so that it can end."""
    for name, value in (("cgroup.freeze", "0"), ("cpu.cfs_quota_us", "-1"), ("cpu.max", "max")):
        with contextlib.suppress(OSError):
            if (made / name).exists():
                (made / name).write_text(value)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for pid in (made / "cgroup.procs").read_text().split():
            kill(int(pid), signal.SIGKILL)
        try:
            made.rmdir()
            return
        except OSError:
            time.sleep(0.1)
    raise OSError(f"{made} could not be removed below {parent}")


def limit_memory(made: Path, size: int) -> None:
    for name in ("memory.limit_in_bytes", "memory.max", "memory.memsw.limit_in_bytes", "memory.swap.max"):
        with contextlib.suppress(OSError):
            if (made / name).exists():
                (made / name).write_text("0" if name == "memory.swap.max" else str(size))


def throttle(made: Path) -> None:
    """Leave one thousandth of one processor."""
    if (made / "cpu.max").exists():
        (made / "cpu.max").write_text("1000 1000000")
    else:
        (made / "cpu.cfs_period_us").write_text("1000000")
        (made / "cpu.cfs_quota_us").write_text("1000")


def throttled(made: Path) -> int:
    values = dict(line.split() for line in (made / "cpu.stat").read_text().splitlines())
    return int(values["nr_throttled"])


# --- FUSE --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def fuse(folder: Path) -> Iterator[Path]:
    """Mount a FUSE whose server never answers: no one reads the device."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder.mkdir()
    device = os.open("/dev/fuse", os.O_RDWR)
    try:
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"hangbench", str(folder).encode(), b"fuse", 0, options):
            raise OSError(ctypes.get_errno(), "could not mount a FUSE")
        yield folder
    finally:
        os.close(device)
        libc.umount2(str(folder).encode(), DETACH | FORCE)


# --- faults ------------------------------------------------------------------------------------------------------


@dataclass
class Place:
    """What faults act on."""

    pids: dict[int, int]
    rank: int
    peer: int
    network: Network | None = None
    cgroups: dict[str, Path] = field(default_factory=dict)

    @property
    def net(self) -> Network:
        assert self.network is not None
        return self.network


def cut_one_way(place: Place) -> None:
    place.net.drop(place.peer, "INPUT", "-s", place.net.address(place.rank))


def cut_both_ways(place: Place) -> None:
    cut_one_way(place)
    place.net.drop(place.rank, "INPUT", "-s", place.net.address(place.peer))


def isolate(place: Place) -> None:
    for chain in ("INPUT", "OUTPUT"):
        place.net.drop(place.rank, chain, "!", "-o" if chain == "OUTPUT" else "-i", "lo")


def lossy(place: Place) -> None:
    """Lose 95 of 100 packets that arrive at one rank."""
    place.net.drop(place.rank, "INPUT", "-i", "eth0", "-m", "statistic", "--mode", "random", "--probability", "0.95")


def large_packets(place: Place) -> None:
    """Lose large packets only, as on a path whose MTU is smaller than both ends believe."""
    place.net.drop(place.rank, "INPUT", "-i", "eth0", "-m", "length", "--length", "1000:65535")


def data_ports(place: Place) -> None:
    """Admit only the port of the rendezvous, as a firewall does that was opened for it alone."""
    ports = "32768:60999"
    place.net.drop(place.rank, "INPUT", "-i", "eth0", "-p", "tcp", "--sport", ports, "--dport", ports)


def forget_name(place: Place) -> None:
    place.net.hosts[place.rank].write_text("127.0.0.1 localhost\n", encoding="utf-8")


def power_off(place: Place) -> None:
    """Let a rank go as with its node: no packet says that it ended."""
    isolate(place)
    os.killpg(place.pids[place.rank], signal.SIGKILL)


def stop(place: Place) -> None:
    os.killpg(place.pids[place.rank], signal.SIGSTOP)


def throttle_rank(place: Place) -> None:
    throttle(place.cgroups["cpu"])
    (place.cgroups["cpu"] / "cgroup.procs").write_text(str(place.pids[place.rank]))


def freeze_rank(place: Place) -> None:
    (place.cgroups["freeze"] / "cgroup.procs").write_text(str(place.pids[place.rank]))
    (place.cgroups["freeze"] / "cgroup.freeze").write_text("1")


FAULTS: dict[str, Callable[[Place], None]] = {
    "cut_one_way": cut_one_way,
    "cut_both_ways": cut_both_ways,
    "isolate": isolate,
    "lossy": lossy,
    "large_packets": large_packets,
    "data_ports": data_ports,
    "forget_name": forget_name,
    "power_off": power_off,
    "stop": stop,
    "throttle": throttle_rank,
    "freeze": freeze_rank,
}


def missing(needs: tuple[str, ...], with_network: bool) -> str | None:
    """Return why a case cannot be run here."""
    if (needs or with_network) and os.geteuid() != 0:
        return "it needs root"
    if with_network and command("ip", "netns", "list", check=False).returncode:
        return "it needs network namespaces"
    for need in needs:
        if need == "fuse" and not Path("/dev/fuse").exists():
            return "it needs /dev/fuse"
        if need in ("cpu", "memory", "freeze") and controller(need) is None:
            return f"it needs cgroups of {need}"
    return None
