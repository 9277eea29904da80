# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The result of a proof and its table. The documents here are MADE UP: they show the form, and no measurement."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_proof import table
from tests.gpu_proof.paths import KEPT, PAGE, ProofError
from tests.gpu_proof.result import check, file_name, read_all


def part(name: str, found: Any = None, state: str = "passed", reason: str = "") -> dict[str, Any]:
    return {"name": name, "seconds": 1.0, "state": state, "reason": reason, "found": found or {}}


MEMORY = {"predicted": 2_500_000_000, "measured": 2_400_000_000, "ratio": 1.042, "verdict": "right"}
FRAGMENTS = {
    "room": 2_762_500_000,
    "fits": False,
    "tight_room": 2_612_500_000,
    "fits_with_expandable_segments": True,
}
DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "date": "2026-11-23",
    "accelerator": "cuda",
    "gpu": "NVIDIA Example 80GB",
    "collection": "0.1.0",
    "seconds": 700.4,
    "preflight_left_out": ["systemd"],
    "parts": [
        part("machine", {"torch": "2.11.0", "cuda_of_torch": "13.0", "nccl_of_torch": None, "gpus": [{}, {}]}),
        part("gpu_info", {"fields": [1, 2, 3]}),
        part("compile FusedAdamBuilder", {"seconds": 61.5}),
        part(
            "job collective",
            {
                "sum_is_right": True,
                "ranks": 2,
                "backend": "nccl",
                "nccl_loaded": ["libnccl.so.2"],
                "nccl_of_torch": "2.28.9",
            },
        ),
        part("job digits", {"losses": [0.9, 0.1]}),
        part("job transformer zero3", {}, "failed", "a | b"),
        part("nodes example digits", {"reached": "accuracy 0.98"}),
        part("refusal memory", {"message": "GPU 0 is in use"}),
        part("status", {"row": "gpu:0 computing 99 %", "nccl": "NCCL has connected 1 of 1 ranks"}),
        part("failure none", {"id": "gpu-none", "cause": "No GPU is visible.", "line": "No CUDA GPUs"}),
        part("memory 0.1B zero0", {**MEMORY, **FRAGMENTS}),
        part("memory 0.1B zero1", {**MEMORY, "ratio": 0.9, "verdict": "under"}, "failed", "the plan is under"),
        part("memory 0.1B zero2", {}, "skipped", "its optimizer was not compiled"),
    ],
}


def test_the_table() -> None:
    assert table.render([DOCUMENT]).splitlines() == [
        "**NVIDIA Example 80GB**, 2 of them, 2026-11-23, torch 2.11.0, CUDA 13.0: "
        "10 passed, 2 failed, 1 skipped in 700 s.",
        "",
        "| part | outcome |",
        "|---|---|",
        "| machine | passed |",
        "| gpu_info | passed: 3 fields agree |",
        "| compile FusedAdamBuilder | passed: 61.5 s |",
        "| job collective | passed: 2 ranks, nccl, libnccl.so.2, release 2.28.9 |",
        "| job digits | passed: loss 0.900 to 0.100 |",
        "| job transformer zero3 | failed: a \\| b |",
        "| nodes example digits | passed: accuracy 0.98 |",
        "| refusal memory | passed: GPU 0 is in use |",
        "| status | passed: gpu:0 computing 99 %; NCCL has connected 1 of 1 ranks |",
        "| failure none | passed: gpu-none |",
        "",
        "| memory plan | predicted without reserve | measured | ratio | | trained with so much more memory "
        "| and in expandable segments |",
        "|---|---|---|---|---|---|---|",
        "| 0.1B zero0 | 2.50 GB | 2.40 GB | 1.042 | right | 10.5 %: no | 4.5 %: yes |",
        "| 0.1B zero1 | 2.50 GB | 2.40 GB | 0.900 | under, failed |  |  |",
        "| 0.1B zero2 | – | – | – | skipped: its optimizer was not compiled | | |",
    ]


def test_without_a_result_the_table_reports_it() -> None:
    assert table.render([]) == (
        "No GPU has been measured yet: of all that this section describes, nothing has run on one."
    )


def test_the_page_agrees_with_the_results() -> None:
    """Remedy where this fails: make gpu-proof-table."""
    assert table.replaced(PAGE.read_text(encoding="utf-8"), table.render(read_all(KEPT))) == PAGE.read_text(
        encoding="utf-8"
    )


def test_a_page_without_its_markers() -> None:
    assert (
        table.replaced(f"a\n{table.BEGIN}\nold\n{table.END}\nb\n", "new") == f"a\n{table.BEGIN}\nnew\n{table.END}\nb\n"
    )
    for page, missing in (("a\n", table.BEGIN), (f"{table.BEGIN}\n", table.END)):
        with pytest.raises(ProofError) as caught:
            table.replaced(page, "new")
        assert str(caught.value) == f"gpu_hosts.md lacks the line {missing}. Remedy: put it back."


def test_a_result_is_read_again_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps({**DOCUMENT, "gpu": "Another"}), encoding="utf-8")
    assert [found["gpu"] for found in read_all(tmp_path)] == ["Another", "NVIDIA Example 80GB"]
    (tmp_path / "c.json").write_text("{", encoding="utf-8")
    with pytest.raises(ProofError, match=r"^c\.json: "):
        read_all(tmp_path)


def changed(**more: Any) -> dict[str, Any]:
    return {**copy.deepcopy(DOCUMENT), **more}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "does not have the keys "),
        ({**changed(), "host": "gpu7"}, "does not have the keys "),
        (changed(schema=2), "is of schema 2, not 1"),
        (changed(date="yesterday"), "has the date yesterday"),
        (changed(accelerator="cpu"), "is of a rehearsal on cpu, which proves nothing about GPUs"),
        (changed(parts=[]), "has no parts"),
        (changed(parts=[{"name": "x"}]), "has a part that is none"),
        (changed(parts=[part("x", state="fine")]), "has a part that is none"),
        (changed(parts=[part("x", reason="why")]), "says of x: passed, with the reason 'why'"),
        (changed(parts=[part("x", state="failed")]), "says of x: failed, with the reason ''"),
        (changed(parts=[part("x", {"at": "/home/ann/x"})]), "names the machine: /home/"),
        (changed(parts=[part("x", {"at": "10.1.0.11"})]), "names the machine: 10.1.0.11"),
        (changed(parts=[part("x", {"is": "GPU-11111111-2222"})]), "names the machine: GPU-11111111"),
    ],
)
def test_what_is_no_result_of_a_gpu(document: Any, problem: str) -> None:
    with pytest.raises(ProofError) as caught:
        check(document, kept=True)
    assert str(caught.value).startswith(f"the result of the proof {problem}")
    assert str(caught.value).endswith(" Remedy: run make gpu-proof again; edit no result by hand.")


def test_a_rehearsal_is_a_result_that_is_not_kept() -> None:
    check(changed(accelerator="cpu"))


def test_file_names() -> None:
    assert file_name("NVIDIA H100 80GB HBM3") == "nvidia_h100_80gb_hbm3.json"
    assert file_name("../x") == "x.json"
