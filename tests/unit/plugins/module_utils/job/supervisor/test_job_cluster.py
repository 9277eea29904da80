# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Supervisors of three nodes, for real, as processes on one host that find each other over the loopback interface.

Stand-ins: each node's launcher is a shell script that prints the lines of DeepSpeed's launch.py and starts one "rank".
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.base import PROGRAM, NodeContext
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.local_run import survivors
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor_archive import supervisor_archive

NAMES = ("gpu1", "gpu2", "gpu3")
LAUNCH = "[2026-11-20 10:00:00,000] [INFO] [launch.py:1:main] "
HEAD = f"""
node=$1 port=$2 logs=$3
nodes=$(wc -l < "$SWARMSPEED_JOB/hostfile" 2>/dev/null || echo 3)
echo "{LAUNCH}nnodes=$nodes, num_local_procs=1, node_rank=$node"
echo "{LAUNCH}dist_world_size=$nodes"
rank() {{ RANK=$node bash -c "$1" > $logs/2026_rank$node.log 2>&1 & }}
ended() {{
  wait $!; code=$?
  if [ $code = 0 ]; then echo "{LAUNCH}Process $! exits successfully."; exit 0; fi
  echo "{LAUNCH.replace("INFO", "ERROR")}['x'] exits with return code = $code"; exit $code
}}
"""
TIMING = {"poll": 0.05, "grace": 3, "after-failure": 0.5, "failure-grace": 1, "leader-gone": 30, "silence": 30}
"""Seconds. No node is taken for gone only because the machine that runs the tests is busy."""
LEAVING = {"leader-gone": 6, "silence": 4}
"""For jobs that lose a node, or wait as long for one to answer."""


class Cluster:
    """A job on three nodes, each with a folder of its own."""

    def __init__(self, path: Path, script: str, **change: Any) -> None:
        self.path = path
        (path / "secret").write_text(f"the key of {path}")  # tests at the same time share the ports
        self.options: dict[str, Any] = change.pop("options", {})
        self.timing = {**TIMING, **change.pop("timing", {})}
        self.spec: dict[str, Any] = {
            "command": ["bash", "-c", HEAD + script, "launcher", "@node_rank@", "@master_port@", "@logs@"],
            "chdir": None,
            "environment": {"FROM_SPEC": "yes"},
            "world_size": 3,
            "nodes": 3,
            "ds_config": None,
            "launcher": "deepspeed",
            "transport": "direct",
            "members": [{"name": name, "address": "127.0.0.1", "slots": [0]} for name in NAMES],
            "secret_file": str(path / "secret"),
            **change,
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def folder(self, name: str) -> Path:
        return self.path / name / "digits"

    def start(self, name: str) -> None:
        folder = self.folder(name)
        folder.mkdir(parents=True)
        (folder / PROGRAM).write_bytes(supervisor_archive())
        request: dict[str, Any] = {"spec": self.spec, "node": name, "run_id": "digits/1/now", "options": self.options}
        if name != NAMES[0]:
            self.until(lambda: bool(self.state(NAMES[0]).get("channel_port")))
            request["leader"] = {"address": "127.0.0.1", "port": self.state(NAMES[0])["channel_port"]}
        (folder / "spec.json").write_text(json.dumps(request))
        (folder / "state.json").write_text(json.dumps({"state": "starting", "run": 1}))
        self.restart(name)

    def restart(self, name: str) -> None:
        """Start the supervisor of a node; once more, as entrypoint.sh does when the container was restarted."""
        options = [word for key, value in self.timing.items() for word in (f"--{key}", str(value))]
        again = ["--again"] if name in self.processes else []
        folder = str(self.folder(name))
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-B", f"{folder}/{PROGRAM}", folder, *again, *options],
            env={"PATH": os.environ["PATH"]},
        )

    def run(self) -> Cluster:
        for name in NAMES:
            self.start(name)
        return self

    def state(self, name: str = NAMES[0]) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder(name) / "state.json").read_text())
        return found

    def log(self, name: str = NAMES[0]) -> str:
        path = self.folder(name) / "launcher.log"
        return path.read_text() if path.exists() else ""

    def until(self, what: Callable[[], bool], seconds: float = 90.0) -> None:
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, [self.state(name) for name in self.processes] + [self.log()]
            time.sleep(0.02)

    def wipe(self, name: str) -> None:
        """End all that is left on a node, as when its container or the node itself were gone."""
        while left := survivors(self.folder(name)):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def end(self) -> dict[str, Any]:
        """Wait for all supervisors; nothing may be left on any node."""
        for process in self.processes.values():
            process.wait(timeout=90)
        assert {name: survivors(self.folder(name)) for name in NAMES} == {name: [] for name in NAMES}
        return self.state()


