# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The parts of a whole proof, and where its result is written. Nothing is run here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_proof import faults, memory, nodes, run
from tests.gpu_proof.parts import Failed, Proof, Skipped
from tests.gpu_proof.paths import ProofError

PART = {
    "name": "machine",
    "seconds": 1.0,
    "state": "passed",
    "reason": "",
    "found": {"gpus": [{"name": "Example 80GB"}]},
}


def held(*compiled: str) -> Proof:
    results = [{**PART, "name": f"compile {builder}"} for builder in compiled]
    return Proof(results=results, began=0.0)


def test_the_parts_in_order() -> None:
    names = [part.name for part in run.parts("cuda", held()) if not part.name.startswith(("containers ", "models "))]
    assert names[:6] == [
        "machine",
        "gpu_info",
        "compile FusedAdamBuilder",
        "compile CPUAdamBuilder",
        "job collective",
        "job digits",
    ]
    assert names[6:11] == [*(f"job transformer zero{stage}" for stage in range(4)), "job transformer zero2 offload"]
    over = [name for name in names if name.startswith("nodes ")]
    assert over == [
        "nodes collective",
        *(f"nodes transformer zero{stage}" for stage in (1, 2, 3)),
        *(f"nodes example {name}" for name in nodes.EXAMPLES),
    ]
    after = 11 + len(over)
    assert names[11:after] == over
    assert names[after : after + 3] == ["refusal slots", "refusal memory", "status"]
    first = names.index(next(name for name in names if name.startswith("memory ")))
    assert names[after + 3 : first] == [f"failure {how}" for how in faults.EXPECTED]
    assert names[first:] == [f"memory {case.name}" for case in memory.cases()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("compiled", "without"),
    [
        ((), lambda name: name.startswith("memory") or name.endswith("offload")),
        (("FusedAdamBuilder",), lambda name: name.endswith("offload")),
    ],
)
def test_what_needs_a_compiled_optimizer_is_skipped_without(compiled: tuple[str, ...], without: Any) -> None:
    chosen = [part for part in run.parts("cuda", held(*compiled)) if without(part.name)]
    assert len(chosen) >= 9
    for part in chosen:
        with pytest.raises(Skipped, match="not compiled"):
            part.run(1.0)


def test_gpu_info_is_not_asked_in_a_rehearsal() -> None:
    part = next(part for part in run.parts("cpu", held()) if part.name == "gpu_info")
    with pytest.raises(Skipped, match="a rehearsal has no GPU to ask"):
        part.run(1.0)


def document(accelerator: str) -> dict[str, Any]:
    proof = held()
    proof.results = [PART]
    return run.assemble(accelerator, proof)


def test_a_result_is_kept_and_a_rehearsal_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(run, "KEPT", tmp_path / "kept")
    assert run.keep(document("cpu"), rehearsal=True) == tmp_path / "cache/rehearsal.json"
    assert not (tmp_path / "kept").exists()
    path = run.keep(document("cuda"), rehearsal=False)
    assert path == tmp_path / "kept/example_80gb.json"
    assert json.loads(path.read_text(encoding="utf-8"))["gpu"] == "Example 80GB"


def test_a_result_that_names_the_machine_is_not_kept_and_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(run, "KEPT", tmp_path / "kept")
    with pytest.raises(ProofError):
        run.keep({**document("cuda"), "gpu": "at /home/ann/gpu"}, rehearsal=False)
    assert not (tmp_path / "kept").exists() and (tmp_path / "cache/result.json").exists()


def test_some_parts_alone_take_the_operators_along() -> None:
    chosen = [part.name for part in run.chosen(run.parts("cuda", held()), "zero3$")]
    assert chosen[:5] == [
        "machine",
        "compile FusedAdamBuilder",
        "compile CPUAdamBuilder",
        "job transformer zero3",
        "nodes transformer zero3",
    ]


def test_what_some_parts_find_takes_its_place_in_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(run, "KEPT", tmp_path / "kept")
    first = document("cuda")
    wrong = {**PART, "name": "status", "state": "failed", "reason": "why", "seconds": 2.0}
    first["parts"] = [PART, wrong, {**PART, "name": "job digits"}]
    assert run.merged(first, "") == first
    run.keep(first, rehearsal=False)
    again = document("cuda")
    again["parts"] = [{**PART, "seconds": 9.0}, {**PART, "name": "status"}, {**PART, "name": "compile X"}]
    found = run.merged(again, "status")
    assert [(part["name"], part["state"]) for part in found["parts"]] == [
        ("machine", "passed"),
        ("job digits", "passed"),
        ("status", "passed"),
        ("compile X", "passed"),
    ]
    assert found["seconds"] == 4.0


FULL = {"out_of_memory": "CUDA out of memory"}


def measured(**given: Any) -> dict[str, Any]:
    case = next(memory.cases())
    requested = memory.predict(case)[0]
    found = {"parameters": 5, "requested": requested, "phases": {}, "losses": [2.0, 1.0], "outside_torch": 10**9}
    return {**found, **given}


@pytest.mark.parametrize(
    ("without", "with_segments", "fits", "reason"),
    [
        ([measured()], measured(), True, ""),
        # fragments are recorded where expandable segments help
        ([FULL, measured()], measured(), False, ""),
        ([FULL, measured()], FULL, False, r"torch had \d+ bytes in expandable segments, and that was not enough"),
        ([measured(requested=10**12)], measured(), True, "the plan is under: 0.00"),
        ([measured(outside_torch=2 * 10**9)], measured(), True, "2000000000 bytes are not torch's"),
    ],
)
def test_what_of_a_memory_plan_is_judged(
    monkeypatch: pytest.MonkeyPatch,
    without: list[dict[str, Any]],
    with_segments: dict[str, Any],
    fits: bool,
    reason: str,
) -> None:
    left = list(without)

    def measure(*dummy: Any, expandable: bool = False) -> dict[str, Any]:
        return with_segments if expandable else left.pop(0)

    monkeypatch.setattr(memory, "measure", measure)
    (part,) = (p for p in run.parts("cuda", held("FusedAdamBuilder")) if p.name == "memory 0.13B zero0")
    if reason:
        with pytest.raises(Failed, match=reason) as failed:
            part.run(1.0)
        found = failed.value.found
    else:
        found = part.run(1.0)
    assert not left and found["fits"] is fits
    assert found["predicted"] < found["tight_room"] < found["room"]


def test_a_gpu_that_is_too_small_for_a_case_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "measure", lambda *dummy, **given: FULL)
    (part,) = (p for p in run.parts("cuda", held("FusedAdamBuilder")) if p.name == "memory 0.13B zero0")
    with pytest.raises(Skipped, match="this GPU is too small for it: CUDA out of memory"):
        part.run(1.0)
