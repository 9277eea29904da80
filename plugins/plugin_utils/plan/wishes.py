# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Wishes: the variables that a role declares, as they are set for one host, rendered where they can be seen.

``hostvars`` holds neither a role's defaults nor a play's variables, so what is wished of a host is known only to a task
of that host. The task that gathers its facts renders the wishes, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


class WishError(Exception):
    """A variable cannot be rendered, or is of another type; the text names it."""


def rendered(
    names: Iterable[str],
    optional: Iterable[str],
    variables: Mapping[str, Any],
    render: Callable[[Any], Any],
    failures: tuple[type[Exception], ...],
) -> dict[str, Any]:
    """Return the rendered variables of one host.

    Those in ``optional`` belong to other roles, and are left out where nothing sets them or they cannot be rendered: a
    role that is applied alone does without. ``failures`` is what ``render`` raises.
    """
    wishes: dict[str, Any] = {}
    for name in names:
        if name not in variables:
            raise WishError(f"{name} is not defined")
        try:
            wishes[name] = render(variables[name])
        except failures as error:
            raise WishError(f"{name}: {' '.join(str(error).split()).rstrip('.')}") from error
    for name in optional:
        if name in variables:
            try:
                wishes[name] = render(variables[name])
            except failures:
                continue
    return wishes
