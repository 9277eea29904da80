# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What training_job and training_job_info returned: files that whoever is root in a container can write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.common.reported import (
    Parser,
    ReportedError,
    UnfitError,
    absolute_path,
    accept,
    escaped,
    flag,
    hex_digest,
    host_name,
    lines,
    number,
    sentence,
    short_text,
    shown,
    whole,
)
from ...module_utils.gpu.readings import KEYS
from .shape import by_name, data, listing, mapping, one_of, optional, or_empty

STATES = ("absent", "starting", "running", "succeeded", "failed", "stopped", "lost", "unreadable")
_COUNT = whole()
_CODE = whole(-(1 << 31), 1 << 31)
_LINES = listing(lines(1 << 16), 100_000)
_NUMBER = whole(0, 1 << 24)


def job_name(value: Any) -> Any:
    """The name of a job, as the module takes it."""
    if not isinstance(value, str) or not _fits(value):
        raise UnfitError(value, "the name of a job")
    return value


def _fits(name: str) -> bool:
    allowed = "abcdefghijklmnopqrstuvwxyz0123456789._-"
    return 0 < len(name) <= 63 and name[0] not in "._-" and all(letter in allowed for letter in name)


def words(value: Any) -> Any:
    """Words for people of several lines: without control characters other than line breaks."""
    if not isinstance(value, str):
        raise UnfitError(value, "text")
    return "\n".join(escaped(line, 4000) for line in value[:100_000].split("\n"))


def _number_or_words(value: Any) -> Any:
    # A loss that is not a number is text.
    return sentence(value)[:40] if isinstance(value, str) else number(value)


_FAILURE = mapping(
    {},
    {
        "node": optional(sentence),
        "rank": optional(_NUMBER),
        "exit_code": optional(_CODE),
        "cause": optional(words),
        "remedy": optional(words),
        "setting": optional(words),
        "kind": optional(sentence),
        "line": optional(words),
        "at": optional(short_text),
    },
)

_FIGURES = mapping(
    {},
    {
        "step": optional(_COUNT),
        "total": optional(_COUNT),
        "unit": optional(short_text),
        "loss": optional(_number_or_words),
        "bad_loss": optional(sentence),
        "samples_per_second": optional(number),
        "tokens_per_second": optional(number),
        "seconds_left": optional(number),
        "slowest_rank": optional(_NUMBER),
    },
)

_NCCL = mapping(
    {},
    {
        "size": optional(_NUMBER),
        "connected": optional(_NUMBER),
        "rings": optional(flag),
        "nodes": by_name(
            or_empty(host_name),
            mapping(
                {},
                {
                    "network": optional(sentence),
                    "devices": listing(sentence, 64),
                    "interface": optional(sentence),
                    "hcas": optional(sentence),
                },
            ),
            10_000,
        ),
    },
)


_END = optional(_number_or_words)
_FRAME = mapping({}, {"function": optional(sentence), "file": optional(words), "line": optional(_COUNT)})
_FINDING = mapping(
    {},
    {
        "at": optional(short_text),
        "attempt": optional(_COUNT),
        "hang": flag,
        "silent": optional(number),
        "bound": optional(number),
        "why": optional(words),
        "examinations": optional(_COUNT),
        "woke": optional(number),
        "seconds": optional(number),
        "ranks": listing(_NUMBER, 10_000),
        "nodes": listing(sentence, 10_000),
        "missing": listing(sentence, 10_000),
        "kind": optional(sentence),
        "sentence": optional(words),
        "remedy": optional(words),
        "confidence": optional(sentence),
        "evidence": optional(sentence),
        "link": optional(mapping({}, {"from": _END, "to": _END})),
        "timeline": optional(
            mapping(
                {},
                {
                    "waited": optional(number),
                    "ranks": listing(
                        mapping({"rank": _NUMBER}, dict.fromkeys(("done", "open"), listing(number, 100))), 100
                    ),
                },
            )
        ),
        "does": optional(
            mapping({}, {"function": optional(sentence), "file": optional(words), "line": optional(_COUNT)})
        ),
        "collective": optional(
            mapping(
                {},
                {
                    "operation": optional(sentence),
                    "sequence": optional(_COUNT),
                    "size": optional(_number_or_words),
                    "group": optional(data),
                    "ranks": listing(_NUMBER, 10_000),
                },
            )
        ),
    },
)
_HANG = mapping({}, {"bound": optional(number), "why": optional(words), "findings": listing(_FINDING, 100)})


