# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the tests of gpu_host and driver_packages share: hosts whose GPUs are stand-ins (molecule/gpu_host/stand_in)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.playbook_run import ROOT, Run, environment, lab_inventory, on, playbook, variables

PAIR = ("lab1", "lab2")
"""Debian 12 and Debian 13. A lab may have more nodes; these two are the cluster here."""

MACHINES = {"lab1": "h100", "lab2": "v100"}
"""Eight H100 with NVSwitches: both kernel modules, a fabric manager. A V100: the proprietary module, 580 at most."""

STAND_IN = "/opt/swarmspeed-stand-in"
REPOSITORY = "/srv/swarmspeed-stand-in-repository"
SERVER = "swarmspeed-stand-in-repository.service"
PORT = 8377
TAGS = "host,nvidia_driver,docker,nvidia_container_toolkit"

_SNAPSHOT = rf"""
exec 2>/dev/null
dpkg-query -W -f '${{db:Status-Abbrev}} ${{Package}} ${{Version}}\n' | grep -v '^.n'
find /etc/apt /etc/docker /etc/modprobe.d /etc/systemd/system /var/lib/swarmspeed {STAND_IN}/proc {STAND_IN}/sys \
  -path '*/docker/key.json' -prune -o -type f -printf '%p %m ' -exec sha256sum '{{}}' ';'
find /lib/modules/ /etc/systemd/system -printf '%p %l\n'
systemctl show docker.service nvidia-persistenced.service nvidia-fabricmanager.service \
  --property=Id,ActiveState,ActiveEnterTimestamp
"""


@cache
def address() -> str:
    """Return where the stand-in for NVIDIA's repositories is served."""
    return f"http://{lab_inventory()['_meta']['hostvars']['lab1']['ansible_host']}:{PORT}"


def key(name: str = "key") -> str:
    """Return the public key that signs the repositories, or with ``other`` one that does not."""
    return f"{on('lab1', f'cat {REPOSITORY}/{name}.asc')}\n"


@cache
def wanted() -> dict[str, Any]:
    """Return the variables of a user who has a mirror of NVIDIA's repositories, and where the stand-ins are."""
    return {
        "preflight_sysfs_root": f"{STAND_IN}/sys",
        "preflight_proc_root": f"{STAND_IN}/proc",
        "preflight_min_free_gib": 1,
        "nvidia_driver_source": "cuda_repository",
        "nvidia_driver_repository_url": f"{address()}/compute/cuda/repos",
        "nvidia_driver_repository_key": key(),
        "nvidia_container_toolkit_repository_url": f"{address()}/libnvidia-container/stable/deb",
        "nvidia_container_toolkit_repository_key": key(),
    }


@cache
def inventory(hosts: tuple[str, ...] = PAIR) -> Path:
    """Write an inventory in which these nodes are the cluster, the first its manager."""
    known = lab_inventory()["_meta"]["hostvars"]
    groups = {
        "managers": {"hosts": {hosts[0]: known[hosts[0]]}},
        "workers": {"hosts": {name: known[name] for name in hosts[1:]}},
    }
    path = Path(tempfile.mkdtemp(prefix="gpu_host")) / "hosts.json"
    path.write_text(json.dumps({"cluster": {"vars": wanted(), "children": groups}}), encoding="utf-8")
    return path


def gpu(
    name: str,
    *arguments: str,
    hosts: tuple[str, ...] = PAIR,
    tags: str = TAGS,
    timeout: float = 900,
    **values: Any,
) -> Run:
    """Run a playbook on the GPU hosts, by default up to the container toolkit."""
    chosen = ("--tags", tags) if tags else ()
    return playbook(name, *chosen, *arguments, *variables(**values), inventory=inventory(hosts), timeout=timeout)


def driver(host: str, *arguments: str, **values: Any) -> Run:
    """Run the role nvidia_driver alone on one host alone."""
    return gpu("site", *arguments, hosts=(host,), tags="nvidia_driver", **values)


def roles_changed(run: Run) -> set[tuple[str, str]]:
    """Return which host and role a run changed, from its output."""
    found = set()
    for task in re.split(r"^TASK \[", run.output, flags=re.MULTILINE)[1:]:
        role = re.match(r"swarmspeed\.cluster\.(\w+) : ", task)
        if role:
            found |= {(host, role[1]) for host in re.findall(r"^changed: \[([^\]]+)\]", task, re.MULTILINE)}
    return found


