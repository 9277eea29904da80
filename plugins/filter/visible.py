# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What was printed elsewhere, for a message. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..module_utils.common import reported


def visible(printed: Any) -> str:
    """Return a text with control characters spelt out: ansible-core writes messages to the terminal as they are."""
    return reported.visible("" if printed is None else str(printed))


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"visible": visible}
