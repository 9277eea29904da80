#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Packages of an offline bundle, on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bundle_send
short_description: Send a node the packages of an offline bundle that it lacks
version_added: 0.1.0
description:
  - Compares what is installed on a node with what the bundle holds for its system, and sends what it lacks as one
    archive, with a list of just these packages, to C(/var/lib/swarmspeed-bundle).
  - The node's own sources are left as they are. C(apt.conf) in that folder makes apt use the packages there and nothing
    else. It applies only where C(APT_CONFIG) in the environment names it.
  - Has apt simulate the installation right away, so that incompatibilities are known before anything is installed.
  - Implemented as an action plugin with a module of the same name, which runs on the node.
options:
  bundle: {type: path, required: true, description: Folder of the bundle on the controller.
      M(swarmspeed.cluster.preflight) has verified it.}
  system: {type: dict, required: true, description: Section C(system) of the facts of M(swarmspeed.cluster.node_facts).}
  packages: {type: list, elements: str, default: [], description: "Names of the packages that will be installed, for the
      simulation."}
  archive: {type: path, description: The archive on the node. Set by the action plugin.}
  files: {type: dict, default: {}, description: "SHA-256 of the files in the archive, by name. Set by the action
      plugin."}
attributes:
  check_mode: {support: full, description: "Compares, and sends nothing."}
  diff_mode: {support: none, description: Files of packages are not shown as a diff.}
  idempotent: {support: N/A, description: "What is sent is removed when the playbook ends, unless the variable
      C(host_bundle_keep) is true."}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Send what a node lacks
  swarmspeed.cluster.bundle_send:
    bundle: /srv/bundle
    system: "{{ ansible_facts['swarmspeed']['system'] }}"
    packages: [docker.io, python3-docker]
"""

RETURN = r"""
sent: {returned: success, type: list, elements: str, description: Names of the files that the node lacks.}
bytes: {returned: success, type: int, description: Total size of these files.}
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.apt.bundle_io import PLACE, BundleAptError, ask, installed, lay_out, remove
from ..module_utils.apt.bundle_packages import parse_installed


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
