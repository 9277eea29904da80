#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the ranks of a running job do on this host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_job_examine
short_description: Examine what the ranks of a running training job do
version_added: 0.1.0
description:
  - Examines the ranks of a job on this host, as its supervisor does when the job makes no progress - their stacks, the
    collectives they wait in, their threads, files and connections. P(swarmspeed.cluster.job_examined#filter) says what
    follows from the examinations of all nodes.
  - The job goes on. What was found also lies in C(hangs/request) in the folder of the job, until the next call.
options:
  name: {type: str, required: true, description: Name of the job.}
  jobs_dir: {type: path, required: true, description: Folder of all jobs on the host.}
  container_jobs_dir: {type: str, default: /jobs, description: The same folder as the container sees it.}
extends_documentation_fragment: [swarmspeed.cluster.attributes.jobs, swarmspeed.cluster.attributes.read_only]
seealso:
  - {module: swarmspeed.cluster.training_job}
  - {module: swarmspeed.cluster.training_job_info}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Examine what the ranks do
  swarmspeed.cluster.training_job_examine:
    name: digits
    jobs_dir: /srv/swarmspeed/lab/jobs
  register: examined
"""

RETURN = r"""
state: {returned: success, type: str, description: "State of the job on this host, as
    M(swarmspeed.cluster.training_job_info) returns it; C(absent) where there is no such job."}
problem: {returned: success, type: str, description: "Why nothing was found; empty where something was."}
examination: {returned: success, type: str, description: "What was found, as JSON, compressed and in base64. Secrets of
    the job are hidden."}
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.engine.api_io import EngineError, SocketEngine
from ..module_utils.job.examine_io import JobExaminer
from ..module_utils.job.resource import JobError, check_name
from ..module_utils.job.runtimes import DockerRuntime, HostRuntime, Runtime


def examine(params: Mapping[str, Any], runtimes: Mapping[str, Runtime]) -> dict[str, Any]:
    """What the module returns."""
    check_name(params["name"])
    examiner = JobExaminer(params["jobs_dir"], params["name"], params["container_jobs_dir"], runtimes)
    return {"changed": False, **examiner.examine()}


def main() -> None:
    """Examine and return."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "jobs_dir": {"type": "path", "required": True},
            "container_jobs_dir": {"type": "str", "default": "/jobs"},
        },
        supports_check_mode=True,
    )
    try:
        result = examine(module.params, {"container": DockerRuntime(SocketEngine(timeout=10.0)), "host": HostRuntime()})
    except (JobError, EngineError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"jobs_dir: {module.params['jobs_dir']} cannot be read: {error.strerror}. Use become.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
