# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a node's own administrator, or a power cut, does to its files, packages and firewall."""

from __future__ import annotations

from tests.chaos.faults.base import Attempt, Fault
from tests.chaos.scripts import ETC, STAND_IN

# A stand-in for a package that a power cut has left unpacked and not configured.
HALF_CONFIGURED = f"""
place=$(mktemp -d)
mkdir -p "$place/package/DEBIAN"
printf 'Package: {STAND_IN}\\nVersion: 1\\nArchitecture: all\\nMaintainer: Nobody <nobody@example.com>\\n' \
    >"$place/package/DEBIAN/control"
printf 'Description: unpacked and not configured\\n' >>"$place/package/DEBIAN/control"
dpkg-deb --build --root-owner-group "$place/package" "$place/package.deb" >/dev/null
dpkg --unpack "$place/package.deb" >/dev/null 2>&1
rm -rf "$place"
dpkg --audit | grep -q {STAND_IN}
"""
# As a file system leaves it that was not synced: the first half.
HALF_HOSTS = "size=$(stat -c %s /etc/hosts); truncate -s $((size / 2)) /etc/hosts"
KEY = f"{ETC}/ssh/id_ed25519"
NEW_KEY = f"""
rm -f {KEY} {KEY}.pub
ssh-keygen -q -t ed25519 -N '' -C 'not the cluster' -f {KEY}
"""
FLUSH = "for table in filter nat mangle; do iptables --wait --table $table --flush; done"


def dpkg_interrupted(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, HALF_CONFIGURED)


def still_interrupted(attempt: Attempt) -> str:
    found = attempt.lab.run(attempt.target, "dpkg --audit").strip()
    return f"dpkg --audit on {attempt.target}: {found.splitlines()[0]}" if found else ""


def package_gone(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, f"dpkg --purge {STAND_IN} >/dev/null 2>&1")


def hosts_mangled(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, HALF_HOSTS)


def names_lost(attempt: Attempt) -> str:
    others = [name for name in attempt.lab.nodes if name != attempt.target]
    script = "\n".join(f"getent hosts {name} >/dev/null || echo {name}" for name in others)
    lost = attempt.lab.run(attempt.target, script).split()
    return f"{attempt.target} does not know {', '.join(lost)}" if lost else ""


def key_replaced(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, NEW_KEY)


def keys_differ(attempt: Attempt) -> str:
    keys = {attempt.lab.run(name, f"sha256sum <{KEY}") for name in attempt.lab.nodes}
    return "" if len(keys) == 1 else "the nodes have different keys"


def firewall_flushed(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, FLUSH)


NODE = (
    Fault(
        "dpkg-interrupted",
        "dpkg interrupted on a node (a package left half-configured stands in)",
        dpkg_interrupted,
        refusal=r"dpkg",
        left=still_interrupted,
        undo=package_gone,
    ),
    Fault("hosts-mangled", "the second half of a node's `/etc/hosts` lost", hosts_mangled, left=names_lost),
    Fault("key-replaced", "a node's copy of the cluster's key replaced by another", key_replaced, left=keys_differ),
    Fault("firewall-flushed", "all rules of a node's packet filter removed", firewall_flushed),
)
