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
  stage: {type: str, choices: [check, make, print, report, drift], default: make, description: "V(check) returns the
      hosts to plan for, and fails where a role concerns the cluster as a whole and not all O(hosts) are in one batch of
      the play. V(make) plans for all hosts (C(run_once)). The others read the plan in the variable C(swarmspeed_plan).
      V(print) prints its text. V(report) reports the changes of one host, and fails where a role refuses to begin or a
      consent is missing. V(drift) lists what the roles selected by the tags of the run would change on one host, and
      does not fail."}
  roles: {type: list, elements: str, description: "The roles to plan, or to report, by name; all but C(preflight) by
      default."}
  hosts: {type: list, elements: str, default: [], description: The hosts to plan for. A host of which nothing was
      gathered in this run is left out.}
  gathered: {type: str, default: '', description: Name of the variable that holds each host's registered result of
      M(swarmspeed.cluster.node_facts).}
  cluster: {type: dict, default: {}, description: "What M(swarmspeed.cluster.cluster_facts) returned. C(image), the name
      of the training image, is added by the role training_image, or given where that role is not in O(roles). Empty
      where a role that concerns each host on its own is applied alone."}
  run: {type: str, default: '', description: Identifies the run. Facts of another run are not used.}
  file: {type: str, default: '', description: "File on the controller to write the plan to as JSON, readable by its
      owner only. None when empty."}
  print: {type: bool, default: false, description: Whether to print the text of the plan.}
attributes:
  check_mode: {support: full, description: "With O(stage=report), reports the planned changes as changed."}
  diff_mode: {support: full, description: "With O(stage=report), shows the planned changes."}
  idempotent: {support: full, description: Never changes anything on a host.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Gather facts
  swarmspeed.cluster.node_facts:
    plan: [docker]
  register: gathered
"""

RETURN = r"""
run: {returned: with O(stage=make), type: str, description: O(run).}
roles: {returned: with O(stage=make), type: list, elements: str, description: "The roles that were planned, in the order
    of a run."}
hosts: {returned: with O(stage=make) and O(stage=check), type: list, elements: str, description: The hosts that were
    planned for.}
text: {returned: with O(stage=make), type: str, sample: 'Plan: 12 to add, 3 to change, 0 to remove.', description: "The
    plan as text. With tags, that of the roles that they select."}
document: {returned: with O(stage=make), type: dict, description: The plan as JSON; docs/plan.md of this collection
    describes the format.}
report: {returned: with O(stage=make), type: dict, description: "The first plan of the run, with what was found when it
    planned again (C(found_after_apply)); this is written to O(file)."}
image: {returned: with O(stage=make), type: str, description: "The name of the training image; empty where it is not
    known, or not used."}
pending: {returned: with O(stage=make), type: dict, description: "By host and role, whether there is something to do or
    to refuse."}
stops: {returned: with O(stage=make), type: dict, description: "By host and role, why the role must not begin, as
    sentences."}
refused: {returned: with O(stage=make), type: dict, description: "By role and host, what is refused, whatever consents
    are given, as sentences. Covers the roles that tags select, or all where they select none."}
consents: {returned: with O(stage=make), type: dict, description: "By variable and host, the consents that are missing,
    as sentences. Covers the roles that tags select."}
drift: {returned: with O(stage=make), type: dict, description: "By host and role, one text for each change that
    C(verify.yml) fails on."}
diffs: {returned: with O(stage=make), type: dict, description: "By host and role, the changes as Ansible's diffs."}
task_inputs: {returned: with O(stage=make), type: dict, description: "By host and role, what the role's tasks read. May
    hold secrets."}
whole_group: {returned: with O(stage=check), type: bool, description: Whether one of the roles concerns the cluster as a
    whole.}
by_role:
  returned: with O(stage=drift)
  type: list
  elements: dict
  description: What the selected roles would change on this host, in the order of a run.
  contains:
    role: {type: str, description: The role.}
    what: {type: list, elements: str, description: One text for each change.}
msg: {returned: with O(stage=drift), type: str, description: "The same, a line for each role; empty where nothing
    differs."}
changes: {returned: with O(stage=report), type: list, elements: dict, description: The changes planned for this host.}
"""
