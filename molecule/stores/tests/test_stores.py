# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One image on three engines: 20.10 with overlay2 (lab1), 26.1 and 28 with containerd's image store (lab2, lab3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.content import content_of_image

from tests.engines import image_ids, info, inspect
from tests.image_runs import FOLDER, REPOSITORY, SPOOL, build, distribute, given, left, remove, transfer_line
from tests.playbook_run import NODES, Run, condition, from_archive, node, on, playbook, start, variables

VARIABLES = yaml.safe_load((Path(__file__).parents[1] / "vars" / "variables.yml").read_text(encoding="utf-8"))
SNAPSHOTS = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots"


def unnamed(name: str) -> set[str]:
    """Images without a name; the builder, too, leaves some."""
    return image_ids(name, dangling=True)


def send(image: str) -> Run:
    """Have all nodes get the image; nothing without a name may come with it."""
    before = [unnamed(name) for name in NODES]
    run = distribute(image, **VARIABLES)
    assert [unnamed(name) - old for name, old in zip(NODES, before)] == [set()] * len(NODES)
    return run


def same_everywhere(image: str) -> None:
    """Assert that all nodes have the image, and can make a container of it."""
    assert len({content_of_image(inspect(name, "image", image)) for name in NODES}) == 1
    for name in NODES:
        on(name, f"docker rm $(docker create --network none {image})")
        assert left(name) == []
        assert not node(name).file(SPOOL).exists


def travelled(run: Run) -> dict[str, tuple[int, str, str]]:
    """Return for each node that received something how many MiB, from whom, and how many layers were there."""
    found = re.findall(r"(lab\d): (\d+) MiB in [\d.]+ s from ([\w, ]+); (\d of \d) layers were there", run.text)
    return {name: (int(size), source, there) for name, size, source, there in found}


@pytest.fixture(scope="module", autouse=True)
def tidy() -> Iterator[None]:
    yield
    remove(*NODES)
    for name in NODES:
        on(name, f"rm -rf {FOLDER}")


def test_the_engines_are_of_three_kinds() -> None:
    found = [info(name) for name in NODES]
    assert [engine["ServerVersion"].partition(".")[0] for engine in found] == ["20", "26", "28"]
    assert ["io.containerd.snapshotter" in str(engine["DriverStatus"]) for engine in found] == [False, True, True]


def test_an_image_of_a_graph_driver_comes_to_containerd_and_a_second_run_changes_nothing() -> None:
    image = build("1", low=24, middle=12, top=4)
    run = send(image).done(change=True)
    assert travelled(run) == {"lab2": (40, "lab1", "0 of 3"), "lab3": (40, "lab2", "0 of 3")}
    same_everywhere(image)
    assert inspect("lab1", "image", image)["Id"] != inspect("lab2", "image", image)["Id"]
    send(image).done(change=False)
    playbook("verify", *given(image, **VARIABLES)).done(change=False)


def test_of_a_changed_image_only_the_changed_layer_travels() -> None:
    image = build("2", low=24, middle=12, other=6)
    run = send(image).done(change=True)
    assert {name: there for name, (dummy, dummy2, there) in travelled(run).items()} == {
        "lab2": "2 of 3",
        "lab3": "2 of 3",
    }
    assert {size for size, dummy, dummy2 in travelled(run).values()} == {6}
    same_everywhere(image)


def test_the_chain_starts_where_the_image_is() -> None:
    image = f"{REPOSITORY}:2"
    id_before = inspect("lab1", "image", image)["Id"]
    remove("lab1")
    run = send(image).done(change=True)
    assert travelled(run) == {"lab1": (42, "lab2", "0 of 3")}
    assert run.changed == {**run.changed, "lab1": run.changed["lab1"], "lab2": 0, "lab3": 0}
    same_everywhere(image)
    assert inspect("lab1", "image", image)["Id"] == id_before, "the configuration is the very same"
    send(image).done(change=False)


def test_an_image_with_compressed_layers_comes_to_all() -> None:
    """Engine 28 keeps what it builds compressed: nothing of chance here, so that it shows."""
    on("lab3", f"mkdir -p {FOLDER} && cd {FOLDER} && yes low | head -c 30M >even; yes top | head -c 5M >flat")
    image = build("3", name="lab3", even=30, flat=5)
    assert inspect("lab3", "image", image)["Size"] < 2 << 20
    run = send(image).done(change=True)
    assert travelled(run) == {"lab1": (35, "lab3", "0 of 2"), "lab2": (35, "lab1", "0 of 2")}
    same_everywhere(image)


def test_layers_that_containerd_keeps_compressed_do_not_travel_again() -> None:
    """lab3 has the lower layer of the image compressed, as it built it, and gets the upper one as it comes."""
    image = f"{REPOSITORY}:4"
    on(
        "lab1",
        f"cd {FOLDER} && printf 'FROM {REPOSITORY}:3\\nCOPY low /more\\n' > Dockerfile && docker build -q -t {image} .",
    )
    run = send(image).done(change=True)
    assert travelled(run) == {"lab2": (24, "lab1", "2 of 3"), "lab3": (24, "lab2", "2 of 3")}
    same_everywhere(image)
    on("lab3", f"docker rmi -f {REPOSITORY}:3 && docker save {image} >/dev/null")


@pytest.mark.parametrize("name", ["lab2", "lab3"])
def test_a_load_that_fails_leaves_nothing_tagged(name: str) -> None:
    image = build(f"full-{name}", "lab1", **{f"wide{name}": 24})
    before = image_ids(name)
    with condition(name, f"mount -t tmpfs -o size=8m small {SNAPSHOTS}", f"umount {SNAPSHOTS}"):
        send(image).refused(f"{name}: the disk of the engine is full (docker load: ", "Remedy: make room there")
        assert image_ids(name) == before
    again = transfer_line(send(image).done(change=True), name)
    assert re.search(r": 0 MiB in .* 24 MiB had come before", again), again
    same_everywhere(image)


def test_an_image_that_somebody_else_gave_that_name_is_replaced() -> None:
    image = build("5", low=24, middle=12)
    on("lab2", f"printf 'FROM scratch\\nLABEL mine=1\\n' | DOCKER_BUILDKIT=0 docker build -q -t {image} -")
    assert set(travelled(distribute(image, **VARIABLES).done(change=True))) == {"lab2", "lab3"}
    same_everywhere(image)


def test_a_whole_cluster_of_three_engines_trains_and_a_second_run_changes_nothing() -> None:
    requested = (*variables(**VARIABLES), *from_archive())
    process = start("site", *requested)  # without an image that another scenario has left it builds one
    output = process.communicate(timeout=2400)[0]
    Run(process.returncode, output).done(change=True)
    playbook("site", *requested).done(change=False)
    playbook("verify", *requested).done(change=False)