def module(host: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Run one module on a node, as ``ansible`` does; return its result, with ``failed`` where it failed."""
    answer = subprocess.run(
        [
            str(Path(sys.executable).with_name("ansible")),
            *(host, "--inventory", str(inventory((host,))), "-m", f"swarmspeed.cluster.{name}"),
            *("-a", json.dumps(arguments)),
        ],
        cwd=ROOT,
        env={**environment(), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    head, dummy, tail = answer.stdout.partition(" => ")
    assert tail, answer.stdout + answer.stderr
    result: dict[str, Any] = json.loads(tail)
    assert "Traceback" not in answer.stdout + answer.stderr
    return {**result, "failed": "FAILED" in head}


def be(host: str, machine: str | None = None, *flags: str) -> None:
    """Give a node another machine's PCI devices and recordings. No driver is loaded then."""
    on(host, f"{STAND_IN}/bin/machine.py {machine or MACHINES[host]} {' '.join(flags)}")


@contextmanager
def condition(host: str, begin: str, end: str) -> Iterator[None]:
    """Make something true on a node for a while."""
    on(host, f"set -e\n{begin}")
    try:
        yield
    finally:
        on(host, f"set -e\n{end}")


def publish(state: str) -> None:
    """Have the repositories offer what is in their ``first`` or ``second`` state."""
    # apt asks whether an index is newer than the one it has.
    touch = f"find -L {REPOSITORY}/{state} -name InRelease -o -name Packages | xargs touch"
    on("lab1", f"ln -sfn {state} {REPOSITORY}/www && {touch} && systemctl restart {SERVER}")
    on(
        "lab1",
        f"for try in 1 2 3 4 5 6 7 8; do ss -Hlnt 'sport = :{PORT}' | grep -q . && exit; sleep 0.3; done; exit 1",
    )


def state_of(*hosts: str) -> set[str]:
    """Return what a run about drivers, engines and toolkits may change: packages, files, modules, services."""
    taken = {f"{host}: {line}" for host in hosts for line in on(host, _SNAPSHOT).splitlines()}
    # An empty one would be equal to any other empty one.
    assert all(any(line.startswith(f"{host}: ii  dpkg ") for line in taken) for host in hosts)
    return taken


def versions(host: str, pattern: str = "*nvidia*") -> dict[str, str]:
    """Return the versions of the installed packages whose names match."""
    listed = on(
        host, f"dpkg-query -W -f '${{db:Status-Abbrev}} ${{Package}} ${{Version}}\\n' '{pattern}' 2>/dev/null; true"
    )
    rows = [line.split() for line in listed.splitlines()]
    return {row[1]: row[2] for row in rows if len(row) == 3 and row[0][1:2] == "i"}


def held(host: str) -> set[str]:
    return set(on(host, "apt-mark showhold").split())


def sound(host: str) -> None:
    """Assert that apt and dpkg of a node have nothing unfinished."""
    assert on(host, "dpkg --audit") == ""
    on(host, "apt-get check")


def begin_with_the_first() -> None:
    """Have both nodes run the first version by the collection's hand, and nothing else of a driver."""
    publish("first")
    expected = {"lab1": "nvidia-kernel-open-dkms", "lab2": "nvidia-kernel-dkms"}
    for host, name in expected.items():
        found = {versions(host).get(name) for name in (name, "nvidia-driver-cuda")}
        if found != {"580.95.05-1"} or name not in held(host):
            purge(host)
            be(host)
    gpu("site").done(nodes=PAIR)


def purge(host: str) -> None:
    """Have a node be as it was before any driver, by its owner's hand."""
    on(
        host,
        "export DEBIAN_FRONTEND=noninteractive; rm -f /opt/swarmspeed-stand-in/fail-build; "
        "names=$(dpkg-query -W -f '${Package}\\n' '*nvidia*' dkms 'linux-headers-*' 2>/dev/null); "
        '[ -z "$names" ] || apt-get -qq purge -y --allow-change-held-packages $names >/dev/null; '
        "rm -f /etc/apt/preferences.d/swarmspeed-* /etc/apt/apt.conf.d/52swarmspeed-nvidia* "
        "/etc/apt/sources.list.d/swarmspeed-nvidia*.sources /etc/modprobe.d/swarmspeed-nvidia.conf; apt-get -qq update",
    )
