#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Copy the logs of a training job from a node to the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: job_logs
short_description: Copy the logs of a training job to the controller
version_added: 0.1.0
description:
  - Copies the logs, C(state.json) and C(summary.json) of a job on this node to O(dest)C(/NAME/NODE/) on the controller,
    folders with mode 0700 and files with mode 0600. Only what the controller does not have yet is sent.
  - When the node's files are from another run than the controller's, the controller's are moved to C(runs/NUMBER)
    first.
  - C(spec.json) is never copied, as it holds the values of the job's environment. The logs hold what the job printed,
    without the secrets of its environment and what looks like one.
  - An action plugin does the controller's part.
options:
  name: {type: str, required: true, description: Name of the job.}
  jobs_dir: {type: path, required: true, description: Folder of all jobs on the node. It need not exist.}
  dest: {type: str, required: true, description: "Folder on the controller, created if missing."}
  node: {type: str, description: Name of the node's folder on the controller. By default its name in the inventory.}
  max_mib: {type: int, default: 8, description: "If a file is longer than this many MiB, 1 to 64, only its end is
      copied, below a line that says so."}
  patience: {type: int, default: 0, description: Seconds after which the node counts as unreachable if its logs have not
      arrived; 0 for no limit. Used by the action plugin only.}
  have: {type: dict, default: {}, description: Size and time of each file that the controller has. Set by the action
      plugin.}
  have_run: {type: dict, default: {}, description: Which run the controller's files are from. Set by the action plugin.}
  skip: {type: list, elements: str, default: [], description: Files that were sent already. Set by the action plugin.}
extends_documentation_fragment: [swarmspeed.cluster.attributes.jobs]
attributes:
  check_mode: {support: full, description: "Nothing is copied, and the node is not contacted. What would be copied is
      not predicted."}
  diff_mode: {support: none, description: Logs are not shown as a diff.}
  idempotent: {support: full, description: A file that has not changed since is not copied again.}
notes:
  - Links in the job's folder are not followed, as the job itself may have made them.
seealso:
  - {module: swarmspeed.cluster.training_job_info}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Copy the logs of the job to the controller
  swarmspeed.cluster.job_logs:
    name: digits
    jobs_dir: /srv/swarmspeed/lab/jobs
    dest: "{{ lookup('env', 'PWD') }}/jobs"
"""

RETURN = r"""
dest: {returned: success, type: str, description: Folder of the job on the controller.}
gathered: {returned: success, type: list, elements: str, description: "Files that were written, relative to the node's
    folder."}
shortened: {returned: success, type: list, elements: str, description: Those of which only the end was copied.}
problems: {returned: success, type: list, elements: str, description: "Files on the node that could not be read, and
    why."}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.job.log_files import LogsError, same_run
from ..module_utils.job.log_files_io import NodeFolder
from ..module_utils.job.resource import JobError, check_name


def run_module(params: dict[str, Any]) -> dict[str, Any]:
    """What the action plugin gets."""
    check_name(params["name"])
    if not 1 <= params["max_mib"] <= 64:
        raise LogsError(f"max_mib: {params['max_mib']} is not within 1 and 64.")
    node = params["node"] or "this node"
    folder = NodeFolder(params["jobs_dir"], params["name"], node, params["max_mib"] << 20)
    run = folder.run()
    have = params["have"] if same_run(run, params["have_run"]) else {}
    return {"changed": False, "run": run, **folder.reply(have, set(params["skip"]))}


def main() -> None:
    """Read and return."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "jobs_dir": {"type": "path", "required": True},
            "dest": {"type": "str", "required": True},
            "node": {"type": "str"},
            "max_mib": {"type": "int", "default": 8},
            "patience": {"type": "int", "default": 0},
            "have": {"type": "dict", "default": {}},
            "have_run": {"type": "dict", "default": {}},
            "skip": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**run_module(module.params))
    except (JobError, LogsError) as error:
        module.fail_json(msg=f"logs of job {module.params['name']}: {error}")
    except OSError as error:
        module.fail_json(msg=f"logs of job {module.params['name']}: {error}. Use become.")


if __name__ == "__main__":
    main()
