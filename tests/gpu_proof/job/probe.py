# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a machine has for servers with an engine of their own: kernel, namespaces, file systems, networks, programs.

Usage: python3 probe.py RESULT.json. Every question runs in mount and network namespaces of its own, so nothing stays.
Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SECONDS = 5.0
_IN = ["unshare", "--mount", "--net", "--ipc", "--uts", "--propagation", "private", "sh", "-ec"]
QUESTIONS = {
    "overlay": "mount -t tmpfs t /mnt; mkdir /mnt/l /mnt/u /mnt/w /mnt/m; "
    "mount -t overlay o -o lowerdir=/mnt/l,upperdir=/mnt/u,workdir=/mnt/w /mnt/m",
    "overlay_over_root": "mount -t tmpfs t /mnt; mkdir /mnt/u /mnt/w /mnt/m; "
    "mount -t overlay o -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/m; test -x /mnt/m/usr/bin/env",
    "bind": "mkdir -p /tmp/probe-bind; mount --bind /usr /tmp/probe-bind",
    "pivot_root": "mount -t tmpfs t /mnt; mkdir /mnt/n; mount --bind / /mnt/n; mkdir -p /mnt/n/tmp/probe-old; "
    "cd /mnt/n; pivot_root . tmp/probe-old",
    "pid_namespace": "unshare --pid --fork --mount-proc true",
    "cgroup_namespace": "unshare --cgroup true",
    "user_namespace": "unshare --user --map-root-user true",
    "cgroup2": "mount -t cgroup2 c /mnt; cat /mnt/cgroup.controllers",
    "cgroup2_write": "mount -t cgroup2 c /mnt; mkdir /mnt/swarmspeed-probe; rmdir /mnt/swarmspeed-probe",
    "sysfs": "mount -t sysfs s /mnt",
    "mqueue": "mount -t mqueue m /mnt",
    "bpf": "mount -t bpf b /mnt",
    "devpts": "mount -t devpts d /mnt -o newinstance",
    "dummy": "ip link add d0 type dummy",
    "bridge": "ip link add b0 type bridge",
    "veth": "ip link add v0 type veth peer name v1",
    "vxlan": "ip link add x0 type vxlan id 7 dstport 4789 dev lo",
    "ipvs": "test -e /proc/net/ip_vs",
    "nft": "nft add table inet probe; nft add chain inet probe c '{ type nat hook postrouting priority 100; }'; "
    "nft add rule inet probe c masquerade",
    "iptables_nft": "iptables-nft -t nat -A POSTROUTING -j MASQUERADE",
    "iptables_legacy": "iptables-legacy -t nat -A POSTROUTING -j MASQUERADE",
    "mknod": "mount -t tmpfs t /mnt; mknod /mnt/null c 1 3; echo x >/mnt/null",
    "forwarding": "echo 1 >/proc/sys/net/ipv4/ip_forward",
}
"""Shell commands, run by root; the last line of an error is kept."""
PROGRAMS = (
    "systemd", "systemctl", "dockerd", "containerd", "runc", "crun", "podman", "sshd", "ip", "nft", "iptables",
    "modprobe", "nvidia-smi", "nvidia-persistenced", "nvidia-modprobe", "nvcc", "apt-get", "dpkg", "dbus-daemon",
    "udevadm",
)  # fmt: skip


def answer(command: str) -> str:
    """Return why it does not work; empty where it does."""
    try:
        done = subprocess.run(
            [*_IN, command], capture_output=True, text=True, errors="replace", check=False, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    if not done.returncode:
        return ""
    reported = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return re.sub(r"/[\w./-]+", "…", reported)[:200]


def text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"


def main(result: str) -> None:
    status = dict(line.split(":", 1) for line in text("/proc/self/status").splitlines() if ":" in line)
    mounted = [line.split()[1:3] for line in text("/proc/mounts").splitlines()]
    libraries = {path for base in ("/usr", "/lib", "/opt") for path in Path(base).rglob("libcuda.so.*")}
    found = {
        "kernel": os.uname().release,
        "file_systems": [line.split()[-1] for line in text("/proc/filesystems").splitlines()],
        "root": next((kind for place, kind in mounted if place == "/"), ""),
        "cgroup": next((kind for place, kind in mounted if place == "/sys/fs/cgroup"), ""),
        "capabilities": status.get("CapEff", "").strip(),
        "seccomp": status.get("Seccomp", "").strip(),
        "init": text("/proc/1/comm"),
        "driver": text("/proc/driver/nvidia/version").splitlines()[:1],
        "devices": sorted(
            f"{path} {os.major(path.stat().st_rdev)}:{os.minor(path.stat().st_rdev)}"
            for path in Path("/dev").rglob("nvidia*")
            if path.is_char_device()
        ),
        "libcuda": sorted({path.name for path in libraries}),
        "programs": [name for name in PROGRAMS if shutil.which(name)],
        "lacks": {name: why for name, command in QUESTIONS.items() if (why := answer(command))},
    }
    Path(result).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
