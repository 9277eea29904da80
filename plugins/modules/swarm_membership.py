#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A host's membership in one Docker swarm."""

from __future__ import annotations

DOCUMENTATION = r"""
module: swarm_membership
short_description: Make a host a manager or worker of one particular Docker swarm
version_added: 0.1.0
description:
  - Creates, joins or leaves a Docker swarm, and on a manager keeps the list of nodes in order. Needs nothing but the
    engine's socket (20.10 or later).
  - A host in another swarm is an error that changes nothing, unless O(leave_foreign=true).
  - Succeeds only once the engine reports the node as C(active), and for a manager only once it can control the swarm. A
    join that fails is undone. A host that a manager removed from the list leaves the swarm and joins again.
  - Join tokens are never part of a message, a diff or an error.
options:
  state: {type: str, choices: [manager, worker, absent], required: true, description: "What the host should be.
      V(absent) takes it out of this swarm. It leaves a host in another swarm alone, with a warning, unless
      O(leave_foreign=true). A manager is demoted first where enough others remain. With V(worker), a manager of this
      swarm is demoted. With V(manager), the module waits for a worker of it to be promoted, as only another manager can
      do that, see O(node_roles)."}
  cluster: {type: str, required: true, description: "Name of the cluster. Kept in the swarm's label
      C(swarmspeed.cluster), by which the swarm is identified."}
  init: {type: bool, default: false, description: "This host creates the swarm if there is none. Set it for the first
      manager only. It joins instead where O(remote_addrs) and O(join_token) are given, and where O(cluster_id) or
      O(member_ids) show that the swarm exists, so that no second swarm is created."}
  remote_addrs: {type: list, elements: str, default: [], description: "Managers to join through, as C(host:2377). Tried
      in this order until one answers."}
  join_token: {type: str, description: "The token for O(state), manager or worker. Needed where the host has to join."}
  member_ids: {type: list, elements: str, description: "Node ids that the managers of this swarm list. An empty list
      means that there is no swarm yet. Determines whether a worker is in this swarm, as a worker itself does not know.
      When not given, an active worker is an error."}
  cluster_id: {type: str, description: "Id of this swarm, where known. A manager of a swarm with another id counts as
      foreign."}
  advertise_addr: {type: str, description: "Address or interface by which the other nodes reach this one. Needed on
      hosts with several addresses. Fixed when the node joins. A node that advertises another address is left as it is,
      with a warning."}
  listen_addr: {type: str, default: '0.0.0.0:2377', description: Address and port to listen on for swarm traffic.}
  data_path_addr: {type: str, description: Address or interface for the traffic of overlay networks. Used when the node
      joins. The engine's default is O(advertise_addr).}
  data_path_port: {type: int, description: "UDP port for the traffic of overlay networks, 1024 to 49151. The engine's
      default is 4789. Like O(default_addr_pool) and O(subnet_size), fixed when the swarm is created. Requesting another
      value for an existing swarm is an error."}
  default_addr_pool: {type: list, elements: str, default: [], description: IPv4 networks that overlay networks get their
      subnets from. The engine's default is V(10.0.0.0/8).}
  subnet_size: {type: int, description: "Prefix length of those subnets, at most 29. The engine's default is 24."}
  leave_foreign: {type: bool, default: false, description: "Leave another swarm that the host is in. Ends what that
      swarm runs on the host, and the swarm itself if this is its last manager."}
  adopt: {type: bool, default: false, description: "With O(init=true), take over a swarm without label that the host
      manages, by adding the label."}
  force: {type: bool, default: false, description: "With O(state=absent), leave even as the last manager, or where the
      remaining managers are not a majority."}
  hostnames: {type: dict, default: {}, description: "On a manager, host names as the engines report them, each with the
      node id of the host that has it, or a list of ids where several hosts have it. V(null) stands for a host in no
      swarm. A node that is down and has one of these names under another id is removed from the list. So is one with
      the name and the address of a present node, once it is down, which takes about 15 seconds. Nodes with other names
      are never touched."}
  node_roles: {type: dict, default: {}, description: "On a manager, node ids with their roles, V(manager) or V(worker).
      These nodes are promoted or demoted through this manager. A demotion that would leave the swarm without a majority
      of managers that answer, or without any, is an error."}
  node_availability: {type: dict, default: {}, description: "On a manager, node ids with V(active), V(pause) or
      V(drain), which are set through this manager. Nodes that are not named keep what they have."}
  removed_nodes: {type: list, elements: str, default: [], description: "On a manager, host names or node ids of nodes
      that left. They are removed from the list as soon as they are down. A node that stays up is an error. With
      O(state=absent), this happens before the manager itself leaves. It is skipped where the swarm ends with this
      manager."}
  return_tokens: {type: bool, default: false, description: "On a manager, return RV(join_tokens). Set C(no_log=true) on
      the task."}
  timeout: {type: int, default: 60, description: "Seconds to wait for each effect, such as the node being active."}
attributes:
  check_mode: {support: partial, description: Predicts what will be done., details: "Where the engine is missing or
      stopped, the host is assumed to be in no swarm. The order of a manager's list can only be predicted where the host
      is a manager already."}
  diff_mode: {support: full, description: "Shows membership, and each node of the list that changes, before and after."}
  idempotent: {support: full, description: A second run with the same parameters changes nothing.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Create the swarm on the first manager
  swarmspeed.cluster.swarm_membership:
    state: manager
    cluster: demo
    init: true
    advertise_addr: 10.20.0.11
    return_tokens: true
  no_log: true
  register: first

- name: Join as a worker
  swarmspeed.cluster.swarm_membership:
    state: worker
    cluster: demo
    cluster_id: "{{ first.cluster_id }}"
    member_ids: "{{ first.nodes | map(attribute='id') }}"
    remote_addrs: ["10.20.0.11:2377"]
    join_token: "{{ first.join_tokens.worker }}"
    advertise_addr: 10.20.0.12
"""

