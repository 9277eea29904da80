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
  - Root in a container can replace a file or folder there with a link at any moment. Modules that write by path would
    follow the link, and write as root of the host wherever it leads. This module opens every path component by the
    handle of its parent folder, follows no link, and replaces a file by renaming a new one.
  - A link in place of a file is replaced. A link in place of a folder is an error, and nothing is written through it.
options:
  root:
    description: The folder. It must exist, and its own path is not checked.
    type: path
    required: true
  archive:
    description:
      - A tar archive on this host to unpack below O(root), of plain files and folders with relative paths. Files that
        are only in O(root) stay.
      - It should be where no container can write.
    type: path
  files:
    description: Files to write. Their folders are created with mode 0755.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Path relative to O(root).
        type: str
        required: true
      content:
        description: Text of the file. Not for secrets, as containers can read it.
        type: str
        required: true
      mode:
        description: Permissions, as octal digits.
        type: str
        default: '0644'
attributes:
  check_mode:
    support: full
    description: Reports which files differ, and that an archive would be unpacked.
  diff_mode:
    support: partial
    description: Text before and after.
    details:
      - Not for unpacked files.
  idempotent:
    support: partial
    description: A file that is already as requested stays.
    details:
      - O(archive) is unpacked by every call; check first whether anything differs.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Unpack the workspace
  swarmspeed.cluster.mounted_files:
    root: /srv/swarmspeed/lab/workspace
    archive: /srv/swarmspeed/lab/workspace.tar.gz

- name: Write a debug configuration
  swarmspeed.cluster.mounted_files:
    root: /srv/swarmspeed/lab/workspace
    files:
      - path: .vscode/launch.json
        content: "{{ configuration | to_nice_json }}"
"""

RETURN = r"""
files:
  description: Paths of the files that were written, relative to O(root). In check mode those of O(files) only.
  returned: success
  type: list
  elements: str
"""

import re
import stat
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.unpack import ArchiveError, unpack
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_folder import (
    FolderError,
    UntrustedFolder,
)


def _mode(text: str) -> int:
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise FolderError(f"mode: {text!r} is not three octal digits. Remedy: give one such as '0644'.")
    return int(text, 8)


def apply(params: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    """What the module returns."""
    folder = UntrustedFolder(params["root"])
    modes = [_mode(entry["mode"]) for entry in params["files"]]
    if folder.kind("") != "a folder" and not (check_mode and folder.kind("") is None):  # it may be made before
        raise FolderError(f"root: {params['root']} is no folder. Remedy: make it first.")
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
    if not check_mode:
        if params["archive"]:
            written = unpack(params["archive"], folder) + written
        for path, wanted, mode in changes:
            parent = path.rpartition("/")[0]
            if parent:
                folder.make_folder(parent, 0o755)
            folder.write(path, wanted, mode)
    return {"changed": bool(written or params["archive"]), "files": written, "diff": diff}


def main() -> None:
    """Read, compare and write."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "archive": {"type": "path"},
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
