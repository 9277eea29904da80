# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What happens in a run, as the console needs it: plain values, of which ``Screen`` makes lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Union


class Outcome(Enum):
    """How a task ended on a host. ``RESCUED``: it failed, and a rescue of its block follows."""

    OK = "ok"
    CHANGED = "changed"
    SKIPPED = "skipped"
    FAILED = "failed"
    RESCUED = "rescued"
    IGNORED = "ignored"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Play:
    """``roles``: those whose tasks the tags select, in order."""

    name: str
    hosts: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """``role`` is the outermost one, empty for a task of the playbook itself. ``once``: one host runs it for all."""

    name: str
    role: str = ""
    once: bool = False
    prompts: bool = False


@dataclass(frozen=True)
class Started:
    """A task begins on a host."""

    host: str


@dataclass(frozen=True)
class Retry:
    """A task with ``until`` is tried again."""

    host: str
    attempt: int
    attempts: int


@dataclass(frozen=True)
class Message:
    """What a task of the action ``debug`` says."""

    host: str
    text: str


@dataclass(frozen=True)
class Diff:
    """What a task changes on a host, or would."""

    host: str
    text: str


@dataclass(frozen=True)
class Result:
    """``text``: why it failed."""

    host: str
    outcome: Outcome
    text: str = ""


@dataclass(frozen=True)
class Tick:
    """Time passes."""


@dataclass(frozen=True)
class End:
    """The run is over. ``failed`` and ``unreachable`` count tasks by host. ``more``: where all of it is."""

    hosts: tuple[str, ...]
    failed: Mapping[str, int] = field(default_factory=dict)
    unreachable: Mapping[str, int] = field(default_factory=dict)
    check: bool = False
    more: str = ""


Event = Union[Play, Task, Started, Retry, Message, Diff, Result, Tick, End]
