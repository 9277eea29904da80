#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin managed_files."""

from __future__ import annotations

DOCUMENTATION = r"""
module: managed_files
short_description: Keep the files, directories and blocks that a role owns
version_added: 0.1.0
description:
  - Takes all files of a role at once and compares them with what M(swarmspeed.cluster.node_facts) found.
  - Only what differs is sent to the node, through M(ansible.builtin.copy), M(ansible.builtin.file) or
    M(ansible.builtin.blockinfile), which write atomically. Where nothing differs the node is not contacted at all.
  - Implemented as an action plugin.
options:
  files:
    description: The files, directories first.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Absolute path on the node. M(swarmspeed.cluster.node_facts) must have been asked about it in this
          run.
        type: path
        required: true
      content:
        description: Text of the file or block. A directory when it is not given.
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
        description: Whether the content must never be shown, not in a diff either.
        type: bool
        default: false
      block:
        description: Own only the block of this name in the file, as M(ansible.builtin.blockinfile) keeps it; mode and
          owner are left alone.
        type: str
      mark:
        description:
          - Text that the first line of this collection's file holds. A file there without it is somebody else's. It is
            never removed, and where one of this collection's is wanted the task fails before it writes anything.
          - M(swarmspeed.cluster.node_facts) must have been asked for the same mark.
        type: str
      state:
        description: Whether it should be there.
        type: str
        choices: [present, absent]
        default: present
attributes:
  check_mode:
    support: full
    description: Predicts from the facts; the node is not contacted.
  diff_mode:
    support: full
    description: One diff a file. The text before is shown only where M(swarmspeed.cluster.node_facts) was asked for
      it; else its SHA-256.
  idempotent:
    support: full
    description: A file that is right is left alone.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Keep the kernel limits
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
