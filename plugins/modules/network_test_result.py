#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin of the same name, which does all the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: network_test_result
short_description: Judge the network between all nodes, and store the results of verify
version_added: 0.1.0
description:
  - Runs on the controller and contacts no host. Judges what M(swarmspeed.cluster.network_mesh_test) returned on all
    nodes, and reports each failing pair with both ends, the most likely reason and the remedy.
  - Writes C(verify.json) atomically, with what verify found about roles, pairs and versions. A run with tags leaves the
    file as it is.
options:
  cluster: {type: str, required: true, description: Name of the cluster.}
  hosts: {type: list, elements: str, required: true, description: All nodes.}
  started: {type: dict, default: {}, description: "By node, what M(swarmspeed.cluster.network_mesh_test) returned for
      its step V(start). Nothing is judged when empty."}
  ended: {type: dict, default: {}, description: "By node, what it returned for its step V(end)."}
  wanted: {type: dict, default: {}, description: "How to judge. C(network) is V(container) or V(host), where ranks meet;
      C(data_port) is the VXLAN port, none without an overlay; C(clock) is the seconds by which clocks may differ.
      C(encrypted), C(rendezvous) and C(ssh_port) are for the messages. C(hcas) are those that NCCL is to use, by node,
      as C(NCCL_IB_HCA) has them."}
  backend: {type: str, choices: [gloo, nccl], default: gloo, description: Backend of the all-reduce.}
  began: {type: float, required: true, description: "When the test began, in seconds since 1970."}
  reports_dir: {type: str, default: '', description: "Folder on the controller for C(verify.json), created if missing.
      Nothing is written when empty."}
  failed: {type: bool, default: false, description: "Whether a role failed before. If so, its message is kept as well,
      and the task fails."}
attributes:
  check_mode: {support: full, description: Judges in the same way and writes nothing.}
  diff_mode: {support: none, description: There is nothing to compare.}
  idempotent: {support: full, description: "A report on the controller is not a change to the cluster, so the task never
      reports a change."}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Judge the network
  swarmspeed.cluster.network_test_result:
    cluster: lab
    hosts: "{{ ansible_play_hosts }}"
    started: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'started'))) }}"
    ended: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'ended'))) }}"
    began: 1790000000.0
  run_once: true
"""

RETURN = r"""
problems: {returned: always, type: list, elements: str, description: "Sentences, each with both ends, reason and
    remedy."}
notes: {returned: always, type: list, elements: str, description: "What is worth knowing, but no reason to fail."}
report: {returned: always, type: str, description: File that was written; empty where none was.}
"""