def slowly(*values: str) -> list[pytest.ParameterSet]:
    """Cases of a test that others stand for without --slow."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def make(script: str, **change: Any) -> Cluster:
        made.append(Cluster(tmp_path, script, **change))
        return made[-1]

    yield make
    for item in made:
        for name, process in item.processes.items():
            if process.poll() is None:
                process.kill()
            item.wipe(name)


def test_all_nodes_run_and_succeed(cluster: Callable[..., Cluster]) -> None:
    job = cluster("rank 'echo hello from $RANK with $FROM_SPEC'; ended").run()
    state = job.end()
    assert (state["state"], state["reason"], state["exit_code"]) == ("succeeded", "", 0), job.log()
    assert (state["world_size_seen"], state["nodes_seen"], state["hosts"]) == (3, 3, list(NAMES))
    assert state["ranks"] == {str(rank): {"node": name, "exit_code": 0} for rank, name in enumerate(NAMES)}
    assert "gpu1: rank 0: hello from 0 with yes" in job.log()
    assert [job.state(name)["state"] for name in NAMES[1:]] == ["succeeded", "succeeded"]
    for rank, name in enumerate(NAMES):
        kept = job.folder(name) / "ranks" / f"rank-{rank:05d}.log"
        assert kept.read_text() == f"hello from {rank} with yes\n"
        assert kept.stat().st_mode & 0o077 == 0
    assert 29500 <= state["master_port"] < 29600


def test_a_rank_that_fails_ends_the_others_and_is_named(cluster: Callable[..., Cluster]) -> None:
    trace = 'Traceback (most recent call last):\\n  File \\"t.py\\", line 1\\nKeyError: 7\\n'
    script = f"if [ $node = 1 ]; then rank 'sleep 1; printf \"{trace}\"; exit 3'; else rank 'sleep 60'; fi; ended"
    job = cluster(script).run()
    state = job.end()
    assert (state["state"], state["failed_node"], state["failed_rank"]) == ("failed", "gpu2", 1), job.log()
    assert "rank 1 on gpu2 ended with exit code 3: KeyError: 7" in state["reason"]
    assert state["ranks"]["1"] == {"node": "gpu2", "exit_code": 3}
    assert job.state("gpu3")["state"] == "failed"
    assert "KeyError: 7" in job.state("gpu3")["reason"]


PRINTS = {  # where the ranks of a launcher print
    "deepspeed": "rank '{}'; ended",
    "torchrun": "mkdir -p $logs/x/attempt_0/0; RANK=$node bash -c '{}' > $logs/x/attempt_0/0/stdout.log",
    "per_node": "RANK=$NODE_RANK bash -c '{}'",
}


@pytest.mark.parametrize("launcher", PRINTS)
def test_gpus_and_nccl_of_all_nodes_come_to_the_leader(
    cluster: Callable[..., Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: str
) -> None:
    """Stand-ins: an nvidia-smi of fixed figures, and ranks that print what NCCL 2.26 would."""
    (tmp_path / "bin").mkdir()
    smi = tmp_path / "bin/nvidia-smi"
    smi.write_text("#!/bin/sh\necho 0, 97, 71234, 81559, 612.31, 700.00, 64\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    conf = tmp_path / "nccl.conf"
    conf.write_text("NCCL_SOCKET_IFNAME==eth0\n")
    comm = "ncclCommInitRank comm 0x5a rank $RANK nranks 3 cudaDev 0 nvmlDev 0 busId 1 commId 0x7 - Init COMPLETE"
    say = (
        'h="gpu:1:2 [0] NCCL INFO"; echo "$h NET/Socket : Using [0]eth0:10.0.1.$RANK<0>";'
        f' echo "$h Using network Socket"; echo "$h {comm}";'
        ' echo "$h Connected all rings"; until [ -e $END ]; do sleep 0.1; done'
    )
    end = tmp_path / "end"
    given = {"END": str(end), "NCCL_CONF_FILE": str(conf)}
    script, timing = PRINTS[launcher].format(say), {"gpu-every": 0.1}
    job = cluster(script, launcher=launcher, environment=given, timing=timing).run()
    job.until(lambda: set(job.state().get("gpus") or {}) == set(NAMES))
    job.until(lambda: (job.state().get("nccl") or {}).get("connected") == 3)
    state = job.state()
    assert state["gpus"]["gpu3"] == [[0, 97.0, 97.0, 71234 << 20, 81559 << 20, 612.31, 700.0, 64.0]]
    found = {"network": "Socket", "devices": ["eth0"], "interface": "=eth0", "hcas": ""}
    assert state["nccl"] == {"size": 3, "connected": 3, "rings": True, "nodes": dict.fromkeys(NAMES, found)}
    assert list(state["nccl"]["nodes"]) == list(NAMES)
    end.touch()
    state = job.end()
    assert (state["state"], state["reason"], state["gpus"]) == ("succeeded", "", {}), job.log()
    summary = json.loads((job.folder("gpu1") / "summary.json").read_text())
    assert summary["nccl"]["connected"] == 3


@pytest.mark.slow
def test_a_launcher_that_is_killed_is_no_success(cluster: Callable[..., Cluster]) -> None:
    # DeepSpeed's runner exits 0 when a signal ended launch.py, whose ranks live on.
    job = cluster("rank 'sleep 60'; [ $node = 2 ] && { sleep 1; exit 0; }; ended").run()
    state = job.end()
    assert (state["state"], state["failed_node"]) == ("failed", "gpu3"), job.log()
    assert "the launcher on gpu3 ended with exit code 0 before its ranks did" in state["reason"]


def test_a_supervisor_that_is_killed_is_a_node_that_has_gone(cluster: Callable[..., Cluster]) -> None:
    job = cluster("rank 'echo begun; sleep 60'; ended").run()
    job.until(lambda: "rank 0: begun" in job.log())
    job.processes["gpu2"].kill()
    job.until(lambda: job.state()["state"] == "failed")
    assert job.state()["failed_node"] == "gpu2"
    assert "gpu2 has gone: it has not answered for" in job.state()["reason"]
    job.until(lambda: job.state("gpu3")["state"] == "failed")
    job.wipe("gpu2")
    job.end()


@pytest.mark.slow
def test_without_a_leader_the_others_end(cluster: Callable[..., Cluster]) -> None:
    job = cluster("rank 'echo begun; sleep 60'; ended", timing=LEAVING).run()
    job.until(lambda: "rank 0: begun" in job.log())
    job.processes["gpu1"].kill()
    job.until(lambda: all(job.state(name)["state"] == "failed" for name in NAMES[1:]))
    assert "the leader of the job, on gpu1, has not answered for" in job.state("gpu2")["reason"]
    job.wipe("gpu1")
    job.end()


@pytest.mark.parametrize("where", ["gpu2", *slowly("gpu1", "gpu3")])
def test_a_stop_on_any_node_ends_all(cluster: Callable[..., Cluster], where: str) -> None:
    job = cluster("rank 'echo begun; sleep 60'; ended").run()
    job.until(lambda: "rank 0: begun" in job.log())
    (job.folder(where) / "stop").touch()
    state = job.end()
    assert state["state"] == "stopped"
    assert state["reason"] == ("on request" if where == "gpu1" else f"on request, on {where}")
    assert [job.state(name)["state"] for name in NAMES] == ["stopped"] * 3


@pytest.mark.slow
def test_a_node_that_never_comes_is_named(cluster: Callable[..., Cluster]) -> None:
    job = cluster("rank true; ended", timing={"start-timeout": 8})
    for name in NAMES[:2]:
        job.start(name)
    job.until(lambda: job.state()["state"] == "failed")
    assert job.state()["reason"].startswith("the supervisor on gpu3 did not report within 8 s.")
    assert job.log() == ""
    job.end()


@pytest.mark.slow
def test_silence_of_all_ranks_is_a_stall(cluster: Callable[..., Cluster]) -> None:
    job = cluster("rank 'echo begun; sleep 60'; ended", options={"stall_timeout": 2}).run()
    state = job.end()
    assert state["state"] == "failed"
    assert "(deepspeed_launch_stall_timeout: 2). It hangs, or prints too seldom" in state["reason"]


WAITS = "rank 'echo step 1/9; until [ -e $END ]; do sleep 0.1; done; echo step 2/9'; ended"
"""A rank that is silent until the file END is there, or ``END`` names none."""


def findings(job: Cluster) -> list[dict[str, Any]]:
    return list((job.state().get("hang") or {}).get("findings") or [])


def test_a_silent_job_is_examined_on_all_nodes_and_goes_on(cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    end = tmp_path / "end"
    job = cluster(WAITS, options={"hang_after": 1}, environment={"END": str(end)}).run()
    job.until(lambda: bool(findings(job)))
    state = job.state()
    assert state["state"] == "running"
    assert state["hang"]["bound"] == 1 and state["hang"]["why"]  # why, depends on when which rank printed its step
    (found,) = findings(job)
    assert found["silent"] >= 1 and found["woke"] is None and found["sentence"] and found["remedy"]
    for name in NAMES:
        assert (job.folder(name) / found["evidence"] / "ranks.json").exists()
        assert (job.folder(name) / found["evidence"]).stat().st_mode & 0o077 == 0
    assert "swarmspeed: no progress for " in job.log()
    end.touch()
    state = job.end()
    assert state["state"] == "succeeded", job.log()
    (found,) = json.loads((job.folder(NAMES[0]) / "summary.json").read_text())["hangs"]
    assert found["woke"] >= found["silent"]
    assert "without progress: it did not hang." in job.log()


@pytest.mark.slow
def test_a_hang_is_a_failure_that_restarts_a_job_where_that_is_requested(
    cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    script = (
        f"if [ -e {tmp_path}/began ]; then rank 'echo again'; else sleep 1; touch {tmp_path}/began; {WAITS}; fi; ended"
    )
    options = {"hang_after": 2, "on_hang": "restart", "resume": "auto", "restarts": 1, "backoff": 0.1}
    state = cluster(script, options=options, environment={"END": "/nonexistent"}).run().end()
    assert (state["state"], state["attempt"]) == ("succeeded", 2)
    (restart,) = state["restarts"]
    assert "the job makes no progress for" in restart["reason"]
    assert "(deepspeed_launch_on_hang: restart)" in restart["reason"]


def test_a_taken_port_is_reported_before_anything_starts(cluster: Callable[..., Cluster]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        state = cluster("rank true; ended", options={"master_port": port}).run().end()
    assert state["state"] == "failed"
    assert f"port {port} of 127.0.0.1, for the rendezvous, is taken on gpu1." in state["reason"]


@pytest.mark.slow
def test_over_ssh_followers_watch_and_clean_up(cluster: Callable[..., Cluster]) -> None:
    # The one launcher starts "ranks" in the folders of all nodes, as pdsh does over ssh, and is then killed.
    script = """
    for n in 1 2; do
      other=$(dirname $(dirname $SWARMSPEED_JOB))/gpu$((n + 1))/digits
      mkdir -p $other/ranks/attempt-1
      SWARMSPEED_JOB=$other RANK=$n setsid bash -c 'echo ERROR from $RANK; sleep 60' \\
        > $other/ranks/attempt-1/x_rank$n.log 2>&1 &
    done
    rank 'sleep 60'; sleep 2; kill -9 $$
    """
    job = cluster(script, transport="pdsh").run()
    state = job.end()
    assert state["state"] == "failed"
    assert state["exit_code"] == -9
    assert "gpu2: rank 1: ERROR from 1" in job.log()


LOST = """
rank 'echo begun; sleep 60'
until [ -e "$SWARMSPEED_JOB/lost" ]; do sleep 0.05; done
echo "pdsh@gpu1: gpu1: ssh exited with exit code 1"
echo "pdsh@gpu1: gpu2: ssh exited with exit code 255"
exit 255
"""
"""What pdsh says on rank 0's node when it has lost gpu2."""


