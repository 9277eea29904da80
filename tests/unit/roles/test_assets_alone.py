# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role assets alone in a play of the user's own, by ansible-playbook itself, on stand-ins for hosts."""

from __future__ import annotations

import copy
import hashlib
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import digest_of

from tests.adversary.hostile import facts as honest
from tests.stand_ins import StandIns, changed, tasks

ROOT = "/srv/swarmspeed/swarmspeed/assets"
DATA = b"1,2\n"
SHA256 = hashlib.sha256(DATA).hexdigest()
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIeLkmbk8Vp6pjyB2hT0lJ4U0w6pXn8cRjGfYc1X2y3z"
REPLY: dict[str, Any] = {
    "gathered": {
        **{"lacking_bytes": 4, "lacking_files": 1, "spooled_bytes": 0, "free_bytes": 1 << 40, "root": ROOT},
        **{"account": "root", "host_key": KEY, "public_key": KEY},
    },
    "needed": {SHA256: 0},
    **{"over": True, "trouble": "", "received": {}, "resumed": 0, "seconds": 1.0, "notes": []},
}


def facts(number: int, *, whole: bool, free: int = 1 << 40) -> dict[str, Any]:
    found: dict[str, Any] = copy.deepcopy(honest(number))
    digest = digest_of([("set.csv", 4, SHA256)]) if whole else ""
    state = {"recorded": whole, "there": whole, "digest": digest, "changed": [], "missing": [], "files": {}}
    found["assets"] = {
        **{"root": ROOT, "free_bytes": free, "filesystem": "ext4", "incoming_bytes": 0, "recorded": []},
        "found": {"mine": state},
    }
    return found


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "set.csv").write_bytes(DATA)
    return {
        "assets_sources": [{"name": "mine", "folder": str(folder)}],
        "assets_cache": str(tmp_path / "cache"),
        "cluster_accelerator": "cpu",
    }


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    """The first host has the data set, the second one lacks it."""
    place = tmp_path / "hosts"
    place.mkdir()
    made = StandIns(place, "assets", replies={"stdout": "root", "stat": {"exists": False}})
    replies = {"asset_transfer": REPLY}
    made.add("gpu1", facts(1, whole=True), replies=replies)
    made.add("gpu2", facts(2, whole=False), facts(2, whole=True), replies=replies)
    return made


def test_a_node_gets_what_it_lacks_and_is_planned_again(hosts: StandIns, given: dict[str, Any]) -> None:
    output = hosts.play(**given)
    assert changed(output).keys() == {"gpu1", "gpu2"}, output
    sent = hosts.modules("gpu1")
    # start, allow, go, feed, a piece, wait and end: the one that has all gives, and is asked what it lacks.
    assert sent.count("asset_transfer") == 7 and sent[0] == sent[-1] == "node_facts", sent
    assert hosts.modules("gpu2").count("asset_transfer") == 5
    assert "gpu2: 0 MiB of models and data sets in 1.0 s from the controller." in output
    output = hosts.play(**given)
    assert changed(output) == {"gpu1": 0, "gpu2": 0}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_check_mode_prints_the_plan_and_sends_nothing(hosts: StandIns, given: dict[str, Any]) -> None:
    output = hosts.play("--check", "--diff", **given)
    assert changed(output) == {"gpu1": 1, "gpu2": 1}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])
    assert f"\n    + {ROOT}/mine/set.csv: as in {given['assets_sources'][0]['folder']}\n" in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_without_sources_nothing_is_asked_of_the_group(hosts: StandIns) -> None:
    output = hosts.play("--limit", "gpu2")
    assert changed(output) == {"gpu2": 0}, output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_a_source_that_cannot_be_had_is_one_sentence_before_any_host_is_contacted(
    hosts: StandIns, given: dict[str, Any]
) -> None:
    output = hosts.play(**{**given, "assets_sources": [{"name": "mine", "folder": "/gone"}]})
    assert "assets_sources: mine: /gone is not a directory on the controller. Remedy: correct folder." in output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == ([], []) and "Traceback" not in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_a_refusal_ends_the_role_before_anything_is_sent(hosts: StandIns, given: dict[str, Any]) -> None:
    hosts.add("gpu2", facts(2, whole=False, free=1))
    output = hosts.play(**given)
    assert "gpu1: skipped because of gpu2: 0.0 MiB are free in" in output and "Fetch to the controller" not in " ".join(
        tasks(output)
    )
    assert hosts.modules("gpu2") == ["node_facts"]
