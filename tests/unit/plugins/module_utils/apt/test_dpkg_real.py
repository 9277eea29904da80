# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""An interrupted dpkg with dpkg itself, in a database of its own, by the very commands of the table of drifts."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.dpkg_io import SystemDpkg
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.dpkg_state import (
    CONFIGURE,
    Limits,
    read_state,
    repair,
)

from tests.drifts.table import rounds

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("dpkg-deb"), reason="dpkg installs packages for root alone"
)

MAKE = {drift.id: drift.make for several in rounds() for drift in several.drifts}
CONTROL = """Package: bc
Version: 1
Architecture: all
Maintainer: nobody <nobody@example.com>
Description: a package with nothing in it
"""


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a database of dpkg's with one installed package; dpkg itself gets it from its environment."""
    folder = tmp_path / "dpkg"
    for name in ("updates", "info", "triggers"):
        (folder / name).mkdir(parents=True)
    for name in ("status", "available"):
        (folder / name).touch()
    source = tmp_path / "bc" / "DEBIAN"
    source.mkdir(parents=True)
    (source / "control").write_text(CONTROL, encoding="utf-8")
    monkeypatch.setenv("DPKG_ADMINDIR", str(folder))
    for command in (["dpkg-deb", "--build", "bc", "bc.deb"], ["dpkg", "-i", "bc.deb"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    return folder


@pytest.mark.parametrize(
    ("drift", "found"),
    [
        ("dpkg-half-configured", {"unfinished": ["bc (half-configured)"], "journal": False, "busy": False}),
        ("dpkg-journal", {"unfinished": [], "journal": True, "busy": False}),
    ],
)
def test_what_the_drift_makes_is_found_and_repaired(database: Path, drift: str, found: dict[str, object]) -> None:
    host = SystemDpkg(str(database))
    assert read_state(host).interrupted is False
    command = MAKE[drift].replace("/var/lib/dpkg", str(database))
    subprocess.run(["sh", "-c", command], check=True, timeout=60)
    assert read_state(host).facts() == found
    limits = Limits(lock=10, command=60)
    assert repair(host, limits, check=True, sleep=time.sleep, clock=time.monotonic)[1] == [" ".join(CONFIGURE)]
    assert read_state(host).facts() == found
    assert repair(host, limits, check=False, sleep=time.sleep, clock=time.monotonic)[1] == [" ".join(CONFIGURE)]
    assert read_state(host).interrupted is False
