#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The training jobs of a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_job_info
short_description: Return which training jobs a host has, and their state
version_added: 0.1.0
description:
  - Returns every job below a folder, or one of them, with its current state, the summary of its run and the end of its
    log.
  - Changes nothing. A job whose container is gone, or whose supervisor shows no sign of life, is V(lost); one that
    cannot be read is V(unreadable). Neither is a failure of this module.
  - The engine is queried only about jobs that may be running. Where it does not answer, only the supervisor's last sign
    of life counts, and RV(engine_error) reports this.
  - Each node of a job has its own folder for it. The node with RV(jobs[].leader=true) reports the whole job, the others
    their part.
options:
  jobs_dir:
    description: Folder of all jobs on the host. It need not exist.
    type: path
    required: true
  name:
    description: Return only the job of this name. By default, all jobs.
    type: str
  tail:
    description: How many of the last lines of each log to return, 0 to 1000.
    type: int
    default: 0
  gpus:
    description:
      - Whether to read the load of the GPUs, three times within two seconds, where a job runs on the host, and which
        module of NVIDIA's driver the kernel has that boots next.
    type: bool
    default: false
extends_documentation_fragment:
  - swarmspeed.cluster.attributes.jobs
  - swarmspeed.cluster.attributes.read_only
seealso:
  - module: swarmspeed.cluster.training_job
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Query all jobs
  swarmspeed.cluster.training_job_info:
    jobs_dir: /srv/swarmspeed/lab/jobs
  register: found

- name: Query one job, with the end of its log
  swarmspeed.cluster.training_job_info:
    jobs_dir: /srv/swarmspeed/lab/jobs
    name: digits
    tail: 20
