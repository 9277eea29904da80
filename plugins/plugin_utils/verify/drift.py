# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What each role would change on a node, in words: the comparison that the roles act on, for verify to fail at.

Pure. Contents of files are never part of the words, as some are secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_text import on_one_line
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import LONGEST
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.verify.comparison import (
    OwnedFile,
    OwnedFileError,
    differences,
    file_is_right,
)

SUB_TAGS = {"hostfile": "deepspeed_launch", "ds_config": "deepspeed_launch"}
"""Tags of parts of a role, and the role."""


@dataclass(frozen=True)
class RoleState:
    """What one role compares: values found and wanted, and the files it owns; or what is planned for it, in words."""

    role: str
    found: Mapping[str, Any]
    wanted: Mapping[str, Any]
    files: Sequence[OwnedFile] = ()
    planned: Sequence[str] = ()


@dataclass(frozen=True)
class RoleDrift:
    """What one role would change; ``what`` is never empty."""

    role: str
    what: tuple[str, ...]

    def sentence(self, host: str) -> str:
        return f"{host}: role {self.role}: {'; '.join(self.what)}. Remedy: ansible-playbook site.yml --tags {self.role}"


def selected(role: str, roles: Iterable[str], run_tags: Sequence[str]) -> bool:
    """Whether a run with these tags compares this role; ``roles`` are those that the tags name as a whole."""
    return role in roles or any(SUB_TAGS.get(tag) == role for tag in run_tags)


def drift(states: Iterable[RoleState], known: Mapping[str, Any], key: str = "") -> list[RoleDrift]:
    """Return what differs, by role in the order given.

    ``known``: files as node_facts found them, those that hold a secret by ``key``.
    """
    collected: dict[str, list[str]] = {}
    for state in states:
        what = list(state.planned)
        what += [
            f"{item.path} is {_shown(item.before)}, wanted is {_shown(item.after)}"
            for item in differences(state.found, state.wanted)
        ]
        what += [words for item in state.files for words in _file_words(item, known.get(item.path), key)]
        if what:
            collected.setdefault(state.role, []).extend(what)
    return [RoleDrift(role, tuple(what)) for role, what in collected.items()]


def _shown(value: Any) -> str:
    return "absent" if value is None else on_one_line(str(value), LONGEST) or "(empty)"


def _file_words(item: OwnedFile, found: Mapping[str, Any] | None, key: str) -> list[str]:
    """Return how one file differs. Raises ``OwnedFileError`` where node_facts was not asked about it."""
    try:
        right = file_is_right(item, dict(found) if found is not None else None, key)
    except OwnedFileError as error:
        # A file of somebody else's, in the place of ours: the role refuses to write it.
        return [str(error).rstrip(".")]
    if right is None:
        raise OwnedFileError(
            f"{item.path}: node_facts was not asked about this file. Add it to files: of the node_facts task."
        )
    if right or found is None:
        return []
    part = f"the block '{item.block}' of {item.path}" if item.block is not None else item.path
    if not item.wanted:
        return [f"{part} is there and should not be"]
    if not found.get("exists"):
        return [f"{part} is missing"]
    if not item.same_text(dict(found), key):
        kind = "is no folder" if item.text is None else "has other content"
        return [f"{part} {kind}"]
    return [
        f"{part} has {name} {found.get(name)}, wanted is {wanted}"
        for name, wanted in (("mode", item.mode), ("owner", item.owner), ("group", item.group))
        if found.get(name) != wanted
    ]