@pytest.mark.parametrize("order", ["ssh first", *slowly("supervisor first", "together, as a node that is cut off")])
def test_a_node_that_has_gone_is_named_and_not_ssh(cluster: Callable[..., Cluster], order: str) -> None:
    job = cluster(LOST, transport="pdsh", timing=LEAVING).run()
    job.until(lambda: "rank 0: begun" in job.log())
    lost = job.folder("gpu1") / "lost"
    if order == "ssh first":
        lost.touch()
        job.until(lambda: "ssh exited with exit code 255" in job.log())
        time.sleep(1.5)  # pdsh has ended, and the last lines are read
        job.processes["gpu2"].kill()
    elif order == "supervisor first":
        job.processes["gpu2"].kill()
        time.sleep(1)
        lost.touch()
    else:
        job.processes["gpu2"].send_signal(signal.SIGSTOP)  # its connection stays, and nothing comes
        lost.touch()
    job.until(lambda: job.state()["state"] == "failed")
    assert job.state()["failed_node"] == "gpu2", job.state()["reason"]
    assert job.state()["reason"].startswith("gpu2 has gone: it has not answered for")
    job.processes["gpu2"].kill()
    job.wipe("gpu2")
    job.end()


@pytest.mark.slow
def test_where_only_ssh_broke_off_it_is_named(cluster: Callable[..., Cluster]) -> None:
    job = cluster(LOST, transport="pdsh").run()
    (job.folder("gpu1") / "lost").touch()
    state = job.end()
    assert state["failed_node"] == "gpu2", state["reason"]
    assert state["reason"].startswith("ssh to gpu2 ended with exit code 255.")


