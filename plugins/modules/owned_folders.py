#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Folders of this collection on a node: recorded before something is put into them, removed only if they are ours."""

from __future__ import annotations

DOCUMENTATION = r"""
module: owned_folders
short_description: Record which folders are this collection's, and remove no others
version_added: 0.1.0
description:
  - Records of each folder whether it is this collection's, in C(/var/lib/swarmspeed/CLUSTER/owned.json), which only
    root can read and write and no container mounts. A record names the path without links, device, inode and time of
    creation.
  - A folder is ours if this module created it, or if it was empty when it was first used. One that had content is used,
    and is never ours.
  - A cluster that was deployed before there was such a record is adopted. C(etc), C(jobs) and O(root) become ours if
    they hold nothing but what this collection puts there, and C(workspace) below them if it is no older than C(etc).
  - With O(state=absent), a folder is removed with all that is in it only with C(whole), and only if it is still the one
    that was recorded as ours. Of others, only C(files) and C(jobs) are removed, and the folder when nothing is left in
    it.
  - Folders of the operating system, such as C(/etc) or C(/srv), are refused. No link below a folder is followed.
options:
  cluster: {type: str, required: true, description: Name of the cluster.}
  root: {type: path, required: true, description: "The node state directory, C(cluster_root)."}
  folders:
    type: list
    elements: dict
    required: true
    description: Folders, in the order in which they are made, each after the one it lies in, or removed.
    suboptions:
      path: {type: path, required: true, description: Absolute path.}
      whole: {type: bool, default: false, description: "Whether to remove it with all that is in it, if it is ours. With
          O(state=absent) only."}
      files: {type: list, elements: str, default: [], description: "Files below it that this collection made, by their
          paths relative to it, whose last part may be a shell pattern. They are removed also where the folder is not
          ours. With O(state=absent) only."}
      known: {type: bool, default: false, description: "Whether to remove the files that this collection puts into
          O(root) or the folder C(etc) in it, by their names, also where the folder is not ours. With O(state=absent)
          only."}
      jobs: {type: bool, default: false, description: "Whether to remove the folders of jobs in it, also where it is not
          ours. With O(state=absent) only."}
  state: {type: str, choices: [present, absent], default: present, description: V(present) makes folders that are
      missing and records all; V(absent) removes what is ours.}
attributes:
  check_mode: {support: full, description: "Predicts what it would do, and changes nothing."}
  diff_mode: {support: full, description: "What is recorded, and what is removed."}
  idempotent: {support: full, description: What is recorded stays as it is.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Record the node state directory and its configuration, and make them
  swarmspeed.cluster.owned_folders:
    cluster: lab
    root: /srv/swarmspeed/lab
    folders:
      - path: /srv/swarmspeed/lab
      - path: /srv/swarmspeed/lab/etc

- name: Remove the workspace if it is ours
  swarmspeed.cluster.owned_folders:
    cluster: lab
    root: /srv/swarmspeed/lab
    folders:
      - path: /srv/swarmspeed/lab/workspace
        whole: true
    state: absent
"""

RETURN = r"""
created: {returned: success, type: list, elements: str, sample: [/srv/swarmspeed/lab], description: Folders that were
    made.}
removed: {returned: success, type: list, elements: str, sample: [/srv/swarmspeed/lab/workspace], description: Files and
    folders that were removed.}
kept: {returned: success, type: list, elements: str, sample: ['/data/code is kept: it had files in it when it was first
    used here (now: notes.txt)'], description: "Of each folder that stays although its removal was asked for, a sentence
    that says why."}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.owned.folders_io import OwnedError, SystemFolders
from ..module_utils.owned.ownership import Removal, record_folders, remove_folders


def main() -> None:
    """Judge, and record or remove."""
    module = AnsibleModule(
        argument_spec={
            "cluster": {"type": "str", "required": True},
            "root": {"type": "path", "required": True},
            "folders": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "path": {"type": "path", "required": True},
                    "whole": {"type": "bool", "default": False},
                    "files": {"type": "list", "elements": "str", "default": []},
                    "known": {"type": "bool", "default": False},
                    "jobs": {"type": "bool", "default": False},
                },
            },
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        folders = SystemFolders(params["cluster"])
        if params["state"] == "present":
            paths = [folder["path"] for folder in params["folders"]]
            done = record_folders(folders, params["root"], paths, check_mode=module.check_mode)
        else:
            removals = [Removal(**folder) for folder in params["folders"]]
            done = remove_folders(folders, params["root"], removals, check_mode=module.check_mode)
    except OwnedError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{params['root']}: {error}. Remedy: use become.")
    module.exit_json(changed=done.changed, created=done.created, removed=done.removed, kept=done.kept, diff=done.diff)


if __name__ == "__main__":
    main()
