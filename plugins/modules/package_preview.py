#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What apt would do to install packages in a given version."""

from __future__ import annotations

DOCUMENTATION = r"""
module: package_preview
short_description: Ask apt what it would do to install packages in a given version
version_added: 0.1.0
description:
  - Has apt simulate the installation in a temporary directory, with the host's own sources and one more. So an
    unreachable repository, a key that does not match, a version that does not exist, a package on hold and packages
    that would be removed are known before anything is changed, in check mode too.
  - Fails only where it cannot simulate at all. What prevents the installation is in RV(problems).
options:
  packages: {type: list, elements: str, required: true, description: Packages to install.}
  locked: {type: list, elements: str, default: [], description: Those of O(packages) that must all have one version.}
  version: {type: str, default: '', description: "That version, or its beginning. When empty, the newest that all
      O(locked) have in common."}
  prefix: {type: str, required: true, description: "Prefix of the variables that messages name, such as V(docker)."}
  sources: {type: str, default: '', description: Text of a deb822 file to add to apt's sources.}
  address: {type: str, default: '', description: "Address of the new repository, to distinguish its errors from
      others."}
  without: {type: list, elements: path, default: [], description: Source files of the host that will be removed.}
  holds: {type: list, elements: str, default: [], description: Packages on hold that may change nevertheless.}
  may_go: {type: list, elements: str, default: [], description: Packages that may be removed.}
extends_documentation_fragment: [swarmspeed.cluster.attributes.read_only]
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Simulate the installation of engine 27.5
  swarmspeed.cluster.package_preview:
    packages: [docker-ce, docker-ce-cli, containerd.io]
    locked: [docker-ce, docker-ce-cli]
    version: "27.5"
    prefix: docker
"""

RETURN = r"""
packages: {returned: success, type: list, elements: str, sample: ['docker-ce=5:27.5.1-1~debian.12~bookworm',
    containerd.io], description: "What to pass to apt, with the version of each locked package."}
version: {returned: success, type: str, description: "The version of the locked packages, or null."}
installs: {returned: success, type: dict, description: "Packages that would be new, with their versions."}
replaces: {returned: success, type: dict, description: "Packages that would change, with their new versions."}
removes: {returned: success, type: dict, description: "Packages that would be removed, with their versions."}
problems: {returned: success, type: list, elements: str, description: "What prevents the installation, each a sentence
    with its remedy."}
cannot_fetch: {returned: success, type: bool, description: Whether a repository could not be read.}
"""

import tempfile
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.apt.package_preview import Goal, as_dict, gather
from ..module_utils.apt.trial_io import SystemAptIO


def main() -> None:
    """Try and return."""
    names: dict[str, Any] = {"type": "list", "elements": "str"}
    module = AnsibleModule(
        argument_spec={
            "packages": {**names, "required": True},
            "locked": {**names, "default": []},
            "version": {"type": "str", "default": ""},
            "prefix": {"type": "str", "required": True},
            "sources": {"type": "str", "default": ""},
            "address": {"type": "str", "default": ""},
            "without": {"type": "list", "elements": "path", "default": []},
            "holds": {**names, "default": []},
            "may_go": {**names, "default": []},
        },
        supports_check_mode=True,
    )
    requested = module.params
    unasked = [name for name in requested["locked"] if name not in requested["packages"]]
    if unasked:
        module.fail_json(msg=f"locked: {', '.join(unasked)} is not among packages.")
    goal = Goal(
        tuple(requested["packages"]),
        requested["prefix"],
        requested["version"],
        tuple(requested["locked"]),
        requested["address"],
        tuple(requested["holds"]),
        tuple(requested["may_go"]),
    )
    try:
        with tempfile.TemporaryDirectory(prefix="swarmspeed-apt-") as folder:
            found = gather(SystemAptIO(folder, requested["sources"], requested["without"]), goal)
    except OSError as error:
        module.fail_json(
            msg=f"Cannot try apt on this host: {error}. Is there space in /tmp, and may the account read apt's files "
            "(become: true)?"
        )
    module.exit_json(changed=False, **as_dict(found))


if __name__ == "__main__":
    main()