@pytest.mark.slow
def test_torchrun_is_judged_by_its_exit_codes(cluster: Callable[..., Cluster]) -> None:
    script = "at=$logs/run/attempt_0/0; mkdir -p $at; echo out > $at/stdout.log; echo err > $at/stderr.log"
    job = cluster(script, launcher="torchrun").run()
    state = job.end()
    assert (state["state"], state["world_size_seen"]) == ("succeeded", 3)
    assert (job.folder("gpu3") / "ranks" / "rank-00002.log").read_text() == "out\n"
    assert (job.folder("gpu3") / "ranks" / "rank-00002.err.log").read_text() == "err\n"


@pytest.mark.slow
def test_per_node_gets_its_place_in_the_environment(cluster: Callable[..., Cluster]) -> None:
    job = cluster('echo "$MASTER_ADDR $WORLD_SIZE $NODE_RANK $NNODES $NPROC_PER_NODE"', launcher="per_node").run()
    state = job.end()
    assert (state["state"], state["world_size_seen"], state["nodes_seen"]) == ("succeeded", 3, 3)
    assert "gpu1: 127.0.0.1 3 0 3 1" in job.log()
    assert "127.0.0.1 3 2 3 1" in (job.folder("gpu3") / "launcher.log").read_text()


@pytest.mark.parametrize(
    ("launcher", "slots", "rank"), [("per_node", [3], 2), ("per_node", [0, 1], None), ("deepspeed", [3], None)]
)
def test_a_command_is_a_rank_where_it_starts_none(
    tmp_path: Path, launcher: str, slots: list[int], rank: int | None
) -> None:
    members = [{"name": "gpu1", "address": "a", "slots": [0, 1]}, {"name": "gpu2", "address": "b", "slots": slots}]
    spec = {"launcher": launcher, "members": members, "environment": {}}
    (tmp_path / "spec.json").write_text(json.dumps({"spec": spec, "node": "gpu2"}))
    assert NodeContext(tmp_path).rank_itself() == rank


