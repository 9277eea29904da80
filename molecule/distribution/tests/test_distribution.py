# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Small images, made on lab1 on the spot, given to the others: what travels, what breaks, what is left."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.engines import image_ids, inspect
from tests.image_runs import FOLDER, REPOSITORY, SPOOL, build, distribute, given, has, left, remove, transfer_line
from tests.playbook_run import (
    CLUSTER_ROOT,
    NODES,
    Run,
    condition,
    lab_inventory,
    node,
    on,
    playbook,
    start,
    variables,
)

SLOW = "tc qdisc add dev eth0 root tbf rate 16mbit burst 128kb latency 300ms"
QUICK = "tc qdisc del dev eth0 root 2>/dev/null; true"

ARM = r"""
import hashlib, io, json, sys, tarfile
old = tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read()))
manifest = json.load(old.extractfile("manifest.json"))[0]
config = json.load(old.extractfile(manifest["Config"]))
config["architecture"] = "arm64"
data = json.dumps(config).encode()
manifest.update(Config=hashlib.sha256(data).hexdigest() + ".json", RepoTags=[sys.argv[1]])
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as new:
    for name in manifest["Layers"]:
        new.addfile(old.getmember(name), old.extractfile(name))
    for name, text in ((manifest["Config"], data), ("manifest.json", json.dumps([manifest]).encode())):
        entry = tarfile.TarInfo(name)
        entry.size = len(text)
        new.addfile(entry, io.BytesIO(text))
"""


def identities(image: str) -> set[str]:
    return {inspect(name, "image", image)["Id"] for name in NODES}


def spooled(name: str) -> int:
    """Bytes in a node's spool."""
    found = on(name, f"du -sb {SPOOL}/blobs 2>/dev/null | cut -f1; true")
    return int(found or 0)


def until(what: str, seconds: float, true: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.2)


@pytest.fixture
def slow() -> Iterator[None]:
    """lab1 gives 2 MB a second."""
    on("lab1", f"{QUICK}; {SLOW}")
    try:
        yield
    finally:
        on("lab1", QUICK)


@pytest.fixture(scope="module", autouse=True)
def tidy() -> Iterator[None]:
    yield
    remove(*NODES)
    for name in NODES:
        on(name, f"rm -rf {FOLDER}")


def test_an_image_goes_down_the_chain_and_nothing_is_left() -> None:
    image = build("1", low=24, middle=12, top=4)
    run = distribute(image).done(change=True)
    assert len(identities(image)) == 1
    assert re.match(r"lab2: 40 MiB in [\d.]+ s from lab1; 0 of 3 layers were there\.", transfer_line(run, "lab2"))
    assert re.match(r"lab3: 40 MiB in [\d.]+ s from lab2; 0 of 3 layers were there\.", transfer_line(run, "lab3"))
    assert run.changed["lab1"] == 0
    for name in NODES:
        assert left(name) == []
        assert not node(name).file(SPOOL).exists
    again = distribute(image).done(change=False)
    assert "Start a process on each node" not in again.output


def test_of_a_changed_image_only_the_changed_layer_travels() -> None:
    image = build("2", low=24, middle=12, other=6)
    run = distribute(image).done(change=True)
    for name in ("lab2", "lab3"):
        assert re.match(rf"{name}: 6 MiB in [\d.]+ s from lab\d; 2 of 3 layers were there\.", transfer_line(run, name))
    assert len(identities(image)) == 1


@pytest.mark.usefixtures("slow")
def test_a_node_that_is_killed_does_not_stop_the_others_and_goes_on_later() -> None:
    image = build("3", big=40)
    process = start("site", *given(image))
    try:
        until("8 MB on lab3", 120, lambda: spooled("lab3") > 8 << 20)
        pid = json.loads(on("lab2", f"cat {SPOOL}/lock"))["pid"]
        on("lab2", f"kill -9 {pid}")
        output = process.communicate(timeout=300)[0]
    finally:
        process.kill()
    run = Run(process.returncode, output).refused("lab2: the process of the transfer was killed. Remedy: ")
    assert "from lab2, lab1" in transfer_line(run, "lab3")
    assert has("lab3", image) and not has("lab2", image)
    assert [left(name) for name in NODES] == [[], [], []]
    kept = spooled("lab2")
    assert kept > 4 << 20
    again = distribute(image).done(change=True)
    line = transfer_line(again, "lab2")
    assert re.search(r"([1-9]\d*) MiB had come before", line), line
    assert len(identities(image)) == 1
    assert not node("lab2").file(SPOOL).exists


