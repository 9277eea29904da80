# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reading launcher logs: recorded ones (fixtures/job) and, where a line stands in the test, invented ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.launcher_log import LogWatch, plain
from hypothesis import given, settings
from hypothesis import strategies as st

FIXTURES = Path(__file__).parents[1] / "fixtures" / "job"
NODE = "[2026-11-20 10:00:00,000] [INFO] [launch.py:158:main] nnodes={0}, num_local_procs=1, node_rank={1}\n"
WORLD = "[2026-11-20 10:00:00,000] [INFO] [launch.py:170:main] dist_world_size={0}\n"
OLD_WORLD = "[2025-01-01 10:00:00,000] [INFO] [launch.py:165:main] dist_world_size={0}\n"
SUCCESS = "[2026-11-20 10:00:09,000] [INFO] [launch.py:285:main] Process 7 exits successfully.\n"
NO_HOSTFILE = (
    "[2026-11-20 10:00:00,000] [WARNING] [runner.py:214:fetch_hostfile] Unable to find hostfile, "
    "will proceed with training with local resources only.\n"
)


def read(text: str) -> LogWatch:
    watch = LogWatch()
    watch.feed(text.encode())
    watch.finish()
    return watch


def fixture(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8").replace("␍", "\r")


def recorded(name: str) -> LogWatch:
    return read(fixture(name))


def test_recorded_success_is_a_success() -> None:
    watch = recorded("pdsh_ok.txt")
    assert (watch.world_size, watch.node_ranks, watch.successes) == (3, {0, 1, 2}, 3)
    assert watch.hosts == ["lab1", "lab2", "lab3"]
    assert watch.wrong_world(3, 3) == ""
    assert watch.incomplete(3, 3) == ""


def test_recorded_exception_names_the_first_rank_not_those_that_lost_it() -> None:
    watch = recorded("pdsh_raise.txt")
    host, rank, trace = watch.culprit()
    assert (host, rank, trace[-1]) == ("lab2", 1, "ValueError: no such column")
    assert trace[0] == "Traceback (most recent call last):"


def test_recorded_kill_names_the_node_whose_rank_was_killed() -> None:
    watch = recorded("pdsh_killrank.txt")
    assert ("lab2", -9, False) in watch.exits
    assert watch.culprit()[0] == "lab2"


@pytest.mark.parametrize("name", ["pdsh_ok.txt", "pdsh_raise.txt", "pdsh_killrank.txt"])
@settings(max_examples=20, deadline=None)
@given(size=st.integers(min_value=1, max_value=400))
def test_the_pieces_a_log_arrives_in_do_not_matter(name: str, size: int) -> None:
    data = fixture(name).encode()
    watch = LogWatch()
    for start in range(0, len(data), size):
        watch.feed(data[start : start + size])
    watch.finish()
    whole = recorded(name)
    assert (watch.world_size, watch.successes, watch.exits) == (whole.world_size, whole.successes, whole.exits)
    assert watch.culprit() == whole.culprit()
    assert list(watch.tail) == list(whole.tail)


ONE_NODE = NODE.format(1, 0) + WORLD.format(1)


@pytest.mark.parametrize(
    ("log", "world_size", "nodes", "says"),
    [
        (NO_HOSTFILE, 3, 3, "did not find its hostfile and would have trained on one node instead of 3"),
        (ONE_NODE, 3, 3, "started with a world size of 1, expected 3"),
        (OLD_WORLD.format(4), 3, 3, "started with a world size of 4, expected 3"),
        ("50%|##  |" + WORLD.format(2), 3, 1, "started with a world size of 2, expected 3"),
        (NO_HOSTFILE + ONE_NODE, 1, 1, ""),
        (WORLD.format(3), 3, 3, ""),
        ("dist_world_size=1\n", 3, 3, ""),
        ("", 3, 3, ""),
    ],
)
def test_wrong_world(log: str, world_size: int, nodes: int, says: str) -> None:
    found = read(log).wrong_world(world_size, nodes)
    assert says in found
    assert bool(found) == bool(says)


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (NODE.format(2, 0) + NODE.format(2, 1) + WORLD.format(2) + 2 * SUCCESS, ""),
        ("", "never logged a world size"),
        (NODE.format(2, 0) + WORLD.format(2) + 2 * SUCCESS, "only 1 of 2 nodes started: node ranks [0]"),
        (NODE.format(2, 0) + NODE.format(2, 1) + WORLD.format(2) + SUCCESS, "only 1 of 2 ranks ended successfully"),
    ],
)
def test_incomplete(log: str, says: str) -> None:
    found = read(log).incomplete(2, 2)
    assert says in found
    assert bool(found) == bool(says)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        (" 0%\r 50%\r100%", "100%"),
        ("100%\r", "100%"),
        ("\x1b]0;title\x07text\x07", "text"),
        ("a\tb", "a\tb"),
        ("\r", ""),
    ],
)
def test_plain(raw: str, shown: str) -> None:
    assert plain(raw) == shown


@given(st.text(max_size=200))
def test_plain_leaves_no_control_code(text: str) -> None:
    assert not any(ord(character) < 32 and character != "\t" for character in plain(text.replace("\n", "")))
