# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One line in place of a traceback where what a filter or action was given has another form than a module returns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ansible.errors import AnsibleActionFail, AnsibleError, AnsibleFilterError

from ...module_utils.common.reported import REMEDY, ReportedError, escaped

Result = TypeVar("Result")

FORM = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError, MemoryError)
"""What Python raises where a value is not of the expected form."""


def one_line(
    title: str, expected: str, error: type[AnsibleError] = AnsibleFilterError
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Make what a function raises one error of Ansible: that the input is not ``expected``."""

    def wrap(function: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Result:
            try:
                return function(*args, **named)
            except AnsibleError:
                raise
            except ReportedError as refused:
                raise error(f"{title}: {refused}") from None
            except FORM as refused:
                reported = f"{type(refused).__name__} {escaped(str(refused), 100)}".strip()
                raise error(f"{title}: this is not {expected} ({reported}). {REMEDY}.") from None

        return call

    return wrap


def one_line_action(expected: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Make the same of an action's method."""
    return one_line("What was reported", expected, AnsibleActionFail)
