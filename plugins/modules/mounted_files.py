#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files in a folder that is mounted into containers."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mounted_files
short_description: Write files into a folder that containers can write
version_added: 0.1.0
description:
  - Writes files, and unpacks an archive, below a folder that is mounted into containers, such as the workspace.
  - Root in a container can replace a file or folder there with a link at any moment. Every path component is therefore
    opened by the handle of its parent folder, no link is followed, and a file is replaced by renaming a new one. A link
    in place of a file is replaced. A link in place of a folder is an error, and nothing is written through it.
options:
  root: {type: path, required: true, description: "The folder. It must exist unless only O(absent) is given, and its own
      path is not checked."}
  archive: {type: path, description: "A tar archive on this host to unpack below O(root), of plain files and folders
      with relative paths. Files that are only in O(root) stay. It should be where no container can write."}
  whole: {type: str, description: "Folder below O(root) that is to hold the files of O(archive) and nothing else. It
      appears whole, by renaming a new one; what had its name before is removed. Without it, O(archive) is unpacked into
      O(root)."}
  absent:
    type: list
    elements: dict
    default: []
    description: What is removed below O(root), and folders that are empty then. No link is followed.
    suboptions:
      path: {type: str, required: true, description: "Path relative to O(root), of a file or a folder."}
      sha256: {type: str, description: "Remove only a file with this content, with what Python has compiled of it."}
      empty: {type: bool, default: false, description: Remove only a folder in which nothing lies.}
  files:
    type: list
    elements: dict
    default: []
    description: Files to write. Their folders are created with mode 0755.
    suboptions:
      path: {type: str, required: true, description: Path relative to O(root).}
      content: {type: str, required: true, description: "Text of the file. Not for secrets, as containers can read it."}
      mode: {type: str, default: '0644', description: "Permissions, as octal digits."}
attributes:
  check_mode: {support: full, description: "Reports which files differ, and that an archive would be unpacked."}
  diff_mode: {support: partial, description: Text before and after., details: Not for unpacked files.}
  idempotent: {support: partial, description: A file that is already as requested stays., details: "O(archive) is
      unpacked by every call, and so is O(whole); check first whether anything differs."}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Unpack the workspace
  swarmspeed.cluster.mounted_files:
    root: /srv/swarmspeed/lab/workspace
    archive: /srv/swarmspeed/lab/workspace.tar.gz
"""

RETURN = r"""
files: {returned: success, type: list, elements: str, description: "Paths of the files that were written, relative to
    O(root). In check mode those of O(files) only."}
removed: {returned: success, type: list, elements: str, description: "Paths that were removed, or in check mode would
    be, relative to O(root)."}
"""

import re
import secrets
import stat
from functools import partial
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.common.unpack import ArchiveError, unpack
from ..module_utils.common.untrusted_folder import FolderError
from ..module_utils.common.untrusted_links import LinkingFolder
from ..module_utils.job.code_places import CACHE, joined, parent, run_of

ATTEMPTS = 100
"""How often a folder is put in the place of one that others put there meanwhile."""


def _mode(text: str) -> int:
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise FolderError(f"mode: {text!r} is not three octal digits. Remedy: give one such as '0644'.")
    return int(text, 8)


def apply(params: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    """What the module returns."""
    folder = LinkingFolder(params["root"])
    modes = [_mode(entry["mode"]) for entry in params["files"]]
    if folder.kind("") is None and not (params["archive"] or params["files"]):
        return {"changed": False, "files": [], "removed": [], "diff": []}
    if folder.kind("") != "a folder" and not (check_mode and folder.kind("") is None):  # it may be made before
        raise FolderError(f"root: {params['root']} is not a folder. Remedy: create it first.")
    changes: list[tuple[str, bytes, int]] = []
    diff: list[dict[str, str]] = []
    for entry, mode in zip(params["files"], modes):
        path, wanted = entry["path"], entry["content"].encode()
        status = folder.status(path)
        plain = status is not None and stat.S_ISREG(status.st_mode)
        found = folder.read(path) if plain else None
        if found != wanted or status is None or stat.S_IMODE(status.st_mode) != mode:
            changes.append((path, wanted, mode))
            before = (found or b"").decode("utf-8", "replace")
            diff.append({"before": before, "after": entry["content"], "before_header": path, "after_header": path})
    written = [change[0] for change in changes]
    gone = [entry for entry in params["absent"] if _lies(folder, entry)]
    if not check_mode:
        if params["archive"]:
            written = _unpack(params["archive"], folder, params["whole"]) + written
        for entry in gone:
            _remove(folder, entry["path"])
        for path, wanted, mode in changes:
            parent = path.rpartition("/")[0]
            if parent:
                folder.make_folder(parent, 0o755)
            folder.write(path, wanted, mode)
    removed = [entry["path"] for entry in gone]
    return {"changed": bool(written or params["archive"] or gone), "files": written, "removed": removed, "diff": diff}


def _unpack(archive: str, folder: LinkingFolder, whole: str | None) -> list[str]:
    if not whole:
        return unpack(archive, folder, give_way=partial(_give_way, folder))
    above, random = parent(whole), secrets.token_hex(16)
    if above:
        folder.make_folder(above, 0o755)
    new, old = (f"{above}/.{kind}{random[1:]}.new".lstrip("/") for kind in "ab")
    try:
        folder.make_folder(new, 0o755)
        written = unpack(archive, folder, below=new)
        _put(folder, new, whole, old)
    finally:
        for left in (new, old):
            folder.remove(left)
    return [whole + name[len(new) :] for name in written]


def _put(folder: LinkingFolder, new: str, whole: str, old: str) -> None:
    """Rename the new folder. Nodes that share the workspace do the same at once."""
    for attempt in range(ATTEMPTS):
        try:
            folder.remove(old)
            if folder.kind(whole) is not None:
                folder.rename(whole, old)
            folder.rename(new, whole)
            return
        except FolderError:
            if attempt == ATTEMPTS - 1 or folder.kind(new) is None:
                raise


def _give_way(folder: LinkingFolder, name: str) -> None:
    """Remove a link by which a run shows in the workspace what it makes: it brings that there when it has ended."""
    parts = name.split("/")
    for above in ("/".join(parts[: depth + 1]) for depth in range(len(parts) - 1)):
        text = folder.link_text(above)
        if text and run_of(text, above):
            folder.remove_link(above, text)


def _lies(folder: LinkingFolder, entry: dict[str, Any]) -> bool:
    if entry["empty"]:
        return folder.kind(entry["path"]) == "a folder" and not folder.entries(entry["path"])
    if entry["sha256"] is None:
        return folder.kind(entry["path"]) is not None
    return folder.kind(entry["path"]) == "a plain file" and folder.digest(entry["path"]) == entry["sha256"]


def _remove(folder: LinkingFolder, path: str) -> None:
    folder.remove(path)
    above, name = parent(path), path.rpartition("/")[2]
    if name.endswith(".py"):
        cache = joined(above, CACHE)
        if folder.kind(cache) == "a folder":
            for compiled in folder.entries(cache):
                if compiled.startswith(f"{name[:-3]}.") and compiled.endswith(".pyc"):
                    folder.remove(f"{cache}/{compiled}")
            folder.remove_empty(cache)
    while above and folder.remove_empty(above):
        above = parent(above)


def main() -> None:
    """Read, compare and write."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "archive": {"type": "path"},
            "whole": {"type": "str"},
            "absent": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "str", "required": True},
                    "sha256": {"type": "str"},
                    "empty": {"type": "bool", "default": False},
                },
            },
            "files": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "str", "required": True},
                    "content": {"type": "str", "required": True},
                    "mode": {"type": "str", "default": "0644"},
                },
            },
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**apply(module.params, module.check_mode))
    except (FolderError, ArchiveError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{module.params['root']} cannot be written: {error}. Remedy: use become.")


if __name__ == "__main__":
    main()
