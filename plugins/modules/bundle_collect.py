#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Packages with all their dependencies, for an offline bundle."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bundle_collect
short_description: Fetch packages and dependencies from a host's sources to the controller
version_added: 0.1.0
description:
  - Has apt resolve, on a host that can reach its package sources, what installing packages needs on a host of the same
    distribution with nothing installed.
  - Downloads on the host what the controller does not have yet, copies it to C(apt/<system>) in the bundle, and checks
    each file against its SHA-256. Nothing is installed, and apt's own lists and sources stay as they are.
  - Implemented as an action plugin with a module of the same name, which runs on the host.
options:
  bundle: {type: path, required: true, description: Folder of the bundle on the controller.}
  system: {type: dict, required: true, description: "Section C(system) of the facts of M(swarmspeed.cluster.node_facts),
      by which the packages are filed."}
  groups:
    type: list
    elements: dict
    required: true
    description: The packages wanted, in parts that are each installed together.
    suboptions:
      prefix: {type: str, required: true, description: "Prefix of the variables that messages name, such as V(docker)."}
      packages: {type: list, elements: str, default: [], description: Names of packages.}
      locked: {type: list, elements: str, default: [], description: Those of them that must all have one version.}
      version: {type: str, default: '', description: "That version, or its beginning."}
      request: {type: dict, description: "With O(groups[].prefix) V(docker) or V(nvidia_container_toolkit), the role's
          variables without that prefix (C(source), C(version), C(repository_url), C(repository_key)). The action plugin
          has the role's plan turn them into all else."}
  sources: {type: str, default: '', description: Text of a deb822 file to add to apt's sources. Set by the action
      plugin.}
  without: {type: list, elements: path, default: [], description: Source files of the host to leave out. Set by the
      action plugin.}
  folder: {type: path, description: Where the module works on the host. Set by the action plugin.}
  lacking: {type: list, elements: str, description: Names of files to download. Set by the action plugin.}
attributes:
  check_mode: {support: full, description: "Queries apt, and downloads nothing."}
  diff_mode: {support: none, description: Files of packages are not shown as a diff.}
  idempotent: {support: full, description: A file whose digest is right is not fetched again.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Fetch an engine and its dependencies
  swarmspeed.cluster.bundle_collect:
    bundle: /srv/bundle
    system: "{{ ansible_facts['swarmspeed']['system'] }}"
    groups:
      - prefix: docker
        packages: [docker.io, python3-docker]
"""

RETURN = r"""
system: {returned: success, type: str, sample: debian-12-amd64, description: Name of this system in the bundle.}
packages: {returned: success, type: list, elements: dict, description: "All packages of this system, each with C(name),
    C(version), C(source), C(file), C(size) and C(sha256)."}
fetched: {returned: success, type: list, elements: str, description: Names of the files that were missing or
    incomplete.}
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.apt.bundle_io import BundleAptError, EmptyHost, pack
from ..module_utils.apt.bundle_packages import Deb, DebError, choose
from ..module_utils.apt.package_preview import Goal, gather


def collect(io: EmptyHost, groups: list[dict[str, Any]]) -> list[Deb]:
    """Return all packages that the groups need. Raises ``BundleAptError`` and ``DebError``."""
    wanted: dict[tuple[str, str, str], None] = {}
    for group in groups:
        found = gather(io, Goal(tuple(group["packages"]), group["prefix"], group["version"], tuple(group["locked"])))
        if found.problems:
            raise BundleAptError(" ".join(found.problems))
        wanted.update(dict.fromkeys(io.wanted(found.packages)))
    return choose(io.shown(list(wanted)), wanted) if wanted else []


def main() -> None:
    """Ask apt, and download what is lacking."""
    names: dict[str, Any] = {"type": "list", "elements": "str"}
    group = {
        "prefix": {"type": "str", "required": True},
        "packages": {**names, "default": []},
        "locked": {**names, "default": []},
        "version": {"type": "str", "default": ""},
        "request": {"type": "dict"},
    }
    module = AnsibleModule(
        argument_spec={
            "bundle": {"type": "path", "required": True},
            "system": {"type": "dict", "required": True},
            "groups": {"type": "list", "elements": "dict", "required": True, "options": group},
            "sources": {"type": "str", "default": ""},
            "without": {"type": "list", "elements": "path", "default": []},
            "folder": {"type": "path"},
            "lacking": names,
        },
        supports_check_mode=True,
    )
    requested = module.params
    if not requested["folder"]:
        module.fail_json(msg="folder is missing: this module is run by the action plugin of the same name.")
    folder = Path(requested["folder"])
    try:
        (folder / "apt").mkdir(exist_ok=True)
        io = EmptyHost(str(folder / "apt"), requested["sources"], requested["without"])
        debs = collect(io, requested["groups"])
        if requested["lacking"] is not None:
            chosen = [deb for deb in debs if deb.file in set(requested["lacking"])]
            io.download(chosen, folder / "packages")
            pack(chosen, folder / "packages", folder / "packages.tar")
            module.exit_json(changed=True, archive=str(folder / "packages.tar"))
    except (BundleAptError, DebError) as error:
        module.fail_json(msg=f"{str(error).rstrip('. ')}.")
    except OSError as error:
        module.fail_json(msg=f"Cannot collect packages on this host: {error}. Is there space in {folder}?")
    module.exit_json(
        changed=False,
        debs=[
            {
                "name": deb.name,
                "version": deb.version,
                "source": f"{deb.source} {deb.source_version}",
                "file": deb.file,
                "size": deb.size,
                "sha256": deb.sha256,
                "stanza": deb.stanza,
            }
            for deb in debs
        ],
    )


if __name__ == "__main__":
    main()
