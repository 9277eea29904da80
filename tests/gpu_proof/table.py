# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The table of docs/gpu_hosts.md, written from the results under docs/gpu_proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.gpu_proof.models import STAGES, median_error
from tests.gpu_proof.parts import FAILED, PASSED, SKIPPED
from tests.gpu_proof.paths import KEPT, PAGE, ProofError
from tests.gpu_proof.result import read_all

BEGIN, END = "<!-- gpu_proof: begin, written by make gpu-proof-table -->", "<!-- gpu_proof: end -->"
NOTHING = "No GPU has been measured yet: of all that this section describes, nothing has run on one."
_GB = 10**9


def render(documents: Sequence[dict[str, Any]]) -> str:
    """Return what stands between the markers."""
    if not documents:
        return NOTHING
    return "\n\n".join("\n".join(_of(document)) for document in documents)


def _of(document: dict[str, Any]) -> Iterator[str]:
    machine: dict[str, Any] = next((part["found"] for part in document["parts"] if part["name"] == "machine"), {})
    counts = [
        f"{sum(part['state'] == state for part in document['parts'])} {state}" for state in (PASSED, FAILED, SKIPPED)
    ]
    versions = ", ".join(
        f"{name} {machine[key]}"
        for name, key in (
            ("torch", "torch"),
            ("CUDA", "cuda_of_torch"),
            ("DeepSpeed", "deepspeed"),
            ("NCCL", "nccl_of_torch"),
        )
        if machine.get(key)
    )
    count = len(machine.get("gpus", [])) or 1
    yield (
        f"**{document['gpu']}**, {count} of them, {document['date']}, {versions}: "
        f"{', '.join(counts)} in {document['seconds']:.0f} s."
    )
    yield ""
    yield "| part | outcome |"
    yield "|---|---|"
    for part in document["parts"]:
        if not part["name"].startswith(("memory ", "models ")):
            yield f"| {part['name']} | {_outcome(part)} |"
    yield from _models([part for part in document["parts"] if part["name"].startswith("models ")])
    rows = [part for part in document["parts"] if part["name"].startswith("memory ")]
    if rows:
        yield ""
        yield (
            "| memory plan | predicted without reserve | measured | ratio | | trained with so much more memory "
            "| and in expandable segments |"
        )
        yield "|---|---|---|---|---|---|---|"
        for part in rows:
            yield _memory_row(part)


def _models(parts: Sequence[dict[str, Any]]) -> Iterator[str]:
    error = median_error(parts)
    if error is None:
        return
    yield ""
    yield f"Predicted by measured for models of transformers; the median is off by {100 * error:.1f} %."
    yield ""
    yield "| model | parameters | ZeRO 0 | 1 | 2 | 3 |"
    yield "|---|---|---|---|---|---|"
    for part in parts:
        name, rows = part["name"].removeprefix("models "), part["found"].get("rows", ())
        ratios = {row["way"]: f"{row['ratio']:.3f}" for row in rows}
        cells = [ratios.get(f"zero{stage}", "not measured") for stage in STAGES]
        count = f"{rows[0]['parameters'] / _GB:.2f} B" if rows else "–"
        failed = "" if part["state"] == PASSED else f" ({part['state']}: {_cell(part['reason'])})"
        yield f"| {name}{failed} | {count} | {' | '.join(cells)} |"


def _changed(found: dict[str, Any]) -> str:
    return "changed: " + ", ".join(f"{host} {count}" for host, count in found["changed"].items() if host != "localhost")


def _outcome(part: dict[str, Any]) -> str:
    if part["state"] != PASSED:
        return f"{part['state']}: {_cell(part['reason'])}"
    found = part["found"]
    reported = next((report(found) for key, report in _REPORTED.items() if key in found), "")
    return f"passed: {_cell(reported)}" if reported else "passed"


def _collective(found: dict[str, Any]) -> str:
    loaded = ", ".join(found["nccl_loaded"]) or "no NCCL"
    return f"{found['ranks']} ranks, {found['backend']}, {loaded}, release {found['nccl_of_torch']}"


_REPORTED: dict[str, Callable[[dict[str, Any]], str]] = {
    "fields": lambda found: f"{len(found['fields'])} fields agree",
    "shown": lambda found: str(found["shown"]),
    "has": lambda found: f"{found['has']}, {found['megabytes']['whole']} MB",
    "engine": lambda found: f"Debian {found['release']}, engine {found['engine']}",
    "fabric": lambda found: str(found["fabric"]),
    "said": lambda found: ", ".join(sorted(set(found["said"].values()))),
    "losses": lambda found: f"loss {found['losses'][0]:.3f} to {found['losses'][1]:.3f}",
    "sum_is_right": _collective,
    "seconds": lambda found: f"{found['seconds']} s",
    "message": lambda found: str(found["message"]),
    "row": lambda found: f"{found['row']}; {found['nccl']}",
    "cause": lambda found: str(found["id"]),
    "reached": lambda found: str(found["reached"]),
    "changed": _changed,
}
"""What is reported of a part, by the first of these keys that it found."""


def _memory_row(part: dict[str, Any]) -> str:
    name, found = part["name"].removeprefix("memory "), part["found"]
    if not found:
        return f"| {name} | – | – | – | {part['state']}: {_cell(part['reason'])} | | |"
    predicted, measured = (f"{found[key] / _GB:.2f} GB" for key in ("predicted", "measured"))
    trained, remedied = (
        f"{100 * (found[room] / found['predicted'] - 1):.1f} %: {'yes' if found[fits] else 'no'}"
        if found.get(room)
        else ""
        for room, fits in (("room", "fits"), ("tight_room", "fits_with_expandable_segments"))
    )
    verdict = str(found["verdict"]) if part["state"] == PASSED else f"{found['verdict']}, {part['state']}"
    return f"| {name} | {predicted} | {measured} | {found['ratio']:.3f} | {verdict} | {trained} | {remedied} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def replaced(page: str, text: str) -> str:
    """Return the page with this between its markers. Raises ProofError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    dummy, end, after = rest.partition(END)
    if not begin or not end:
        raise ProofError(f"{PAGE.name} lacks the line {BEGIN if not begin else END}. Remedy: put it back.")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def write(check_only: bool = False) -> bool:
    """Write the table, or only look; return whether the page was as it should be."""
    page = PAGE.read_text(encoding="utf-8")
    wanted = replaced(page, render(read_all(KEPT)))
    if not check_only and wanted != page:
        PAGE.write_text(wanted, encoding="utf-8")
    return wanted == page
