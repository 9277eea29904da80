#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A training job as a resource."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_job
short_description: Start, follow, judge and stop a training job
version_added: 0.1.0
description:
  - Runs a launcher, such as DeepSpeed's, in a container that is already up, detached from the controller. It runs on
    the host that holds rank 0.
  - A supervisor beside the launcher watches its log. A job counts as succeeded only when the launcher ended with 0, the
    world size and the number of nodes in its log are those expected, and every rank reported success. DeepSpeed's own
    exit code says neither (without a hostfile it trains on one node; when a signal ends its child it exits 0).
  - What defines a job is its specification, made of O(command), O(chdir), O(environment), O(world_size), O(nodes) and
    O(fingerprint). A job that is running or has succeeded with the same specification is not started again.
  - Through the action plugin of the same name the task follows the job, shows its log as it grows, and fails unless the
    job succeeds. Interrupting the playbook leaves the job running; running it again attaches to it.
  - Everything about a job lies below O(jobs_dir) in a folder of its name. Earlier runs are kept there in C(runs/).
options:
  name:
    description: Name of the job, of C(a-z), C(0-9), C(.), C(_) and C(-), 63 characters at most.
    type: str
    required: true
  state:
    description:
      - V(started), the job runs or has succeeded with this specification.
      - V(stopped), it does not run. A finished job stays as it is.
      - V(absent), it does not run and its folder, logs included, is removed.
    type: str
    choices: [started, stopped, absent]
    default: started
  container:
    description: Name of the container that holds rank 0. Required to start a job.
    type: str
  jobs_dir:
    description: Folder of all jobs on the host, mounted into the container. Must exist to start a job.
    type: path
    required: true
  container_jobs_dir:
    description: Where O(jobs_dir) is mounted in the container.
    type: str
    default: /jobs
  command:
    description:
      - The launcher and all its arguments, run in the container without a shell. Required to start a job.
      - Keep secrets out of it, as it shows in the process list. Give them in O(environment).
    type: list
    elements: str
  chdir:
    description: Working directory in the container, absolute. By default the container's own.
    type: str
  environment:
    description:
      - Variables for the launcher, on top of the container's.
      - A value of 6 characters or more is hidden in everything this module returns when C(KEY), C(TOKEN), C(SECRET),
        C(PASS), C(PASSWD), C(PASSWORD), C(CREDENTIAL) or C(AUTH) is a word of its name, as in C(HF_TOKEN).
      - In the folder of the job, which only root can read, values are in clear.
    type: dict
    default: {}
  world_size:
    description: Number of ranks the job must have. Required to start a job.
    type: int
  nodes:
    description: Number of nodes the job must have. Required to start a job.
    type: int
  fingerprint:
    description:
      - Whatever else defines the job, such as the image's id, a digest of the workspace, and the text of hostfile and
        ds_config.
    type: dict
    default: {}
  ds_config:
    description:
      - DeepSpeed configuration to check before the launcher starts, as an absolute path in the container.
      - The DeepSpeed of the container's C(python3) reads it for O(world_size) ranks. When it refuses, the job has
        failed with what it said, and no rank was started. This takes 1 to 3 seconds, and is not done where that Python
        has no DeepSpeed.
      - Values V(auto) at its top level, which an integration fills in, are left out of the check.
    type: str
  rerun:
    description: Start a job that has succeeded once more.
    type: bool
    default: false
  observe:
    description: Only report, whatever O(state) says. The action plugin uses it to follow a job.
    type: bool
    default: false
  log_offset:
    description: Byte of the log at which RV(log) begins. A negative number counts from the end.
    type: int
    default: 0
  log_limit:
    description: Most bytes of the log to return, 1 to 1048576.
    type: int
    default: 65536
  follow:
    description: Follow a started job until it ends, and fail unless it succeeds. Not in check mode.
    type: bool
    default: true
  follow_timeout:
    description: Seconds to follow the job; the task then fails and the job keeps running. 0 means no limit.
    type: float
    default: 0
attributes:
  check_mode:
    support: full
    description: Says whether the job would be started, stopped or removed.
    details:
      - How a job would end is not predicted. A container that does not exist yet is no error in check mode.
  diff_mode:
    support: full
    description: State and hash of the specification before and after.
  idempotent:
    support: partial
    description: A job that runs or has succeeded with the same specification is not started again.
    details:
      - A job that failed, was stopped or was lost is started again.
      - With O(rerun=true) a job that has succeeded is started again by every call.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Train on three nodes and watch
  swarmspeed.cluster.training_job:
    name: digits
    container: lab-lab1
    jobs_dir: /srv/swarmspeed/lab/jobs
    command: [deepspeed, --hostfile, /etc/swarmspeed/hostfile, --master_addr, lab-lab1, train.py]
    chdir: /workspace
    environment:
      HF_TOKEN: "{{ vault_hf_token }}"
    world_size: 3
    nodes: 3
    fingerprint:
      hostfile: "{{ hostfile_text }}"

