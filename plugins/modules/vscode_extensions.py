#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""VS Code extensions on a node, unpacked for its server in the training container."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vscode_extensions
short_description: Unpack VS Code extensions for its server in a container
version_added: 0.1.0
description:
  - Unpacks C(.vsix) files below the folder C(extensions) of O(root), which the training container mounts at
    C(/root/.vscode-server/extensions), and lists them in C(extensions.json) there. Nothing is fetched.
  - A file is checked as a whole before anything is changed. Refused are paths that lead outside, links, devices,
    duplicate or encrypted members, more than 50,000 files or 2 GiB, a missing or malformed C(package.json), another
    platform than the node's, and two files of the same extension.
  - What is unpacked appears in one step. Extensions that this module unpacked and that O(files) does not name are
    removed; others stay.
  - As containers can write to that folder, no link is followed there. A folder with the name of a wanted extension is
    replaced.
options:
  root: {type: path, required: true, description: "Folder that holds the record of what was unpacked, for root only, and
      the folder C(extensions)."}
  files: {type: list, elements: path, default: [], description: "Paths of the C(.vsix) files on this host. Without any,
      all extensions that this module unpacked are removed."}
  state: {type: str, choices: [present, absent], default: present, description: "V(absent) removes all extensions that
      this module unpacked, and the folders where they are then empty. Not while a container has them mounted."}
attributes:
  check_mode: {support: full, description: "Checks the files as well, and changes nothing."}
  diff_mode: {support: partial, description: The folders of the extensions before and after., details: Not their
      contents.}
  idempotent: {support: full, description: "A file is not unpacked again while its SHA-256 is recorded, its folder has a
      C(package.json), and the list names it."}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Unpack the extensions that F5 needs
  swarmspeed.cluster.vscode_extensions:
    root: /srv/swarmspeed/lab/vscode
    files:
      - /srv/swarmspeed/lab/assets/vscode/ms-python.python.vsix
      - /srv/swarmspeed/lab/assets/vscode/ms-python.debugpy.vsix
"""

RETURN = r"""
extensions: {returned: success, type: list, elements: str, sample: [ms-python.python-2026.4.0], description: "Folders of
    all extensions in O(files), below C(extensions)."}
unpacked: {returned: success, type: list, elements: str, description: "Those that were unpacked, or would be."}
removed: {returned: success, type: list, elements: str, description: "Folders that were removed, or would be."}
"""

import platform

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.common.untrusted_folder import FolderError
from ..module_utils.vscode.install import apply, remove
from ..module_utils.vscode.vsix import VsixError


def main() -> None:
    """Check, compare, unpack and remove."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "files": {"type": "list", "elements": "path", "default": []},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    root, files = module.params["root"], module.params["files"]
    try:
        if module.params["state"] == "absent":
            result = remove(root, module.check_mode)
        else:
            result = apply(root, files, platform.machine(), module.check_mode)
    except (VsixError, FolderError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{root} cannot be written: {error}. Remedy: make room on its disk, or use become.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
