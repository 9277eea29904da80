#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Copy the results of a training job from a node to the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: job_results
short_description: Copy the results of a training job to the controller
version_added: 0.1.0
description:
  - Copies files and folders of the workspace on this node to O(dest)C(/NAME/results/) on the controller, folders with
    mode 0700 and files with mode 0600, completely or not at all.
  - Existing results stay where they are the same, and are moved to C(results.1), C(results.2) and so on where they are
    not.
  - What a job wrote is copied as it is; unlike in logs, nothing is masked.
  - An action plugin does the controller's part.
options:
  name: {type: str, required: true, description: Name of the job.}
  root: {type: path, required: true, description: "The workspace on the node, which containers can write."}
  paths: {type: list, elements: str, required: true, description: "Files and folders, relative to O(root)."}
  dest: {type: str, required: true, description: "Folder on the controller, created if missing."}
  max_gib: {type: float, default: 16, description: Maximum total size in GiB.}
  folder: {type: path, description: Where the node packs what it sends. Set by the action plugin.}
attributes:
  check_mode: {support: full, description: "Nothing is copied, and the node is not contacted. What would be copied is
      not predicted."}
  diff_mode: {support: none, description: Results are not shown as a diff.}
  idempotent: {support: full, description: Results that are there already are not copied again.}
notes:
  - Links are not followed, as the job itself may have made them. Anything other than a plain file or folder is left
    out.
  - The node packs the files first, so it needs as much free space where Ansible keeps its temporary files.
seealso:
  - {module: swarmspeed.cluster.job_logs}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Copy the trained model to the controller
  swarmspeed.cluster.job_results:
    name: digits
    root: /srv/swarmspeed/lab/workspace
    paths: [checkpoints/model]
    dest: "{{ lookup('env', 'PWD') }}/jobs"
"""

RETURN = r"""
dest: {returned: success, type: str, description: Folder with the results on the controller.}
files: {returned: success, type: list, elements: str, description: "Files that are now in RV(dest), relative to it."}
moved: {returned: success, type: str, description: Where former results were moved to; empty where none were moved.}
problems: {returned: success, type: list, elements: str, description: "What is missing on the node, or was left out, and
    why."}
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.common.untrusted_folder import FolderError, UntrustedFolder
from ..module_utils.job.results import ARCHIVE, ResultsError, check_paths, found, pack


def run_module(params: dict[str, Any]) -> dict[str, Any]:
    """What the action plugin gets: the files that were packed, by path."""
    check_paths(params["paths"])
    folder = UntrustedFolder(params["root"])
    files, problems = found(folder, params["paths"])
    packed = pack(folder, files, Path(params["folder"], ARCHIVE), int(params["max_gib"] * (1 << 30)))
    return {"changed": False, "packed": packed, "problems": problems}


def main() -> None:
    """Pack and return."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "root": {"type": "path", "required": True},
            "paths": {"type": "list", "elements": "str", "required": True},
            "dest": {"type": "str", "required": True},
            "max_gib": {"type": "float", "default": 16},
            "folder": {"type": "path"},
        },
        supports_check_mode=True,
    )
    if not module.params["folder"]:
        module.fail_json(msg="job_results: folder is missing. It is called by the action plugin of the same name.")
    try:
        module.exit_json(**run_module(module.params))
    except (ResultsError, FolderError) as error:
        module.fail_json(msg=f"results of job {module.params['name']}: {error}")
    except OSError as error:
        module.fail_json(msg=f"results of job {module.params['name']}: {error}. Use become, or free some space.")


if __name__ == "__main__":
    main()
