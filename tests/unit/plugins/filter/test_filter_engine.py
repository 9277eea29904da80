# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filters over what ran in containers, and the keys that come with the roles."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.filter import engine

ROOT = Path(__file__).parents[4]
FILTERS = engine.FilterModule().filters()
KEYS = {
    # As their owners publish them; fingerprints 9DC8…CD88 and C95B…ECB0.
    "docker/files/docker.asc": "1500c1f56fa9e26b9b8f42452a553675796ade0807cdce11975eb98170b3a570",
    "nvidia_container_toolkit/files/nvidia-container-toolkit.asc": (
        "c880576d6cf75a48e5027a871bac70fd0421ab07d2b55f30877b21f1c87959c9"
    ),
}


@pytest.mark.parametrize(("path", "digest"), KEYS.items())
def test_the_keys_are_those_of_their_owners(path: str, digest: str) -> None:
    assert hashlib.sha256((ROOT / "roles" / path).read_bytes()).hexdigest() == digest


def test_what_is_no_mapping_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match=r"^swarmspeed.cluster.smoke_problem: expected a mapping, got list$"):
        FILTERS["smoke_problem"]([], {}, {}, image="i", gpus=1, slots=1)


def test_cuda_of_a_list_alone() -> None:
    assert FILTERS["cuda_verdict"](["CUDA_VERSION=12.8.1"], "12.8", "i", "580")["level"] == "ok"
    with pytest.raises(AnsibleFilterError, match="expected a list of NAME=value"):
        FILTERS["cuda_verdict"]("CUDA_VERSION=1", "12.8", "i", "580")


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_is_documented(name: str) -> None:
    document = from_yaml((ROOT / "plugins" / "filter" / f"{name}.yml").read_text(encoding="utf-8"))
    assert document["DOCUMENTATION"]["name"] == name
    assert document["DOCUMENTATION"]["positional"].split(", ")[0] in document["DOCUMENTATION"]["options"]
