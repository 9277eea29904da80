#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin managed_files."""

from __future__ import annotations

DOCUMENTATION = r"""
module: managed_files
short_description: Manage the files, directories and blocks that a role owns
version_added: 0.1.0
description:
  - Takes all files of a role at once and compares them with what M(swarmspeed.cluster.node_facts) found.
  - Only what differs is sent to the node, through M(ansible.builtin.copy), M(ansible.builtin.file) or
    M(ansible.builtin.blockinfile), which write atomically. Where nothing differs, the node is not contacted at all.
  - Implemented as an action plugin.
options:
  files:
    type: list
    elements: dict
    required: true
    description: The files, directories first.
    suboptions:
      path: {type: path, required: true, description: Absolute path on the node. M(swarmspeed.cluster.node_facts) must
          have read it in this run.}
      content: {type: str, description: "Text of the file or block. When not given, the path is a directory."}
      mode: {type: str, default: '0644', description: Octal mode as text.}
      owner: {type: int, default: 0, description: Numeric owner.}
      group: {type: int, default: 0, description: Numeric group.}
      secret: {type: bool, default: false, description: "Whether the content must never be shown, not even in a diff."}
      block: {type: str, description: "Manage only the block of this name in the file, as M(ansible.builtin.blockinfile)
          keeps it; mode and owner are left alone."}
      mark: {type: str, description: "Text in the first line of this collection's file. A file there without it belongs
          to someone else. It is never removed, and where this collection's file is wanted, the task fails before it
          writes anything. M(swarmspeed.cluster.node_facts) must have searched for the same mark."}
      state: {type: str, choices: [present, absent], default: present, description: Whether it should exist.}
attributes:
  check_mode: {support: full, description: Predicts from the facts; the node is not contacted.}
  diff_mode: {support: full, description: One diff per file. The former text is shown only where
      M(swarmspeed.cluster.node_facts) returned it; else its SHA-256.}
  idempotent: {support: full, description: A file that is already right is left alone.}
author: The swarmspeed.cluster founders (@swarmspeed)
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
files: {returned: always, type: list, elements: str, description: "Paths that were changed, or would be in check mode."}
"""
