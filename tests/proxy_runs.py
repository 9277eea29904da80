# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the tests of the scenario proxy share: the variables, the proxy's log, and who knows the password."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from typing import Any

from tests.playbook_run import LAB, ROOT, lab_inventory

FOLDER = ROOT / ".cache" / f"{LAB}-proxy"
VARIABLES = FOLDER / "variables.json"
PASSWORD = (FOLDER / "password").read_text(encoding="utf-8") if FOLDER.is_dir() else ""
PROXY = (FOLDER / "proxy_address").read_text(encoding="utf-8").strip() if FOLDER.is_dir() else ""
OUTSIDE = (FOLDER / "outside_address").read_text(encoding="utf-8").strip() if FOLDER.is_dir() else ""
HOSTS = tuple(lab_inventory()["_meta"]["hostvars"])
ADDRESSES = {name: str(values["ansible_host"]) for name, values in lab_inventory()["_meta"]["hostvars"].items()}
GIVEN = ("--extra-vars", f"@{VARIABLES}")
"""The variables of the playbook runs, by file, so that no list of processes shows them."""


@dataclass(frozen=True)
class Entry:
    """A line of squid's access log in its own format: wiki.squid-cache.org/Features/LogFormat."""

    client: str
    status: int
    method: str
    url: str
    user: str


def entries() -> list[Entry]:
    """Return what the proxy has logged since it was started."""
    log = subprocess.run(
        ["docker", "exec", f"{LAB}-proxy", "cat", "/var/log/squid/access.log"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [line.split() for line in log.splitlines()]
    return [Entry(row[2], int(row[3].rpartition("/")[2]), row[5], row[6], row[7]) for row in rows]


def variables() -> dict[str, Any]:
    """Return the variables of the playbook runs."""
    given: dict[str, Any] = json.loads(VARIABLES.read_text(encoding="utf-8"))
    return given


def with_password(url: str, password: str) -> str:
    """Return the proxy's URL with another password; without user and password where it is empty."""
    return re.sub(r"://[^@]*@", f"://trainer:{password}@" if password else "://", url)
