# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a job keeps of the cluster's hostfile and ds_config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.copies_io import own_copies
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import JobError

INSIDE = "/etc/swarmspeed/ds_config.json"
CONFIG: dict[str, Any] = {"train_batch_size": 8, "comet": {"api_key": "s3cret-key"}, "steps": [1, "s3cret-key"]}
MASKED: dict[str, Any] = {
    "train_batch_size": 8,
    "comet": {"api_key": "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"},
    "steps": [1, "********"],
}


def copies(path: Path, expected: Any, text: str | None = None) -> dict[str, bytes]:
    (path / "ds_config.json").write_text(json.dumps(CONFIG) if text is None else text)
    (path / "hostfile").write_text("gpu1 slots=8\n")
    files = {INSIDE: f"{path}/ds_config.json", "/etc/swarmspeed/hostfile": f"{path}/hostfile", "/x": f"{path}/none"}
    return own_copies(files, {"ds_config": INSIDE, "fingerprint": {"ds_config": expected}})


@pytest.mark.parametrize("expected", [CONFIG, MASKED, {}, None])
def test_the_files_as_they_are_with_secrets_and_without_what_is_not_there(tmp_path: Path, expected: Any) -> None:
    found = copies(tmp_path, expected)
    assert {name: data.decode() for name, data in found.items()} == {
        "ds_config.json": json.dumps(CONFIG),
        "hostfile": "gpu1 slots=8\n",
    }


def test_another_notation_is_the_same_configuration(tmp_path: Path) -> None:
    text = '{train_batch_size: 8, # hjson\n comet: {api_key: "s3cret-key"}, steps: [1, "s3cret-key"]}'
    assert copies(tmp_path, MASKED, text)["ds_config.json"] == text.encode()


@pytest.mark.parametrize("text", [json.dumps({**CONFIG, "train_batch_size": 16}), "{", "[]", json.dumps({})])
def test_a_configuration_of_another_job_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(JobError, match=r"is not the configuration of this job: .*Nothing was started. Launch again\.$"):
        copies(tmp_path, MASKED, text)
