#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes the files a role owns. The action plugin of this name compares them first, and sends those that differ."""

from __future__ import annotations

DOCUMENTATION = r"""
module: managed_files
short_description: Manage the files, directories and blocks that a role owns
version_added: 0.1.0
description:
  - Takes all files of a role at once and compares them with what M(swarmspeed.cluster.node_facts) found.
  - Only what differs is sent to the node, all of it in one go, but for blocks, which M(ansible.builtin.blockinfile)
    writes. Where nothing differs, the node is not contacted at all.
  - Each file is replaced in one step. At no time can others read a secret.
  - Needs its action plugin, which compares.
options:
  files:
    description: The files, directories first.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Absolute path on the node. M(swarmspeed.cluster.node_facts) must have read it in this run.
        type: path
        required: true
      content:
        description: Text of the file or block. When not given, the path is a directory.
        type: str
      mode:
        description: Octal mode as text.
        type: str
        default: "0644"
      owner:
        description: Numeric owner.
        type: int
        default: 0
      group:
        description: Numeric group.
        type: int
        default: 0
      secret:
        description: Whether the content must never be shown, not even in a diff.
        type: bool
        default: false
      block:
        description: Manage only the block of this name in the file, as M(ansible.builtin.blockinfile) keeps it; mode
          and owner are left alone.
        type: str
      mark:
        description:
          - Text in the first line of this collection's file. A file there without it belongs to someone else. It is
            never removed, and where this collection's file is wanted, the task fails before it writes anything.
          - M(swarmspeed.cluster.node_facts) must have searched for the same mark.
        type: str
      state:
        description: Whether it should exist.
        type: str
        choices: [present, absent]
        default: present
attributes:
  check_mode:
    support: full
    description: Predicts from the facts; the node is not contacted.
  diff_mode:
    support: full
    description: One diff per file. The former text is shown only where M(swarmspeed.cluster.node_facts) returned it;
      else its SHA-256.
  idempotent:
    support: full
    description: A file that is already right is left alone.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Set the kernel limits
  swarmspeed.cluster.managed_files:
    files:
      - path: /etc/sysctl.d/80-swarmspeed.conf
        content: |
          net.core.somaxconn = 4096
"""

RETURN = r"""
files:
  description: Paths that were changed, or would be in check mode.
  returned: always
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.owned_files import OwnedFileError, apply

FILE_SPEC: dict[str, Any] = {
    "path": {"type": "path", "required": True},
    # The action plugin asks for no_log where one is a secret: masking each text would garble what is reported of paths.
    "content": {"type": "str", "no_log": False},
    "mode": {"type": "str", "default": "0644"},
    "owner": {"type": "int", "default": 0},
    "group": {"type": "int", "default": 0},
    "secret": {"type": "bool", "default": False},
    "block": {"type": "str"},
    "mark": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={"files": {"type": "list", "elements": "dict", "required": True, "options": FILE_SPEC}},
        supports_check_mode=True,
    )
    written: list[str] = []
    for entry in module.params["files"]:
        try:
            if not module.check_mode:
                apply(entry)
        except OwnedFileError as error:
            module.fail_json(msg=str(error), changed=bool(written), files=written)
        written.append(entry["path"])
    module.exit_json(changed=bool(written), files=written)


if __name__ == "__main__":
    main()
