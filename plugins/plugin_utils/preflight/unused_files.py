# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files in group_vars and host_vars whose group or host is not in the inventory: what they set applies to nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from ..core.problems import Problem, listing
from ..core.role_specs import GENERIC_PREFIXES, RoleSpecs
from .inventory import Inventory

ENDINGS = (".yml", ".yaml", ".json", "")
"""Of files that Ansible reads there: YAML_FILENAME_EXTENSIONS, and none."""
OUR_GROUPS = ("cluster", "managers", "workers", "bundle")
"""Groups that the playbooks know; one that lacks a host today has its variables ready for tomorrow."""
VAULT = "$ANSIBLE_VAULT"
DEEPEST = 5
_KEY = re.compile(r"""^[ \t{,]*["']?([A-Za-z_]\w*)["']?[ \t]*:""", re.M)


def check_unused_files(inventory: Inventory) -> Iterator[Problem]:
    """Every file that sets variables of this collection belongs to a group or a host of the inventory."""
    groups = {*OUR_GROUPS, *(str(name) for name in inventory.groups)}
    hosts = {"localhost", *(host for name in inventory.groups for host in inventory.members(str(name)))}
    for folder in inventory.folders:
        for kind, known in (("group", groups), ("host", hosts)):
            for name in inventory.listed(f"{folder}/{kind}_vars"):
                path = f"{folder}/{kind}_vars/{name}"
                owner = _owner(name, inventory.kind(path))
                if owner and owner not in known and _concerns_us(path, inventory):
                    near = difflib.get_close_matches(owner, sorted(known), n=1)
                    yield Problem(
                        path,
                        f"applies to nothing, as there is no {kind} {owner} in the inventory",
                        (f"did you mean the {kind} {near[0]}? " if near else "")
                        + f"Rename it after one of the {kind}s {listing(_offered(known))}, or remove it",
                        fatal=False,
                    )


def _owner(name: str, kind: str | None) -> str:
    """Return whose variables a file or folder has; empty for what Ansible passes over."""
    if name.startswith(".") or name.endswith("~"):
        return ""
    if kind == "directory":
        return name
    stem, dot, ending = name.rpartition(".")
    return (stem if dot else name) if (f".{ending}" if dot else "") in ENDINGS else ""


def _concerns_us(path: str, inventory: Inventory, depth: int = 0) -> bool:
    """Whether it sets one of the collection's variables, or may, as it is encrypted."""
    if inventory.kind(path) == "directory":
        below = [f"{path}/{name}" for name in inventory.listed(path) if _owner(name, inventory.kind(f"{path}/{name}"))]
        return depth < DEEPEST and any(_concerns_us(one, inventory, depth + 1) for one in below)
    content = inventory.text(path)
    return content.startswith(VAULT) or any(_ours(name, inventory.specs) for name in _KEY.findall(content))


def _ours(name: str, specs: RoleSpecs | None) -> bool:
    if specs is None:
        return False
    prefix = specs.prefix(name)
    return name in specs.options or (prefix is not None and prefix not in GENERIC_PREFIXES)


def _offered(known: set[str]) -> list[str]:
    return sorted(known - {"all", "ungrouped", "localhost"})
