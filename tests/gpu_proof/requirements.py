# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which lines of requirements.txt concern a release of Python. Both sides of the proof read them, without a library."""

from __future__ import annotations

import re

_LINE = re.compile(r"""([A-Za-z0-9][A-Za-z0-9._-]*(?:==[A-Za-z0-9.]+)?)(?:; python_version (<|>=) "(\d+)\.(\d+)")?""")


def wanted(text: str, python: tuple[int, int]) -> list[str]:
    """Return the requirements for this Python. Raises ValueError with the line that is none."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = _LINE.fullmatch(line.strip())
        if parts is None:
            raise ValueError(f"line {number} is not NAME, NAME==VERSION or one of them with a python_version: {line}")
        name, sign, major, minor = parts.groups()
        if sign is None or (python < (int(major), int(minor))) == (sign == "<"):
            found.append(name)
    return found
