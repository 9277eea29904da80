# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is said of a job that failed, by recorded launcher logs (fixtures/job) and made-up lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.judge import Failure, Judge

FIXTURES = Path(__file__).parents[2] / "fixtures" / "job"
NODE = "[2026-11-20 10:00:00,000] [INFO] [launch.py:158:main] nnodes={0}, num_local_procs=1, node_rank={1}"
WORLD = "[2026-11-20 10:00:00,000] [INFO] [launch.py:170:main] dist_world_size={0}"
SUCCESS = "[2026-11-20 10:00:09,000] [INFO] [launch.py:285:main] Process 7 exits successfully."
FAILED = "[2026-11-20 10:00:00,000] [ERROR] [launch.py:259:sigkill_handler] ['x'] exits with return code = {0}"


def judge(transport: str = "pdsh", slots: int = 1, **change: Any) -> Judge:
    members = [{"name": f"lab{n}", "slots": list(range(slots))} for n in (1, 2, 3)]
    spec = {"nodes": 3, "transport": transport, "launcher": "deepspeed", **change}
    return Judge(spec, members, 3 * slots)


def recorded(name: str) -> Judge:
    made = judge()
    for line in (FIXTURES / name).read_text(encoding="utf-8").replace("␍", "\r").splitlines():
        made.feed("lab1", None, line)
    made.finish()
    return made


def failure(made: Judge, codes: dict[str, int | None], ranks: dict[int, int] | None = None) -> Failure:
    found = made.why(codes, ranks or {})
    assert found is not None
    return found


def test_recorded_success() -> None:
    assert recorded("pdsh_ok.txt").why({"lab1": 0}, {}) is None


def test_recorded_exception_names_the_first_rank_not_those_that_lost_it() -> None:
    found = failure(recorded("pdsh_raise.txt"), {"lab1": 1})
    assert (found.node, found.rank, found.code) == ("lab2", 1, 1)
    assert found.reason.startswith("rank 1 on lab2 ended with exit code 1: ValueError: no such column (raised at ")
    assert "Remedy: Correct the script or its data" in found.reason


def test_recorded_kill_names_the_node_whose_rank_was_killed() -> None:
    found = failure(recorded("pdsh_killrank.txt"), {"lab1": 1})
    assert (found.node, found.rank, found.code) == ("lab2", 1, -9)
    assert found.reason.startswith("rank 1 on lab2 ended with exit code -9: SIGKILL")
    assert "out-of-memory" in found.reason


@pytest.mark.parametrize(
    ("lines", "codes", "says"),
    [
        (["RuntimeError: launcher 'pdsh' not installed."], {"lab1": 1}, "ended with exit code 1"),
        (["pdsh@lab1: lab2: ssh exited with exit code 255"], {"lab1": 255}, "ssh to lab2 ended with exit code 255"),
        (
            ["pdsh@lab1: lab2: ssh exited with exit code 247"],
            {"lab1": 247},
            "on lab2 ended with exit code 247: SIGKILL",
        ),
        (["oh"], {"lab1": 126}, "ended with exit code 126: the command may not be run"),
    ],
)
def test_one_launcher_that_ended_badly(lines: list[str], codes: dict[str, int | None], says: str) -> None:
    made = judge()
    for line in lines:
        made.feed("lab1", None, line)
    assert says in failure(made, codes).reason


SSH = "pdsh@lab1: lab2: ssh exited with exit code 255"
OTHER = "pdsh@lab1: lab1: ssh exited with exit code 1"


@pytest.mark.parametrize("lines", [[SSH, OTHER], [OTHER, SSH]])
def test_an_end_without_a_word_does_not_hide_the_node_that_ssh_lost(lines: list[str]) -> None:
    made = judge()
    for line in lines:
        made.feed("lab1", None, line)
    found = failure(made, {"lab1": 255})
    assert (found.node, found.rank, found.weak) == ("lab2", 1, True)
    assert found.reason.startswith("ssh to lab2 ended with exit code 255. Likely: ssh to that node failed or was cut")


def test_what_a_rank_has_said_goes_before_ssh() -> None:
    made = judge()
    made.feed("lab3", 2, "Traceback (most recent call last):")
    made.feed("lab3", 2, '  File "/workspace/train.py", line 7, in <module>')
    made.feed("lab3", 2, "KeyError: 'x'")
    for line in (SSH, "pdsh@lab1: lab3: ssh exited with exit code 255"):
        made.feed("lab1", None, line)
    found = failure(made, {"lab1": 255})
    assert (found.node, found.rank, found.weak) == ("lab3", 2, False)
    assert "KeyError: 'x'" in found.reason and "ssh to lab2" not in found.reason


def test_a_rank_that_failed_is_a_failure_although_the_launcher_says_0() -> None:
    made = judge()
    for line in (NODE.format(3, 0), NODE.format(3, 1), NODE.format(3, 2), WORLD.format(3), *[SUCCESS] * 3):
        made.feed("lab1", None, line)
    assert made.why({"lab1": 0}, {}) is None
    made.feed("lab1", None, FAILED.format(-6))
    assert "SIGABRT" in failure(made, {"lab1": 0}).reason


def test_of_several_slots_the_rank_that_said_something_is_named() -> None:
    made = judge("direct", slots=2)
    made.feed("lab2", 3, "Traceback (most recent call last):")
    made.feed("lab2", 3, '  File "/workspace/train.py", line 7, in <module>')
    made.feed("lab2", 3, "KeyError: 'x'")
    made.feed("lab2", None, FAILED.format(1))
    found = failure(made, {"lab1": None, "lab2": 1, "lab3": None})
    assert (found.node, found.rank, found.code) == ("lab2", 3, 1)
    assert (
        "rank 3 on lab2 ended with exit code 1: KeyError: 'x' (raised at /workspace/train.py, line 7)" in found.reason
    )
    assert made.describe(found)["traceback"][-1] == "KeyError: 'x'"


def test_a_launcher_that_ends_before_its_ranks_has_failed() -> None:
    made = judge("direct")
    for name, rank in (("lab1", 0), ("lab2", 1), ("lab3", 2)):
        made.feed(name, None, NODE.format(3, rank))
        made.feed(name, None, WORLD.format(3))
    assert not made.failed({"lab1": None, "lab2": None, "lab3": None}, {})
    assert made.failed({"lab1": None, "lab2": None, "lab3": 0}, {})
    made.feed("lab3", None, SUCCESS)
    assert not made.failed({"lab1": None, "lab2": None, "lab3": 0}, {})


def test_the_merged_log_names_node_and_rank() -> None:
    assert judge("direct").feed("lab2", None, "text") == "lab2: text"
    assert judge("direct").feed("lab2", 1, "text") == "lab2: rank 1: text"
    assert judge("pdsh").feed("lab1", None, "lab2: text") == "lab2: text"


def test_other_launchers_are_judged_by_exit_codes_and_what_was_seen() -> None:
    made = judge("direct", launcher="torchrun")
    assert made.why({"lab1": 0, "lab2": 0, "lab3": 0}, {}) is None
    assert (made.world_size({"lab1": 1, "lab2": 1}), made.nodes_seen({"lab1": 1, "lab2": 0})) == (2, 1)
    assert "on lab2" in failure(judge("direct", launcher="torchrun"), {"lab1": 0, "lab2": 1, "lab3": 0}).reason
