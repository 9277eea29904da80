"""Before a rank starts: whether DeepSpeed would take the configuration, and whether the job may shrink.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

from ..ds_config_check import OPTION
from ..shrink import refusal
from .base import PROGRAM, write_json
from .judge import Failure
from .local_run import rest
from .nodes import Nodes

ACCEPTED = "ds_config.accepted"
"""In the job's folder: the configuration that DeepSpeed has last accepted, for which ranks."""
CHECK_TIMEOUT = 300.0
"""Seconds that DeepSpeed may take to read its configuration: importing it from a cold disk is the slow part."""


def read_config(path: str | Path | None) -> dict[str, Any] | None:
    """A ds_config.json; ``None`` where there is none. Empty where it cannot be read: DeepSpeed says why."""
    if not path:
        return None
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def refused(nodes: Nodes, path: str | None) -> Failure | None:
    """Why DeepSpeed in this image would not take a configuration for the ranks there are; ``None`` where it does."""
    if not path:
        return None
    place = nodes.place
    requested, accepted = _requested(nodes, path), nodes.folder / ACCEPTED
    with contextlib.suppress(OSError, ValueError):
        before = json.loads(accepted.read_text(encoding="utf-8"))
        if requested and before["asked"] == requested:
            nodes.state["deepspeed_version"] = before["release"]
            return None
    command = ["python3", "-B", str(nodes.folder / PROGRAM), OPTION, path, str(place.world_size)]
    reason = ""
    try:
        process = nodes.part.launch(command, place.environment(0), place.chdir, stdout=subprocess.PIPE)
        ended = rest(CHECK_TIMEOUT, nodes.tick, lambda: process.poll() is not None or bool(nodes.requested()), 0.1)
        if ended and not nodes.stop_reason:
            answer = json.loads(process.stdout.read() if process.stdout else b"")
            nodes.state["deepspeed_version"] = answer["release"] or None
            if answer["refusal"]:
                reason = (
                    f"DeepSpeed {answer['release']} in this image refuses {place.named(path)} for "
                    f"{place.world_size} rank(s): {answer['refusal']}"
                )
            elif requested:
                with contextlib.suppress(OSError):
                    write_json(accepted, {"asked": requested, "release": answer["release"]})
        elif not nodes.stop_reason:
            reason = f"DeepSpeed did not read {place.named(path)} within {CHECK_TIMEOUT:.0f} s. Check the log."
    except OSError as error:
        reason = f"{place.named(path)} could not be checked: {error}. The image needs python3 on its PATH."
    except ValueError:
        reason = f"DeepSpeed could not be imported to check {place.named(path)}. The end of the log says why."
    return Failure(reason) if reason else None


def _requested(nodes: Nodes, path: str) -> str:
    """A digest of all that DeepSpeed's answer depends on: the same question is not worth seconds of importing it."""
    release, container = (nodes.state.get("versions") or {}).get("deepspeed"), nodes.state.get("container_id")
    if not release:
        return ""
    place = nodes.place
    with contextlib.suppress(OSError):
        config = Path(path).read_text(encoding="utf-8")
        reported = [config, place.world_size, release, container, sorted(place.environment(0).items())]
        return hashlib.sha256(json.dumps(reported).encode()).hexdigest()
    return ""


def can_not_shrink(nodes: Nodes, config: dict[str, Any] | None) -> Failure | None:
    """Said before the start, and not when a node has stayed away at night."""
    if not nodes.place.shrinks:
        return None
    release = str(nodes.state.get("deepspeed_version") or (nodes.state.get("versions") or {}).get("deepspeed") or "")
    why = refusal(config, [len(member["slots"]) for member in nodes.place.members], release)
    if not why:
        return None
    return Failure(
        f"deepspeed_launch_shrink is true, and this job cannot go on with fewer nodes: {why} "
        "Nothing was started. Correct the configuration, or set deepspeed_launch_shrink: false.",
        final=True,
    )
