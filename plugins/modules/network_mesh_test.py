#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One end of all pairs of nodes: start it, have it test the others, collect its results."""

from __future__ import annotations

DOCUMENTATION = r"""
module: network_mesh_test
short_description: Test the network between all pairs of nodes
version_added: 0.1.0
description:
  - Starts a process for a limited time, in the container or on a host without containers, that answers the other nodes
    and tests them; with O(outer), a second one on the host itself. All pairs are tested in rounds, all nodes at the
    same time.
  - Tests names, TCP on the rendezvous ports, a ping that must not be fragmented, ssh and the clock difference; on the
    host, TCP and UDP on the ports given; then two seconds of all-reduce. One tiny datagram to a port of the engine
    makes the engine log that it could not read it.
  - Does not judge the results; M(swarmspeed.cluster.network_test_result) does. A missing container is reported in
    RV(trouble).
options:
  step: {type: str, choices: [start, pairs, paired, collective, end], required: true, description: "V(start) starts the
      process. V(pairs) has it test the others, once all nodes have started theirs. V(paired) waits until it has.
      V(collective) has it run the all-reduce, once all nodes have tested all others. V(end) collects the results and
      ends the process."}
  run: {type: str, required: true, description: A word that distinguishes this run from concurrent ones.}
  token: {type: str, description: Token by which the nodes identify one another in this run.}
  node: {type: str, required: true, description: Name of this node among O(hosts).}
  hosts: {type: list, elements: str, required: true, description: "All nodes, in the same order everywhere."}
  container: {type: str, description: "Container in which the ranks run. When not given, they run on the host itself."}
  wrapper: {type: list, elements: str, default: [], description: Command words before O(python) that give it the
      environment of the ranks.}
  python: {type: str, default: python3, description: "Python with torch, 3.8 or later."}
  subnet: {type: str, description: The training network.}
  addresses: {type: dict, default: {}, description: Address of each node in the network between the hosts.}
  names: {type: dict, default: {}, description: "Names in the training network, by node, that must resolve to its
      address. None is checked when empty."}
  ports: {type: list, elements: int, default: [29500, 29599], description: First and last port for the rendezvous of
      ranks. The highest free one is used.}
  ssh: {type: bool, default: true, description: Whether each node must reach every other by ssh.}
  backend: {type: str, choices: [gloo, nccl], description: "Backend of the all-reduce. When not given, there is none."}
  env_file: {type: str, default: '', description: "File with the environment of the ranks, where O(wrapper) does not
      give it."}
  outer:
    type: dict
    description: What to test between the hosts themselves. Nothing when not given.
    suboptions:
      tcp: {type: dict, default: {}, description: "Ports of services that listen on a node, by node."}
      udp: {type: list, elements: int, default: [], description: Ports on which datagrams must arrive.}
      subnet: {type: str, required: true, description: The network between the hosts.}
  peers: {type: dict, default: {}, description: "RV(ready) of all nodes, by name. For V(pairs), V(collective), and
      V(end) after a collective."}
  life: {type: int, default: 300, description: Seconds after which the processes end by themselves.}
notes:
  - Run it with privileges (become); other accounts may not use the engine or see datagrams.
attributes:
  check_mode: {support: full, description: Runs the same in check mode. The processes change nothing and leave nothing
      behind.}
  diff_mode: {support: none, description: There is nothing to compare.}
  idempotent: {support: none, description: V(start) starts a process each time. The task never reports a change.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Start this node's end of all pairs
  swarmspeed.cluster.network_mesh_test:
    step: start
    run: "{{ run.id }}"
    token: "{{ run.token }}"
    node: "{{ inventory_hostname }}"
    hosts: "{{ ansible_play_hosts }}"
    container: "lab-{{ inventory_hostname }}"
    subnet: 10.64.0.0/24
  register: started
"""

RETURN = r"""
ready: {returned: with step start, type: dict, description: "Where the process answers. C(inner) is in the training
    network, C(outer) between the hosts."}
pairs: {returned: with steps paired and end, type: list, elements: dict, description: "What was found about the other
    nodes, one entry per node and check."}
passable: {returned: with steps paired and end, type: bool, description: "Whether every other node was reached, so that
    a collective can be tried."}
seen: {returned: with step end, type: dict, description: "Ports at which datagrams from the others arrived, by node."}
collective: {returned: with step end, type: dict, description: Result of the all-reduce. Empty where none was
    requested.}
trouble: {returned: success, type: dict, description: "Why nothing could be tested from here, with C(text) and
    C(remedy). Empty where it could."}
"""

