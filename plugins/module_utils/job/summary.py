# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The summary of one run of a job: what was requested, what came of it, without a secret in it.

The leader's supervisor writes it as summary.json at the end; training_job_info returns the same for every job. Also
part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import hashlib
import json
import math
from datetime import datetime, timezone
from typing import Any

from ..common.secret_names import Hide, hider, mask_arguments

FIGURES = ("step", "total", "loss", "samples_per_second", "tokens_per_second", "seconds_left", "slowest_rank")
VERSIONS = ("deepspeed", "torch", "python", "image")
LONGEST = 64
"""Entries of a mapping or list of the specification above which only number and digest are given: the workspace of
a job can have thousands of files."""

_TIME = "%Y-%m-%dT%H:%M:%SZ"


def clean(value: Any, hide: Hide) -> Any:
    """``value`` as plain JSON: secrets hidden in every text, numbers that JSON does not know (nan) as text."""
    if isinstance(value, dict):
        return {str(key): clean(part, hide) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(part, hide) for part in value]
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def shown_spec(value: Any, key: str = "") -> Any:
    """A specification without the values of environments and secret options, and with a digest of what is long."""
    if key.endswith("environment") and isinstance(value, dict):
        return sorted(str(name) for name in value)
    if isinstance(value, (dict, list)) and len(value) > LONGEST:
        canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return {"entries": len(value), "sha256": hashlib.sha256(canonical.encode()).hexdigest()}
    if key in ("command", "resume_args") and isinstance(value, list):
        return mask_arguments(value)
    if isinstance(value, dict):
        return {str(name): shown_spec(part, str(name)) for name, part in value.items()}
    if isinstance(value, list):
        return [shown_spec(part) for part in value]
    return value


def _moment(text: Any) -> float | None:
    try:
        return datetime.strptime(str(text), _TIME).replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def seconds_of(state: dict[str, Any]) -> float | None:
    """How long a run took, or has taken by its last sign of life."""
    begin, end = _moment(state.get("started_at")), _moment(state.get("finished_at"))
    if end is None and isinstance(state.get("heartbeat"), (int, float)):
        end = float(state["heartbeat"])
    return None if begin is None or end is None else round(max(0.0, end - begin), 1)


def since(state: dict[str, Any], active: bool) -> str | None:
    """Since when the job is in its state, ISO 8601 in UTC. A lost one: since its last sign of life."""
    if active:
        return state.get("started_at")
    if state.get("finished_at"):
        return str(state["finished_at"])
    beat = state.get("heartbeat")
    if isinstance(beat, (int, float)) and math.isfinite(beat):
        return datetime.fromtimestamp(beat, timezone.utc).strftime(_TIME)
    return state.get("started_at")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def summary(
    spec: dict[str, Any],
    state: dict[str, Any],
    versions: dict[str, Any] | None = None,
    history: list[Any] | None = None,
    environment: dict[str, str] | None = None,
) -> dict[str, Any]:
    """What summary.json holds. ``spec`` and ``state`` as in spec.json (its ``spec``) and state.json.

    Secrets of ``environment``, which ranks got beside that of the specification, are hidden, too.

    Curve points come from ``history``, else from ``state["figures"]["history"]``. A key of ``versions`` that is not
    given is filled in where spec or state know it (``state["versions"]``: as seen before the start), else null.
    """
    hide = hider({**(environment or {}), **_mapping(spec.get("environment"))})
    figures = dict(_mapping(state.get("figures")))
    points = figures.pop("history", None) or []
    fingerprint = _mapping(spec.get("fingerprint"))
    known = {**_mapping(state.get("versions")), "image": fingerprint.get("image")}
    known["deepspeed"] = state.get("deepspeed_version") or known.get("deepspeed")
    ranks = _mapping(state.get("ranks"))
    content = {
        "name": state.get("name"),
        "run": state.get("run"),
        "attempt": state.get("attempt"),
        "state": state.get("state"),
        "reason": state.get("reason") or "",
        "exit_code": state.get("exit_code"),
        "launcher": state.get("launcher"),
        "transport": state.get("transport"),
        "runtime": state.get("runtime"),
        "spec": shown_spec(spec),
        "spec_hash": state.get("spec_hash"),
        "digests": state.get("digests") or {},
        "versions": {
            **{name: known.get(name) for name in VERSIONS},
            **{name: value for name, value in known.items() if value is not None},
            **{name: value for name, value in (versions or {}).items() if value is not None},
        },
        "world_size": {"expected": state.get("world_size_expected"), "seen": state.get("world_size_seen")},
        "nodes": {"expected": state.get("nodes_expected"), "seen": state.get("nodes_seen")},
        "shrunk_from": state.get("shrunk_from"),
        "members": state.get("members") or [],
        "ranks": {
            rank: {"node": _mapping(ranks[rank]).get("node"), "exit_code": _mapping(ranks[rank]).get("exit_code")}
            for rank in sorted(ranks, key=_by_number)
        },
        "figures": {**dict.fromkeys(FIGURES), **figures},
        "history": points if history is None else history,
        "nccl": state.get("nccl") or None,
        "hangs": _mapping(state.get("hang")).get("findings") or [],
        "first_failure": state.get("first_failure"),
        "started_at": state.get("started_at"),
        "finished_at": state.get("finished_at"),
        "seconds": seconds_of(state),
        "restarts": [
            {key: _mapping(one).get(key) for key in ("attempt", "reason", "at", "resumed_from")}
            for one in state.get("restarts") or []
        ],
    }
    cleaned: dict[str, Any] = clean(content, hide)
    return cleaned


def _by_number(rank: str) -> tuple[int, str]:
    text = str(rank)
    return (int(text) if text.isdecimal() and len(text) < 10 else -1, text)
