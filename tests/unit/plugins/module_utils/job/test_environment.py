# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The variables of a cluster's ranks, as a host reads them."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.environment import ranks_environment


def test_what_the_role_wrote_is_read(tmp_path: Path) -> None:
    assert ranks_environment(tmp_path / "jobs") == {}
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "env").write_bytes(b"# kept\nHF_TOKEN=a=b\n\nEMPTY=\nodd\nX=\xff\n")
    assert ranks_environment(str(tmp_path / "jobs")) == {"HF_TOKEN": "a=b", "EMPTY": "", "X": "�"}