RESUMING = {"resume": "auto", "restarts": 2, "resume_args": ["--from", "@tag@"], "backoff": 0.5, "node_wait": 20}


def test_a_rank_that_is_killed_is_started_again_from_the_checkpoint(cluster: Callable[..., Cluster]) -> None:
    # The checkpoint is written by rank 0 alone, as without ZeRO; the second attempt gets --from and ends well.
    write = "mkdir -p C/step7; echo x > C/step7/mp_rank_00_model_states.pt; echo step7 > C/latest"
    script = f"""
    if [ "$4" = --from ]; then rank "echo going on from $5"; ended; fi
    if [ $node = 0 ]; then {write}; fi
    if [ $node = 1 ]; then rank 'sleep 1; kill -9 $$'; else rank 'sleep 60'; fi; ended
    """
    job = cluster("true")
    job.spec["command"][2] = HEAD + script.replace("C/", f"{job.path}/checkpoints/")
    job.options = {**RESUMING, "checkpoints": str(job.path / "checkpoints")}
    state = job.run().end()
    assert (state["state"], state["attempt"]) == ("succeeded", 2), job.log()
    assert "gpu1: rank 0: going on from step7" in job.log()
    (restart,) = state["restarts"]
    assert (restart["attempt"], restart["resumed_from"]) == (1, "step7")
    assert "rank 1 on gpu2" in restart["reason"]
    assert "SIGKILL" in restart["reason"]
    assert "swarmspeed: attempt 2 begins, from checkpoint step7" in job.log()


@pytest.mark.slow
def test_restarts_are_limited(cluster: Callable[..., Cluster]) -> None:
    job = cluster("rank 'kill -9 $$'; ended", options={**RESUMING, "restarts": 1}).run()
    state = job.end()
    assert (state["state"], state["attempt"], len(state["restarts"])) == ("failed", 2, 1), job.log()


@pytest.mark.slow
def test_a_bug_of_the_script_is_not_started_again(cluster: Callable[..., Cluster]) -> None:
    trace = 'Traceback (most recent call last):\\n  File \\"t.py\\", line 1\\nKeyError: 7\\n'
    job = cluster(f"rank 'printf \"{trace}\"; exit 1'; ended", options=RESUMING).run()
    state = job.end()
    assert (state["state"], state["attempt"], state["first_failure"]["kind"]) == ("failed", 1, "script"), job.log()