- name: Stop it
  swarmspeed.cluster.training_job:
    name: digits
    state: stopped
    jobs_dir: /srv/swarmspeed/lab/jobs
"""

RETURN = r"""
job:
  description: The job as it is now; in check mode as it was found.
  returned: success
  type: dict
  contains:
    name:
      description: Its name.
      type: str
    state:
      description: V(absent), V(starting), V(running), V(succeeded), V(failed), V(stopped) or V(lost).
      type: str
    reason:
      description: Why it failed, was stopped or was lost, and what to do about it. Empty otherwise.
      type: str
    run:
      description: Number of the run, counted from 1.
      type: int
    spec_hash:
      description: SHA-256 of its specification.
      type: str
    container:
      description: Name of the container of its launcher.
      type: str
    started_at:
      description: Time in UTC, ISO 8601.
      type: str
    finished_at:
      description: Time in UTC, ISO 8601. Null while it runs.
      type: str
    exit_code:
      description: Exit code of the launcher, negative when a signal ended it. Null while it runs.
      type: int
    world_size_expected:
      description: Number of ranks asked for.
      type: int
    world_size_seen:
      description: Number of ranks in the launcher's log. Null when it has not said.
      type: int
    nodes_expected:
      description: Number of nodes asked for.
      type: int
    nodes_seen:
      description: Number of nodes whose launcher has reported. Null when none has.
      type: int
    hosts:
      description: Names that begin the log lines of the nodes.
      type: list
      elements: str
    deepspeed_version:
      description: Release of DeepSpeed that has read O(ds_config). Null when none has.
      type: str
    failed_node:
      description: Node that failed first, where known.
      type: str
    failed_rank:
      description: Rank that failed first, where known.
      type: int
    traceback:
      description: Python traceback of the first failure, where there is one.
      type: list
      elements: str
    tail:
      description: Last lines of a failed job, 40 at most, without the launcher's routine messages.
      type: list
      elements: str
log:
  description: The log from RV(log_offset) as asked for. Empty when the action plugin has shown it.
  returned: success
  type: str
log_offset:
  description: Byte at which the next call should go on.
  returned: success
  type: int
log_size:
  description: Size of the log in bytes.
  returned: success
  type: int
log_path:
  description: The log on the host.
  returned: success
  type: str