def test_a_damaged_layer_is_fetched_again() -> None:
    image = build("4", harmed=8)
    layer = inspect("lab1", "image", image)["RootFS"]["Layers"][0].removeprefix("sha256:")
    on("lab3", f"mkdir -p -m 700 {SPOOL}/blobs && head -c 1000000 /dev/urandom > {SPOOL}/blobs/{layer}.part")
    run = distribute(image).done(change=True)
    assert f"layer {layer[:12]} from lab2 was damaged" in transfer_line(run, "lab3")
    assert "from lab2, lab1;" in transfer_line(run, "lab3")
    assert len(identities(image)) == 1


def test_an_image_for_another_architecture_is_refused_before_anything_travels() -> None:
    image = f"{REPOSITORY}:arm"
    build("5", low=24)
    program = node("lab1").run("docker save %s | python3 -c %s %s | docker load", f"{REPOSITORY}:5", ARM, image)
    assert program.rc == 0, program.stderr
    not_for = f"lab1: the image {image} is built for arm64, "
    distribute(image).refused(f"The image was not transferred. {not_for}", "Remedy: ")
    assert not any(has(name, image) for name in ("lab2", "lab3"))
    assert [left(name) for name in NODES] == [[], [], []]


def test_a_node_without_room_is_named_before_anything_travels() -> None:
    image = build("9", roomy=24)
    small = f"mkdir -p -m 700 {CLUSTER_ROOT} && mount -t tmpfs -o size=16m,mode=700 small {CLUSTER_ROOT}"
    with condition("lab3", small, f"umount {CLUSTER_ROOT}"):
        distribute(image).refused(f"lab3: 16 MiB are free in {CLUSTER_ROOT}, ", " needs 24 MiB there. Remedy: ")
        assert left("lab3") == []
    assert not any(has(name, image) for name in ("lab2", "lab3"))
    assert [left(name) for name in NODES] == [[], [], []]


def test_a_disk_that_fills_while_the_engine_loads_is_named_and_nothing_half_loaded_stays() -> None:
    image = build("10", wide=24)
    place = "/var/lib/docker/tmp"  # where docker load unpacks what it is given
    before = image_ids("lab3")
    with condition("lab3", f"mount -t tmpfs -o size=2m small {place}", f"umount {place}"):
        distribute(image).refused("lab3: the disk of the engine is full (docker load: ", "Remedy: make room there")
        assert has("lab2", image) and not has("lab3", image)
        assert image_ids("lab3") == before
        assert [left(name) for name in NODES] == [[], [], []]
    again = transfer_line(distribute(image).done(change=True), "lab3")
    assert re.match(r"lab3: 0 MiB in .* 24 MiB had come before", again), again
    assert len(identities(image)) == 1


@pytest.mark.usefixtures("slow")
def test_a_second_run_waits_for_the_transfer_of_the_first_and_names_it() -> None:
    image = build("6", large=120)
    process = start("site", *given(image))
    try:
        until("a transfer to lab3", 120, lambda: spooled("lab3") > 1 << 20)
        pid = json.loads(on("lab3", f"cat {SPOOL}/lock"))["pid"]
        second = distribute(image).done(change=True)
        assert "lab3: waiting up to 30 min for another transfer to end" in second.output
        assert f"To stop it: kill {pid} on lab3." in second.output
        # The first one has brought everything meanwhile.
        assert re.match(r"lab3: 0 MiB in ", transfer_line(second, "lab3"))
        output = process.communicate(timeout=300)[0]
    finally:
        process.kill()
    Run(process.returncode, output).done(change=True)
    assert len(identities(image)) == 1
    assert [left(name) for name in NODES] == [[], [], []]


