#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What apt would do to install NVIDIA's driver."""

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_preview
short_description: Ask apt what it would do to install NVIDIA's driver
version_added: 0.1.0
description:
  - Has apt simulate the installation in a temporary directory, with the host's own sources and one more, so that what
    would prevent it is known before anything is changed, in check mode too.
  - Chooses the first set of packages that apt can install, and the one version that all packages of the driver have.
  - Fails only where it cannot simulate at all. What prevents the installation is in RV(problems).
options:
  choices:
    type: list
    elements: dict
    required: true
    description: Sets of packages, the best first, each with C(kind), C(packages), C(locked), C(optional) and C(rivals).
    suboptions:
      kind: {type: str, required: true, description: What is returned as RV(kind) when this set is chosen.}
      packages: {type: list, elements: str, required: true, description: Packages to install.}
      locked: {type: list, elements: str, required: true, description: Those of the packages that must have the driver's
          version.}
      optional: {type: list, elements: str, default: [], description: Packages to add where they exist and bring no new
          kernel.}
      rivals: {type: list, elements: str, default: [], description: Installed packages that have to be removed first.}
  branch: {type: int, required: true, description: "The driver's branch, the first number of its version."}
  fabric: {type: list, elements: str, default: [], description: "Possible package names of the fabric manager, which is
      added in the driver's version."}
  exact: {type: str, description: "Version of a driver that is already there, for which only the fabric manager is
      wanted."}
  minimum: {type: str, default: '', description: Oldest acceptable version of the driver; empty for any.}
  kernel: {type: str, default: '', description: "The kernel that the module is wanted for, for messages."}
  builds_from: {type: str, default: '', description: Oldest version of the driver that DKMS can build on O(kernel);
      empty for any.}
  sources: {type: str, default: '', description: Text of a deb822 file to add to apt's sources.}
  address: {type: str, default: '', description: "Address of the new repository, to distinguish its errors from
      others."}
  without: {type: list, elements: path, default: [], description: Source files of the host that will be removed.}
  holds: {type: list, elements: str, default: [], description: Packages on hold that may change nevertheless.}
  purge_conflicting: {type: bool, default: false, description: Whether packages of another driver may be removed.}
extends_documentation_fragment: [swarmspeed.cluster.attributes.read_only]
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Simulate the installation of branch 550
  swarmspeed.cluster.driver_preview:
    branch: 550
    choices:
      - kind: dkms
        packages: [nvidia-kernel-dkms, nvidia-smi, libcuda1]
        locked: [nvidia-kernel-dkms, nvidia-smi, libcuda1]
"""

RETURN = r"""
kind: {returned: success, type: str, description: "The set that was chosen, or null."}
version: {returned: success, type: str, sample: 550.163.01, description: The driver's version.}
packages: {returned: success, type: list, elements: str, description: "What to pass to apt, with the version of each
    package that would change."}
locked: {returned: success, type: list, elements: str, description: "The packages that have the driver's version, the
    fabric manager among them."}
rivals: {returned: success, type: list, elements: str, description: Installed packages that have to be removed first.}
new: {returned: success, type: list, elements: str, description: Packages of the driver that are not installed yet.}
preferences: {returned: success, type: str, description: Text for a file in /etc/apt/preferences.d that keeps all
    packages of the driver at this version.}
installs: {returned: success, type: dict, description: "Packages that would be new, with their versions."}
replaces: {returned: success, type: dict, description: "Packages that would change, with their new versions."}
removes: {returned: success, type: dict, description: "Packages that would be removed, with their versions."}
problems: {returned: success, type: list, elements: str, description: "What prevents the installation, each a sentence
    with its remedy."}
notes: {returned: success, type: list, elements: str, description: "What a user should know of the installation, such as
    why DKMS builds the module, each a sentence."}
cannot_fetch: {returned: success, type: bool, description: Whether a repository could not be read.}
"""

import tempfile
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.apt.trial_io import SystemAptIO
from ..module_utils.driver.apt_failures import Goal
from ..module_utils.driver.packages import Choice
from ..module_utils.driver.preview import as_dict, gather


def _goal(requested: dict[str, Any]) -> Goal:
    choices = [
        Choice(entry["kind"], *(tuple(entry[name]) for name in ("packages", "locked", "optional", "rivals")))
        for entry in requested["choices"]
    ]
    names = ("exact", "minimum", "kernel", "builds_from")
    return Goal(choices, requested["branch"], tuple(requested["fabric"]), *(requested[name] for name in names))


def main() -> None:
    """Try and return."""
    names: dict[str, Any] = {"type": "list", "elements": "str"}
    module = AnsibleModule(
        argument_spec={
            "choices": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "kind": {"type": "str", "required": True},
                    "packages": {**names, "required": True},
                    "locked": {**names, "required": True},
                    "optional": {**names, "default": []},
                    "rivals": {**names, "default": []},
                },
            },
            "branch": {"type": "int", "required": True},
            "fabric": {**names, "default": []},
            "exact": {"type": "str"},
            "minimum": {"type": "str", "default": ""},
            "kernel": {"type": "str", "default": ""},
            "builds_from": {"type": "str", "default": ""},
            "sources": {"type": "str", "default": ""},
            "address": {"type": "str", "default": ""},
            "without": {"type": "list", "elements": "path", "default": []},
            "holds": {**names, "default": []},
            "purge_conflicting": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    requested = module.params
    try:
        with tempfile.TemporaryDirectory(prefix="swarmspeed-apt-") as folder:
            io = SystemAptIO(folder, requested["sources"], requested["without"])
            found = gather(io, _goal(requested), requested["address"])
    except OSError as error:
        module.fail_json(
            msg=f"Cannot try apt on this host: {error}. Is there space in /tmp, and may the account read apt's files "
            "(become: true)?"
        )
    module.exit_json(changed=False, **as_dict(found, purge=requested["purge_conflicting"], holds=requested["holds"]))


if __name__ == "__main__":
    main()
