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
    C(bench_network.json) beside it where they exist. What is missing, old or unreadable is shown as such.
  - Every text from a node is escaped, and credentials in URLs and values of variables whose name suggests a secret are
    replaced by asterisks.
  - Implemented as an action plugin; nothing is sent to any node.
options:
  cluster: {type: str, required: true, description: Name of the cluster.}
  hosts: {type: list, elements: str, required: true, description: "Its nodes, in the order of their ranks."}
  managers: {type: list, elements: str, default: [], description: Those of O(hosts) that should be managers of the
      swarm.}
  gathered: {type: dict, required: true, description: Results of M(swarmspeed.cluster.node_facts) by node. A result
      without facts counts as a node that did not answer.}
  jobs: {type: dict, required: true, description: Results of M(swarmspeed.cluster.training_job_info) by node.}
  folder: {type: path, required: true, description: Where the page is written and the two files are read from. Created
      if missing.}
  network_mode: {type: str, choices: [overlay, host], default: overlay, description: As C(cluster_network_mode).}
  network_name: {type: str, default: '', description: Name of the overlay.}
  runtime: {type: str, choices: [container, host], default: container, description: "As C(deepspeed_launch_runtime).
      Without containers, nothing is reported about engine and swarm."}
  accelerator: {type: str, choices: [auto, cuda, cpu], default: auto, description: As C(cluster_accelerator).}
  underlay_subnet: {type: str, default: '', description: As C(cluster_underlay_subnet). The variable C(cluster_address)
      of each host is read too.}
  max_clock_offset: {type: float, default: 30.0, description: Seconds by which a node's clock may differ from the
      controller's.}
attributes:
  check_mode: {support: full, description: Nothing is written.}
  diff_mode: {support: none, description: An HTML page is not shown as a diff.}
  idempotent: {support: N/A, description: "The cluster is not changed. The page is written again each time, as it states
      when it was written."}
author: The swarmspeed.cluster founders (@swarmspeed)
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
path: {returned: success, type: str, description: The page on the controller.}
level: {returned: success, type: str, description: "V(ok), V(warn) or V(bad), by the worst of RV(findings)."}
findings: {returned: success, type: list, elements: dict, description: "What needs attention, the worst first, each with
    C(level), C(where), C(what) and C(remedy)."}
"""
