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
options:
  path:
    description: Where the hostfile is. Its folder must exist. A symbolic link is followed.
    type: path
    required: true
  hosts:
    description: The hosts, rank 0 first. Required with O(state=present).
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Name or IPv4 address by which the launching host reaches this one over ssh. Must be given.
          - Letters, digits, C(.), C(-) and C(_), beginning with a letter or digit, at most 253 characters. Names that
            differ only in letter case count as the same host.
        type: str
      slots:
        description:
          - Number of processes on the host, one for each GPU, from 1 to 1024. Must be given.
          - A whole number. Other types are taken here only so that V(true) and V(2.5) can be refused by name.
        type: raw
  state:
    description: Whether the hostfile is there.
    type: str
    choices: [present, absent]
    default: present
  force:
    description:
      - Replace or remove a file that DeepSpeed could not read as a hostfile. A copy is kept beside it.
      - Without it such a file is left as it is and the module fails, because the path may be a slip.
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
    description: Changes nothing where the file and its attributes are as asked for.
notes:
  - The grammar of the file is that of C(deepspeed/launcher/runner.py), DeepSpeed 0.19.8.
seealso:
  - module: swarmspeed.cluster.ds_config
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

- name: No hostfile any more
  swarmspeed.cluster.hostfile:
    path: /job/hostfile
    state: absent
"""

RETURN = r"""
hosts:
  description: The hosts as written, rank 0 first.
  returned: success with O(state=present)
  type: list
  elements: dict
  contains:
    name: {description: Name of the host., type: str, returned: always}
    slots: {description: Processes on the host., type: int, returned: always}
  sample: [{name: gpu1, slots: 8}, {name: gpu2, slots: 8}]
world_size:
  description: Number of ranks over all hosts, the sum of their slots.
  returned: success with O(state=present)
  type: int
  sample: 16
first_host:
  description: Name of the host of rank 0, where the master address is.
  returned: success with O(state=present)
  type: str
  sample: gpu1
errors:
  description: Everything that is wrong with O(hosts).
  returned: failure because of O(hosts)
  type: list
  elements: dict
  contains:
    path: {description: "Where, such as C(hosts[1].slots).", type: str, returned: always}
    message: {description: What is wrong and what to do., type: str, returned: always}
backup_file:
  description: Copy of the file that was replaced or removed.
  returned: when O(force=true) replaced or removed a file that is no hostfile
  type: str
  sample: /job/hostfile.812.2026-11-20@10:00:00~
"""

from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils._hostfile import (
    HostfileError,
    HostsError,
    check,
    parse,
    render,
    world_size,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils._problems import as_dicts, summary
from ansible_collections.swarmspeed.cluster.plugins.module_utils._text_file import (
    Found,
    TextFileError,
    left_alone,
    read,
    settle,
)

ARGUMENTS: dict[str, dict[str, Any]] = {
    "path": {"type": "path", "required": True},
    "hosts": {
        "type": "list",
        "elements": "dict",
        "options": {"name": {"type": "str"}, "slots": {"type": "raw"}},
    },
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


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        dict(ARGUMENTS),
        supports_check_mode=True,
        add_file_common_args=True,
        required_if=[("state", "present", ("hosts",))],
    )
    path = module.params["path"]
    result: dict[str, Any] = {"path": path}
    wanted = None
    try:
        if module.params["state"] == "present":
            hosts = check(module.params["hosts"])
            wanted = render(hosts)
            result.update(
                hosts=[asdict(host) for host in hosts], world_size=world_size(hosts), first_host=hosts[0].name
            )
        found = read(path)
        reason = fault(found)
        if reason and not module.params["force"]:
            raise left_alone(path, "DeepSpeed hostfile", reason)
        result.update(settle(module, found, wanted, backup=bool(reason)))
    except HostsError as error:
        module.fail_json(
            msg=summary(f"The hostfile {path} was not written", error.problems), errors=as_dicts(error.problems)
        )
    except TextFileError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