@pytest.mark.slow
def test_a_leader_that_comes_back_goes_on(cluster: Callable[..., Cluster]) -> None:
    script = "if [ -e BEEN$node ]; then rank 'echo well'; else touch BEEN$node; rank 'echo begun; sleep 60'; fi; ended"
    job = cluster("true", options=RESUMING, timing=LEAVING)
    job.spec["command"][2] = HEAD + script.replace("BEEN", str(job.path / "been"))
    job.run()
    job.until(lambda: "rank 0: begun" in job.log())
    folder = job.folder("gpu1")
    assert (folder / "resumes").exists()
    job.processes["gpu1"].kill()  # as a reboot does, with all that runs on the node
    job.processes["gpu1"].wait()
    job.wipe("gpu1")
    job.restart("gpu1")
    state = job.end()
    assert (state["state"], state["attempt"]) == ("succeeded", 2), job.log()
    assert "gpu1, the node of rank 0, was restarted while the job ran." in state["restarts"][0]["reason"]
    assert not (folder / "resumes").exists()


@pytest.mark.slow
def test_a_node_that_stays_away_ends_the_job_with_advice(cluster: Callable[..., Cluster]) -> None:
    job = cluster("rank 'echo begun; sleep 60'; ended", options={**RESUMING, "node_wait": 2}, timing=LEAVING).run()
    job.until(lambda: "rank 0: begun" in job.log())
    job.processes["gpu3"].kill()
    job.until(lambda: job.state()["state"] == "failed")
    assert "The job cannot go on: gpu3 did not come back within 2 s." in job.state()["reason"]
    job.wipe("gpu3")
    job.end()


@pytest.mark.slow
def test_the_last_words_of_a_rank_beside_rank_0_are_passed_on(cluster: Callable[..., Cluster]) -> None:
    members = [{"name": NAMES[0], "address": "127.0.0.1", "slots": [0, 1]}]
    job = cluster("true", members=members, world_size=2, nodes=1)
    # As launch.py, which asks once a second how its ranks have ended.
    launcher = f"""
import os, subprocess, sys, time
print("{LAUNCH}nnodes=1, num_local_procs=2, node_rank=0\\n{LAUNCH}dist_world_size=2", flush=True)
for rank, text in enumerate(("sleep 60", "echo reading shard 17; sleep 2; echo quiet to the end; kill -9 $$")):
    log = open(f"{{sys.argv[1]}}/x_rank{{rank}}.log", "w")
    subprocess.Popen(["bash", "-c", text], stdout=log, env={{**os.environ, "RANK": str(rank)}})
time.sleep(60)
"""
    job.spec["command"] = [sys.executable, "-c", launcher, "@logs@"]
    job.start("gpu1")
    job.processes["gpu1"].wait(timeout=90)
    assert job.state()["first_failure"]["rank"] == 1, job.log()
    assert "gpu1: rank 1: reading shard 17\ngpu1: rank 1: quiet to the end\n" in job.log()


SHRINKING = {**RESUMING, "node_wait": 2, "shrink": True}
FILES = ["@hostfile@", "@include@", "@nodes@"]
GONE = "swarmspeed: gpu3 did not come back within 2 s. The job goes on without: "


def lose_gpu3(job: Cluster) -> None:
    """As when the node itself is gone, for good."""
    job.until(lambda: "rank 0: begun" in job.log())
    job.processes["gpu3"].kill()
    job.wipe("gpu3")


