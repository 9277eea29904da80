#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin cluster_report."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_report
short_description: Write a report of the cluster as one HTML page
version_added: 0.1.0
description:
  - Writes C(report.html) on the controller, from what the nodes reported, and from C(verify.json) and
    C(bench_network.json) beside it where they exist. The page needs no server and no other file.
  - The page is written whatever the state of the cluster. A node that did not answer, and a file that is missing, old
    or unreadable, are shown as such.
  - Every text from a node is escaped, and credentials in URLs and values of variables whose name suggests a secret are
    replaced by asterisks.
  - Implemented as an action plugin; nothing is sent to any node.
options:
  cluster:
    description: Name of the cluster.
    type: str
    required: true
  hosts:
    description: Its nodes, in the order of their ranks.
    type: list
    elements: str
    required: true
  managers:
    description: Those of O(hosts) that should be managers of the swarm.
    type: list
    elements: str
    default: []
  gathered:
    description: Results of M(swarmspeed.cluster.node_facts) by node. A result without facts counts as a node that did
      not answer.
    type: dict
    required: true
  jobs:
    description: Results of M(swarmspeed.cluster.training_job_info) by node.
    type: dict
    required: true
  folder:
    description: Where the page is written and the two files are read from. Created if missing.
    type: path
    required: true
  network_mode:
    description: As C(cluster_network_mode).
    type: str
    choices: [overlay, host]
    default: overlay
  network_name:
    description: Name of the overlay.
    type: str
    default: ''
  runtime:
    description: As C(deepspeed_launch_runtime). Without containers, nothing is reported about engine and swarm.
    type: str
    choices: [container, host]
    default: container
  accelerator:
    description: As C(cluster_accelerator).
    type: str
    choices: [auto, cuda, cpu]
    default: auto
  underlay_subnet:
    description: As C(cluster_underlay_subnet). The variable C(cluster_address) of each host is read too.
    type: str
    default: ''
  max_clock_offset:
    description: Seconds by which a node's clock may differ from the controller's.
    type: float
    default: 30.0
attributes:
  check_mode:
    support: full
    description: Nothing is written.
  diff_mode:
    support: none
    description: An HTML page is not shown as a diff.
  idempotent:
    support: N/A
    description: The cluster is not changed. The page is written again each time, as it states when it was written.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Write the report
  swarmspeed.cluster.cluster_report:
    cluster: lab
    hosts: [gpu1, gpu2]
    managers: [gpu1]
    gathered: "{{ {'gpu1': hostvars.gpu1.gathered, 'gpu2': hostvars.gpu2.gathered} }}"
    jobs: "{{ {'gpu1': hostvars.gpu1.jobs, 'gpu2': hostvars.gpu2.jobs} }}"
    folder: reports/lab
    network_name: lab
  run_once: true
"""

RETURN = r"""
path:
  description: The page on the controller.
  returned: success
  type: str
level:
  description: V(ok), V(warn) or V(bad), by the worst of RV(findings).
  returned: success
  type: str
findings:
  description: What needs attention, the worst first, each with C(level), C(where), C(what) and C(remedy).
  returned: success
  type: list
  elements: dict
"""
