# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is written into the folder: what is missing, and servers that are new. What is there stays as it is. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from .host_keys import HostKey, is_known, parse_keys
from .inventory import Entry, added
from .servers import KNOWN_HOSTS
from .texts import CLUSTER, VAULT

HOSTS = "hosts.yml"
DECIDED = ("cluster_network_mode", "cluster_underlay_subnet", "cluster_address", "cluster_proxy", "cluster_no_proxy")
"""Variables of the cluster that init decides."""


@dataclass
class Outcome:
    """``write`` has the new text of each file that changes, ``diffs`` the lines by which the others differ."""

    write: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    diffs: list[str] = field(default_factory=list)


def merged(wanted: Mapping[str, str], there: Mapping[str, str]) -> Outcome:
    """Return what becomes of the files with these wanted texts; ``there`` has the texts of those that exist."""
    outcome = Outcome()
    edited = []
    for path, text in wanted.items():
        if path not in there:
            outcome.write[path] = text
        elif path != VAULT and there[path] != text:
            edited.append(path)
            lines = there[path].splitlines(), text.splitlines(), path, f"{path}, as init would write it"
            outcome.diffs += difflib.unified_diff(*lines, n=1, lineterm="")
    if edited:
        outcome.notes.append(
            f"Left as they are, although init would write them differently (--diff shows how): {', '.join(edited)}."
        )
    if CLUSTER in edited:
        outcome.notes += _decisions(there[CLUSTER], wanted[CLUSTER])
    return outcome


def _decisions(there: str, wanted: str) -> Iterator[str]:
    try:
        now, new = (values if isinstance(values, dict) else {} for values in map(yaml.safe_load, (there, wanted)))
    except yaml.YAMLError:
        return
    for name in DECIDED:
        if now.get(name) != new.get(name):
            yield f"{CLUSTER}: {name} is {_words(now, name)}; from these servers init would write {_words(new, name)}."


def _words(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    return (
        "not set" if value in (None, "", []) else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    )


def with_servers(outcome: Outcome, there: str, entries: Sequence[Entry]) -> None:
    """Add hosts to the inventory that is there."""
    if not entries:
        return
    text, by_hand = added(there, entries)
    if by_hand:
        outcome.notes.append(f"{HOSTS} has no group workers of the usual form. Add there by hand:\n{by_hand.rstrip()}")
    else:
        outcome.write[HOSTS] = text


def with_keys(outcome: Outcome, there: str, keys: Sequence[HostKey]) -> None:
    """Add the host keys that the folder's known_hosts lacks."""
    pinned: dict[str, list[HostKey]] = {}
    for key in parse_keys(there):
        pinned.setdefault(key.name, []).append(key)
    new = [key.line for key in keys if not is_known(key, pinned.get(key.name, []))]
    if new:
        separator = "\n" if there and not there.endswith("\n") else ""
        outcome.write[KNOWN_HOSTS] = there + separator + "".join(f"{line}\n" for line in dict.fromkeys(new))
