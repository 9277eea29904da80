# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How far a transfer is, in words: megabytes, rate and time left. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MIB = 1 << 20


class Meter:
    """Remembers what was there at the last look, so that the next one has a rate."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None

    def line(self, progress: Mapping[str, Any], now: float) -> str:
        """Return a line to print; empty for a node that gets nothing. ``now`` in seconds of any clock."""
        wanted, came = int(progress.get("bytes") or 0), int(progress.get("spooled") or 0)
        state = str(progress.get("state") or "")
        if not wanted or not state:
            return ""
        last, self._last = self._last, (now, came)
        if state != "receiving":
            return f"{state} the image"
        # Sizes come from the image's history, which leaves out what files take besides their content.
        shown = f"{came // _MIB} of about {max(wanted, came) // _MIB} MiB"
        if last is None or now <= last[0] or came <= last[1]:
            return shown
        rate = (came - last[1]) / (now - last[0])
        return f"{shown}, {rate / _MIB:.0f} MiB/s, {max(wanted - came, 0) / rate:.0f} s left"
