#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin init."""

from __future__ import annotations

DOCUMENTATION = r"""
module: init
short_description: Make the folder of a new cluster from a list of servers
version_added: 0.1.0
description:
  - The steps of the playbook C(init.yml), which reads the servers' host keys, gathers what
    M(swarmspeed.cluster.node_facts) finds on them, and writes a folder with configuration, inventory, variables and a
    job.
  - Writes what is missing in the folder, and adds servers to its inventory. What is there otherwise stays as it is, and
    is named where it differs.
  - Passwords are written only into a file that is encrypted with the vault password of the run.
  - Implemented as an action plugin.
options:
  stage:
    description:
      - V(keys) reads the list and the host key of each server, on the controller.
      - V(ask) gathers the facts of one server. It does not fail, but returns RV(problem).
      - V(write) decides and writes, on the controller.
    type: str
    required: true
    choices: [keys, ask, write]
  servers:
    description: Servers as C([user@]address[:port]), as a list or with commas between them.
    type: raw
    default: ''
  servers_file:
    description: File on the controller with one server a line, after which C(name=) and C(jump=) may follow.
    type: str
    default: ''
  jump:
    description: Jump host of all servers that name none, as C([user@]address[:port]).
    type: str
    default: ''
  folder:
    description: Folder on the controller that is made. When empty, the current one if it was made so, else C(cluster).
    type: str
    default: ''
  host_keys:
    description: Fingerprints, as C(ssh-keygen -l) prints them, of host keys that need no confirmation.
    type: raw
    default: ''
  sudo_password:
    description: Whether a password for sudo was given, so that it is tested whether the server needs it.
    type: bool
    default: false
  read:
    description: What O(stage=keys) returned.
    type: dict
    default: {}
  answers:
    description: What O(stage=ask) returned, by server.
    type: dict
    default: {}
attributes:
  check_mode: {support: full, description: Nothing is written.}
  diff_mode:
    support: partial
    description: Shows how files that stay as they are differ from what would be written.
    details: The lines are part of the message, as Ansible shows no diff of a task that changes nothing.
  idempotent: {support: full, description: A second run writes nothing.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Read the list of servers and the host key of each
  swarmspeed.cluster.init:
    stage: keys
    servers: [ubuntu@10.0.0.11, ubuntu@10.0.0.12]
    folder: cluster
  register: read
"""

RETURN = r"""
unconfirmed: {returned: with O(stage=keys), type: list, elements: str, description: "Servers whose host key is new, with
    its fingerprint."}
problem: {returned: with O(stage=ask), type: str, description: Why the server cannot be used.}
files: {returned: with O(stage=write), type: list, elements: str, description: Files that were written.}
"""