@pytest.mark.usefixtures("slow")
def test_when_the_first_manager_is_cut_off_every_node_reports_it_and_a_next_run_goes_on() -> None:
    image = build("7", huge=40)
    others = ",".join(lab_inventory()["_meta"]["hostvars"][name]["ansible_host"] for name in ("lab2", "lab3"))
    process = start("site", *given(image))
    try:
        until("8 MB on lab3", 120, lambda: spooled("lab3") > 8 << 20)
        with condition(
            "lab1", f"iptables -I OUTPUT -p tcp -d {others} -j DROP", f"iptables -D OUTPUT -p tcp -d {others} -j DROP"
        ):
            output = process.communicate(timeout=400)[0]
    finally:
        process.kill()
    run = Run(process.returncode, output).refused()
    for name in ("lab2", "lab3"):
        assert re.search(
            rf"{name}: no node offers the image any longer \(.*lab1: [^)]*\)\. \d+ MiB of it are kept", run.text
        )
    on("lab1", QUICK)
    assert [left(name) for name in NODES] == [[], [], []]
    again = distribute(image).done(change=True)
    for name in ("lab2", "lab3"):
        assert re.search(r"([1-9]\d*) MiB had come before", transfer_line(again, name))
    assert len(identities(image)) == 1


@pytest.mark.usefixtures("slow")
def test_without_its_controller_a_transfer_comes_to_its_end_and_clears_up() -> None:
    image = build("8", vast=16)
    process = start("site", *given(image))
    until("a transfer to lab3", 120, lambda: spooled("lab3") > 1 << 20)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    until("the image on both", 120, lambda: has("lab2", image) and has("lab3", image))
    until("nothing left", 240, lambda: [left(name) for name in NODES] == [[], [], []])
    assert not any(node(name).file(SPOOL).exists for name in NODES)
    assert len(identities(image)) == 1


def test_older_images_of_this_cluster_go_by_choice_and_no_others() -> None:
    image, repository, mine = build("7", low=1), "distribution/ours", "--label swarmspeed.cluster=swarmspeed"
    made = {
        f"{repository}:old": mine,
        f"{repository}:used": f"{mine} --label used=1",
        f"{repository}:foreign": "",
        "distribution/test:ours-by-label": mine,
    }
    distribute(image).done()
    for name, labels in made.items():
        on("lab2", f"printf 'FROM {image}\nENV NAME={name}\n' | docker build -q {labels} -t {name} -")
    prune = variables(training_image_repository=repository, training_image_prune=True)
    on("lab2", f"docker tag {repository}:old {repository}:older; docker create --name pruned-not {repository}:used")
    try:
        distribute(image).done(change=False)
        run = playbook("site", *given(image), *prune).done(change=True)
        assert {name for name, changed in run.changed.items() if changed} == {"lab2"}
        assert [name for name in (*made, f"{repository}:older") if not has("lab2", name)] == [
            f"{repository}:old",
            f"{repository}:older",
        ]
        assert has("lab2", image)
        playbook("site", *given(image), *prune).done(change=False)
    finally:
        on("lab2", f"docker rm pruned-not; docker rmi {' '.join(made)} {repository}:older 2>/dev/null; true")


def test_teardown_removes_what_a_killed_run_has_left() -> None:
    line = f'command="/usr/bin/python3 -B {SPOOL}/serve.py" ssh-ed25519 AAAA swarmspeed-transfer lab3.x'
    on("lab2", f"mkdir -p -m 700 {SPOOL}/blobs && touch {SPOOL}/key && echo '{line}' >> /root/.ssh/authorized_keys")
    before = on("lab2", "grep -vc swarmspeed-transfer /root/.ssh/authorized_keys")
    playbook("teardown", "--tags", "training_image").done(change=True)
    assert left("lab2") == []
    assert not node("lab2").file(SPOOL).exists
    assert on("lab2", "grep -c . /root/.ssh/authorized_keys") == before
