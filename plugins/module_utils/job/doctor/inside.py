# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the launcher puts into ranks, so that they can be asked for their stacks and for torch's flight recorder.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def environment(folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Write into a private ``folder`` what ranks need; return the variables for them, on top of those given."""
    raise NotImplementedError
