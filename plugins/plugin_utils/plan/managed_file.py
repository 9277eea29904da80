# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A file that a role owns, and whether it is on a host as it should be."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from ...module_utils.common.digests import keyed_digest


class ManagedFileError(Exception):
    """A file is described wrongly; the text says which, what is wrong, and what to write instead."""


@dataclass(frozen=True)
class ManagedFile:
    """A file, directory or managed block that a role owns. ``content`` None means a directory; mode is octal text.

    With ``mark``, only a file with that text in its first line is the role's: another one there is somebody else's.
    """

    path: str
    content: str | None
    mode: str = "0644"
    owner: int = 0
    group: int = 0
    secret: bool = False
    block: str | None = None
    mark: str | None = None
    state: str = "present"

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise ManagedFileError(f"'{self.path}' is not an absolute path. Write it from the root: /etc/…")
        if not re.fullmatch("[0-7]{4}", self.mode):
            raise ManagedFileError(
                f"{self.path}: mode '{self.mode}' is not four octal digits. Write it as text, in quotes: \"0644\"."
            )

    @property
    def wanted(self) -> bool:
        """Whether it should be there. An empty block counts as none, as blockinfile has it."""
        return self.state == "present" and not (self.block is not None and not self.content)

    @property
    def text(self) -> str | None:
        """The content as it stands on the node: blockinfile ends a block's last line."""
        if self.block is not None and self.content and not self.content.endswith("\n"):
            return self.content + "\n"
        return self.content

    @property
    def sha256(self) -> str | None:
        """Of the text; None of a directory."""
        return None if self.text is None else hashlib.sha256(self.text.encode()).hexdigest()

    def same_text(self, found: dict[str, Any], key: str) -> bool:
        """Whether node_facts found this text. A directory has no digest, so a file where one should be differs."""
        if found.get("keyed"):
            return self.text is not None and found.get("sha256") == keyed_digest(self.text.encode(), key)
        return bool(found.get("sha256") == self.sha256)


def file_is_right(item: ManagedFile, found: dict[str, Any] | None, key: str = "") -> bool | None:
    """Tell whether a file is as wanted, by what node_facts found; None when node_facts was not asked for it.

    ``key`` is the one by which node_facts has digested files that hold a secret.

    Somebody else's file is right where none of this collection's is wanted, and ManagedFileError where one is.
    """
    if found is None:
        return None
    if item.mark is not None and found.get("exists") and not found.get("marked"):
        if item.wanted:
            raise ManagedFileError(
                f"{item.path} exists, but this collection did not create it: its first line does not contain "
                f"'{item.mark}'. It was left unchanged. Add the settings to it yourself and unset the variables for "
                "it, or move it away."
            )
        return True
    if not item.wanted:
        return not found.get("exists")
    if not found.get("exists") or not item.same_text(found, key):
        return False
    if item.block is not None:
        return True  # the rest of the file, and its mode, belong to somebody else
    return (found.get("mode"), found.get("owner"), found.get("group")) == (item.mode, item.owner, item.group)


def file_diff(item: ManagedFile, found: dict[str, Any], key: str = "") -> dict[str, str]:
    """Return Ansible's diff of one file; a secret's content is never part of it."""
    exists = bool(found.get("exists"))
    if item.content is None or (exists and item.wanted and item.same_text(found, key)):
        before = _attributes(found["sha256"], found["mode"], found["owner"], found["group"]) if exists else "absent\n"
        after = _attributes(item.sha256, item.mode, item.owner, item.group) if item.wanted else "absent\n"
    elif item.secret:
        before = "(a secret)\n" if exists else ""
        after = "(another secret)\n" if item.wanted else ""
    else:
        known = found.get("content")
        shown = "(a secret)\n" if found.get("keyed") else f"(SHA-256 {found.get('sha256')})\n"
        before = (shown if known is None else str(known)) if exists else ""
        after = str(item.text) if item.wanted else ""
    return {"before": before, "after": after, "before_header": item.path, "after_header": item.path}


def _attributes(digest: str | None, mode: str, owner: int, group: int) -> str:
    return f"{'directory' if digest is None else 'file'}, mode {mode}, owner {owner}, group {group}\n"
