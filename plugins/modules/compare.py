#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin compare."""

from __future__ import annotations

DOCUMENTATION = r"""
module: compare
short_description: Compare what a node is with what it should be
version_added: 0.1.0
description:
  - Compares two mappings on the controller and lists where the first differs from the second.
  - In check mode a difference is reported as a change, with its diff. This is how the roles of this collection
    predict, on hosts
    that lack even Docker, what a run will do. Outside check mode the tasks that act on the differences report the
    change.
  - Implemented as an action plugin; nothing is sent to the node.
options:
  found:
    description: What is. Usually a part of C(ansible_facts.swarmspeed).
    type: dict
    required: true
  wanted:
    description: What should be. Keys that are not named here do not count. V(null) means that the key should be
      absent or null.
    type: dict
    required: true
  problems:
    description:
      - What speaks against O(wanted), each a sentence with its remedy. Where there is one, the task fails with the
        host's name and all of them, and compares nothing.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: full
    description: Reports differences as changed.
  diff_mode:
    support: full
    description: Shows the differences, one a line.
  idempotent:
    support: full
    description: Never changes anything.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Compare the engine with what is asked
  swarmspeed.cluster.compare:
    found: "{{ ansible_facts['swarmspeed']['docker'] }}"
    wanted:
      running: true
    problems: "{{ ['docker_version is odd. Remedy: correct it.'] if docker_version is search('[^0-9.]') else [] }}"
  register: engine
"""

RETURN = r"""
differences:
  description: Where found differs from wanted.
  returned: always
  type: list
  elements: dict
  contains:
    path:
      description: Dotted path.
      type: str
      returned: always
    before:
      description: What was found.
      type: raw
      returned: always
    after:
      description: What is wanted.
      type: raw
      returned: always
"""