"""

RETURN = r"""
jobs:
  description:
    - The jobs, in the order of their names. Empty where there are none.
    - Values of a job's environment variables are hidden everywhere in it, by the rule of
      M(swarmspeed.cluster.training_job).
    - In addition to the following, each has what M(swarmspeed.cluster.training_job) returns as C(job).
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
    state:
      description:
        - V(starting), V(running), V(succeeded), V(failed), V(stopped), V(lost) or V(unreadable).
      type: str
    reason:
      description: Why it failed, was stopped or was lost, and what to do about it. Empty otherwise.
      type: str
    leader:
      description: Whether this host judges or judged the whole job. The others report their part only.
      type: bool
    since:
      description: Since when it has been in that state; for a lost job, its last sign of life. Time in UTC, ISO 8601.
      type: str
    seconds:
      description: How long this run took, or had taken at its last sign of life.
      type: float
    log:
      description: The last lines of its log, as many as requested, without control codes.
      type: list
      elements: str
    log_path:
      description: The log on the host.
      type: str
    summary:
      description:
        - What summary.json of the run holds, or will hold. Null or empty where unknown.
      type: dict
      contains:
        name:
          description: Name of the job.
          type: str
        run:
          description: Number of the run, counted from 1.
          type: int
        attempt:
          description: Number of the attempt within the run; above 1 after a restart.
          type: int
        state:
          description: State of the run.
          type: str
        reason:
          description: Why it did not succeed.
          type: str
        exit_code:
          description: Exit code of the launcher.
          type: int
        launcher:
          description: Which launcher was used.
          type: str
        transport:
          description: How it reached the other nodes.
          type: str
        runtime:
          description: V(container) or V(host).
          type: str
        spec:
          description:
            - The specification. Environment variables are given by name only. A list or mapping of more than 64 entries
              is replaced by the number of its C(entries) and its C(sha256).
          type: dict
        spec_hash:
          description: SHA-256 of the specification.
          type: str
        digests:
          description:
            - Digests of what the run was started from, by name - C(code), C(image), C(assets), C(configuration) and
              C(environment). The last two are keyed, as they may hold secrets. Empty for jobs of earlier releases.
          type: dict
        versions:
          description: Releases of C(deepspeed), C(torch), C(python) and others that were seen, and the C(image).
          type: dict
        world_size:
          description: Number of ranks C(expected) and C(seen).
          type: dict
        nodes:
          description: Number of nodes C(expected) and C(seen).
          type: dict
        shrunk_from:
          description:
            - The C(world_size) and number of C(nodes) it began with, and C(left_out), the nodes that stayed away. Null
              where it has all of its nodes.
          type: dict
        members:
          description: The nodes, each with its C(name), C(slots) and C(first_rank).
          type: list
          elements: dict
        ranks:
          description: C(node) and C(exit_code) of each rank, by its number.
          type: dict
        figures:
          description:
            - C(step), C(total), C(loss), C(samples_per_second), C(tokens_per_second), C(seconds_left) and
              C(slowest_rank), as far as the log has them. A loss that is not a number is text.
          type: dict
        history:
          description: Points of the curves, each with C(t), C(step), C(loss) and C(rate).
          type: list
          elements: dict
        nccl:
          description: What NCCL connected, as M(swarmspeed.cluster.training_job) returns it. Null where unknown.
          type: dict
        hangs:
          description:
            - What was found when the job made no progress, as C(findings) in
              RV(swarmspeed.cluster.training_job#module:job.hang). Empty where it always made some.
          type: list
          elements: dict
        first_failure:
          description:
            - What failed first, with C(node), C(rank), C(exit_code), C(cause), C(remedy), C(setting), C(kind),
              C(line) and C(at). Null where nothing did.
          type: dict
        started_at:
          description: Time in UTC, ISO 8601.
          type: str
        finished_at:
          description: Time in UTC, ISO 8601. Null while it runs.
          type: str
        seconds:
          description: How long the run took, or had taken at its last sign of life.
          type: float
        restarts:
          description: Each restart with C(attempt), C(reason), C(at) and C(resumed_from).
          type: list
          elements: dict
whole:
  description: Whether these are all jobs of the host. Only a thousand are reported, those that were written last.
  returned: success
  type: bool
gpus:
  description:
    - The host's GPUs, as nvidia-smi reports them. Empty without O(gpus), where no job runs, and where nvidia-smi does
      not answer. A value that a GPU does not report is null.
  returned: success
  type: list
  elements: dict
  contains:
    index:
      description: Number of the GPU.
      type: int
    utilization:
      description: Percentage of the time in which the GPU computed, as the mean of the readings.
      type: float
    utilization_highest:
      description: The highest of the readings.
      type: float
    memory_used_bytes:
      description: Memory in use, in bytes.
      type: int
    memory_bytes:
      description: Total memory, in bytes.
      type: int
    power_watts:
      description: Power that it draws.
      type: float
    power_limit_watts:
      description: Power that it may draw.
      type: float
    temperature_celsius:
      description: Its temperature, in degrees Celsius.
      type: float
next_boot:
  description:
    - The C(kernel) that boots next, its C(module) of NVIDIA's driver (null where it has none), and the version of the
      C(driver) that is loaded.
    - Null without O(gpus), where no driver is loaded, and where no kernel is installed, as in a container.
  returned: success
  type: dict
engine_error:
  description: What kept the Docker engine from answering. Null where it answered or was not queried.
  returned: success
  type: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.driver.host_io import SystemDriverIO
from ..module_utils.driver.next_boot import after_a_reboot
from ..module_utils.engine.api_io import SocketEngine
from ..module_utils.gpu.activity import Smi, gather_activity
from ..module_utils.gpu.host_io import SystemGpuIO
from ..module_utils.job.info_io import JobsReader
from ..module_utils.job.resource import ACTIVE, JobError, check_name
from ..module_utils.job.runtimes import DockerRuntime, HostRuntime, Runtime


def gather(params: dict[str, Any], runtimes: Mapping[str, Runtime], smi: Smi) -> dict[str, Any]:
    """What the module returns."""
    wanted, tail = params["name"], params["tail"]
    if wanted is not None:
        check_name(wanted)
    if not 0 <= tail <= 1000:
        raise JobError(f"tail: {tail} is not within 0 and 1000 lines.")
    reader = JobsReader(params["jobs_dir"], runtimes)
    jobs = [reader.gather(name, tail) for name in (reader.names() if wanted is None else reader.named(wanted))]
    busy = params["gpus"] and any(job["state"] in ACTIVE for job in jobs)
    gpus = gather_activity(smi) if busy else []
    return {"changed": False, "jobs": jobs, "gpus": gpus, "engine_error": reader.engine_error, "whole": reader.whole}


def main() -> None:
    """Read and return."""
    module = AnsibleModule(
        argument_spec={
            "jobs_dir": {"type": "path", "required": True},
            "name": {"type": "str"},
            "tail": {"type": "int", "default": 0},
            "gpus": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        runtimes: dict[str, Runtime] = {"container": DockerRuntime(SocketEngine(timeout=10.0)), "host": HostRuntime()}
        result = gather(module.params, runtimes, SystemGpuIO())
        result["next_boot"] = after_a_reboot(SystemDriverIO()) if module.params["gpus"] else None
    except JobError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"jobs_dir: {module.params['jobs_dir']} cannot be read: {error.strerror}. Use become.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
