# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What state.json of a job may hold. Root in a container can write it: nothing in it is used before it was checked."""

from __future__ import annotations

import re
from typing import Any, Callable

from ..common.untrusted_text import clean

JOB_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
STATES = ("starting", "running", "succeeded", "failed", "stopped", "lost")
RUNS = 999_999
"""Highest number of a run: it becomes the name of a folder."""

_CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")
_MOST = 100_000


class RecordError(ValueError):
    """A field that is missing or cannot be what it is, in a few words."""


def _text(longest: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and len(value) <= longest


def _word(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 300 and value.isprintable()


def _whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _moment(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1e11


def _name(value: Any) -> bool:
    return isinstance(value, str) and bool(_CONTAINER.fullmatch(value))


def _mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _lines(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MOST and all(isinstance(line, str) for line in value)


def _mappings(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MOST and all(isinstance(part, dict) for part in value)


def _members(value: Any) -> bool:
    return _mappings(value) and all(
        _word(one.get("name"))
        and _word(one.get("address", ""))
        and isinstance(one.get("slots", []), list)
        and all(_whole(0, _MOST)(slot) for slot in one.get("slots", []))
        and _whole(0, 10**9)(one.get("first_rank", 0))
        for one in value
    )


def _real(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e300


def _each(**rules: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """A mapping in which these keys, where they are there and not null, have values of that kind."""
    return lambda value: (
        isinstance(value, dict)
        and all(value.get(key) is None or is_right(value[key]) for key, is_right in rules.items())
    )


def _rows(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _word(node) and isinstance(rows, list) and all(_row(row) for row in rows) for node, rows in value.items()
    )


def _row(value: Any, most: int = 20) -> bool:
    return isinstance(value, list) and len(value) < most and all(one is None or _real(one) for one in value)


def _networks(value: Any) -> bool:
    about = _each(network=_word, devices=_lines, interface=_text(1000), hcas=_text(1000))
    return isinstance(value, dict) and all(_word(node) and about(found) for node, found in value.items())


def _lanes(value: Any) -> bool:
    about = _each(rank=_COUNT, **dict.fromkeys(("done", "open"), lambda marks: _row(marks, 100)))
    return isinstance(value, list) and len(value) <= 100 and all(about(one) for one in value)


def _findings(value: Any) -> bool:
    about = _each(
        **dict.fromkeys(("sentence", "remedy", "why"), _text(4000)),
        **dict.fromkeys(("at", "kind", "confidence", "evidence"), _word),
        **dict.fromkeys(("silent", "bound", "woke", "seconds"), _moment),
        **dict.fromkeys(("nodes", "missing"), _lines),
        **dict.fromkeys(("collective", "does", "link"), _mapping),
        timeline=_each(waited=_moment, ranks=_lanes),
        ranks=lambda ranks: isinstance(ranks, list) and len(ranks) <= _MOST and all(_COUNT(one) for one in ranks),
    )
    return isinstance(value, list) and len(value) <= 100 and all(about(one) for one in value)


def _digests(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _word(name) and (_word(one) or (isinstance(one, dict) and all(_word(item) for item in one.values())))
        for name, one in value.items()
    )


_PORT, _COUNT = _whole(0, 65535), _whole(0, 10**9)
FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "reason": (_text(1 << 20), "text"),
    "run": (_whole(0, RUNS), "a whole number"),
    "run_id": (_word, "a short text"),
    "attempt": (_COUNT, "a whole number"),
    "leader": (lambda value: isinstance(value, bool), "true or false"),
    "launcher": (_word, "a short text"),
    "transport": (_word, "a short text"),
    "runtime": (lambda value: value in ("container", "host"), "container or host"),
    "spec_hash": (_word, "a short text"),
    "container": (_name, "the name of a container"),
    "container_id": (_name, "the id of a container"),
    "container_started_at": (_word, "a short text"),
    "started_at": (_word, "a short text"),
    "finished_at": (_word, "a short text"),
    "heartbeat": (_moment, "a time in seconds"),
    "pid": (_COUNT, "a whole number"),
    "exit_code": (_whole(-(1 << 31), 1 << 31), "a whole number"),
    "world_size_expected": (_COUNT, "a whole number"),
    "world_size_seen": (_COUNT, "a whole number"),
    "nodes_expected": (_COUNT, "a whole number"),
    "nodes_seen": (_COUNT, "a whole number"),
    "channel_port": (_PORT, "a port"),
    "master_port": (_PORT, "a port"),
    "deepspeed_version": (_word, "a short text"),
    "failed_node": (_word, "a short text"),
    "failed_rank": (_COUNT, "a whole number"),
    "hosts": (_lines, "a list of texts"),
    "traceback": (_lines, "a list of texts"),
    "tail": (_lines, "a list of texts"),
    "members": (_members, "a list of nodes with their slots"),
    "restarts": (_mappings, "a list of mappings"),
    "ranks": (_mapping, "a mapping"),
    "figures": (
        _each(
            **dict.fromkeys(("step", "total", "loss", "samples_per_second", "tokens_per_second"), _real),
            **dict.fromkeys(("unit", "bad_loss"), _word),
            seconds_left=_moment,
            slowest_rank=_COUNT,
        ),
        "a mapping of figures",
    ),
    "versions": (_mapping, "a mapping"),
    "digests": (_digests, "a mapping of digests"),
    "gpus": (_rows, "a mapping of rows of figures by node"),
    "nccl": (_each(size=_COUNT, connected=_COUNT, nodes=_networks), "a mapping of what NCCL has connected"),
    "hang": (
        _each(bound=_moment, why=_text(1000), findings=_findings),
        "a mapping with the bound of silence and findings",
    ),
    "first_failure": (
        _each(node=_word, rank=_COUNT, cause=_text(1 << 16), remedy=_text(1 << 16)),
        "a mapping with node, rank, cause and remedy",
    ),
    "shrunk_from": (_each(left_out=_lines), "a mapping with the nodes that were left out"),
}
"""Fields that are used, beside ``state``. Each may be missing or null."""
_SUMMARY: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("spec", "world_size", "nodes"), _mapping),
    "history": _mappings,
    "hangs": _findings,
    "seconds": _moment,
}


def check_state(found: dict[str, Any], *, on_host: bool) -> dict[str, Any]:
    """state.json with every field of its type and texts without control characters, or ``RecordError``.

    Whether a job runs on the host is decided by where its folder is: a file in a container's folder cannot say so.
    """
    if found.get("state") not in STATES:
        raise RecordError(f"its state is missing or none of {', '.join(STATES)}")
    for name, (is_right, what) in FIELDS.items():
        if found.get(name) is not None and not is_right(found[name]):
            raise RecordError(f"{name} is not {what}")
    if not on_host and found.get("runtime") == "host":
        raise RecordError("it says that the job runs on the host, where no job of this name was started")
    cleaned: dict[str, Any] = clean(found)
    return {**cleaned, "runtime": "host"} if on_host else cleaned


def check_place(found: dict[str, Any]) -> None:
    """A job that may be running says in which container, as the module has written it at the start."""
    missing = [name for name in ("container", "container_id", "run") if name not in found]
    if found.get("state") in ("starting", "running") and found.get("runtime") != "host" and missing:
        raise RecordError(f"{' and '.join(missing)} is missing")


def check_summary(found: dict[str, Any]) -> dict[str, Any] | None:
    """summary.json; ``None`` where it is none."""
    rules = {**{name: rule for name, (rule, dummy) in FIELDS.items()}, **_SUMMARY}
    # A loss that is not a number is text there.
    figures = found.get("figures")
    rest = {**figures, "loss": None} if isinstance(figures, dict) and isinstance(figures.get("loss"), str) else figures
    if found.get("state") not in STATES:
        return None
    if not all(found.get(key) is None or is_right(found[key]) for key, is_right in {**rules, "figures": _any}.items()):
        return None
    cleaned: dict[str, Any] = clean(found)
    return cleaned if rest is None or rules["figures"](rest) else None


def _any(value: Any) -> bool:
    return True


def check_environment(found: Any) -> dict[str, str]:
    """The variables of spec.json, as far as they can be any."""
    pairs = found.items() if isinstance(found, dict) else ()
    return {str(key): value for key, value in pairs if isinstance(value, str)}
