#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin plan."""

from __future__ import annotations

DOCUMENTATION = r"""
module: plan
short_description: Plan what roles would change
version_added: 0.1.0
description:
  - Compares what M(swarmspeed.cluster.node_facts) gathered of all hosts with the variables of the roles, and returns
    the list of changes that lead from one to the other. C(plan.yml) prints it, the roles apply it, and C(verify.yml)
    fails where it is not empty.
  - Does not fail where a role refuses what is requested; O(stage=report) does, on the host concerned.
  - The result holds what the roles' tasks need, which may be secret, so it is not shown. The text, the document and the
    diffs in it hold no secrets.
  - Implemented as an action plugin; nothing is sent to a node.
options:
  stage:
    description:
      - V(check) returns the hosts to plan the roles for. It fails where a role concerns the cluster as a whole and
        O(hosts), all of its hosts, are not in one batch of the play, as with C(--limit), C(serial) or C(strategy=free).
      - V(make) plans for all hosts; use it with C(run_once). Where the run has planned before, in the variable
        C(swarmspeed_plan), prints what that plan did not foresee.
      - V(print) prints the text of the plan in the variable C(swarmspeed_plan).
      - V(report) reports the changes planned for one host, from the plan in the variable C(swarmspeed_plan). It fails
        where a role refuses to begin or a consent is missing (for a role that concerns the cluster as a whole, on any
        of its hosts). In check mode it reports the changes as changed, with their diff.
      - V(drift) lists what the roles selected by the tags of the run would change on one host, from the plan in the
        variable C(swarmspeed_plan). It does not fail.
    type: str
    choices: [check, make, print, report, drift]
    default: make
  roles:
    description: The roles to plan, or to report.
    type: list
    elements: str
    choices:
      - host
      - nvidia_driver
      - docker
      - nvidia_container_toolkit
      - swarm
      - overlay_network
      - training_image
      - ssh_trust
      - nccl_env
      - training_container
      - workspace
      - assets
      - deepspeed_launch
    default:
      - host
      - nvidia_driver
      - docker
      - nvidia_container_toolkit
      - swarm
      - overlay_network
      - training_image
      - ssh_trust
      - nccl_env
      - training_container
      - workspace
      - assets
      - deepspeed_launch
  hosts:
    description: The hosts to plan for. A host of which nothing was gathered in this run is left out.
    type: list
    elements: str
    default: []
  gathered:
    description: Name of the variable that holds each host's registered result of M(swarmspeed.cluster.node_facts).
    type: str
    default: ''
  cluster:
    description: What M(swarmspeed.cluster.cluster_facts) returned. C(image), the name of the training image, is added
      by the role training_image, or given where that role is not in O(roles). Empty where a role that concerns each
      host on its own is applied alone.
    type: dict
    default: {}
  run:
    description: Identifies the run. Facts of another run are not used.
    type: str
    default: ''
  file:
    description: File on the controller to write the plan to as JSON, readable by its owner only. None when empty.
    type: str
    default: ''
  print:
    description: Whether to print the text of the plan.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: With O(stage=report), reports the planned changes as changed.
  diff_mode:
    support: full
    description: With O(stage=report), shows the planned changes.
  idempotent:
    support: full
    description: Never changes anything on a host.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Gather facts
  swarmspeed.cluster.node_facts:
    plan: [docker]
  register: gathered

- name: Plan
  swarmspeed.cluster.plan:
    roles: [docker]
    hosts: "{{ ansible_play_hosts }}"
    gathered: gathered
  run_once: true
  register: swarmspeed_plan

- name: Print the plan
  swarmspeed.cluster.plan:
    stage: print
  run_once: true
"""

RETURN = r"""
run:
  description: O(run).
  returned: with O(stage=make)
  type: str
roles:
  description: The roles that were planned, in the order of a run.
  returned: with O(stage=make)
  type: list
  elements: str
hosts:
  description: The hosts that were planned for.
  returned: with O(stage=make) and O(stage=check)
  type: list
  elements: str
text:
  description: The plan as text. With tags, that of the roles that they select.
  returned: with O(stage=make)
  type: str
  sample: "Plan: 12 to add, 3 to change, 0 to remove."
document:
  description: The plan as JSON; docs/plan.md of this collection describes the format.
  returned: with O(stage=make)
  type: dict
report:
  description: The first plan of the run, with what was found when it planned again (C(found_after_apply)); this is
    written to O(file).
  returned: with O(stage=make)
  type: dict
image:
  description: The name of the training image; empty where it is not known, or not used.
  returned: with O(stage=make)
  type: str
pending:
  description: By host and role, whether there is something to do or to refuse.
  returned: with O(stage=make)
  type: dict
stops:
  description: By host and role, why the role must not begin, as sentences.
  returned: with O(stage=make)
  type: dict
refused:
  description: By role and host, what is refused, whatever consents are given, as sentences. Covers the roles that tags
    select, or all where they select none.
  returned: with O(stage=make)
  type: dict
consents:
  description: By variable and host, the consents that are missing, as sentences. Covers the roles that tags select.
  returned: with O(stage=make)
  type: dict
drift:
  description: By host and role, one text for each change that C(verify.yml) fails on.
  returned: with O(stage=make)
  type: dict
diffs:
  description: By host and role, the changes as Ansible's diffs.
  returned: with O(stage=make)
  type: dict
acts:
  description: By host and role, what the role's tasks read. May hold secrets.
  returned: with O(stage=make)
  type: dict
whole_group:
  description: Whether one of the roles concerns the cluster as a whole.
  returned: with O(stage=check)
  type: bool
by_role:
  description: What the selected roles would change on this host, in the order of a run.
  returned: with O(stage=drift)
  type: list
  elements: dict
  contains:
    role: {description: The role., type: str}
    what: {description: "One text for each change.", type: list, elements: str}
msg:
  description: The same, a line for each role; empty where nothing differs.
  returned: with O(stage=drift)
  type: str
changes:
  description: The changes planned for this host.
  returned: with O(stage=report)
  type: list
  elements: dict
"""
