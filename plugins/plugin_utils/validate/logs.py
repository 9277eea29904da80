# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What job_logs returned on a node, before files of the controller are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.common.reported import accept, flag, lines, sentence, short_text, whole
from .shape import listing, mapping, optional

_FILE = mapping(
    # A time that os.utime takes: nanoseconds of the next 200 years.
    {"path": short_text, "mtime_ns": whole(0, 1 << 62), "data": lines(1 << 30)},
    {"shortened": flag},
)
_RUN = mapping({}, {"run": optional(whole()), "run_id": optional(short_text), "started_at": optional(short_text)})
_REPLY = mapping(
    {"files": listing(_FILE, 100_000), "more": flag},
    {"run": optional(_RUN), "problems": optional(listing(sentence, 10_000))},
)
_GATHERED = mapping(
    {},
    {"gathered": listing(short_text), "shortened": listing(short_text), "problems": listing(sentence)},
)


def reply(host: str, reported: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply of the module; raises ``ReportedError``."""
    own = {key: reported[key] for key in ("files", "more", "run", "problems") if key in reported}
    return {**reported, **accept(host, "job_logs", own, _REPLY)}


def gathered(results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what came of gathering, by node; raises ``ReportedError``."""
    return {node: accept(node, "job_logs", result, _GATHERED) for node, result in results.items()}
