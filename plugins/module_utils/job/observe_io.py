# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How a training job is, and what it has logged: read on its host, changing nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Callable

from ..common.secret_names import hider
from . import resource
from .runtimes import Runtime
from .store_io import Store

LOG_LIMIT = 1 << 20
"""Most bytes of the log that one call returns."""
BETWEEN = 0.25
"""Seconds between two reads of the folder while news is waited for."""


def check_log_limit(limit: int) -> None:
    """Raise ``JobError`` where it is out of range."""
    if not 1 <= limit <= LOG_LIMIT:
        raise resource.JobError(f"log_limit: {limit} is not within 1 and {LOG_LIMIT} bytes.")


def current(
    store: Store, runtime: Runtime, recorded: Callable[[], dict[str, Any]]
) -> tuple[str, str, resource.Container | None]:
    """Return state and reason of a job, and its container. The engine is queried only for a job that may run."""
    container, known = None, recorded()
    if known.get("state") in resource.ACTIVE and (store.on_host or known.get("container")):
        container = runtime.container(known.get("container") or "")
        # Read again: the job may have ended, and then the container gone, since the first look.
        known = recorded()
    return (*resource.current_state(known, container, time.time()), container)


def report(
    store: Store,
    recorded: dict[str, Any],
    state: str,
    reason: str,
    *,
    offset: int,
    limit: int,
    environment: Mapping[str, str] = MappingProxyType({}),
    damaged: bool = False,
) -> dict[str, Any]:
    """Return what modules return of a job, with its log from ``offset``, and without where its files are damaged.

    Values of ``environment`` are hidden, too.
    """
    hide = hider({**store.read_environment(), **environment})
    data, after, size = (b"", 0, 0) if damaged else store.read_log(offset, limit, state not in resource.ACTIVE)
    return {
        "job": resource.report(store.name, recorded, state, reason, hide),
        "log": hide(data.decode("utf-8", "replace")),
        "log_offset": after,
        "log_size": size,
        "log_path": str(store.path / "launcher.log"),
    }


def wait_for_news(
    store: Store,
    offset: int,
    seconds: float,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Return when the log goes on after ``offset``, the job ends, another run begins, or ``seconds`` are over."""
    deadline = clock() + seconds
    run_id = store.read_state().get("run_id")
    while clock() < deadline:
        known = store.read_state()
        if known.get("state") not in resource.ACTIVE or known.get("run_id") != run_id:
            return
        if store.read_log(offset, LOG_LIMIT, ended=False)[0]:
            return
        sleep(min(BETWEEN, max(0.0, deadline - clock())))
