# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role training_image alone in a play of the user's own, by ansible-playbook itself, on stand-ins for hosts."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from tests.adversary.hostile import facts as honest
from tests.stand_ins import StandIns, changed

IMAGE = "train:1"
OF_CLUSTER: dict[str, Any] = {"cluster_network_mode": "host", "cluster_accelerator": "cpu"}
SECRET = "hunter2"
LAYERS = [f"sha256:{letter * 64}" for letter in "abc"]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "A" * 43


def facts(number: int, content: str = "", **more: Any) -> dict[str, Any]:
    found = copy.deepcopy(honest(number))
    found["docker"] |= {"images": {}, "image_contents": {}, "containers": {}, **more}
    if content:
        found["docker"]["images"][IMAGE] = f"sha256:{'12' * 32}"
        found["docker"]["image_contents"][IMAGE] = f"sha256:{content * 64}"
    return found


def transfer(image: bool) -> dict[str, Any]:
    """What a node replies in every step of a transfer."""
    there = {"content": LAYERS[0], "layers": LAYERS, "os": "linux", "architecture": "amd64", "history": [1, 2, 3]}
    gathered = {
        "architecture": "x86_64",
        "store": "graph",
        "image": there if image else {},
        "images": [],
        "free": {"engine": 1 << 40, "spool": 1 << 40, "same": False},
        "places": {"engine": "/var/lib/docker", "spool": "/srv"},
        "spooled": {},
        "account": "root",
        "host_key": KEY,
        "public_key": KEY,
    }
    done = {"over": True, "trouble": "", "received": {}, "resumed": 0, "notes": [], "seconds": 1.0, "state": "done"}
    return {"gathered": gathered, **done}


def replies(image: bool) -> dict[str, Any]:
    loaded = {"image_names": [IMAGE], "stdout": ""}
    account = {"stdout": "root", "rc": 0}
    return {
        "image_transfer": transfer(image),
        "docker_image_info": {"images": []},
        "docker_image_load": loaded,
        "command": account,
    }


@pytest.fixture
def archive(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "image.tar").write_bytes(b"an image")
    given = {"training_image_archive": str(tmp_path / "image.tar"), "training_image_name": IMAGE}
    return {**OF_CLUSTER, "training_image_source": "archive", **given}


def made(tmp_path: Path, first: list[Any], second: list[Any]) -> StandIns:
    place = tmp_path / "hosts"
    place.mkdir()
    found = StandIns(place, "training_image")
    found.add("gpu1", *first, replies=replies(image=True))
    found.add("gpu2", *second, replies=replies(image=False))
    return found


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    """Neither has the image."""
    return made(tmp_path, [facts(1), facts(1, "a")], [facts(2), facts(2, "a")])