import sys
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.common.reported import ReportedError, UnfitError, accept, address, whole
from ..module_utils.common.source_runner import command_for
from ..module_utils.fabric.pair_rounds import rounds
from ..module_utils.fabric.probe_io import Gone, PeerIO, SystemPeerIO, collective_source

INNER = "inner"
OUTER = "outer"
START = 60.0
COLLECTIVE = 100.0
"""Seconds that the engine and Python may take to start, and torch to come and to reduce."""
PACKAGES = ["torch", "deepspeed", "transformers", "accelerate", "nvidia-nccl-cu12", "nvidia-nccl-cu13"]
ODD = "its answer is not of its form"
UP = "ansible-playbook site.yml --tags training_container"


class InvalidRequest(Exception):
    """The arguments cannot be meant. The text says which and what to do."""


def order(hosts: list[str], node: str) -> list[str]:
    """The other nodes, in the order in which this one tries them."""
    if node not in hosts or len(set(hosts)) < len(hosts):
        raise InvalidRequest(f"hosts: {', '.join(hosts)}. Give each node once, {node} among them.")
    return [other for pairs in rounds(hosts) for pair in pairs if node in pair for other in pair if other != node]


def requests(params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What is requested of each end."""
    others = order(params["hosts"], params["node"])
    if not params["token"] or not params["subnet"] or len(params["ports"]) != 2:
        raise InvalidRequest("token, subnet and ports (first and last) are needed to start.")
    common = {
        **{key: params[key] for key in ("node", "token", "life")},
        "address": params["addresses"].get(params["node"], ""),
        "interface": "",
        "packages": [],
    }
    requested = {
        INNER: {
            **common,
            "subnet": params["subnet"],
            "ports": params["ports"],
            "names": {name: params["names"][name] for name in others if params["names"].get(name)},
            "ssh": params["ssh"],
            "udp": [],
            "tcp": {},
            "packages": PACKAGES,
            "backend": params["backend"] or "",
            "env_file": params["env_file"],
            "collective": collective_source(),
        }
    }
    if params["outer"]:
        outer = params["outer"]
        requested[OUTER] = {
            **common,
            **{"subnet": outer["subnet"], "udp": outer["udp"], "tcp": outer["tcp"]},
            **{"ports": [], "names": {}, "ssh": False, "backend": "", "env_file": "", "collective": ""},
        }
    return requested


def start(params: dict[str, Any], system: PeerIO, python: str) -> dict[str, Any]:
    """Start both ends; wait until they answer."""
    requested = requests(params)
    commands = {INNER: command_for(params["container"], params["wrapper"], params["python"])}
    if OUTER in requested:
        commands[OUTER] = command_for(None, [], python)
    for name, command in commands.items():
        system.start(name, command, requested[name])
    ready = {name: system.wait(name, "ready", START) for name in commands}
    contained = "ansible-playbook site.yml --tags overlay_network,training_container"
    for name, answer in ready.items():
        if not isinstance(answer.get("error", ""), str):
            raise Gone(ODD)
        if answer.get("error"):
            remedy = (
                contained
                if name == INNER and params["container"]
                else "correct cluster_underlay_subnet or cluster_address"
            )
            return {"ready": {}, "trouble": {"text": answer["error"], "remedy": remedy}}
    return {"ready": ready}


def ends(params: dict[str, Any]) -> list[str]:
    return [INNER, OUTER] if params["outer"] else [INNER]


def peer_of(name: str, reported: Any, end: str) -> dict[str, Any]:
    """Return where another node answers, as it reported; empty where it does not."""
    found = reported.get(end) if isinstance(reported, dict) else reported
    if not found:
        return {}
    if not isinstance(found, dict):
        accept(name, f"network_mesh_test.ready.{end}", found, not_a_mapping)
    accept(name, f"network_mesh_test.ready.{end}.address", found.get("address"), address)
    for key in ("port", "store_port", "mtu"):
        accept(name, f"network_mesh_test.ready.{end}.{key}", found.get(key) or 0, whole(0, 1 << 32))
    return dict(found)


def not_a_mapping(value: Any) -> Any:
    raise UnfitError(value, "a mapping")


def try_pairs(params: dict[str, Any], system: PeerIO) -> dict[str, Any]:
    """Have both ends try those that answer."""
    others = order(params["hosts"], params["node"])
    for end in ends(params):
        found = {name: peer_of(name, params["peers"].get(name), end) for name in params["hosts"]}
        peers = {name: peer for name, peer in found.items() if peer}
        system.send(end, {"do": "pairs", "peers": peers, "order": [name for name in others if name in peers]})
    return {}


def results(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """What was found about pairs. In a container anything may have answered. Raises ``Gone``."""
    found = answer.get("results")
    whole_one = isinstance(found, list) and all(
        isinstance(one, dict)
        and isinstance(one.get("to"), str)
        and isinstance(one.get("check"), str)
        and isinstance(one.get("ok"), bool)
        for one in found
    )
    if not isinstance(found, list) or not whole_one:
        raise Gone(ODD)
    return found


def paired(params: dict[str, Any], system: PeerIO) -> dict[str, Any]:
    found = [{**one, "end": end} for end in ends(params) for one in results(system.wait(end, "pairs", 240))]
    failed = [one for one in found if one["end"] == INNER and one["check"] in ("tcp", "mtu") and not one["ok"]]
    tried = {one["to"] for one in found if one["end"] == INNER and one["check"] == "tcp"}
    return {"pairs": found, "passable": not failed and len(tried) == len(params["hosts"]) - 1}


def reduce(params: dict[str, Any], system: PeerIO) -> dict[str, Any]:
    first = peer_of(params["hosts"][0], params["peers"].get(params["hosts"][0]), INNER)
    place = {"master": first["address"], "port": first["store_port"], "backend": params["backend"]}
    rank = params["hosts"].index(params["node"])
    system.send(INNER, {"do": "collective", "rank": rank, "world": len(params["hosts"]), "seconds": 2, **place})
    return {}


def end(params: dict[str, Any], system: PeerIO) -> dict[str, Any]:
    """Gather what is there, and end both ends."""
    answer = paired(params, system)
    answer["collective"] = {}
    if params["backend"] and params["peers"]:
        answer["collective"] = system.wait(INNER, "collective", COLLECTIVE)
    for name in ends(params):
        system.send(name, {"do": "end"})
    answer["seen"] = {}
    for name in ends(params):
        seen = system.wait(name, "ended", 10).get("seen")
        if not isinstance(seen, dict):
            raise Gone(ODD)
        answer["seen"].update(seen)
    return answer


def step(params: dict[str, Any], system: PeerIO, python: str) -> dict[str, Any]:
    """Do what is requested; what keeps this node from it is an answer."""
    result = {"changed": False, "trouble": {}, "ready": {}, "pairs": [], "seen": {}, "collective": {}}
    try:
        if params["step"] == "start":
            return {**result, **start(params, system, python)}
        work = {"pairs": try_pairs, "paired": paired, "collective": reduce, "end": end}[params["step"]]
        return {**result, **work(params, system)}
    except Gone as error:
        words = str(error)
        if params["container"] and ("No such container" in words or "is not running" in words):
            words = f"its container {params['container']} does not run"
        where = f"in the container {params['container']}" if params["container"] else "on the host"
        remedy = UP if params["container"] else f"see whether {params['python']} runs there"
        text = words if words.startswith("its ") else f"what tries the network {where} gave up ({words})"
        return {**result, "passable": False, "trouble": {"text": text, "remedy": remedy}}


def main() -> None:
    """Do one step."""
    names = {"type": "list", "elements": "str", "default": []}
    mappings = {"type": "dict", "default": {}}
    module = AnsibleModule(
        argument_spec={
            "step": {
                "type": "str",
                "choices": ["start", "pairs", "paired", "collective", "end"],
                "required": True,
            },
            "run": {"type": "str", "required": True},
            "token": {"type": "str", "no_log": True},
            "node": {"type": "str", "required": True},
            "hosts": {"type": "list", "elements": "str", "required": True},
            "container": {"type": "str"},
            "wrapper": names,
            "python": {"type": "str", "default": "python3"},
            "subnet": {"type": "str"},
            "addresses": mappings,
            "names": mappings,
            "ports": {"type": "list", "elements": "int", "default": [29500, 29599]},
            "ssh": {"type": "bool", "default": True},
            "backend": {"type": "str", "choices": ["gloo", "nccl"]},
            "env_file": {"type": "str", "default": ""},
            "outer": {
                "type": "dict",
                "options": {
                    "tcp": mappings,
                    "udp": {"type": "list", "elements": "int", "default": []},
                    "subnet": {"type": "str", "required": True},
                },
            },
            "peers": mappings,
            "life": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    if not module.params["run"].isalnum():
        module.fail_json(msg=f"network_mesh_test: run: {module.params['run']!r}. Use letters and digits only.")
    try:
        module.exit_json(**step(module.params, SystemPeerIO(module.params["run"]), sys.executable))
    except ReportedError as error:
        module.fail_json(msg=str(error))
    except (InvalidRequest, KeyError) as error:
        module.fail_json(msg=f"network_mesh_test: {error}")
    except OSError as error:
        module.fail_json(msg=f"network_mesh_test: {error}. Use become.")


if __name__ == "__main__":
    main()
