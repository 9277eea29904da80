# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What preflight reports of the versions that were chosen for the training image, one check a kind of trouble.

The action cluster_facts chose them from the table of versions (docs/versions.md) and found what forbids them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.problems import Problem
from ..core.values import mappings, texts

VERSION_CHECKS = (
    "version_values",
    "compute_capability",
    "gpu_dropped_by_cuda",
    "gpu_newer_than_cuda",
    "driver_too_old_for_cuda",
    "torch_index",
    "torch_python",
    "base_compiler",
    "deepspeed_torch",
)


def check_versions(check: str, versions: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of one check; ``versions`` is empty where no training image is built."""
    for problem in mappings(versions.get("problems")):
        if problem.get("check") == check:
            subjects = ", ".join(texts(problem.get("subjects")))
            yield Problem(subjects, str(problem.get("text")), str(problem.get("remedy")))
