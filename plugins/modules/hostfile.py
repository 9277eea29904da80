#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes a DeepSpeed hostfile."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hostfile
short_description: Write a DeepSpeed hostfile
version_added: 0.1.0
description:
  - Writes the hosts of a DeepSpeed job, one C(name slots=N) a line, in the order given, which is the order of ranks.
  - Writes nothing else, so that every launcher and C(ds_ssh) read it alike. Comments and further words in an existing
    file are dropped, because C(ds_ssh) takes the first word of every line for a host.
  - Checks all hosts before anything is written, and reports all problems at once.
  - Resolves DeepSpeed's C(--include) and C(--exclude) for one launch into text that names every slot. The file itself
    always lists all hosts with all their slots, as it can only say how many slots a host has, not which are used.
options:
  path:
    description: Path of the hostfile. Its folder must exist. A symbolic link is followed.
    type: path
    required: true
  hosts:
    description:
      - The hosts, rank 0 first. Required with O(state=present).
      - Either a list of mappings with C(name) and C(slots), both of which must be given, or one mapping of name to
        slots. Both keep their order. Text is not parsed.
      - >-
        A name is the name or IPv4 address by which the launching host reaches this one over ssh: letters, digits, C(.),
        C(-) and C(_), beginning with a letter or digit, at most 253 characters. Names that differ only in letter case
        count as the same host.
      - Slots are the number of processes on the host, one for each GPU, from 1 to 1024. A host with 0 slots takes no
        part and is left out with a warning. At least one host must have a slot.
      - P(swarmspeed.cluster.to_hostfile#filter) creates the list from inventory hosts and their GPUs.
    type: raw
  include:
    description:
      - The hosts and slots that a launch uses, in the grammar of C(deepspeed --include),
        C(NAME[:SLOT[,SLOT...]][@NAME...]); a name alone means the whole host. The order is always that of O(hosts).
      - DeepSpeed 0.15.2 to 0.19.6 resolve a name alone to no slots, and accept slots that the host does not have.
        RV(include) names every slot, and so means the same to every release; a host or slot that does not exist is
        refused.
      - Text. Empty means no filter. Cannot be combined with O(exclude).
    type: raw
  exclude:
    description:
      - The hosts and slots that a launch does not use, in the grammar of O(include).
    type: raw
  first_host:
    description:
      - Name of the host that must hold rank 0, because the launcher gets its address as C(--master_addr).
      - The module fails where another host would hold it, because this one does not come first, has no slot, or is
        filtered out.
    type: raw
  state:
    description: Whether the hostfile should exist.
    type: str
    choices: [present, absent]
    default: present
  force:
    description:
      - Replace or remove a file that DeepSpeed could not read as a hostfile. A copy is kept beside it.
      - Without it such a file is left as it is and the module fails, because the path may be a mistake.
    type: bool
    default: false
  mode:
    description: Permissions of the file, as for M(ansible.builtin.file).
    type: raw
    default: "0644"
extends_documentation_fragment:
  - ansible.builtin.files
attributes:
  check_mode:
    support: full
    description: Shows what would change and changes nothing. Warns where the folder does not exist yet.
  diff_mode:
    support: full
    description: Shows the file before and after.
  idempotent:
    support: full
    description: Changes nothing where the file and its attributes are as requested.
notes:
  - The grammars of file and filters are those of C(deepspeed/launcher/runner.py), DeepSpeed 0.19.8.
  - Of DeepSpeed's launchers, C(pdsh) accepts every filter, and C(slurm), from 0.19.7 on, one that leaves each host the
    same first slots. C(openmpi), C(mpich), C(impi) and C(mvapich) accept none.
seealso:
  - module: swarmspeed.cluster.ds_config
  - module: swarmspeed.cluster.gpu_info
  - plugin: swarmspeed.cluster.to_hostfile
    plugin_type: filter
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Two servers with eight GPUs each
  swarmspeed.cluster.hostfile:
    path: /job/hostfile
    hosts:
      - name: gpu1
        slots: 8
      - name: gpu2
        slots: 8

- name: Every server of a group, with a slot for each GPU that gpu_info found there
  swarmspeed.cluster.hostfile:
    path: /job/hostfile
    hosts: "{{ groups['gpu_servers'] | swarmspeed.cluster.to_hostfile(hostvars) }}"

- name: A launch that leaves out the first GPU of gpu2
  swarmspeed.cluster.hostfile:
    path: /job/hostfile
    hosts: {gpu1: 4, gpu2: 4}
    exclude: gpu2:0
    first_host: gpu1
  register: hostfile
# hostfile.include is gpu1:0,1,2,3@gpu2:1,2,3, hostfile.world_size is 7, and the launch is
# deepspeed --hostfile /job/hostfile --include {{ hostfile.include }} --master_addr (the address of gpu1) ...

- name: Remove the hostfile
  swarmspeed.cluster.hostfile:
    path: /job/hostfile
    state: absent
"""

RETURN = r"""
hosts:
  description: The hosts as written, in the order of ranks.
  returned: success with O(state=present)
  type: list
  elements: dict
  contains:
    name: {description: Name of the host., type: str, returned: always}
    slots: {description: Processes on the host., type: int, returned: always}
  sample: [{name: gpu1, slots: 8}, {name: gpu2, slots: 8}]
left_out:
  description: Names of the hosts that are not written because they have 0 slots.
  returned: success with O(state=present)
  type: list
  elements: str
  sample: []
chosen:
  description: What the launch uses after O(include) or O(exclude), rank 0 first; everything where neither is given.
  returned: success with O(state=present)
  type: list
  elements: dict
  contains:
    name: {description: Name of the host., type: str, returned: always}
    slots: {description: "Numbers of its slots, counted from 0.", type: list, elements: int, returned: always}
  sample: [{name: gpu1, slots: [0, 1, 2, 3]}, {name: gpu2, slots: [1, 2, 3]}]
include:
  description:
    - What to pass to C(deepspeed --include), which every release of DeepSpeed resolves to RV(chosen).
    - Empty where everything is chosen and no filter is needed.
  returned: success with O(state=present)
  type: str
  sample: "gpu1:0,1,2,3@gpu2:1,2,3"
world_size:
  description: Number of ranks of the launch, the number of slots in RV(chosen).
  returned: success with O(state=present)
  type: int
  sample: 7
first_host:
  description: Name of the host of rank 0 in RV(chosen), where the master address is.
  returned: success with O(state=present)
  type: str
  sample: gpu1
errors:
  description: Everything that is wrong with O(hosts), O(include), O(exclude) and O(first_host).
  returned: failure because of one of these options
  type: list
  elements: dict
  contains:
    path: {description: "Where, such as C(hosts[1].slots).", type: str, returned: always}
    message: {description: What is wrong and what to do., type: str, returned: always}
backup_file:
  description: Copy of the file that was replaced or removed.
  returned: when O(force=true) replaced or removed a file that is not a hostfile
  type: str
  sample: /job/hostfile.812.2026-11-20@10:00:00~
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.common.problems import as_dicts
from ..module_utils.common.text_file import Found, TextFileError, apply, left_alone, read
from ..module_utils.hostfile.filters import Plan, plan
from ..module_utils.hostfile.text import HostfileError, HostsError, names_shown, parse, refusal, render

CHOICE = ("hosts", "include", "exclude", "first_host")
ARGUMENTS: dict[str, dict[str, Any]] = {
    "path": {"type": "path", "required": True},
    # raw, so that any other type is refused by the same words, and no number is taken for text
    **{name: {"type": "raw"} for name in CHOICE},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "force": {"type": "bool", "default": False},
    "mode": {"type": "raw", "default": "0644"},
}


def fault(found: Found) -> str:
    """Why DeepSpeed could not read what is there; empty for a hostfile, for an empty file and for none."""
    if not found.content or not found.content.strip():
        return ""
    if found.text is None:
        return "it is not UTF-8 text"
    try:
        parse(found.text)
    except HostfileError as error:
        return str(error)
    return ""


def facts(planned: Plan) -> dict[str, Any]:
    """What the module returns of a plan."""
    return {
        "hosts": [{"name": host.name, "slots": host.slots} for host in planned.hosts],
        "left_out": planned.left_out,
        "chosen": [{"name": host.name, "slots": list(host.slots)} for host in planned.chosen],
        "include": planned.include,
        "world_size": planned.world_size,
        "first_host": planned.first_host,
    }


def run_module(module: AnsibleModule) -> dict[str, Any]:
    """Write or remove the file as requested, and return the result."""
    path = module.params["path"]
    result: dict[str, Any] = {"path": path}
    wanted = None
    try:
        if module.params["state"] == "present":
            planned = plan(*(module.params[name] for name in CHOICE))
            wanted = render(planned.hosts)
            result.update(facts(planned))
            if planned.left_out:
                module.warn(f"Left out of the hostfile {path}, having 0 slots: {names_shown(planned.left_out)}")
        found = read(path)
        reason = fault(found)
        if reason and not module.params["force"]:
            raise left_alone(path, "DeepSpeed hostfile", reason)
        result.update(apply(module, found, wanted, backup=bool(reason)))
    except HostsError as error:
        module.fail_json(
            msg=refusal(f"The hostfile {path} was not written", error.problems), errors=as_dicts(error.problems)
        )
    except TextFileError as error:
        module.fail_json(msg=str(error))
    return result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        dict(ARGUMENTS),
        supports_check_mode=True,
        add_file_common_args=True,
        required_if=[("state", "present", ("hosts",))],
    )
    module.exit_json(**run_module(module))


if __name__ == "__main__":
    main()
