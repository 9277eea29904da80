# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is wrong with an input, and where: collected, so that a user fixes everything at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

_HUGE = 10**30
"""Python refuses to print integers of thousands of digits; nothing here is ever near this."""


@dataclass(frozen=True)
class Problem:
    """``path`` says where, such as ``hosts[2].slots`` or ``zero_optimization.stage``."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def as_dicts(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """The form that modules return."""
    return [asdict(problem) for problem in problems]


def summary(subject: str, problems: Sequence[Problem]) -> str:
    """One message with every problem: in the same line when there is one, else one a line."""
    if len(problems) == 1:
        return f"{subject}: {problems[0]}"
    return "\n- ".join([f"{subject}: {len(problems)} problems", *map(str, problems)])


def shown(value: object) -> str:
    """A value as a message may quote it: short, and never an exception."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) > _HUGE:
        return "a huge number"
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # huge numbers again, inside lists
        return f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
