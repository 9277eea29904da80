#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The next lines of a training job's log."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_job_follow
short_description: Wait for news of a training job, and return it
version_added: 0.1.0
description:
  - Returns the state of a job and its log from a given byte on. Where there is nothing new, it waits on the host for a
    while, so that a caller who follows a job need not query every second.
  - M(swarmspeed.cluster.training_job) with O(swarmspeed.cluster.training_job#module:follow=true) calls this module
    repeatedly and shows the log on the console. It sends less to the host than that module, as it cannot start a job.
  - Changes nothing.
options:
  name: {type: str, required: true, description: Name of the job.}
  jobs_dir: {type: path, required: true, description: Folder of all jobs on the host.}
  log_offset: {type: int, default: 0, description: "Byte of the log at which RV(log) begins. A negative number counts
      from the end, and there is no wait."}
  log_limit: {type: int, default: 65536, description: "Maximum number of bytes of the log to return, 1 to 1048576."}
  wait: {type: float, default: 0, description: "Maximum seconds to wait, 0 to 60, until the log continues after
      O(log_offset), the job ends, or another run of it begins. There is no wait for a job that does not run."}
extends_documentation_fragment: [swarmspeed.cluster.attributes.jobs, swarmspeed.cluster.attributes.read_only]
seealso:
  - {module: swarmspeed.cluster.training_job}
  - {module: swarmspeed.cluster.training_job_info}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Read the log of a job so far
  swarmspeed.cluster.training_job_follow:
    name: digits
    jobs_dir: /srv/swarmspeed/lab/jobs
  register: read
"""

RETURN = r"""
job:
  returned: success
  type: dict
  description: Name, state, figures, GPUs and NCCL connections of the job, as M(swarmspeed.cluster.training_job) returns
    them. C(state) is V(absent) where there is no such job.
  contains:
    name: {type: str, description: Name of the job.}
    state: {type: str, description: "One of C(absent), C(starting), C(running), C(succeeded), C(failed), C(stopped) and
        C(lost)."}
    reason: {type: str, description: "Why it failed or was lost, else empty."}
log: {returned: success, type: str, description: "The log from O(log_offset), as whole lines while the job runs. Secrets
    of the job are hidden."}
log_offset: {returned: success, type: int, description: Byte at which the next call should continue.}
log_size: {returned: success, type: int, description: Size of the log in bytes.}
log_path: {returned: success, type: str, description: The log on the host.}
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.engine.api_io import EngineError, SocketEngine
from ..module_utils.job.observe_io import check_log_limit, current, report, wait_for_news
from ..module_utils.job.resource import JobError, check_name
from ..module_utils.job.runtimes import DockerRuntime, HostRuntime, Runtime
from ..module_utils.job.store_io import Store

LONGEST = 60.0
"""Seconds that one call may wait."""


def follow(params: Mapping[str, Any], runtimes: Mapping[str, Runtime]) -> dict[str, Any]:
    """What the module returns."""
    check_name(params["name"])
    check_log_limit(params["log_limit"])
    if not 0 <= params["wait"] <= LONGEST:
        raise JobError(f"wait: {params['wait']:g} is not within 0 and {LONGEST:g} seconds.")
    store = Store.of(params["jobs_dir"], params["name"])
    if params["wait"] and params["log_offset"] >= 0:
        wait_for_news(store, params["log_offset"], params["wait"])
    state, reason, dummy = current(store, runtimes["host" if store.on_host else "container"], store.read_place)
    news = report(store, store.read_place(), state, reason, offset=params["log_offset"], limit=params["log_limit"])
    return {"changed": False, **news}


def main() -> None:
    """Wait, read and return."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "jobs_dir": {"type": "path", "required": True},
            "log_offset": {"type": "int", "default": 0},
            "log_limit": {"type": "int", "default": 65536},
            "wait": {"type": "float", "default": 0},
        },
        supports_check_mode=True,
    )
    try:
        result = follow(module.params, {"container": DockerRuntime(SocketEngine(timeout=10.0)), "host": HostRuntime()})
    except (JobError, EngineError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"jobs_dir: {module.params['jobs_dir']} cannot be read: {error.strerror}. Use become.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
