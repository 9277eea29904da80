# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Servers with an engine of their own, on one machine: Debian 13 with systemd in namespaces, started by runc.

A **stand-in** for servers: kernel, driver and GPU are the machine's and shared, all else is a server's own: init, file
system, network, engine. A machine with a GPU may have no engine and no package index, so Debian is brought along
(``machines_build.py``). Needs root and what ``job/probe.py`` asks for.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tarfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gpu_proof.parts import Failed
from tests.gpu_proof.paths import CACHE

BROUGHT = CACHE / "machine"
"""What ``machines_build.py`` leaves, and travels."""
PLACE = Path("/var/tmp/swarmspeed-proof")
ROOT = PLACE / "root"
NETWORK = "198.18.78"
"""Addresses for tests of networks (RFC 2544)."""
_CABLE = "swsproof0"
DRIVER = Path("/usr/local/nvidia")
"""Where images of clouds keep a driver's programs and libraries that belong to no package."""
_UP = 60.0
_CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP"),
    *("LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER"),
    *("SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE"),
    *("SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP"),
    *("MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF"),
    "CHECKPOINT_RESTORE",
)
"""By number (capabilities(7))."""


@dataclass(frozen=True)
class Machine:
    """One server."""

    name: str
    number: int

    @property
    def address(self) -> str:
        """Its address on the network of both."""
        return f"{NETWORK}.{self.number}"

    @property
    def folder(self) -> Path:
        """Where its files are on the machine below."""
        return PLACE / self.name

    @property
    def merged(self) -> Path:
        """Its root."""
        return self.folder / "merged"

    @property
    def container(self) -> str:
        """How runc calls it."""
        return f"swarmspeed-proof-{self.name}"

    @property
    def pid(self) -> int:
        """Its init, seen from below. Raises Failed where it does not run."""
        state = done([*runc(), "state", self.container])
        if state.returncode:
            raise Failed(f"{self.name} does not run: {last(state.stderr)}")
        return int(json.loads(state.stdout)["pid"])

    def run(self, command: Sequence[str] | str, limit: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command inside, a text by its shell."""
        words = ["sh", "-ec", command] if isinstance(command, str) else list(command)
        return done(["nsenter", "--all", f"--target={self.pid}", *words], limit)


MACHINES = (Machine("gpu1", 1), Machine("gpu2", 2))


def done(command: Sequence[str], limit: float = 60.0) -> subprocess.CompletedProcess[str]:
    """Run a command; a time that ran out reads as status 124."""
    given: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "stdin": subprocess.DEVNULL}
    try:
        return subprocess.run(command, check=False, timeout=limit, **given)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"took longer than {limit:.0f} s")


def must(command: Sequence[str], limit: float = 60.0) -> str:
    """Run a command; return what it printed. Raises Failed."""
    ran = done(command, limit)
    if ran.returncode:
        raise Failed(f"{' '.join(command)[:120]}: {last(ran.stderr or ran.stdout)}")
    return ran.stdout


def last(text: str) -> str:
    """Return the last line of what was printed."""
    return (text.strip().splitlines() or ["it printed nothing"])[-1][:300]


def runc() -> list[str]:
    """Return what a command of runc begins with: Debian 12's, which runs with any C library from there on."""
    return ["env", f"LD_LIBRARY_PATH={BROUGHT}", str(BROUGHT / "runc"), "--root", "/run/swarmspeed-proof"]


def unpack() -> None:
    """Unpack Debian once; all servers share it below their own files."""
    if (ROOT / "usr/sbin/dockerd").exists():
        return
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir(parents=True)
    parts = sorted(BROUGHT.glob("node.tar.xz.*"))
    if not parts:
        raise Failed(f"{BROUGHT.name} has no node.tar.xz.*")
    whole = PLACE / "node.tar.xz"
    with whole.open("wb") as target:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, target)
    with tarfile.open(whole, "r:xz") as tar:
        tar.extractall(ROOT, filter="fully_trusted")
    whole.unlink()


def start(machine: Machine, devices: Sequence[Path]) -> None:
    """Start a server with these devices. Raises Failed."""
    for name in ("upper", "work", "merged", "docker", "containerd"):
        (machine.folder / name).mkdir(parents=True, exist_ok=True)
    layers = f"lowerdir={ROOT},upperdir={machine.folder}/upper,workdir={machine.folder}/work"
    must(["mount", "-t", "overlay", "swarmspeed-proof", "-o", layers, str(machine.merged)])
    for name, text in files(machine):
        path = machine.merged / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if DRIVER.is_dir():
        for program in (DRIVER / "bin").iterdir():
            (machine.merged / "usr/bin" / program.name).symlink_to(program)
    config = machine.folder / "config.json"
    config.write_text(json.dumps(description(machine, devices, DRIVER.is_dir())), encoding="utf-8")
    must([*runc(), "run", "--detach", "--bundle", str(machine.folder), machine.container])


def wait(machine: Machine) -> None:
    """Wait until the systemd of a server has started everything. Raises Failed."""
    end, state = time.monotonic() + _UP, ""
    while time.monotonic() < end:
        state = machine.run(["systemctl", "is-system-running"]).stdout.strip()
        if state in ("running", "degraded"):
            return
        time.sleep(0.5)
    raise Failed(f"systemd of {machine.name} is {state or 'silent'} after {_UP:.0f} s")


