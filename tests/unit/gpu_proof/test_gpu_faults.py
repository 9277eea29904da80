# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a proof reads of jobs that fail, of launches that are refused, and of status.yml. Nothing is run here."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.failures import BY_ID

from tests.gpu_proof import faults
from tests.gpu_proof.parts import Failed, Proof
from tests.gpu_proof.paths import HERE

FIRST = {
    "id": "gpu-memory",
    "kind": "resources",
    "rank": 0,
    "cause": "A GPU's memory is full.",
    "remedy": "Lower it.",
    "line": "torch.OutOfMemoryError: CUDA out of memory. See /opt/venv/lib/x.py",
}
PRINTED = 'fatal: [gpu]: FAILED! => {"msg": "Training job failed:\\n A GPU' + "'s memory is full." + ' Remedy: …"}'
STATUS = """
    "msg": [
        "JOB        STATE    RUN  SINCE                 RAN FOR  NODES    STEP     LOSS",
        "computing  running    1  2026-11-26T07:00:00Z  9 s      gpu     21/-   0.4312",
        "GPU    JOB        BUSY        MEMORY         POWER   TEMP",
        "gpu:0  computing  99 %   1 of 80 GiB  612 of 700 W  64 °C",
        "computing: NCCL has connected 1 of 1 ranks: sockets on lo (gpu)."
    ]
"""


def test_each_way_to_fail_is_in_the_script_and_in_the_table() -> None:
    tree = ast.parse((HERE / "job" / "failing.py").read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {*faults.EXPECTED, *faults.REHEARSED} <= functions
    assert {*faults.EXPECTED.values(), *faults.REHEARSED.values()} <= set(BY_ID) | {"script-exception"}


def failed_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, first: dict[str, Any] | None) -> None:
    folder = tmp_path / "failing-allocator"
    folder.mkdir(parents=True)
    if first is not None:
        (folder / "state.json").write_text(json.dumps({"first_failure": first}), encoding="utf-8")
    monkeypatch.setattr(faults, "JOBS", tmp_path)
    monkeypatch.setattr(faults, "attempted", lambda *_: (2, printed))


def test_a_failure_that_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed_job(tmp_path, monkeypatch, PRINTED, FIRST)
    found = faults.failure("allocator", "gpu-memory", "cuda", Proof().plain, 9.0)
    assert (found["id"], found["rank"]) == ("gpu-memory", 0) and found["line"].endswith("See …/x.py")


def test_a_cause_that_names_a_file_is_kept_without_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cause = "LookupError: gone (raised at /home/ann/train.py, line 3)"
    first = {**FIRST, "id": "script-exception", "cause": cause}
    failed_job(tmp_path, monkeypatch, f"fatal: {cause}", first)
    found = faults.failure("allocator", "script-exception", "cpu", Proof().plain, 9.0)
    assert found["cause"] == "LookupError: gone (raised at …/train.py, line 3)"


@pytest.mark.parametrize(
    ("printed", "first", "reason"),
    [
        (PRINTED, {**FIRST, "id": ""}, "the first cause is not known, and not gpu-memory: torch.Out"),
        (PRINTED, {**FIRST, "id": "unknown"}, "the first cause is unknown, and not gpu-memory"),
        ("fatal: nothing of it", FIRST, "the playbook does not print the cause"),
        ('fatal: [gpu]: {"msg": "no such script"}', None, "the job was not started: fatal: .*no such script"),
    ],
)
def test_a_failure_that_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, first: dict[str, Any] | None, reason: str
) -> None:
    failed_job(tmp_path, monkeypatch, printed, first)
    with pytest.raises(Failed, match=reason):
        faults.failure("allocator", "gpu-memory", "cuda", Proof().plain, 9.0)


def test_a_job_that_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "attempted", lambda *_: (0, ""))
    with pytest.raises(Failed, match="the job did not fail"):
        faults.failure("allocator", "gpu-memory", "cuda", Proof().plain, 9.0)


@pytest.mark.parametrize(
    ("code", "printed", "reason"),
    [
        (0, "", "the job was started"),
        (2, 'fatal: [gpu]: {"msg": "gpu: no disk"}', "refused for another reason: .*no disk"),
    ],
)
def test_a_launch_that_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, printed: str, reason: str
) -> None:
    monkeypatch.setattr(faults, "JOBS", tmp_path)
    monkeypatch.setattr(faults, "attempted", lambda *_: (code, printed))
    with pytest.raises(Failed, match=reason):
        faults.refused_slots("cuda", Proof().plain, 9.0)


def test_a_launch_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = 'fatal: [gpu]: {"msg": "gpu: slots 1, 2 of the job:\\n    nvidia-smi lists only 1 GPU(s) where"}'
    monkeypatch.setattr(faults, "JOBS", tmp_path)
    monkeypatch.setattr(faults, "attempted", lambda *_: (2, printed))
    assert faults.refused_slots("cuda", Proof().plain, 9.0) == {"message": "nvidia-smi lists only 1 GPU"}


def shown(monkeypatch: pytest.MonkeyPatch, *texts: str) -> list[str]:
    """Let status.yml print these in turn; return the playbooks that ran."""
    ran: list[str] = []
    left = list(texts)
    monkeypatch.setattr(faults, "launch", lambda *_: ran.append("launch"))
    monkeypatch.setattr(faults, "playbook", lambda name, _accelerator: [name])
    monkeypatch.setattr(faults, "attempt", lambda command, *_, **__: ran.append(command[0]))

    def run(command: list[str], *_: Any, **__: Any) -> str:
        ran.append(command[0])
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(faults, "run", run)
    return ran


def test_a_gpu_that_computes_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = shown(monkeypatch, STATUS.replace("99 %", "2 %"), STATUS)
    assert faults.status("cuda", Proof().plain, 90.0) == {
        "row": "gpu:0 computing 99 % 1 of 80 GiB 612 of 700 W 64 °C",
        "nccl": "NCCL has connected 1 of 1 ranks: sockets on lo (gpu).",
    }
    assert ran == ["launch", "status.yml", "status.yml", "stop.yml"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (STATUS.replace("99 %", "2 %"), "no GPU that computes"),
        (STATUS.replace("NCCL has", "It has"), "nothing of NCCL"),
        ("", "no GPU that computes"),
    ],
)
def test_a_gpu_that_is_not_shown(monkeypatch: pytest.MonkeyPatch, text: str, reason: str) -> None:
    ran = shown(monkeypatch, text)
    with pytest.raises(Failed, match=f"status.yml shows {reason}"):
        faults.status("cuda", Proof().plain, 90.0)
    assert ran[-1] == "stop.yml"