RETURN = r"""
actions: {returned: always, type: list, elements: str, sample: [leave foreign swarm, join as worker], description: "What
    was done, or would be done in check mode, in order."}
state: {returned: success, type: str, sample: worker, description: "What the host is now, or would be. V(other) is a
    host in another swarm, which is possible only with O(state=absent)."}
cluster_id: {returned: success, type: str, description: "Id of the swarm. On a worker, the value of O(cluster_id), as a
    worker does not know it. V(null) where neither is known."}
node_id: {returned: success, type: str, description: "Id of this node, V(null) where it has none (yet)."}
nodes:
  returned: success
  type: list
  elements: dict
  description: The list of nodes. Empty except on managers.
  contains:
    id: {returned: always, type: str, description: Node id.}
    hostname: {returned: always, type: str, description: Host name as the engine reports it.}
    role: {returned: always, type: str, description: manager or worker.}
    state: {returned: always, type: str, description: "ready, down, unknown or disconnected."}
    availability: {returned: always, type: str, description: "active, pause or drain."}
    addr: {returned: always, type: str, description: Address at which the managers see it.}
    leader: {returned: always, type: bool, description: Whether it leads the managers.}
join_tokens: {returned: 'on managers with O(return_tokens=true), except in check mode before the swarm exists', type:
    dict, description: Keys C(worker) and C(manager). One that equals O(join_token) is masked by Ansible.}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.engine.api_io import EngineError, SocketEngine
from ..module_utils.swarm.engine_io import SwarmHost, no_engine
from ..module_utils.swarm.remedies import explain
from ..module_utils.swarm.state import NONE, THIS, Current, Step, SwarmError, Wanted, diff, parse_wanted, relation
from ..module_utils.swarm.steps import check_join, notes, plan_membership, plan_nodes

ARGUMENTS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["manager", "worker", "absent"], "required": True},
    "cluster": {"type": "str", "required": True},
    "init": {"type": "bool", "default": False},
    "remote_addrs": {"type": "list", "elements": "str", "default": []},
    "join_token": {"type": "str", "no_log": True},
    "member_ids": {"type": "list", "elements": "str"},
    "cluster_id": {"type": "str"},
    "advertise_addr": {"type": "str"},
    "listen_addr": {"type": "str", "default": "0.0.0.0:2377"},
    "data_path_addr": {"type": "str"},
    "data_path_port": {"type": "int"},
    "default_addr_pool": {"type": "list", "elements": "str", "default": []},
    "subnet_size": {"type": "int"},
    "leave_foreign": {"type": "bool", "default": False},
    "adopt": {"type": "bool", "default": False},
    "force": {"type": "bool", "default": False},
    "hostnames": {"type": "dict", "default": {}},
    "node_roles": {"type": "dict", "default": {}},
    "node_availability": {"type": "dict", "default": {}},
    "removed_nodes": {"type": "list", "elements": "str", "default": []},
    "return_tokens": {"type": "bool", "default": False, "no_log": False},
    "timeout": {"type": "int", "default": 60},
}


class Run:
    """One call of the module: reads, plans, acts, and remembers what was planned."""

    wanted: Wanted

    def __init__(self, host: SwarmHost, check: bool) -> None:
        self.host = host
        self.check = check
        self.steps: list[Step] = []
        self.notes: list[str] = []
        self.current = Current()

    def converge(self, wanted: Wanted) -> None:
        """Bring the host from what it is to what is wanted, or in check mode only plan it."""
        self.wanted = wanted
        self.current = self._gather()
        self.notes = notes(self.current, wanted)
        if wanted.state == "absent":
            self._leave()
            return
        pending = self.current.state == "pending" and relation(self.current, wanted) == THIS
        self._act(plan_membership(self.current, wanted))
        if pending and not self.check:  # its role shows only now that it is active
            self._act(plan_membership(self.current, wanted))
        ours = not self.check or relation(self.current, wanted) == THIS
        if wanted.state == "manager" and self.current.manager and ours:
            self._act(plan_nodes(self.current, wanted))

    def actions(self) -> list[str]:
        """What was done so far, in words."""
        return [step.words for step in self.steps if step.words]

    def result(self) -> dict[str, Any]:
        """What the module returns; after check mode, what it would be."""
        acted, now = self.actions(), self.current
        before, after = diff(self.steps)
        kind = relation(now, self.wanted)
        state = "absent" if kind == NONE else "manager" if now.manager else "worker"
        if self.check and acted:
            state = self.wanted.state
        elif self.wanted.state == "absent" and kind != NONE:
            state = "other"
        if self.check and any(step.kind in ("leave", "init", "join") for step in self.steps):
            now = Current()  # ids that the swarm has yet to give
        return {
            "changed": bool(acted),
            "actions": acted,
            "diff": {"before": before, "after": after},
            "state": state,
            "cluster_id": now.cluster_id or (self.wanted.cluster_id if state in ("manager", "worker") else "") or None,
            "node_id": now.node_id or None,
            "nodes": [
                {
                    key: getattr(node, key)
                    for key in ("id", "hostname", "role", "state", "availability", "addr", "leader")
                }
                for node in now.nodes
            ],
        }

    def _gather(self) -> Current:
        try:
            return self.host.read()
        except EngineError as error:
            stopped = isinstance(error.__cause__, ConnectionRefusedError)
            # In check mode the engine may be still to come. A host without one has nothing to leave; but a stopped
            # engine may be in a swarm, and cannot leave it.
            if no_engine(error) and (self.check or (self.wanted.state == "absent" and not stopped)):
                return Current()
            raise

    def _leave(self) -> None:
        leaving = plan_membership(self.current, self.wanted)
        survives = not leaving or leaving[0].kind == "role"
        if (
            self.wanted.removed_nodes
            and survives
            and self.current.manager
            and relation(self.current, self.wanted) == THIS
        ):
            self._act(plan_nodes(self.current, self.wanted))
        self._act(leaving)

    def _act(self, steps: list[Step]) -> None:
        if self.check:
            self.steps.extend(steps)
            return
        check_join(steps, self.wanted)
        for step in steps:
            if self.host.run(step, self.wanted):
                self.steps.append(step)
        if steps:
            self.current = self.host.read()


def main() -> None:
    """Run the module."""
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True)
    run = Run(SwarmHost(SocketEngine(), timeout=module.params["timeout"]), module.check_mode)
    try:
        if module.params["timeout"] < 1:
            raise SwarmError(f"timeout is {module.params['timeout']}; give a number of seconds, at least 1.")
        run.converge(parse_wanted(module.params))
        result = run.result()
        if module.params["return_tokens"] and run.current.cluster_id and result["state"] == "manager":
            result["join_tokens"] = run.host.tokens()
    except (SwarmError, EngineError) as error:
        failure = error if isinstance(error, SwarmError) else explain("talk to the Docker engine", error)
        done = run.actions()
        module.fail_json(msg=str(failure), actions=done, changed=bool(done))
    for note in run.notes:
        module.warn(note)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
