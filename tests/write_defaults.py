# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes roles/preflight/defaults/main/others.yml, the defaults of all other roles, from these roles' own files.

Usage: ``python -m tests.write_defaults``. tests/unit/roles/test_playbooks.py fails on a file that is stale.
Symbolic links would do for a checkout, but ``ansible-galaxy collection build`` leaves them out (distlib 0.4.4).
"""

from __future__ import annotations

from pathlib import Path

ROLES = Path(__file__).resolve().parents[1] / "roles"
FILE = ROLES / "preflight/defaults/main/others.yml"
HEAD = "---\n# Written from the defaults of the other roles: python -m tests.write_defaults\n"


def text(roles: Path = ROLES) -> str:
    """Return what the file has to hold."""
    parts = [path.read_text(encoding="utf-8") for path in sorted(roles.glob("*/defaults/main.yml"))]
    return HEAD + "".join(part.removeprefix("---\n") for part in parts)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