def _row_of_gpu(value: Any) -> Any:
    row = listing(optional(number), len(KEYS))(value)
    if len(row) != len(KEYS) or not isinstance(row[0], int):
        raise UnfitError(value, f"a row of {len(KEYS)} figures of a GPU")
    return row


_ROWS = by_name(or_empty(host_name), listing(_row_of_gpu, 1024), 10_000)

_MEMBERS = listing(
    mapping({"name": host_name}, {"slots": listing(data, 1024), "first_rank": _NUMBER}),
    10_000,
)
_WORLD = mapping({}, {"expected": optional(_COUNT), "seen": optional(_COUNT)})
_LEFT_OUT = mapping({}, {"world_size": _COUNT, "nodes": _COUNT, "left_out": listing(host_name, 10_000)})
_RANKS = by_name(short_text, mapping({}, {"node": optional(sentence), "exit_code": optional(_CODE)}))

_SUMMARY: dict[str, Parser] = {
    "run": optional(_COUNT),
    "attempt": optional(_COUNT),
    "state": optional(short_text),
    "reason": optional(words),
    "exit_code": optional(_CODE),
    "launcher": optional(short_text),
    "transport": optional(short_text),
    "runtime": optional(short_text),
    "spec": optional(by_name(short_text, data)),
    "versions": optional(by_name(short_text, optional(sentence))),
    "world_size": optional(_WORLD),
    "nodes": optional(_WORLD),
    "shrunk_from": optional(_LEFT_OUT),
    "members": optional(_MEMBERS),
    "ranks": optional(_RANKS),
    "figures": optional(_FIGURES),
    "history": optional(
        listing(
            mapping(
                {},
                {
                    "t": optional(number),
                    "step": optional(_COUNT),
                    "loss": optional(_number_or_words),
                    "rate": optional(number),
                },
            )
        )
    ),
    "nccl": optional(_NCCL),
    "hangs": optional(listing(_FINDING, 100)),
    "first_failure": optional(_FAILURE),
    "started_at": optional(short_text),
    "finished_at": optional(short_text),
    "seconds": optional(number),
    "restarts": optional(
        listing(
            mapping(
                {},
                {
                    "attempt": optional(_COUNT),
                    "reason": optional(words),
                    "at": optional(short_text),
                    "resumed_from": optional(sentence),
                },
            ),
            10_000,
        )
    ),
}

JOB: dict[str, Parser] = {
    "reason": optional(words),
    "run": optional(_COUNT),
    "run_id": optional(short_text),
    "attempt": optional(_COUNT),
    "leader": optional(flag),
    "since": optional(short_text),
    "seconds": optional(number),
    "log": optional(_LINES),
    "log_path": absolute_path,
    "launcher": optional(short_text),
    "transport": optional(short_text),
    "runtime": optional(short_text),
    "members": optional(_MEMBERS),
    "shrunk_from": optional(_LEFT_OUT),
    "channel_port": optional(whole(0, 65535)),
    "master_port": optional(whole(0, 65535)),
    "ranks": optional(_RANKS),
    "figures": optional(_FIGURES),
    "gpus": optional(_ROWS),
    "nccl": optional(_NCCL),
    "hang": optional(_HANG),
    "first_failure": optional(_FAILURE),
    "spec_hash": optional(hex_digest),
    "container": optional(short_text),
    "started_at": optional(short_text),
    "finished_at": optional(short_text),
    "exit_code": optional(_CODE),
    "world_size_expected": optional(_COUNT),
    "world_size_seen": optional(_COUNT),
    "nodes_expected": optional(_COUNT),
    "nodes_seen": optional(_COUNT),
    "hosts": listing(short_text, 10_000),
    "deepspeed_version": optional(sentence),
    "failed_node": optional(sentence),
    "failed_rank": optional(_NUMBER),
    "traceback": optional(_LINES),
    "tail": optional(_LINES),
}


