# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What an engine says when it refuses something about a swarm, and what to do about it, without tokens."""

from __future__ import annotations

import ipaddress
import re

from .state import SwarmError

_CONTINUES = " The attempt to join the swarm will continue in the background"  # not so: it is taken back here
_SECRET = re.compile(r"SWM(?:TKN|KEY)-[0-9A-Za-z+/=-]+")

_HERE, _MANAGER = "ADDRESS-OF-THIS-HOST", "ADDRESS-OF-A-MANAGER"
"""Stand in a remedy for addresses where those are not known."""

# The first that fits counts. Texts of moby's daemon/cluster and swarmkit, seen on engine 20.10.24; those about
# certificates and br_netfilter after classicswarm#2726, docker/for-linux#400 and moby#48948.
_REMEDIES = (
    (
        "x509: certificate has expired or is not yet valid",
        "compare `date -u` on this host and on the managers, and where it is wrong run `timedatectl set-ntp true`; if "
        "the clocks agree, `journalctl -u docker | grep -i certificate` on the managers names the certificate that has "
        "expired.",
    ),
    (
        # Before what follows in the same line, which is of the connection back, not of the one to the manager.
        "could not connect to prospective new cluster member using its advertised address",
        "the managers do not reach this host: open its port 2377/tcp to them, so that `nc -zv ADDRESS-OF-THIS-HOST "
        "2377` succeeds on a manager, or set advertise_addr (role swarm: swarm_advertise_address) to an address of "
        "this host that they reach.",
    ),
    (
        "br_netfilter",
        "run `modprobe br_netfilter` on this host, and `echo br_netfilter >/etc/modules-load.d/br_netfilter.conf` for "
        "the next boot; if there is no such module, install the modules of the running kernel, or boot the newest one.",
    ),
    ("permission denied", "run the task as root (become: true), or as a user who may use the engine's socket."),
    ("no answer from the Docker engine", "check that Docker is installed and running; the role docker does both."),
    ("live-restore", "take live-restore out of /etc/docker/daemon.json and restart the engine."),
    ("firewall-backend", 'set "firewall-backend": "iptables" in /etc/docker/daemon.json and restart the engine.'),
    (
        "could not choose an IP address",
        "set advertise_addr to the address by which others reach this host, which has several.",
    ),
    ("must specify a listening address", "set listen_addr to an address of this host, as advertise_addr is none."),
    ("advertise address must be", "set advertise_addr to an IP address or an interface of this host."),
    ("listen address must be", "set listen_addr to an IP address or an interface of this host, with port 2377."),
    ("join token", "take the present token from a manager (return_tokens: true), as this one is wrong or was rotated."),
    ("remote CA does not match", "take the token from a manager of this swarm, as this one is of another."),
    ("already part of a swarm", "run again to see into which swarm something else has put this host meanwhile."),
    (
        "connection refused",
        "check that that host is a manager whose engine runs, and that its port 2377/tcp is open to this host.",
    ),
    ("no route to host", "open port 2377/tcp to this host on the managers, and check the route."),
    ("network is unreachable", "give this host a route to the managers: `ip route get ADDRESS-OF-A-MANAGER`."),
    (
        "Timeout was reached",
        "check that this is the managers' address, and that their port 2377/tcp is open to this host.",
    ),
    ("does not have a leader", "start the engines of the other managers: more than half must run."),
    (
        "context deadline exceeded",
        "see that `docker node ls` on a manager lists a leader, and that `nc -zv ADDRESS-OF-A-MANAGER 2377` succeeds "
        "on this host; then run again.",
    ),
    ("address already in use", "stop what listens on port 2377 of this host, or set listen_addr."),
    ("not down and can't be removed", "take that node's host out of the swarm first, as it still answers."),
)
_UNKNOWN = "see journalctl -u docker on this host, and run again."


def redact(text: str) -> str:
    """The text without join tokens and unlock keys."""
    return _SECRET.sub("(hidden)", text)


def known_remedy(text: str, here: str = "", manager: str = "") -> str:
    """What to do about an engine's text, empty where that is not known.

    ``here`` and ``manager`` are addresses, with a port or without; a name of an interface is none.
    """
    remedy = next((remedy for part, remedy in _REMEDIES if part.lower() in text.lower()), "")
    for placeholder, address in ((_HERE, here), (_MANAGER, manager)):
        remedy = remedy.replace(placeholder, _ip(address) or placeholder)
    return remedy


def explain(doing: str, error: Exception, remedy: str = "", *, here: str = "", manager: str = "") -> SwarmError:
    """One text: what failed, the engine's own words, and the remedy, by what the engine says unless it is given."""
    text = redact(str(error)).split(_CONTINUES)[0]
    remedy = remedy or known_remedy(text, here, manager) or _UNKNOWN
    return SwarmError(f"Cannot {doing}: {text.strip().rstrip('.')}. Remedy: {remedy}")


def _ip(address: str) -> str:
    for text in (address, address.rpartition(":")[0].strip("[]")):
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            continue
    return ""
