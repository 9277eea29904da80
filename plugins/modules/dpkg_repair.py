#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Finish what an interrupted dpkg left unfinished."""

from __future__ import annotations

DOCUMENTATION = r"""
module: dpkg_repair
short_description: Repair an interrupted dpkg
version_added: 0.1.0
description:
  - Has dpkg configure unfinished packages (C(dpkg --configure -a)). Where packages were interrupted while being
    unpacked, also has apt install them again (C(apt-get --fix-broken install)), which may need a package source.
  - Never prompts. Configuration files that were changed on the host stay, and no package is removed. Waits for another
    dpkg or apt that is running.
options:
  lock_timeout: {type: int, default: 300, description: Seconds to wait for another dpkg or apt to end.}
  timeout: {type: int, default: 1800, description: Seconds that each of the two commands may take. One that takes longer
      is ended.}
attributes:
  check_mode: {support: full, description: "Reports a change where dpkg was interrupted, and repairs nothing."}
  diff_mode: {support: none, description: The packages are in RV(found).}
  idempotent: {support: full, description: "Where nothing is unfinished, nothing is changed."}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Repair an interrupted dpkg
  swarmspeed.cluster.dpkg_repair:
    lock_timeout: 60
"""

RETURN = r"""
found: {returned: success, type: dict, sample: {unfinished: [rsync (half-configured)], journal: false, busy: false},
    description: "What was unfinished. C(unfinished), packages with their state; C(journal), whether dpkg's journal
    waited to be read; C(busy), whether another dpkg was at work."}
commands: {returned: success, type: list, elements: str, description: "Commands that were run, or in check mode would be
    run first."}
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.apt.dpkg_io import SystemDpkg
from ..module_utils.apt.dpkg_state import DpkgError, Limits, repair


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "lock_timeout": {"type": "int", "default": 300},
            "timeout": {"type": "int", "default": 1800},
        },
        supports_check_mode=True,
    )
    for name, least in (("lock_timeout", 0), ("timeout", 1)):
        if module.params[name] < least:
            module.fail_json(
                msg=f"{name} is {module.params[name]}. Remedy: give a number of seconds, at least {least}."
            )
    limits = Limits(module.params["lock_timeout"], module.params["timeout"])
    try:
        found, commands = repair(SystemDpkg(), limits, check=module.check_mode, sleep=time.sleep, clock=time.monotonic)
    except DpkgError as error:
        module.fail_json(msg=f"{error}.")
    module.exit_json(changed=bool(commands), found=found.facts(), commands=commands)


if __name__ == "__main__":
    main()
