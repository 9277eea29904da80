# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Where the proof keeps its things. Standard library only: a machine with a GPU may have no more."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "gpu_proof"
CACHE = ROOT / ".cache" / "gpu_proof"
WHEELS = CACHE / "wheels"
COLLECTIONS = WHEELS / "collections.tar.gz"
DIGITS = WHEELS / "digits.csv.gz"
REQUIREMENTS = HERE / "requirements.txt"
KEPT = ROOT / "docs" / "gpu_proof"
"""One file a GPU, of proofs on real ones."""
PAGE = ROOT / "docs" / "gpu_hosts.md"


class ProofError(Exception):
    """What the proof cannot go on with: where, cause and remedy in one sentence or two."""
