# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""An image to all nodes beside one node alone, every link limited; and the star that there was before, for comparison.

What is timed is the transfer with the loading, without Ansible's part. LAB_NODES=3 and 9 show how it grows.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.registry import REGISTRY, Row
from tests.playbook_run import lab_inventory, on, playbook, ssh, variables

MEBIBYTES, LAYERS = 64, 4
MEGABITS = 16
"""Of every node's link: slow enough for the processors, which all nodes of a lab share, not to be the limit."""
REPOSITORY = "swarmspeed/bench"
MOST_ROUNDS = 2


def nodes() -> list[str]:
    return sorted(lab_inventory()["_meta"]["hostvars"], key=lambda name: int(name.removeprefix("lab")))


@contextmanager
def limited(names: list[str]) -> Iterator[None]:
    """What leaves a node is limited; what comes has left another."""
    for name in names:
        on(name, f"tc qdisc replace dev eth0 root tbf rate {MEGABITS}mbit burst 256kb latency 300ms")
    try:
        yield
    finally:
        for name in names:
            on(name, "tc qdisc del dev eth0 root")


def build(tag: str) -> str:
    """Make an image of chance on the first node; nothing of it is anywhere else."""
    place, size = "/root/bench-image", MEBIBYTES // LAYERS
    files = "".join(f"dd if=/dev/urandom of=f{i} bs=1M count={size} status=none; " for i in range(LAYERS))
    copies = "".join(f"COPY f{i} /f{i}\\n" for i in range(LAYERS))
    on(
        "lab1",
        f"mkdir -p {place} && cd {place} && {files} printf 'FROM scratch\\n{copies}CMD [\"/none\"]\\n' > Dockerfile "
        f"&& docker build -q -t {REPOSITORY}:{tag} . && rm -rf {place}",
    )
    return f"{REPOSITORY}:{tag}"


def chain(image: str, lacking: int) -> float:
    """Seconds until the slowest of those nodes that lack the image has it."""
    requested = variables(training_image_source="archive", training_image_name=image, training_image_archive=__file__)
    with limited(nodes()):
        run = playbook("site", "--tags", "training_image", *requested).done(nodes=())
    reported = [float(seconds) for seconds in re.findall(r"lab\d+: \d+ MiB in ([\d.]+) s", run.text)]
    assert len(reported) == lacking, run.output[-3000:]
    return max(reported)


def star(image: str, names: list[str]) -> float:
    """Seconds for ``docker save | docker load`` from the first node to each other at the same time."""
    with limited(nodes()):
        began = time.monotonic()
        running = []
        for name in names:
            save = subprocess.Popen(ssh("lab1", f"docker save {image}"), stdout=subprocess.PIPE)
            load = subprocess.Popen(ssh(name, "docker load"), stdin=save.stdout, stdout=subprocess.DEVNULL)
            running += [save, load]
        assert [process.wait(1200) for process in running] == [0] * len(running)
        return time.monotonic() - began


def forget(image: str, names: list[str]) -> None:
    for name in names:
        on(name, f"docker rmi -f {image} >/dev/null 2>&1; true")


def times(rounds: int) -> range:
    """Return the rounds that are made of those asked for, one at least."""
    return range(max(1, min(rounds, MOST_ROUNDS)))


def compared(others: list[str], alone: list[float], chained: list[float]) -> list[Row]:
    """Return the rows of one node alone and of all others by the chain."""
    link = f"{MEBIBYTES} MiB, {MEGABITS} Mbit/s a link: {MEBIBYTES * 8.388608 / MEGABITS:.0f} s"
    return [
        Row("one node alone", alone, note=link),
        Row(f"{len(others)} nodes, chain", chained, floor="one node alone"),
    ]


@REGISTRY.add("distribution")
def distribution(rounds: int) -> list[Row]:
    """In turn: all by the chain, one node alone, all by the star."""
    names = nodes()
    others = names[1:]
    alone: list[float] = []
    chained: list[float] = []
    starred: list[float] = []
    for number in times(rounds):
        image = build(f"{number}-{time.time():.0f}")
        chained.append(chain(image, len(others)))
        forget(image, others[:1])  # all others have it
        alone.append(chain(image, 1))
        forget(image, others)
        starred.append(star(image, others))
        forget(image, names)
    return [*compared(others, alone, chained), Row(f"{len(others)} nodes, star", starred, floor="one node alone")]