def test_one_node_loads_it_the_other_gets_it_and_all_is_planned_again(hosts: StandIns, archive: dict[str, Any]) -> None:
    output = hosts.play(**archive)
    assert changed(output).keys() == {"gpu1", "gpu2"}, output
    first, second = hosts.modules("gpu1"), hosts.modules("gpu2")
    assert "docker_image_load" in first and "docker_image_load" not in second
    for sent in (first, second):
        assert sent.count("image_transfer") == 5 and sent.count("node_facts") == 2
        assert sent[0] == sent[-1] == "node_facts"
    assert first.index("docker_image_load") < first.index("image_transfer")
    assert "gpu1 goes on" in output and "gpu2 goes on" in output
    # A second run gathers and plans, and nothing else is sent.
    output = hosts.play(**archive)
    assert changed(output) == {"gpu1": 0, "gpu2": 0}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_who_has_it_takes_part_and_an_image_that_did_not_arrive_is_named(
    tmp_path: Path, archive: dict[str, Any]
) -> None:
    hosts = made(tmp_path, [facts(1, "a")], [facts(2, "b")])
    output = " ".join(hosts.play(**archive).split())
    first = hosts.modules("gpu1")
    assert "image_transfer" in first and "docker_image_load" not in first
    assert f"gpu2: the content of image {IMAGE} is sha256:{'b' * 64} here, and sha256:{'a' * 64} on gpu1" in output
    assert "gpu2 goes on" not in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_another_transfer_is_waited_for_while_this_run_holds_no_node(tmp_path: Path, archive: dict[str, Any]) -> None:
    hosts = made(tmp_path, [facts(1, "a")], [facts(2)])
    other = {"pid": 77, "host": "gpu2", "since": "11:40:12 UTC", "started_from": "desk"}
    # A stand-in for a node that is free when asked, and taken again when this run starts again.
    busy = {**transfer(image=False), "gathered": {"running": other}, "running": {}}
    hosts.add("gpu2", facts(2), replies={**replies(image=False), "image_transfer": busy})
    output = " ".join(hosts.play(**archive).split())
    for name in ("gpu1", "gpu2"):
        # start, end, queue, start, end: where another one was faster, the run is refused as before.
        assert hosts.modules(name).count("image_transfer") == 5
    assert "gpu2: another transfer of an image has been running there since 11:40:12 UTC (process 77 on gpu2" in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_check_mode_prints_the_plan_and_reports_it_by_one_task_a_host(hosts: StandIns) -> None:
    output = hosts.play(
        "--check", "--diff", "-vvv", **OF_CLUSTER, training_image_proxy=f"http://u:{SECRET}@proxy.example:3128"
    )
    assert changed(output) == {"gpu1": 1, "gpu2": 1}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])
    name = r"image swarmspeed/swarmspeed:[0-9a-f]{16}"
    assert re.search(rf"\n    \+ {name}: \(known after apply\)  # built here\n", output)
    assert re.search(rf"\n    \+ {name} on gpu2: \(known after apply\)  # from here\n", output)
    assert re.search(rf"\n    \+ {name}: \(known after apply\)  # from gpu1\n", output)
    assert SECRET not in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_older_images_of_the_cluster_are_removed(tmp_path: Path, archive: dict[str, Any]) -> None:
    old = {"images": {"swarmspeed/swarmspeed:old": f"sha256:{'34' * 32}"}}
    old["image_clusters"] = {"swarmspeed/swarmspeed:old": "swarmspeed"}
    hosts = made(tmp_path, [facts(1, "a", **copy.deepcopy(old)), facts(1, "a")], [facts(2, "a")])
    output = hosts.play(**archive, training_image_prune=True)
    assert changed(output).keys() == {"gpu1", "gpu2"}, output
    assert hosts.modules("gpu1") == ["node_facts", "docker_image_remove", "node_facts"]
    assert hosts.modules("gpu2") == ["node_facts"]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
@pytest.mark.parametrize(("arguments", "of_play"), [(["--limit", "gpu2"], {}), ([], {"serial": 1})])
def test_it_needs_the_whole_cluster(
    hosts: StandIns, archive: dict[str, Any], arguments: list[str], of_play: Any
) -> None:
    output = " ".join(hosts.play(*arguments, of_play=of_play, **archive).split())
    assert "role training_image concerns all hosts of the groups managers and workers" in output
    assert hosts.modules("gpu1") == [] and hosts.modules("gpu2") == []


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_present_is_refused_on_all_hosts_before_anything_is_done(hosts: StandIns) -> None:
    given = {**OF_CLUSTER, "training_image_source": "present", "training_image_name": IMAGE}
    output = " ".join(hosts.play(**given).split())
    assert (
        f"gpu2: the image {IMAGE} is missing, and training_image_source: present does not fetch it. Remedy: load it"
        in output
    )
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_verify_lists_what_is_not_done(hosts: StandIns, archive: dict[str, Any]) -> None:
    output = " ".join(hosts.play(entry="verify", **archive).split())
    assert f"gpu2: role training_image: image {IMAGE} is missing. Remedy: ansible-playbook site.yml" in output