def files(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield files of a server that differ from what Debian has."""
    yield "/etc/hostname", f"{machine.name}\n"
    names = "".join(f"{other.address} {other.name}\n" for other in MACHINES)
    yield "/etc/hosts", f"127.0.0.1 localhost\n{names}"
    yield "/etc/resolv.conf", ""
    yield "/etc/machine-id", f"{machine.number:032x}\n"
    yield "/etc/ld.so.conf.d/nvidia.conf", f"{DRIVER}/lib64\n"


def description(machine: Machine, devices: Sequence[Path], driver: bool) -> dict[str, Any]:
    """Return runc's description of a server: what --privileged would give, in namespaces of its own."""

    def mounted(place: str, kind: str, *options: str) -> dict[str, Any]:
        return {"destination": place, "type": kind, "source": kind, "options": list(options)}

    def bound(place: str, source: Path, *options: str) -> dict[str, Any]:
        return {"destination": place, "type": "bind", "source": str(source), "options": ["rbind", *options]}

    every = [f"CAP_{name}" for name in held_capabilities()]
    mounts = [
        mounted("/proc", "proc"),
        mounted("/sys", "sysfs"),
        mounted("/sys/fs/cgroup", "cgroup"),
        mounted("/dev", "tmpfs", "nosuid", "mode=755"),
        mounted("/dev/pts", "devpts", "newinstance", "ptmxmode=0666"),
        mounted("/dev/mqueue", "mqueue"),
        mounted("/dev/shm", "tmpfs", "size=8g"),
        *(mounted(path, "tmpfs", "mode=755") for path in ("/run", "/run/lock")),
        mounted("/tmp", "tmpfs", "mode=1777"),
        # an engine's layers cannot lie on an overlay
        *(bound(f"/var/lib/{name}", machine.folder / name, "rw") for name in ("docker", "containerd")),
        *([bound(str(DRIVER), DRIVER, "ro")] if driver else []),
    ]
    return {
        "ociVersion": "1.0.2",
        "hostname": machine.name,
        "root": {"path": str(machine.merged)},
        "mounts": mounts,
        "process": {
            "user": {"uid": 0, "gid": 0},
            "cwd": "/",
            "args": ["/usr/local/sbin/lab-init"],
            "env": [
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "container=oci",
                "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1",
            ],
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), every),
        },
        "linux": {
            "namespaces": [{"type": name} for name in ("pid", "network", "ipc", "uts", "mount", "cgroup")],
            "cgroupsPath": f"/{machine.container}",
            "resources": {"devices": [{"allow": True, "access": "rwm"}]},
            "devices": [device(path) for path in devices],
        },
    }


def device(path: Path) -> dict[str, Any]:
    """Return runc's description of a device of this machine."""
    found = path.stat()
    if not stat.S_ISCHR(found.st_mode):
        raise Failed(f"{path} is no character device")
    numbers = {"major": os.major(found.st_rdev), "minor": os.minor(found.st_rdev)}
    return {"path": str(path), "type": "c", **numbers, "fileMode": 0o666, "uid": 0, "gid": 0}


def held_capabilities() -> list[str]:
    """Return the capabilities that this machine's root has."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    bounds = int(next((line.split()[1] for line in lines if line.startswith("CapBnd:")), "0"), 16)
    return [name for number, name in enumerate(_CAPABILITIES) if bounds >> number & 1]


def joining(first: int, second: int) -> Iterator[list[str]]:
    """Yield what joins two servers, by the pids of their inits: one cable, as a firewall of this machine has no say."""
    # Debian's ip, as the machine may have none
    ip = ["chroot", str(ROOT), "ip"]
    yield [*ip, "link", "add", _CABLE, "type", "veth", "peer", "name", f"{_CABLE}p"]
    for machine, pid, end in zip(MACHINES, (first, second), (_CABLE, f"{_CABLE}p"), strict=True):
        # ip looks a pid up in /proc, which Debian's root here has none of
        inside = ["nsenter", f"--target={pid}", "--net", *ip]
        yield [
            "sh",
            "-ec",
            f"mount -t proc proc {ROOT}/proc; {' '.join(ip)} link set {end} netns {pid}; umount {ROOT}/proc",
        ]
        yield [*inside, "link", "set", end, "name", "eth0"]
        yield [*inside, "addr", "add", f"{machine.address}/24", "dev", "eth0"]
        for interface in ("lo", "eth0"):
            yield [*inside, "link", "set", interface, "up"]


def remove() -> None:
    """End the servers and take away what they had; the unpacked Debian stays."""
    for machine in MACHINES:
        done([*runc(), "delete", "--force", machine.container])
        done(["umount", "--recursive", str(machine.merged)])
        done(["umount", "--recursive", "--lazy", str(machine.merged)])
        if not os.path.ismount(machine.merged):
            shutil.rmtree(machine.folder, ignore_errors=True)
    done(["chroot", str(ROOT), "ip", "link", "del", _CABLE])
