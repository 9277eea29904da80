#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin ssh_close."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ssh_close
short_description: Close ssh connections kept open by earlier commands
version_added: 0.1.0
description:
  - Ansible has ssh keep a connection open for later commands (C(ControlPersist)). One that an earlier command opened
    without C(ServerAliveInterval) never notices that its host has died, and options given later do not change that.
    This module asks its master process to end; the next task opens a new connection. What others still run over the old
    one continues.
  - Does nothing where C(ServerAliveInterval) is part of C(ssh_args) or C(ansible_ssh_common_args), as all connections
    then have it, nor for connections other than ssh.
  - Implemented as an action plugin; nothing is sent to the host.
extends_documentation_fragment: [swarmspeed.cluster.attributes.read_only]
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Have ssh notice a host that dies from here on
  ansible.builtin.set_fact:
    ansible_ssh_extra_args: "{{ ansible_ssh_extra_args | default('') | swarmspeed.cluster.ssh_keepalive }}"

- name: Close connections of earlier commands
  swarmspeed.cluster.ssh_close:
"""

RETURN = r"""
closed: {returned: always, type: bool, description: Whether a connection that was kept was closed.}
"""
