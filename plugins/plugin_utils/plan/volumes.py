# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How a volume of a container is written: ``SOURCE:TARGET[:OPTIONS]``, or ``TARGET[:OPTIONS]`` where it has no name."""

from __future__ import annotations

_MODE_WORDS = "rw ro z Z consistent delegated cached rprivate private rshared shared rslave slave nocopy"
MODES = frozenset(_MODE_WORDS.split())
"""https://docs.docker.com/reference/api/engine/ (HostConfig.Binds), as community.docker takes them."""


def volume_parts(volume: str) -> tuple[str, str, str]:
    """Return source, target and options, as community.docker parts them."""
    parts = volume.split(":")
    if len(parts) == 1 or (len(parts) == 2 and is_mode(parts[1])):
        return "", parts[0], "".join(parts[1:])  # a volume without a name
    return (parts[0], parts[1], ":".join(parts[2:])) if len(parts) <= 3 else (volume, "", "")


def is_mode(text: str) -> bool:
    return all(part in MODES for part in text.split(","))
