#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Packages of an offline bundle, on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bundle_send
short_description: Bring the packages of an offline bundle that a node lacks to it
version_added: 0.1.0
description:
  - Compares what is installed on a node with what the bundle holds for its system, and sends what it lacks as one
    archive, with a list of just these packages, to C(/var/lib/swarmspeed-bundle).
  - The node's own sources are left as they are. C(apt.conf) in that folder has apt ask the packages there and nothing
    else; it holds where C(APT_CONFIG) names it in the environment, and nowhere else.
  - Has apt simulate the installation at once, so that what does not fit together is known before anything is installed.
  - Implemented as an action plugin with a module of the same name, which runs on the node.
options:
  bundle:
    description: Folder of the bundle on the controller. M(swarmspeed.cluster.preflight) has verified it.
    type: path
    required: true
  system:
    description: Section C(system) of the facts of M(swarmspeed.cluster.node_facts).
    type: dict
    required: true
  packages:
    description: Names of the packages that are going to be installed, for the simulation.
    type: list
    elements: str
    default: []
  archive:
    description: The archive on the node. Given by the action plugin.
    type: path
  files:
    description: SHA-256 by name of the files in it. Given by the action plugin.
    type: dict
    default: {}
attributes:
  check_mode:
    support: full
    description: Compares, and sends nothing.
  diff_mode:
    support: none
    description: Files of packages are not shown as a diff.
  idempotent:
    support: N/A
    description: What is sent is removed again when the playbook is through; read only where packages are missing.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Send what a node lacks
  swarmspeed.cluster.bundle_send:
    bundle: /srv/bundle
    system: "{{ ansible_facts['swarmspeed']['system'] }}"
    packages: [docker.io, python3-docker]
"""

RETURN = r"""
sent:
  description: Names of the files that the node lacks.
  returned: success
  type: list
  elements: str
bytes:
  description: Size of them together.
  returned: success
  type: int
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.bundle_io import (
    PLACE,
    BundleAptError,
    ask,
    installed,
    lay_out,
    remove,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.bundle_packages import parse_installed


def main() -> None:
    """Say what is installed, or make a source of what has arrived."""
    module = AnsibleModule(
        argument_spec={
            "bundle": {"type": "path", "required": True},
            "system": {"type": "dict", "required": True},
            "packages": {"type": "list", "elements": "str", "default": []},
            "archive": {"type": "path"},
            "files": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    requested, place = module.params, Path(PLACE)
    try:
        if requested["archive"] is None:
            module.exit_json(changed=False, installed=parse_installed(installed()))
        try:
            lay_out(place, Path(requested["archive"]), requested["files"])
            ask(place, requested["packages"])
        except BaseException:
            remove(place)
            raise
    except BundleAptError as error:
        module.fail_json(msg=f"{str(error).rstrip('. ')}.")
    except OSError as error:
        module.fail_json(msg=f"Cannot lay out packages in {PLACE}: {error}. Is there space?")
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