"""

import os.path
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils import _job
from ansible_collections.swarmspeed.cluster.plugins.module_utils._engine_io import EngineError, SocketEngine
from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_io import DockerRuntime, JobRunner, Runtime, Store


class Call:
    """One call of the module: look, decide, act unless it is check mode, look again."""

    def __init__(self, params: dict[str, Any], check_mode: bool, runtime: Runtime) -> None:
        self.params, self.check_mode, self.runtime = params, check_mode, runtime
        _job.check_name(params["name"])
        if not 1 <= params["log_limit"] <= 1 << 20:
            raise _job.JobError(f"log_limit: {params['log_limit']} is not within 1 and 1048576 bytes.")
        self.store = Store(params["jobs_dir"], params["name"])
        self.inside = f"{params['container_jobs_dir'].rstrip('/')}/{params['name']}"
        self.found: _job.Container | None = None
        self.spec = {} if params["observe"] or params["state"] != "started" else self._spec()

    def _spec(self) -> dict[str, Any]:
        keys = ("command", "chdir", "environment", "world_size", "nodes", "fingerprint", "ds_config")
        return _job.build_spec(**{key: self.params[key] for key in keys})

    def run(self) -> dict[str, Any]:
        if self.params["observe"]:
            return {"changed": False, **self._report(*self._look())}
        if self.check_mode or (self.params["state"] != "started" and not self.store.exists()):
            return self._decide(act=False)
        with self.store.lock():
            return self._decide(act=True)

    def _recorded(self) -> dict[str, Any]:
        try:
            return self.store.read_state()
        except _job.JobError:
            if self.params["state"] != "absent":  # a damaged folder can still be removed
                raise
            return {}

    def _look(self) -> tuple[str, str]:
        """State and reason of the job. The engine is asked only about a job that may be running."""
        recorded = self._recorded()
        if recorded.get("state") in _job.ACTIVE:
            self.found = self.runtime.container(recorded["container"])
            # Read again: the job may have ended, and then the container gone, since the first look.
            recorded = self._recorded()
        state, reason = _job.current_state(recorded, self.found, time.time())
        if state == "absent" and self.params["state"] == "absent" and self.store.exists():
            state = "stopped"  # a folder without a state is still something to remove
        return state, reason

    def _decide(self, act: bool) -> dict[str, Any]:
        state, reason = self._look()
        recorded = self._recorded()
        digest = _job.spec_hash(self.spec) if self.spec else recorded.get("spec_hash")
        todo = _job.plan(
            self.params["state"], state, same=digest == recorded.get("spec_hash"), rerun=self.params["rerun"]
        )
        if todo == "refuse":
            differs = _job.changed_keys(self.store.read_spec(), self.spec)
            raise _job.JobError(_job.refusal(recorded, differs, str(self.store.path)))
        before = {"state": state, "spec_hash": recorded.get("spec_hash")}
        after = {
            "none": before,
            "start": {"state": "running", "spec_hash": digest},
            "stop": {**before, "state": "stopped"},
            "remove": {"state": "absent", "spec_hash": None},
        }[todo]
        if act and todo != "none":
            self._act(todo, state, digest or "")
            state, reason = self._look()
        return {"changed": todo != "none", "diff": {"before": before, "after": after}, **self._report(state, reason)}

    def _act(self, todo: str, state: str, digest: str) -> None:
        runner = JobRunner(self.store, self.runtime)
        if todo == "start":
            runner.start(self.spec, digest, self.params["container"], self._container(), self.inside)
            return
        if state in (*_job.ACTIVE, "lost"):
            runner.stop(state, self.found, self.inside)
        if todo == "remove":
            self.store.remove()

    def _container(self) -> _job.Container:
        name, jobs_dir = self.params["container"], self.params["jobs_dir"]
        found = self.runtime.container(name)
        if found is None or not found.running:
            raise _job.JobError(
                f"container: {name} {'does not run' if found else 'does not exist'} on this host. "
                "Bring it up first (--tags training_container)."
            )
        inside = self.params["container_jobs_dir"]
        source = found.source_of(inside)
        if source is None or os.path.realpath(source) != os.path.realpath(jobs_dir):
            raise _job.JobError(
                f"jobs_dir: {jobs_dir} is not what container {name} has at {inside} ({source or 'no mount'}). "
                "Correct jobs_dir or container_jobs_dir, or make the container again (--tags training_container)."
            )
        return found

    def _report(self, state: str, reason: str) -> dict[str, Any]:
        environment = {**self.store.read_environment(), **self.spec.get("environment", {})}
        hide = _job.hider(environment)
        ended = state not in _job.ACTIVE
        data, offset, size = self.store.read_log(self.params["log_offset"], self.params["log_limit"], ended)
        return {
            "job": _job.report(self.params["name"], self._recorded(), state, reason, hide),
            "log": hide(data.decode("utf-8", "replace")),
            "log_offset": offset,
            "log_size": size,
            "log_path": str(self.store.path / "launcher.log"),
        }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["started", "stopped", "absent"], "default": "started"},
            "container": {"type": "str"},
            "jobs_dir": {"type": "path", "required": True},
            "container_jobs_dir": {"type": "str", "default": "/jobs"},
            "command": {"type": "list", "elements": "str"},
            "chdir": {"type": "str"},
            "environment": {"type": "dict", "default": {}},
            "world_size": {"type": "int"},
            "nodes": {"type": "int"},
            "fingerprint": {"type": "dict", "default": {}},
            "ds_config": {"type": "str"},
            "rerun": {"type": "bool", "default": False},
            "observe": {"type": "bool", "default": False},
            "log_offset": {"type": "int", "default": 0},
            "log_limit": {"type": "int", "default": 65536},
            "follow": {"type": "bool", "default": True},
            "follow_timeout": {"type": "float", "default": 0},
        },
        supports_check_mode=True,
    )
    # Shown at -vvv. A variable of the job may be a secret, so its value is not shown, whatever its name.
    shown = {**module.params, "environment": dict.fromkeys(module.params["environment"], "(not shown)")}
    invocation = {"module_args": shown}
    needed = ("container", "command", "world_size", "nodes")
    missing = [key for key in needed if module.params[key] is None]
    if module.params["state"] == "started" and not module.params["observe"] and missing:
        module.fail_json(msg=f"To start a job, give also: {', '.join(missing)}.", invocation=invocation)
    try:
        result = Call(module.params, module.check_mode, DockerRuntime(SocketEngine())).run()
    except (_job.JobError, EngineError) as error:
        module.fail_json(msg=f"training job {module.params['name']}: {error}", invocation=invocation)
    except OSError as error:
        module.fail_json(
            msg=f"training job {module.params['name']}: {error}. Nothing more was done.",
            invocation=invocation,
        )
    module.exit_json(invocation=invocation, **result)


if __name__ == "__main__":
    main()