_NEXT_BOOT = optional(
    mapping(
        {"kernel": short_text, "driver": short_text},
        {"module": optional(mapping({}, {"version": optional(short_text)}))},
    )
)
_GPUS = listing(
    mapping(
        {"index": whole(0, 1023)},
        dict.fromkeys(
            (
                *("utilization", "utilization_highest", "memory_used_bytes", "memory_bytes"),
                *("power_watts", "power_limit_watts", "temperature_celsius"),
            ),
            optional(number),
        ),
    ),
    1024,
)


def infos(results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what training_job_info said on every node. A field that is none is left out, and said in ``reason``.

    One forged job must not hide the others: stop.yml ends what it can.
    """
    return {str(node): _info(str(node), result) for node, result in results.items()}


def _info(node: str, result: Any) -> dict[str, Any]:
    if not isinstance(result, Mapping) or "jobs" not in result:
        reported = result if isinstance(result, Mapping) else {}
        return {
            **reported,
            "msg": reported.get("msg") if isinstance(reported.get("msg"), str) else shown(reported.get("msg")),
        }
    try:
        jobs = accept(node, "training_job_info.jobs", result["jobs"], listing(mapping({}), 10_000))
    except ReportedError as error:
        return {"msg": str(error)}
    gpus, boots = _gpus(node, result.get("gpus") or []), _next_boot(node, result.get("next_boot"))
    return {**result, "jobs": [_job(value) for value in jobs], "gpus": gpus, "next_boot": boots}


def _gpus(node: str, value: Any) -> list[Any]:
    """What was read of the GPUs; none where it is something else, as the jobs count more."""
    try:
        return list(accept(node, "training_job_info.gpus", value, _GPUS))
    except ReportedError:
        return []


def _next_boot(node: str, value: Any) -> Any:
    try:
        return accept(node, "training_job_info.next_boot", value, _NEXT_BOOT)
    except ReportedError:
        return None


def _job(value: Mapping[str, Any]) -> dict[str, Any]:
    odd: list[str] = []
    name, state = value.get("name"), value.get("state")
    own = {key: item for key, item in value.items() if key not in ("name", "state", "summary")}
    found: dict[str, Any] = {"log_path": "", "reason": "", **_fields(own, JOB, "", odd)}
    summary = value.get("summary")
    if isinstance(summary, Mapping):
        found["summary"] = _fields(summary, _SUMMARY, "summary.", odd)
    else:
        found["summary"] = {}
        odd += [] if summary is None else [f"summary is {shown(summary)}"]
    if not isinstance(name, str) or not _fits(name):
        odd.append(f"its name is {shown(name)}")
        name = escaped(str(name), 60) if isinstance(name, str) else shown(name)
        state = "unreadable"
    if state not in STATES:
        odd.append(f"its state is {shown(state)}")
        state = "unreadable"
    if odd:
        reported = f"what is recorded of it is not what a job writes: {'; '.join(odd[:3])}"
        found["reason"] = f"{found['reason'] or ''} {reported}".strip()
    return {**found, "name": name, "state": state}


def _fields(value: Mapping[str, Any], parsers: Mapping[str, Parser], where: str, odd: list[str]) -> dict[str, Any]:
    found = {}
    for field, given in value.items():
        try:
            found[str(field)] = parsers.get(field, data)(given)
        except UnfitError as error:
            odd.append(f"{where}{escaped(str(field), 60)}{error.path} is {shown(error.value)}")
    return found


_REPLY = mapping(
    {
        "job": mapping({"name": job_name, "state": one_of(*STATES)}, JOB),
        "log": lines(64 << 20),
        "log_offset": _COUNT,
        "log_size": _COUNT,
        "log_path": absolute_path,
    },
    {"todo": optional(short_text), "changed": flag},
)

_KEPT = ("job", "log", "log_offset", "log_size", "log_path", "todo", "changed")


def reply(host: str, reported: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply of training_job, one without a job as it is; raises ``ReportedError``."""
    if "job" not in reported:
        return dict(reported)
    own = {key: value for key, value in reported.items() if key in _KEPT}
    return {**reported, **accept(host, "training_job", own, _REPLY)}
