# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The document that a proof leaves, docs/gpu_proof/<GPU>.json, and what it must look like.

```text
schema              1
date                2026-11-23, UTC; of the last run, where some parts were run again (ONLY)
accelerator         cuda; cpu is a rehearsal, and is refused under docs/
gpu                 as torch names the first
collection          version of this collection
seconds             of the whole, without making the environment; the sum of the parts, where some were run again
preflight_left_out  checks of preflight that the jobs were started without
parts               in the order in which they ran:
  name, seconds
  state             passed, failed or skipped
  reason            why it failed or was skipped; empty where it passed
  found             what it found: versions (machine), fields (gpu_info), losses (job …), bytes (memory …)
```
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.gpu_proof.parts import FAILED, NUMBERS, PASSED, SKIPPED
from tests.gpu_proof.paths import ProofError

SCHEMA = 1
_KEYS = {"schema", "date", "accelerator", "gpu", "collection", "seconds", "preflight_left_out", "parts"}
_PART = {"name", "seconds", "state", "reason", "found"}
_NAMES_A_MACHINE = re.compile(rf"{NUMBERS.pattern}|/(?:home|root|tmp|opt|srv|usr|work|var|etc)/")


def file_name(gpu: str) -> str:
    """Return ``nvidia_h100_80gb_hbm3.json``."""
    return re.sub(r"[^a-z0-9]+", "_", gpu.lower()).strip("_") + ".json"


def check(document: Any, kept: bool = False) -> None:
    """Raise ProofError where it is not such a document, or names the machine. ``kept``: it is to lie under docs/."""
    problem = _problem(document, kept)
    if problem:
        raise ProofError(
            f"the result of the proof {problem}. Remedy: run make gpu-proof again; edit no result by hand."
        )


def _problem(document: Any, kept: bool) -> str:
    if not isinstance(document, dict) or set(document) != _KEYS:
        return f"does not have the keys {', '.join(sorted(_KEYS))}"
    if document["schema"] != SCHEMA:
        return f"is of schema {document['schema']}, not {SCHEMA}"
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", str(document["date"])):
        return f"has the date {document['date']}"
    if kept and document["accelerator"] != "cuda":
        return f"is of a rehearsal on {document['accelerator']}, which proves nothing about GPUs"
    if not isinstance(document["parts"], list) or not document["parts"]:
        return "has no parts"
    wrong = next(filter(None, map(_problem_of_part, document["parts"])), "")
    named = _NAMES_A_MACHINE.search(json.dumps(document))
    return wrong or (f"names the machine: {named[0]}" if named else "")


def _problem_of_part(part: Any) -> str:
    if not isinstance(part, dict) or set(part) != _PART or part["state"] not in (PASSED, FAILED, SKIPPED):
        return f"has a part that is none: {part}"
    if (part["state"] == PASSED) != (part["reason"] == ""):
        return f"says of {part['name']}: {part['state']}, with the reason {part['reason']!r}"
    return ""


def read_all(folder: Path) -> list[dict[str, Any]]:
    """Return the documents of a folder by the names of their GPUs. Raises ProofError with the file that is none."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            check(document, kept=True)
        except (ValueError, ProofError) as error:
            raise ProofError(f"{path.name}: {error}") from error
        found.append(document)
    return found
