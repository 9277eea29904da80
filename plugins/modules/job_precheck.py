#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Check a node of a job once, from where its ranks will run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: job_precheck
short_description: Check a node of a job just before it starts
version_added: 0.1.0
description:
  - Checks from inside the container, or from the host, in one process and within seconds, names, ssh, image and
    releases, shared and locked memory, GPUs, rendezvous port, script, data, configuration and space for checkpoints.
    The filter P(swarmspeed.cluster.launch_problems#filter) judges the results of all nodes.
  - Removes locks (an empty file C(lock)) in torch's extension cache that no process holds, as every rank would wait for
    them forever. A lock is dead when it is older than 60 s and no process has it open or is busy in its folder. In a
    folder that is mounted into the container, nothing may have changed for 30 minutes, as the holder could be in
    another container. On a network file system, a lock is reported and never removed.
  - Fails only where its parameters are wrong. A missing container is reported in RV(probe).
options:
  container: {type: str, description: "Container in which the ranks will run. When not given, they run on the host
      itself."}
  wrapper: {type: list, elements: str, default: [], description: Command words before O(python) that give it the
      environment of the ranks.}
  python: {type: str, default: python3, description: "Python of the job, 3.8 or later. Releases are those of its
      installed packages; nothing is imported."}
  node: {type: str, required: true, description: Name of this node among O(members).}
  members:
    type: list
    elements: dict
    required: true
    description: All nodes of the job.
    suboptions:
      name: {type: str, required: true, description: "Its name, as in the inventory and for ssh."}
      host: {type: str, default: '', description: "Its name in the training network, which must resolve to its address.
          Not resolved when empty."}
  names_timeout: {type: int, default: 0, description: "Seconds to wait, with a message, for names that the DNS of an
      overlay network does not resolve yet. Used by the action plugin only."}
  subnet: {type: str, default: '', description: "The training network. With it, only addresses of that network count."}
  transport: {type: str, choices: [direct, pdsh], default: direct, description: With V(pdsh) every node tries to reach
      every other by ssh.}
  ssh_config: {type: str, default: '', description: "Configuration file for ssh. When empty, ssh uses its defaults."}
  packages: {type: list, elements: str, default: [torch, deepspeed, transformers, accelerate], description: Python
      packages whose releases must be the same on all nodes.}
  programs: {type: list, elements: str, default: [], description: Programs that the launch calls.}
  modules: {type: list, elements: str, default: [], description: "Python modules that the launch runs, as C(python -m)
      does from O(chdir)."}
  chdir: {type: str, default: '', description: Working directory of the ranks.}
  code: {type: str, default: '', description: "Folder of the job's own copy of the source, relative to O(chdir), where
      what it has is checked."}
  script: {type: str, default: '', description: "The script, relative to O(chdir). Not checked when empty."}
  data_paths: {type: list, elements: str, default: [], description: Files and folders that must be there.}
  checkpoints: {type: str, default: '', description: "Folder of the checkpoints, which need not exist yet. Not checked
      when empty."}
  checkpoint_gib: {type: float, default: 0, description: GiB that must be free there. Not checked when 0.}
  ds_config: {type: str, default: '', description: Configuration of DeepSpeed. Not checked when empty.}
  hostfile: {type: str, default: '', description: "The hostfile, without which DeepSpeed would train on one node only.
      Not checked when empty."}
  slots: {type: list, elements: int, default: [0], description: Numbers of the slots that the job uses here.}
  accelerator: {type: str, choices: [cpu, cuda], default: cpu, description: "With V(cuda), C(nvidia-smi) is queried to
      check whether the GPUs of the slots are free."}
  operators: {type: list, elements: str, default: [], description: "Operators of DeepSpeed that the job needs, by the
      names of its build variables, such as C(FUSED_ADAM)."}
  master_port: {type: int, default: 0, description: "Port of the rendezvous, on the node of rank 0. Not checked when
      0."}
  torch_extensions: {type: str, default: '', description: Where torch keeps what it compiles. By default as torch
      determines it.}
notes:
  - Run it with privileges (become); other accounts may not use the engine or see the processes that hold a lock.
  - A container shows little of other containers' processes on a GPU, but it shows that GPU memory is in use.
attributes:
  check_mode: {support: full, description: Checks in the same way. Dead locks are reported and not removed.}
  diff_mode: {support: full, description: The locks that are removed.}
  idempotent: {support: full, description: A removed lock is not removed again.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Check every node of a job
  swarmspeed.cluster.job_precheck:
    container: "lab-{{ inventory_hostname }}"
    node: "{{ inventory_hostname }}"
    members:
      - {name: lab1, host: lab-lab1}
      - {name: lab2, host: lab-lab2}
    chdir: /workspace
    script: train.py
    programs: [deepspeed]
  register: checked
"""

RETURN = r"""
probe:
  returned: success
  type: dict
  description: What P(swarmspeed.cluster.launch_problems#filter) reads.
  contains:
    asked: {returned: always, type: dict, description: "What was requested, as far as needed to judge the result."}
    image: {returned: always, type: dict, description: "The image of the container. C(reference), C(id), and C(content),
        a digest of its layers. Empty on a host."}
    answer: {returned: always, type: dict, description: What was found. Empty where the checks could not run.}
    trouble: {returned: always, type: dict, description: "Why the checks could not run, with C(text) and C(remedy).
        Empty where they could."}
removed_locks: {returned: success, type: list, elements: str, description: "Dead locks that were removed, or would be."}
"""

import ipaddress
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.common.source_runner import command_for
from ..module_utils.engine.api_io import EngineError, SocketEngine
from ..module_utils.job.probe_io import ProbeIO, SystemProbeIO, read_answer, request_for

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
UP = "ansible-playbook site.yml --tags training_container"


class InvalidRequest(Exception):
    """The arguments cannot be meant. The text says which and what to do."""


def request(params: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    """What the check itself is to do."""
    for member in params["members"]:
        for text in (member["name"], member["host"]):
            if text and not NAME.fullmatch(text):
                raise InvalidRequest(
                    f"members: {text!r} is not a name of a host; use letters, digits, '.', '_' and '-'."
                )
    others = [member for member in params["members"] if member["name"] != params["node"]]
    if len(others) == len(params["members"]):
        raise InvalidRequest(f"node: {params['node']!r} is not among members; give the name that it has there.")
    if not 0 <= params["master_port"] <= 65535:
        raise InvalidRequest(f"master_port: {params['master_port']} is not within 0 and 65535.")
    try:
        ipaddress.ip_network(params["subnet"] or "10.0.0.0/8", strict=False)
    except ValueError as error:
        raise InvalidRequest(f"subnet: {error}. Write it as in 10.20.0.0/24.") from error
    copied = ("ssh_config", "packages", "programs", "operators", "chdir", "code", "script", "data_paths", "checkpoints")
    return {
        **{
            key: params[key]
            for key in (*copied, "modules", "ds_config", "hostfile", "torch_extensions", "master_port", "accelerator")
        },
        "names": {member["name"]: member["host"] for member in others if member["host"]},
        "ssh": [member["name"] for member in others] if params["transport"] == "pdsh" else [],
        "smi": params["accelerator"] == "cuda",
        "remove_locks": not check_mode,
        "sees_all": not params["container"],
    }


def gather(params: dict[str, Any], check_mode: bool, system: ProbeIO) -> dict[str, Any]:
    """Look, and say what was removed."""
    requested = request(params, check_mode)
    container = params["container"]
    kept = ("subnet", "transport", "accelerator", "slots", "checkpoint_gib", "chdir")
    probe: dict[str, Any] = {
        "asked": {**{key: params[key] for key in kept}, "runtime": "container" if container else "host"},
        "image": {},
        "answer": {},
        "trouble": {},
    }
    nothing = {"changed": False, "probe": probe, "removed_locks": []}
    if container:
        try:
            found = system.inspect(container)
        except EngineError as error:
            probe["trouble"] = {"text": str(error), "remedy": "ansible-playbook site.yml --tags docker"}
            return nothing
        if found is None or not found["running"]:
            words = "does not run" if found else "does not exist"
            probe["trouble"] = {"text": f"its container {container} {words}", "remedy": UP}
            return nothing
        probe["image"] = {key: found[key] for key in ("reference", "id", "content")}
    done = system.run(command_for(container, params["wrapper"], params["python"]), request_for(requested))
    answer = read_answer(done.stdout)
    if done.rc == 0 and answer:
        probe["answer"] = answer
    else:
        where = f"in its container {container}" if container else "on the host"
        remedy = f"it needs {params['python']} 3.8 or later {'in the image' if container else 'there'}"
        probe["trouble"] = {"text": f"its checks could not run {where}: {done.final_line}", "remedy": remedy}
    state = "dead" if check_mode else "removed"
    gone = [lock["path"] for lock in probe["answer"].get("locks", []) if lock["state"] == state and not lock["error"]]
    before = "".join(f"{path}\n" for path in gone)
    diff = {"before": before, "after": "", "before_header": "dead locks", "after_header": "dead locks"}
    return {"changed": bool(gone), "diff": diff, "probe": probe, "removed_locks": gone}


def main() -> None:
    """Look and return."""
    text: dict[str, Any] = {"type": "str", "default": ""}
    names: dict[str, Any] = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            "container": {"type": "str"},
            "wrapper": names,
            "python": {"type": "str", "default": "python3"},
            "node": {"type": "str", "required": True},
            "members": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {"name": {"type": "str", "required": True}, "host": text},
            },
            "names_timeout": {"type": "int", "default": 0},
            "subnet": text,
            "transport": {"type": "str", "choices": ["direct", "pdsh"], "default": "direct"},
            "ssh_config": text,
            "packages": {**names, "default": ["torch", "deepspeed", "transformers", "accelerate"]},
            "programs": names,
            "modules": names,
            "chdir": text,
            "code": text,
            "script": text,
            "data_paths": names,
            "checkpoints": text,
            "checkpoint_gib": {"type": "float", "default": 0},
            "ds_config": text,
            "hostfile": text,
            "slots": {"type": "list", "elements": "int", "default": [0]},
            "accelerator": {"type": "str", "choices": ["cpu", "cuda"], "default": "cpu"},
            "operators": names,
            "master_port": {"type": "int", "default": 0},
            "torch_extensions": text,
        },
        supports_check_mode=True,
    )
    try:
        result = gather(module.params, module.check_mode, SystemProbeIO(SocketEngine()))
    except InvalidRequest as error:
        module.fail_json(msg=f"job_precheck: {error}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
