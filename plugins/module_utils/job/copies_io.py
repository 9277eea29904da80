# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a job keeps of the cluster's hostfile and ds_config.json: a later job writes others in their place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..ds_config.text import UnreadableError, parse, same
from .resource import JobError

MASKS = ("********", "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER")
"""What Ansible returns in the place of a secret."""
MOST_BYTES = 1 << 23
AGAIN = "Launch again."


def own_copies(files: Mapping[str, str], spec: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files by the names that they get in the job's folder.

    ``files``: their paths on this host, where no container can write, by the paths that the job has for them. Between
    their being written and read a run of another playbook may have written its own.
    """
    found: dict[str, bytes] = {}
    for inside, path in files.items():
        try:
            with Path(path).open("rb") as file:
                data = file.read(MOST_BYTES)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise JobError(f"files: {path} cannot be read: {error.strerror}. {AGAIN}") from error
        expected = (spec.get("fingerprint") or {}).get("ds_config")
        if inside == spec.get("ds_config") and expected and not _agrees(data, expected):
            raise JobError(
                f"{path} is not the configuration of this job: another run of the playbook has meanwhile written its "
                f"own. Nothing was started. {AGAIN}"
            )
        found[Path(path).name] = data
    return found


def _agrees(data: bytes, expected: Any) -> bool:
    """Whether the text means what is expected, in which secrets are masked."""
    try:
        there = parse(data.decode("utf-8", "replace"))
    except UnreadableError:
        return False
    return same(_masked(there, expected), expected)


def _masked(there: Any, expected: Any) -> Any:
    """``there`` with what is masked in ``expected`` replaced by its mask."""
    if isinstance(there, dict) and isinstance(expected, dict):
        return {name: _masked(part, expected.get(name)) for name, part in there.items()}
    if isinstance(there, list) and isinstance(expected, list) and len(there) == len(expected):
        return [_masked(one, other) for one, other in zip(there, expected)]
    return expected if isinstance(expected, str) and any(mask in expected for mask in MASKS) else there
