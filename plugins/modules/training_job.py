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
    exit code shows neither (without a hostfile it trains on one node; when a signal ends its child, it exits 0).
  - A job is defined by its specification, made of O(command), O(chdir), O(environment), O(world_size), O(nodes) and
    O(fingerprint). A job that is running or has succeeded with the same specification is not started again.
  - Through the action plugin of the same name the task follows the job, shows its log as it grows, and fails unless the
    job succeeds. Interrupting the playbook leaves the job running; running it again attaches to it.
  - Everything about a job is below O(jobs_dir), in a folder of its name. Earlier runs are kept there in C(runs/).
  - With O(runtime=host), it is in C(host_jobs) beside O(jobs_dir), which only root can write and no container mounts. A
    job counts as one of the host only by what is there, and the host runs no file below O(jobs_dir).
  - Root in the container can write below O(jobs_dir). Links, pipes and files that are too large are refused there, and
    a C(state.json) with a field that is missing or of the wrong type is one error.
options:
  name:
    description: Name of the job, made of C(a-z), C(0-9), C(.), C(_) and C(-), at most 63 characters.
    type: str
    required: true
  state:
    description:
      - With V(started), the job runs or has succeeded with this specification.
      - With V(stopped), it does not run. A finished job stays as it is.
      - With V(absent), it does not run, and its folder, including logs, is removed.
    type: str
    choices: [started, stopped, absent]
    default: started
  container:
    description:
      - Name of the container that holds rank 0. Required to start a job.
      - To stop a job, it is used where the job's own files name no container that has O(jobs_dir).
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
      - Keep secrets out of it, as it shows in the process list. Pass them in O(environment).
    type: list
    elements: str
  chdir:
    description: Working directory in the container, absolute. By default the container's own.
    type: str
  environment:
    description:
      - Variables for the launcher, in addition to the container's.
      - A value of 6 characters or more is hidden in everything this module returns when a word of its name suggests a
        secret, as in C(HF_TOKEN), C(PGPASSWORD) or C(GH_PAT). So are those in C(etc/env) beside O(jobs_dir), where the
        role C(nccl_env) keeps the variables that all ranks get, user and password in any address, and what is printed
        as C(HF_TOKEN=value).
      - In the folder of the job, which only root can read, values are in clear text.
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
      - The DeepSpeed of the container's C(python3) reads it for O(world_size) ranks. If DeepSpeed refuses it, the job
        has failed with DeepSpeed's message, and no rank was started. The check takes 1 to 3 seconds, and is skipped
        where that Python has no DeepSpeed.
      - Values V(auto) at its top level, which an integration fills in, are left out of the check.
    type: str
  launcher:
    description:
      - What starts the ranks. Its log is read accordingly.
      - With V(deepspeed), O(command) is DeepSpeed's; the world size in its log and the success of each rank are judged.
      - With V(torchrun), O(command) is torchrun's, run once on each node.
      - With V(per_node), O(command) is run once on each node, with C(MASTER_ADDR), C(MASTER_PORT), C(WORLD_SIZE),
        C(NODE_RANK), C(NNODES) and C(NPROC_PER_NODE) in its environment.
    type: str
    choices: [deepspeed, torchrun, per_node]
    default: deepspeed
  transport:
    description:
      - With V(direct), each node of O(members) starts its own launcher when instructed by the supervisor of rank 0.
        Needs neither ssh nor pdsh.
      - With V(pdsh), only the node of rank 0 runs O(command), which starts the others over ssh. Supervisors on the
        others watch their ranks, and end them.
    type: str
    choices: [direct, pdsh]
    default: pdsh
  runtime:
    description: Whether supervisor and launcher run in O(container), or on the host itself.
    type: str
    choices: [container, host]
    default: container
  members:
    description:
      - The nodes of the job in the order of ranks. The first one holds rank 0, and its supervisor leads the job.
      - Without members there is one supervisor, on this host, which sees the other nodes only through the log.
      - In O(command), an argument C(@node_rank@), C(@slots@) (their number), C(@master_port@) or C(@logs@) (where a
        launcher puts the logs of its ranks) stands for its value on that node. See also O(shrink).
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the node.
        type: str
        required: true
      address:
        description: Name or address by which the other nodes reach it.
        type: str
        required: true
      slots:
        description: Its slots that the job uses.
        type: list
        elements: int
        required: true
  node:
    description: Which of O(members) this host is. By default the first.
    type: str
  leader:
    description: On every node but the first, what starting the job on the first one returned.
    type: dict
    suboptions:
      port:
        description: RV(job.channel_port).
        type: int
        required: true
      run:
        description: RV(job.run).
        type: int
        required: true
      run_id:
        description: RV(job.run_id).
        type: str
        required: true
  secret_file:
    description:
      - A file that every node of the job has and no one else, by its path as the supervisor sees it. The nodes prove to
        each other that they know its content. Required with more than one of O(members).
    type: str
  visible_devices:
    description:
      - Variable that limits a launcher to its slots, such as C(CUDA_VISIBLE_DEVICES). DeepSpeed's launcher sets it by
        itself.
    type: str
  env_file:
    description:
      - A file with lines C(KEY=VALUE), as the supervisor sees it, whose variables every launcher gets. O(environment)
        takes precedence.
    type: str
  master_port:
    description: TCP port of the rendezvous on the first node. V(0) means the first free one from 29500 to 29599.
    type: int
    default: 0
  stall_timeout:
    description: Seconds without output from any rank after which the job has failed. V(0) means no limit.
    type: float
    default: 0
  hang_after:
    description:
      - Seconds of silence after which a job that has not yet shown its pace is examined on all of its nodes, which ends
        nothing. Once it has reported steps, the bound is learned from them. V(0) means never.
    type: float
    default: 0
  on_hang:
    description:
      - What to do about a job that hangs. V(report) only reports it. V(restart) ends it as failed, so that
        O(resume=auto) restarts it. V(stop) ends it as failed for good.
      - Neither ends it before twice the bound and O(hang_after) are over, or if it turns out to go on.
    type: str
    choices: [report, restart, stop]
    default: report
  resume:
    description:
      - With V(auto), a job that failed because of its cluster and not because of its script is started again, at most
        O(restarts) times, with O(resume_args) if there is a complete checkpoint. So is one whose container was
        restarted. A call that starts a job that has failed, was stopped or was lost continues from its checkpoint.
      - The first restart comes after 10 seconds, each further one after twice the previous time, at most 300 seconds. A
        node that has gone may come back within 300 seconds.
    type: str
    choices: [never, auto]
    default: never
  resume_args:
    description: Arguments with which the command continues from a checkpoint; C(@tag@) in them stands for its name.
    type: list
    elements: str
    default: []
  checkpoints:
    description:
      - Folder of the checkpoints, as the supervisor sees it. All nodes report what they have there.
      - Without it O(resume=auto) starts without O(resume_args).
    type: str
  restarts:
    description: Maximum number of times that a run is started again.
    type: int
    default: 3
  shrink:
    description:
      - With O(resume=auto), a job continues without nodes of O(members) that did not come back in time, with the world
        size of those that are left. The first node, which holds rank 0, cannot be left out.
      - Refused before the start where O(ds_config) does not allow it, as DeepSpeed loads no ZeRO checkpoint into
        another number of ranks.
      - The job then has a hostfile and a configuration of its own, in its folder. In O(command), C(@hostfile@) and
        C(@ds_config@) stand for their paths, C(@include@) for its nodes with their slots, C(@nodes@) for their number.
        Launcher V(deepspeed) needs C(@hostfile@), V(torchrun) needs C(@nodes@), and O(ds_config) needs C(@ds_config@).
    type: bool
    default: false
  versions:
    description: Releases that were found for the job, such as C(torch) and C(python), for its summary.
    type: dict
    default: {}
  code:
    description:
      - Digest of the source in C(.swarmspeed/code) of O(chdir), as the role P(swarmspeed.cluster.workspace#role)
        wrote it there. Its files must be those of C(workspace) in O(fingerprint), a mapping of relative path to
        SHA-256.
      - The job then starts in its own copy of them, which nothing changes under it, together with what else is in
        O(chdir). What it writes by relative paths is in O(chdir) within a second.
      - Without it, the job starts in O(chdir) itself.
    type: str
  files:
    description:
      - Files of this host that later jobs may change, such as hostfile and C(ds_config.json), by the path that
        O(command) and O(ds_config) have for them. A job that is started gets copies in its folder, and their paths.
    type: dict
    default: {}
  digests:
    description:
      - Digests of what the job computes from, such as C(code), C(image) and C(assets), for its summary. The job adds
        those of its configuration and its environment, keyed by O(secret_file).
    type: dict
    default: {}
  image_built:
    description:
      - Whether C(image) in O(fingerprint) is built by this collection, and so has another name where another release
        of it builds the image otherwise.
      - A job that another release has started is then the same job if it differs in nothing but the image. It is
        followed, or not started again, with a warning.
    type: bool
    default: false
  rerun:
    description: Start the job again although it has succeeded.
    type: bool
    default: false
  observe:
    description: Only report, whatever O(state) is. Used by the action plugin to follow a job.
    type: bool
    default: false
  log_offset:
    description: Byte of the log at which RV(log) begins. A negative number counts from the end.
    type: int
    default: 0
  log_limit:
    description: Maximum number of bytes of the log to return, 1 to 1048576.
    type: int
    default: 65536
  follow:
    description:
      - Follow a job until it ends, and fail unless it succeeds. Not in check mode.
      - By default V(true) to start a job, and V(false) with O(observe=true).
    type: bool
  recorded:
    description:
      - What M(swarmspeed.cluster.node_facts) gathered of this job in this run, in C(jobs_succeeded). In check mode, the
        host is not queried about whether to start a job that succeeded with the same specification.
      - Used by the action plugin only.
    type: dict
    default: {}
  follow_timeout:
    description: Seconds to follow the job; the task then fails and the job keeps running. 0 means no limit.
    type: float
    default: 0
extends_documentation_fragment: [swarmspeed.cluster.attributes.jobs]
attributes:
  check_mode:
    support: full
    description: Reports whether the job would be started, stopped or removed.
    details:
      - How a job would end is not predicted. A container that does not exist yet is not an error in check mode.
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
- name: Train on three nodes and follow the job
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

- name: Stop the job
  swarmspeed.cluster.training_job:
    name: digits
    state: stopped
    jobs_dir: /srv/swarmspeed/lab/jobs
"""

RETURN = r"""
todo:
  description: What the call does, or would do in check mode. V(none), V(start), V(stop) or V(remove).
  returned: success, without O(observe=true)
  type: str
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
    run_id:
      description: What distinguishes this run from any other.
      type: str
    attempt:
      description: Which attempt of the run it is, counted from 1.
      type: int
    leader:
      description: Whether rank 0 of the job is on this host. Null where the job has no O(members).
      type: bool
    launcher:
      description: As requested.
      type: str
    transport:
      description: As requested.
      type: str
    runtime:
      description: As requested.
      type: str
    members:
      description: As requested, or those that were left when the job shrank, each with its C(first_rank).
      type: list
      elements: dict
    shrunk_from:
      description:
        - The C(world_size) and number of C(nodes) it began with, and C(left_out), the nodes that stayed away. Null
          where it has all of its nodes.
      type: dict
    channel_port:
      description: Port on which the supervisor of rank 0 listens to the others. Null with one node.
      type: int
    master_port:
      description: TCP port of the rendezvous.
      type: int
    ranks:
      description: Node and exit code of each rank, as far as known. Only on the leader's node.
      type: dict
    figures:
      description: Step, loss and throughput, as far as the log has them.
      type: dict
    gpus:
      description:
        - Load of the GPUs of each node while the job runs, by node, a row for each GPU. C(index), C(utilization),
          C(utilization_highest), C(memory_used_bytes), C(memory_bytes), C(power_watts), C(power_limit_watts) and
          C(temperature_celsius), from three readings of nvidia-smi within half a minute. Empty where nvidia-smi is
          missing.
      type: dict
    nccl:
      description:
        - What NCCL connected, where it runs with C(NCCL_DEBUG=INFO). C(size) of the widest communicator, C(connected)
          ranks of it, C(rings), and C(nodes) with C(network) and C(devices) of each, and C(interface) and C(hcas) that
          the role nccl_env chose. Empty where NCCL reports nothing.
      type: dict
    hang:
      description:
        - How long the job may make no progress until it is examined (C(bound), in seconds) and C(why), and C(findings),
          the last five. Each has C(at), C(silent) (seconds without progress), C(woke) (seconds after which it went on,
          or null), C(ranks) and C(nodes) to blame, C(collective), C(does), C(kind), C(link), C(sentence), C(remedy),
          C(confidence), C(missing) (nodes that did not answer) and C(evidence), the folder in that of the job. The last
          one has C(timeline), when ranks entered their last collectives, in seconds before the last of all.
        - Empty without O(hang_after).
      type: dict
    first_failure:
      description: Node, rank, exit code, cause, remedy and line of the first failure. Null where there is none.
      type: dict
    spec_hash:
      description: SHA-256 of its specification.
      type: str
    container:
      description: Name of the container in which its launcher runs.
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
      description: Number of ranks requested, or of those that were left when the job shrank.
      type: int
    world_size_seen:
      description: Number of ranks in the launcher's log. Null while the log does not show it.
      type: int
    nodes_expected:
      description: Number of nodes requested, or of those that were left when the job shrank.
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
  description: The log from O(log_offset) on. Empty when the action plugin has shown it.
  returned: success
  type: str
log_offset:
  description: Byte at which the next call should continue.
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

import contextlib
import os.path
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.common.secret_names import mask_arguments
from ..module_utils.common.untrusted_text import on_one_line
from ..module_utils.engine.api_io import EngineError, SocketEngine
from ..module_utils.job import resource
from ..module_utils.job.arguments import ARGUMENTS, spec_of
from ..module_utils.job.copies_io import own_copies
from ..module_utils.job.observe_io import check_log_limit, current, report
from ..module_utils.job.runner_io import JobRunner, RunStore
from ..module_utils.job.runtimes import DockerRuntime, HostRuntime, Runtime


class Call:
    """One call of the module: read the state, decide, act unless it is check mode, read it again."""

    def __init__(self, params: dict[str, Any], check_mode: bool, runtimes: Mapping[str, Runtime]) -> None:
        self.params, self.check_mode, self._runtimes = params, check_mode, runtimes
        resource.check_name(params["name"])
        check_log_limit(params["log_limit"])
        self._use(self._where())
        self.damaged = self.cleared = False
        self.warning = ""
        self.found: resource.Container | None = None
        starting = params["state"] == "started" and not params["observe"]
        self.spec = self._spec() if starting else {}
        self.place = self._place() if starting else {}

    def _where(self) -> RunStore:
        wanted = self.params["runtime"] == "host"
        return RunStore.of(self.params["jobs_dir"], self.params["name"], else_on_host=wanted)

    def _use(self, store: RunStore) -> None:
        """Act on a job where it is recorded: the place, and no file in it, says whether it runs on the host."""
        self.store, self.runtime = store, self._runtimes["host" if store.on_host else "container"]
        inside = self.params["container_jobs_dir"].rstrip("/") + "/" + self.params["name"]
        self.inside = str(store.path) if store.on_host else inside

    def _spec(self) -> dict[str, Any]:
        resource.check_shrink(self.params)
        return spec_of(self.params)

    def _place(self) -> dict[str, Any]:
        """This node's part of the job, for its supervisor."""
        members, node, leader = self.params["members"] or [], self.params["node"], self.params["leader"]
        given = ("master_port", "stall_timeout", "hang_after", "on_hang", "resume", "resume_args", "checkpoints")
        options = {key: self.params[key] for key in (*given, "restarts", "shrink", "code", "digests")}
        if not members:
            return {"options": options}
        names = [item["name"] for item in members]
        node = node or names[0]
        if node not in names:
            raise resource.JobError(f"node: {node} is not one of the members {', '.join(names)}.")
        if node == names[0]:
            return {"options": options, "node": node}
        if not leader:
            raise resource.JobError(
                f"leader: missing. Start the job on {names[0]} first, and give its job.run, job.run_id and "
                "job.channel_port here."
            )
        where = {"address": members[0]["address"], "port": leader["port"]}
        return {
            **{"options": options, "node": node, "leader": where},
            **{key: leader[key] for key in ("run", "run_id")},
        }

    def run(self) -> dict[str, Any]:
        if self.params["observe"]:
            return {"changed": False, **self._report(*self._gather())}
        if self.check_mode or (self.params["state"] != "started" and not self.store.exists()):
            return self._decide(act=False)
        with self.store.lock():
            return self._decide(act=True)

    def _recorded(self) -> dict[str, Any]:
        wanted = self.params["state"]
        if wanted == "started" or (wanted == "stopped" and self.params["observe"]):
            return self.store.read_place()
        # What is damaged can still be stopped, and removed.
        with contextlib.suppress(resource.JobError):
            self.store.check()
            return self.store.read_place()
        self.damaged = wanted == "stopped" and not self.cleared
        return {}

    def _gather(self) -> tuple[str, str]:
        state, reason, self.found = current(self.store, self.runtime, self._recorded)
        if self.damaged:
            state = "lost"  # something of it may run
        if state == "absent" and self.params["state"] == "absent" and self.store.exists():
            state = "stopped"  # a folder without a state is still something to remove
        return state, reason

    def _decide(self, act: bool) -> dict[str, Any]:
        self._use(self._where())  # again: before the lock was held somebody else may have started it
        state, reason = self._gather()
        recorded = self._recorded()
        digest = resource.spec_hash(self.spec) if self.spec else recorded.get("spec_hash")
        if self.place.get("leader"):
            # Whether a run starts is decided where its leader is: here it is joined, or has been.
            todo = "none" if recorded.get("run_id") == self.place["run_id"] else "start"
        else:
            same = digest == recorded.get("spec_hash")
            if not same and state in (*resource.ACTIVE, "succeeded") and self._of_another_release():
                same, self.warning = True, self._warning()
            todo = resource.plan(self.params["state"], state, same=same, rerun=self.params["rerun"])
        if todo == "refuse":
            differs = [on_one_line(key, 100) for key in resource.changed_keys(self.store.read_spec(), self.spec)][:50]
            raise resource.JobError(resource.refusal(recorded, differs, str(self.store.path)))
        before = {"state": state, "spec_hash": recorded.get("spec_hash")}
        after = {
            "none": before,
            "start": {"state": "running", "spec_hash": digest},
            "stop": {**before, "state": "stopped"},
            "remove": {"state": "absent", "spec_hash": None},
        }[todo]
        if act and todo != "none":
            self._act(todo, state, digest or "")
            state, reason = self._gather()
        changes = {"before": before, "after": after}
        return {"changed": todo != "none", "todo": todo, "diff": changes, **self._report(state, reason)}

    def _of_another_release(self) -> bool:
        """Whether another release has started the job, and the image alone differs: no other job was requested."""
        differs = resource.changed_keys(self.store.read_spec(), self.spec) if self.params["image_built"] else []
        return differs == ["fingerprint.image"] and not self.store.runs_this_program()

    def _warning(self) -> str:
        specs = (self.store.read_spec(), self.spec)
        before, now = (on_one_line(str(spec["fingerprint"].get("image")), 300) for spec in specs)
        return (
            f"Job {self.params['name']} was started by another release of this collection, in image {before}, and "
            f"counts as the same job. To run it in {now}, which this release builds, set deepspeed_launch_rerun: true"
        )

    def _act(self, todo: str, state: str, digest: str) -> None:
        runner = JobRunner(self.store, self.runtime)
        if todo == "start":
            if state in resource.ACTIVE:  # a follower of an earlier run that has not noticed its end yet
                runner.stop(state, self._sweepable(), self.inside)
            container = self.params["container"] or ""
            unfinished = state in {"failed", "stopped", "lost"} and (
                self._recorded().get("spec_hash") == digest or self._of_another_release()
            )
            self.place["options"]["resuming"] = unfinished and self.params["resume"] == "auto"
            found, versions = self._container(), self.params["versions"]
            self._move()
            runner = JobRunner(self.store, self.runtime)
            copies = own_copies(self.params["files"], self.spec)
            names = {inside: Path(path).name for inside, path in self.params["files"].items()}
            self.place["options"]["files"] = {inside: name for inside, name in names.items() if name in copies}
            runner.start(
                self.spec, digest, container, found, self.inside, place=self.place, versions=versions, copies=copies
            )
            return
        if self.damaged:
            runner.clear(self.runtime.container("") if self.store.on_host else self._sweepable(), self.inside)
            self.damaged, self.cleared = False, True
        elif state in (*resource.ACTIVE, "lost"):
            runner.stop(state, self._sweepable(), self.inside)
        if todo == "remove":
            for on_host in (True, False):
                RunStore(self.params["jobs_dir"], self.params["name"], on_host=on_host).remove()

    def _move(self) -> None:
        """Start in the place of the runtime that was requested; the record of an earlier run in the other one ends."""
        on_host = self.params["runtime"] == "host"
        if self.store.on_host != on_host:
            if self.store.recorded():
                self.store.set_aside()
            self._use(RunStore(self.params["jobs_dir"], self.params["name"], on_host=on_host))

    def _sweepable(self) -> resource.Container | None:
        """Where what is left of the job is ended: only in a container that has this very folder.

        The record names a container, and root in a container may have written it; then the one of O(container) counts.
        """
        if self.store.on_host:
            return self.found
        if self.found is not None and self._has_jobs(self.found):
            return self.found
        other = self.runtime.container(self.params["container"]) if self.params["container"] else None
        if other is not None and self._has_jobs(other):
            return other
        if self.found is not None:
            named, inside = self._recorded().get("container"), self.params["container_jobs_dir"]
            raise resource.JobError(
                f"{self.store.path}/state.json names container {named}, which does not have {self.params['jobs_dir']} "
                f"at {inside}. Nothing was run there. {self.store.remedy}"
            )
        return None

    def _has_jobs(self, found: resource.Container) -> bool:
        source = found.source_of(self.params["container_jobs_dir"])
        return source is not None and os.path.realpath(source) == os.path.realpath(self.params["jobs_dir"])

    def _container(self) -> resource.Container:
        if self.params["runtime"] == "host":
            return HostRuntime.here()
        name, jobs_dir = self.params["container"], self.params["jobs_dir"]
        found = self._runtimes["container"].container(name)
        if found is None or not found.running:
            raise resource.JobError(
                f"container: {name} {'does not run' if found else 'does not exist'} on this host. "
                "Bring it up first (--tags training_container)."
            )
        inside = self.params["container_jobs_dir"]
        source = found.source_of(inside)
        if not self._has_jobs(found):
            raise resource.JobError(
                f"jobs_dir: {jobs_dir} is not what container {name} has at {inside} ({source or 'no mount'}). "
                "Correct jobs_dir or container_jobs_dir, or make the container again (--tags training_container)."
            )
        return found

    def _report(self, state: str, reason: str) -> dict[str, Any]:
        return report(
            self.store,
            self._recorded(),
            state,
            reason,
            offset=self.params["log_offset"],
            limit=self.params["log_limit"],
            environment=self.spec.get("environment", {}),
            damaged=self.damaged,
        )


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    # Shown at -vvv. A variable of the job may be a secret, so its value is not shown, whatever its name.
    hidden = dict.fromkeys(module.params["environment"], "(not shown)")
    shown = {**module.params, "environment": hidden, "command": mask_arguments(module.params["command"] or [])}
    invocation = {"module_args": shown}
    needed = (*(["container"] if module.params["runtime"] == "container" else []), "command", "world_size", "nodes")
    missing = [key for key in needed if module.params[key] is None]
    if module.params["state"] == "started" and not module.params["observe"] and missing:
        module.fail_json(msg=f"To start a job, give also: {', '.join(missing)}.", invocation=invocation)
    try:
        runtimes: dict[str, Runtime] = {"container": DockerRuntime(SocketEngine()), "host": HostRuntime()}
        call = Call(module.params, module.check_mode, runtimes)
        result = call.run()
    except (resource.JobError, EngineError) as error:
        module.fail_json(msg=f"training job {module.params['name']}: {error}", invocation=invocation)
    except OSError as error:
        module.fail_json(
            msg=f"training job {module.params['name']}: {error}. Nothing more was done.",
            invocation=invocation,
        )
    if call.warning:
        module.warn(call.warning)
    module.exit_json(invocation=invocation, **result)


if __name__ == "__main__":
    main()
