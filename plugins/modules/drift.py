#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin drift."""

from __future__ import annotations

DOCUMENTATION = r"""
module: drift
short_description: List what the roles would change on a host
version_added: 0.1.0
description:
  - Takes of each role what it compares, the same values and files that M(swarmspeed.cluster.compare) and
    M(swarmspeed.cluster.owned_files) get in the role itself, and lists where they differ from what
    M(swarmspeed.cluster.node_facts) found.
  - Does not fail where something differs. C(verify.yml) does, once the roles' own checks have passed.
  - With tags only the roles that they select are compared.
  - Contents of files are not shown, as some are secret.
  - Implemented as an action plugin; nothing is sent to the node.
options:
  roles:
    description: The roles, in the order in which a run walks them. A role may be named several times.
    type: list
    elements: dict
    required: true
    suboptions:
      role:
        description: Name of the role, which is the tag that repairs it, too.
        type: str
        required: true
      state:
        description:
          - What the role compares. C(found) and C(wanted) as in M(swarmspeed.cluster.compare), C(files) as in
            M(swarmspeed.cluster.owned_files). Empty where the role does not apply.
        type: dict
        default: {}
      planned:
        description: What is planned for a role that is part of the plan, as the C(drift) of M(swarmspeed.cluster.plan).
        type: list
        elements: str
        default: []
attributes:
  check_mode:
    support: full
    description: Runs the same in check mode, as it only compares.
  diff_mode:
    support: N/A
    description: Nothing is changed.
  idempotent:
    support: full
    description: Never changes anything.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Compare the engine and its drop-in with what is asked
  swarmspeed.cluster.drift:
    roles:
      - role: docker
        state:
          found: {running: "{{ ansible_facts['swarmspeed']['docker'].running }}"}
          wanted: {running: true}
          files:
            - path: /etc/apt/sources.list.d/swarmspeed-docker.sources
              state: absent
              content: ""
  register: _drift
"""

RETURN = r"""
drift:
  description: By role what differs. Empty where nothing does.
  returned: always
  type: list
  elements: dict
  contains:
    role:
      description: Name of the role.
      type: str
      returned: always
    what:
      description: One text for each difference.
      type: list
      elements: str
      returned: always
msg:
  description: One line for each role with host, role, what differs and the remedy.
  returned: always
  type: str
  sample: "gpu2: role host: package rsync is missing. Remedy: ansible-playbook site.yml --tags host"
"""