@pytest.mark.slow
def test_a_job_goes_on_without_a_node_that_stays_away(cluster: Callable[..., Cluster]) -> None:
    # The checkpoint is one file that rank 0 writes, as without ZeRO.
    script = """
    if [ "$8" = --from ]; then
      echo "with $(tr '\\n' ' ' < $4)and $5 on $6 nodes: $(tr -d '\\n ' < $7)"
      rank 'echo going on'; ended
    fi
    if [ $node = 0 ]; then mkdir -p C/step7; echo x > C/step7/mp_rank_00_model_states.pt; echo step7 > C/latest; fi
    rank 'echo begun; sleep 60'; ended
    """
    job = cluster("true", timing=LEAVING)
    config = job.path / "ds_config.json"
    config.write_text(json.dumps({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2}))
    job.spec["ds_config"] = str(config)
    job.spec["command"][2] = HEAD + script.replace("C/", f"{job.path}/checkpoints/")
    job.spec["command"] += [*FILES, "@ds_config@"]
    job.options = {**SHRINKING, "checkpoints": str(job.path / "checkpoints")}
    job.run()
    lose_gpu3(job)
    job.processes.pop("gpu3").wait()
    state = job.end()
    assert (state["state"], state["attempt"], state["reason"]) == ("succeeded", 2, ""), job.log()
    assert (state["world_size_expected"], state["world_size_seen"], state["nodes_expected"]) == (2, 2, 2)
    assert state["shrunk_from"] == {"world_size": 3, "nodes": 3, "left_out": ["gpu3"]}
    assert [member["name"] for member in state["members"]] == ["gpu1", "gpu2"]
    assert sorted(state["ranks"]) == ["0", "1"]
    assert f"{GONE}2 instead of 3 ranks: gradient_accumulation_steps 4 becomes 6, so train_batch_size stays 24" in (
        job.log()
    )
    assert "swarmspeed: attempt 2 begins, from checkpoint step7" in job.log()
    files = (
        "with gpu1 slots=1 gpu2 slots=1 and gpu1:0@gpu2:0 on 2 nodes: "
        '{"train_batch_size":24,"train_micro_batch_size_per_gpu":2,"gradient_accumulation_steps":6}'
    )
    assert f"gpu1: {files}" in job.log()
    assert f"\n{files}" in job.log("gpu2")
    assert json.loads(config.read_text()) == {"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2}
    reported = json.loads((job.folder("gpu1") / "summary.json").read_text())
    assert reported["shrunk_from"] == state["shrunk_from"]
    assert reported["world_size"] == {"expected": 2, "seen": 2}
    assert reported["spec"]["world_size"] == 3, "what was asked for stays in it"


@pytest.mark.slow
def test_one_node_is_enough_and_who_comes_back_too_late_is_notified(cluster: Callable[..., Cluster]) -> None:
    script = "if [ $nodes = 1 ]; then rank 'echo alone; sleep 5'; else rank 'echo begun; sleep 60'; fi; ended"
    job = cluster(script, options=SHRINKING, timing=LEAVING).run()
    job.spec["command"] += FILES
    job.until(lambda: "rank 0: begun" in job.log())
    for name in NAMES[1:]:
        job.processes[name].kill()
        job.processes[name].wait()
        job.wipe(name)
    job.until(lambda: "rank 0: alone" in job.log())
    job.restart("gpu2")
    state = job.end()
    assert state["state"] == "succeeded", job.log()
    assert state["shrunk_from"] == {"world_size": 3, "nodes": 3, "left_out": ["gpu2", "gpu3"]}
    assert job.state("gpu2")["state"] == "failed"
    assert job.state("gpu2")["reason"] == "gpu1 went on without this node, which had stayed away too long."


@pytest.mark.slow
def test_a_leader_that_comes_back_still_does_without_it(cluster: Callable[..., Cluster]) -> None:
    script = (
        "if [ -e BEEN$node$nodes ]; then rank 'echo well'; else touch BEEN$node$nodes; rank 'echo begun; sleep 60'; fi"
    )
    job = cluster("true", options=SHRINKING, timing=LEAVING)
    job.spec["command"][2] = HEAD + script.replace("BEEN", str(job.path / "been")) + "; ended"
    job.run()
    lose_gpu3(job)
    job.processes.pop("gpu3").wait()
    job.until(lambda: job.log().count("rank 0: begun") == 2)
    job.processes["gpu1"].kill()
    job.processes["gpu1"].wait()
    job.wipe("gpu1")
    job.restart("gpu1")
    state = job.end()
    assert (state["state"], state["attempt"]) == ("succeeded", 3), job.log()
    assert state["shrunk_from"]["left_out"] == ["gpu3"]
    assert job.log().count(GONE) == 1


@pytest.mark.slow
def test_what_zero_does_not_allow_is_reported_before_the_start(cluster: Callable[..., Cluster]) -> None:
    job = cluster("rank 'echo begun'; ended", options=SHRINKING, timing=LEAVING)
    config = job.path / "ds_config.json"
    config.write_text(json.dumps({"train_batch_size": 24, "zero_optimization": {"stage": 1}}))
    job.spec["ds_config"] = str(config)
    state = job.run().end()
    assert (state["state"], state["attempt"]) == ("failed", 1), job.log()
    assert state["reason"].startswith(
        "deepspeed_launch_shrink is true, and this job cannot go on with fewer nodes: zero_optimization.stage is 1, "
    )
    assert "begun" not in job.log()


@pytest.mark.slow
def test_checkpoints_of_zero_end_a_job_whose_configuration_is_not_known(cluster: Callable[..., Cluster]) -> None:
    job = cluster("rank 'echo begun; sleep 60'; ended", options=SHRINKING)
    tag = job.path / "checkpoints" / "step7"
    tag.mkdir(parents=True)
    (tag / "mp_rank_00_model_states.pt").write_text("x")
    (tag.parent / "latest").write_text("step7")
    for rank in range(3):
        (tag / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").write_text("x")
    job.options["checkpoints"] = str(tag.parent)
    job.run()
    lose_gpu3(job)
    job.processes.pop("gpu3").wait()
    state = job.end()
    assert (state["state"], state["attempt"]) == ("failed", 1), job.log()
    assert (
        "It cannot be resumed: It was saved by 3 rank(s), and now there are to be 2: DeepSpeed does" in state["reason"]
    )


@pytest.mark.slow
def test_without_the_node_of_rank_0_there_is_only_advice(cluster: Callable[..., Cluster]) -> None:
    job = cluster("rank 'echo begun; sleep 60'; ended", options=SHRINKING, timing={**LEAVING, "leader-gone": 2}).run()
    job.until(lambda: "rank 0: begun" in job.log())
    job.processes["gpu1"].kill()
    job.wipe("gpu1")
    job.until(lambda: all(job.state(name)["state"] == "failed" for name in NAMES[1:]))
    assert "Without the node of rank 0 a job cannot go on with fewer. Check that node" in job.state("gpu2")["reason"]
    job.end()


def with_code(job: Cluster, shared: bool) -> Callable[[str], Path]:
    """Give the job a source, in one workspace for all nodes or one for each; return where a node's is."""

    def workspace(name: str) -> Path:
        return job.path / ("shared" if shared else name) / "workspace"

    files = {"a.txt": "A", "out/README": "outputs"}
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    job.options = {**job.options, "code": "a" * 64, "files": {"/etc/swarmspeed/hostfile": "hostfile"}}
    job.spec.update(fingerprint={"workspace": digests}, chdir=str(workspace(NAMES[0])))
    for node in NAMES:
        for name, text in files.items():
            for place in (workspace(node) / name, workspace(node) / ".swarmspeed/code" / ("a" * 64) / name):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
    return workspace


STEPS = """
rank 'mkdir -p new; for i in 1 2 3 4 5 6; do cat a.txt; echo; echo $i > new/$RANK; echo $i > out/$RANK; sleep 0.5; done'
ended
"""


def test_nodes_that_share_the_workspace_run_from_one_copy_of_their_code(cluster: Callable[..., Cluster]) -> None:
    """Stand-in for NFS: one folder of this host is the workspace of all three nodes."""
    job = cluster(STEPS)
    workspace = with_code(job, shared=True)("gpu1")
    job.run()
    job.until(lambda: "rank 0: A" in job.log())
    (workspace / "a.txt").write_text("B")  # a later job's, in the working copy
    job.until(lambda: (workspace / "new/0").exists() and (workspace / "out/0").exists())
    state = job.end()
    assert state["state"] == "succeeded", job.log()
    assert [line for line in job.log().splitlines() if line.endswith(": B")] == []
    for folder in ("new", "out"):
        found = {path.name: path.read_text() for path in (workspace / folder).iterdir()}
        assert {**found, "README": ""} == {"README": "", **dict.fromkeys("012", "6\n")}
        assert not (workspace / folder).is_symlink()
    assert list((workspace / ".swarmspeed/runs").iterdir()) == []
    assert set(json.loads((job.folder("gpu1") / "summary.json").read_text())["digests"]) == {"environment"}


def test_a_restart_goes_on_with_the_code_and_what_the_run_has_made(cluster: Callable[..., Cluster]) -> None:
    script = "if [ -e new ]; then rank 'cat a.txt new; touch last'; else echo made > new; rank 'kill -9 $$'; fi; ended"
    job = cluster(script, options=RESUMING, timing=LEAVING)
    workspace = with_code(job, shared=True)("gpu1")
    (workspace / "a.txt").write_text("B")
    state = job.run().end()
    assert (state["state"], state["attempt"]) == ("succeeded", 2), job.log()
    assert "gpu1: rank 0: Amade" in job.log()
    assert {"new", "last"} <= {path.name for path in workspace.iterdir()}
    assert not (workspace / "new").is_symlink()


@pytest.mark.parametrize("node", ["gpu1", *slowly("gpu3")])
def test_a_node_whose_code_was_changed_starts_nothing(cluster: Callable[..., Cluster], node: str) -> None:
    job = cluster("touch $SWARMSPEED_JOB/started; rank 'echo began'; ended", timing=LEAVING)
    workspace = with_code(job, shared=False)
    job.spec["chdir"] = f"{job.path}/{node}/workspace"  # the nodes of this test are one host
    (workspace(node) / ".swarmspeed/code" / ("a" * 64) / "a.txt").write_text("forged")
    state = job.run().end()
    assert state["state"] == "failed"
    assert "Launch again, which restores it." in state["reason"] + job.log()
    assert not (job.folder(node) / "started").exists()
