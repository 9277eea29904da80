# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A node sends more than it announced: the controller's disk is not filled. The connections are stand-ins."""

from __future__ import annotations

import resource
import subprocess
import tarfile
from pathlib import Path

import pytest
from ansible.errors import AnsibleError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection import fetched
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.fetched import (
    TooLargeError,
    archive_bytes,
    fetch_at_most,
)

ROOT = Path(__file__).parents[2]
MOST = 1 << 20


class Written:
    """Writes by itself, as the local connection does."""

    def fetch_file(self, remote: str, local: str) -> None:
        with Path(local).open("wb") as file:
            for dummy in range(int(remote)):
                file.write(bytes(1 << 16))


class Started:
    """Starts a program that writes, as ssh starts sftp, and tries another one then."""

    def fetch_file(self, remote: str, local: str) -> None:
        for dummy in range(2):
            command = ["dd", "if=/dev/zero", f"of={local}", "bs=65536", f"count={remote}"]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return
        raise AnsibleError("failed to transfer file")


class Broken:
    def fetch_file(self, remote: str, local: str) -> None:
        Path(local).write_bytes(b"x")
        raise AnsibleError("the connection broke")


@pytest.mark.parametrize("connection", [Written(), Started()])
def test_no_more_is_written_than_was_announced(connection: Written | Started, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(TooLargeError, match="the node sent more than the 1048576 bytes that 1000 can have"):
        fetch_at_most(connection, "1000", str(tmp_path / "x"), MOST)
    assert (tmp_path / "x").stat().st_size <= MOST
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == before
    fetch_at_most(connection, "16", str(tmp_path / "x"), MOST)
    assert (tmp_path / "x").stat().st_size == MOST


def test_another_failure_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(AnsibleError, match="the connection broke"):
        fetch_at_most(Broken(), "1", str(tmp_path / "x"), MOST)


def test_an_archive_of_what_was_announced_fits(tmp_path: Path) -> None:
    names = ["a", "b" * 200, "/".join(["c" * 250] * 15)]
    (tmp_path / "file").write_bytes(bytes(1000))
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        for name in names:
            archive.add(tmp_path / "file", name)
    assert (tmp_path / "all.tar").stat().st_size <= archive_bytes([1000] * len(names))


def test_no_action_fetches_without_a_limit() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "plugins").rglob("*.py")
        if ".fetch_file(" in path.read_text(encoding="utf-8") and path != Path(fetched.__file__).resolve()
    ]
    assert found == []
