# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Rules of the judgement that the recorded hangs do not reach, on made-up examinations."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.histories import components, surprises
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.judge import judge
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.links import Link, common, lost
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.positions import operation, position
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.wording import names_of

C10D = "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py"


def own(function: str, file: str = "/job/train.py", line: int = 7) -> dict[str, Any]:
    return {"function": function, "file": file, "line": line}


def entry(sequence: int, name: str = "nccl:all_reduce", done: bool = True, **more: Any) -> dict[str, Any]:
    return {"group": "0", "sequence": sequence, "operation": name, "done": done, "at": 100.0 + sequence, **more}


def rank(number: int, frames: list[dict[str, Any]], entries: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    task = {"tid": 1, "name": "python", "state": "S", "cpu": 0.0, "call": "futex", **more.pop("task", {})}
    threads = [{"main": True, "frames": frames}]
    seen = {"rank": number, "pid": 1, "alive": True, "state": "S", "joined": True, "threads": threads, "tasks": [task]}
    return {**seen, "groups": {"0": {"ranks": [0, 1, 2]}}, "entries": entries, **more}


def waiting(number: int, sequence: int = 3, name: str = "nccl:all_reduce", **more: Any) -> dict[str, Any]:
    frames = [{"function": operation(name), "file": C10D, "line": 1}, own("average")]
    past = [entry(one, name) for one in range(1, sequence)]
    return rank(number, frames, [*past, entry(sequence, name, done=False)], **more)


def judged(*ranks: dict[str, Any], **job: Any) -> dict[str, Any]:
    return judge([{"node": "gpu1", "ranks": list(ranks)}], {"world_size": len(ranks), **job})


def test_a_collective_with_another_size() -> None:
    third = waiting(2)
    for one, size in ((first := waiting(0), 8), (second := waiting(1), 8), (third, 9)):
        one["entries"][-1]["sizes"] = [[size]]
    finding = judged(first, second, third)
    assert (finding["ranks"], finding["kind"], finding["confidence"]) == ([2], "mismatched_collective", "certain")
    assert "sizes [[9]]" in finding["sentence"]


def test_a_rank_that_waits_for_a_key_of_the_store() -> None:
    asking = rank(2, [own("wait_for_epoch")], [entry(1), entry(2)], task={"call": "poll"})
    finding = judged(waiting(0), waiting(1), asking)
    assert finding["ranks"] == [2]
    assert "a key of the store" in finding["sentence"]


def test_most_wait_for_a_key_of_the_store_and_one_sleeps() -> None:
    ranks = [rank(one, [own("wait_for_epoch")], [entry(1)], task={"call": "poll"}) for one in (0, 1)]
    finding = judged(*ranks, rank(2, [own("download")], [entry(1)], task={"call": "clock_nanosleep"}))
    assert (finding["ranks"], finding["kind"], finding["does"]["function"]) == ([2], "own_code", "download")


def test_point_to_point_that_only_the_recorder_shows() -> None:
    """NCCL's send and recv return at once; the ranks wait for their GPU."""
    sends = [entry(1, "nccl:send 0->1", done=False, p2p=True)]
    first = rank(0, [own("synchronize")], [*sends], task={"call": "sched_yield", "cpu": 1.0, "state": "R"})
    second = rank(1, [own("compile_stage")], [], task={"call": "clock_nanosleep"})
    finding = judge([{"ranks": [first, second]}], {"world_size": 2})
    assert (finding["ranks"], finding["does"]["function"]) == ([1], "compile_stage")


def test_all_create_groups_and_not_the_same_ones() -> None:
    def creating(number: int, members: list[int]) -> dict[str, Any]:
        values = {"group_name": "1", "ranks": members}
        frames = [{"function": "new_group", "file": C10D, "line": 1, "values": values}, own("create_groups")]
        return rank(number, frames, [])

    finding = judged(creating(0, [0, 1]), creating(1, [0, 1]), creating(2, [0, 1, 2]))
    assert (finding["ranks"], finding["kind"]) == ([2], "startup")


POOL = [
    own("wait", "/usr/lib/python3.11/threading.py"),
    own("get", "/usr/lib/python3.11/multiprocessing/pool.py"),
    own("tokenize"),
]
KILLED = "Memory cgroup out of memory: Killed process 99 (python) total-vm:1kB"


@pytest.mark.parametrize(
    ("kernel", "more", "kind"),
    [
        ([], {}, "deadlock"),
        ([{"age": 5.0, "line": KILLED}], {}, "lost_process"),
        ([{"age": 5.0, "line": KILLED.replace("python", "java")}], {}, "deadlock"),
        ([], {"children": [{"pid": 99, "state": "Z", "signal": 9}]}, "lost_process"),
        ([], {"children": [{"pid": 99, "state": "Z", "signal": 0, "code": 0}]}, "deadlock"),
        ([], {"children": [{"pid": 99, "state": "D", "wait": "rpc_wait_bit_killable"}]}, "blocked_file"),
        ([], {"cgroup": {"oom_kills": 1}}, "lost_process"),
    ],
)
def test_why_a_pool_does_not_answer(kernel: list[dict[str, Any]], more: dict[str, Any], kind: str) -> None:
    stuck = rank(2, POOL, [entry(1), entry(2)], **more)
    finding = judge([{"ranks": [waiting(0), waiting(1), stuck], "kernel": kernel}], {"world_size": 3})
    assert (finding["ranks"], finding["kind"], finding["does"]["function"]) == ([2], kind, "tokenize")


@pytest.mark.parametrize(
    ("task", "more", "kind"),
    [
        ({"call": "flock", "path": "/c.lock"}, {"locks": [{"waits": True, "holder": 5}]}, "blocked_file"),
        ({"state": "D", "wait": "nfs_wait", "path": "/nfs/x"}, {}, "blocked_file"),
        ({"call": "openat"}, {}, "blocked_file"),
        ({"call": "read", "path": "pipe:[7]"}, {}, "deadlock"),
        ({"call": "wait4"}, {}, "deadlock"),
        ({"call": "recvfrom", "wait": "x"}, {"joined": False}, "own_code"),
        ({"call": "futex"}, {}, "deadlock"),
        ({"state": "R", "cpu": 1.0, "call": "running"}, {"cpu": 1.0}, "own_code"),
        ({}, {"state": "T"}, "not_scheduled"),
        ({}, {"frozen": True}, "not_scheduled"),
        ({"state": "R"}, {"throttled": 0.9}, "not_scheduled"),
        ({}, {"alive": False}, "lost_process"),
    ],
)
def test_what_a_rank_does_instead(task: dict[str, Any], more: dict[str, Any], kind: str) -> None:
    finding = judged(waiting(0), waiting(1), rank(2, [own("load")], [entry(1), entry(2)], task=task, **more))
    assert (finding["ranks"], finding["kind"]) == ([2], kind)


@pytest.mark.parametrize(
    ("task", "more", "does", "works"),
    [
        ({"state": "R", "cpu": 1.0, "call": "running"}, {"cpu": 1.0}, "computes (1.0 processors)", True),
        ({"call": "fsync"}, {"bytes": 3e6}, "reads or writes (3.0 MB/s)", True),
        ({"state": "D", "call": "fsync", "path": "/nfs/x"}, {"bytes": 3e6}, "reads or writes (3.0 MB/s)", True),
        ({"state": "D", "call": "fsync", "path": "/nfs/x"}, {"bytes": 300}, "waits for a file /nfs/x", False),
        ({"call": "clock_nanosleep"}, {"cpu": 0.1, "bytes": 300, "helpers": 0.1}, "sleeps", False),
        (
            {"call": "wait4"},
            {"helpers": 2.0},
            "waits for a command that it started, and its helpers compute (2.0",
            True,
        ),
        ({"call": "wait4"}, {"cpu": 1.0}, "and its other threads compute (1.0 processors)", True),
        ({"call": "wait4"}, {"bytes": 2e6}, "and it or its helpers read or write (2.0 MB/s)", True),
        ({"call": "wait4"}, {"helpers": 0.1}, "waits for a command that it started, in a deadlock", False),
        ({"call": "futex"}, {"helpers": 2.0}, "waits for a lock, in a deadlock", False),
        ({"state": "T"}, {"state": "T", "helpers": 2.0, "bytes": 3e6}, "was stopped", False),
    ],
)
def test_whether_the_rank_that_is_waited_for_works(
    task: dict[str, Any], more: dict[str, Any], does: str, works: bool
) -> None:
    finding = judged(waiting(0), waiting(1), rank(2, [own("load")], [entry(1), entry(2)], task=task, **more))
    assert (finding["ranks"], finding["works"]) == ([2], works)
    assert does in finding["sentence"]
    assert finding["sentence"].endswith("It works, so it may only be slow.") is works


def test_of_two_ranks_that_are_waited_for_both_have_to_work() -> None:
    def found(*cpu: float) -> bool:
        late = [
            rank(one, [own("load")], [entry(1)], task={"call": "clock_nanosleep", "cpu": used}, cpu=used)
            for one, used in zip((2, 3), cpu)
        ]
        for one in (first := [waiting(0), waiting(1), *late]):
            one["groups"] = {"0": {"ranks": [0, 1, 2, 3]}}
        finding = judged(*first)
        assert finding["ranks"] == [2, 3]
        return bool(finding["works"])

    assert found(1.0, 1.0) and not found(1.0, 0.0) and not found(0.0, 1.0)


@pytest.mark.parametrize(
    ("task", "more", "words", "works"),
    [
        ({"call": "x"}, {"cpu": 1.0}, "is in evaluate (train.py, line 7). It may only be slow.", True),
        ({"call": "x"}, {}, "is in evaluate (train.py, line 7). It may only be slow.", True),
        ({"state": "D"}, {"bytes": 1e6}, "is in evaluate (train.py, line 7). It may only be slow.", True),
        ({"state": "D"}, {}, "waits for a file in evaluate (train.py, line 7).", False),
    ],
)
def test_no_rank_waits_for_another_one(task: dict[str, Any], more: dict[str, Any], words: str, works: bool) -> None:
    ranks = [rank(one, [own("evaluate")], [entry(1), entry(2)], task=task, **more) for one in range(3)]
    finding = judged(*ranks)
    assert (finding["ranks"], finding["works"], finding["collective"]) == ([], works, None)
    assert finding["sentence"] == f"No rank waits for another one: rank 0 on gpu1 {words}"


def test_without_any_evidence_the_finding_says_what_would_be_needed() -> None:
    """All that remains where ptrace is forbidden and the ranks were started by others."""
    bare: dict[str, Any] = {"alive": True, "state": "S", "threads": [], "entries": [], "groups": {}}
    ranks = [{"rank": one, **bare, "missing": ["it does not catch our signal"]} for one in range(3)]
    finding = judged(*ranks)
    assert (finding["ranks"], finding["confidence"]) == ([], "not known")
    assert "SYS_PTRACE" in finding["remedy"]


def test_a_rank_whose_report_is_late_and_whose_stack_shows_the_collective_is_not_to_blame() -> None:
    late = {**waiting(1), "entries": [], "joined": None, "groups": {}}
    stuck = rank(2, [own("load")], [entry(1), entry(2)], task={"call": "clock_nanosleep"})
    assert judged(waiting(0), late, stuck)["ranks"] == [2]


def test_a_rank_that_is_further_than_its_recorder_goes_back_is_not_missing() -> None:
    ahead = rank(1, [own("load")], [entry(one) for one in range(200, 220)], task={"call": "clock_nanosleep"})
    behind = rank(2, [own("load")], [entry(1), entry(2)], task={"call": "clock_nanosleep"})
    assert judged(waiting(0), ahead, behind)["ranks"] == [2]


def test_a_thousand_ranks_in_many_groups_are_judged_soon() -> None:
    """Each is in three groups: of eight, of every eighth, of all; rank 77 sleeps."""
    ranks = []
    everyone = list(range(1024))
    for number in everyone:
        own_groups = {f"t{number // 8}": everyone[number // 8 * 8 :][:8], f"d{number % 8}": everyone[number % 8 :: 8]}
        made = [entry(one, group=name) for one in range(1, 40) for name in own_groups]
        if number == 77:
            one = rank(number, [own("load")], made, task={"call": "clock_nanosleep"})
        else:
            one = waiting(number, 1)
            one["entries"] = [*made, entry(40, group=f"t{number // 8}", done=number // 8 != 9)]
        one["groups"] = {"0": {"ranks": everyone}, **{name: {"ranks": some} for name, some in own_groups.items()}}
        ranks.append(one)
    began = time.process_time()
    finding = judged(*ranks)
    assert (finding["ranks"], finding["collective"]["group"]) == ([77], list(range(72, 80)))
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("calls", "ranks"),
    [
        (("futex", "futex", "clock_nanosleep"), [2]),
        (("running", "futex", "running"), [1]),
        (("futex", "futex", "futex"), []),
        (("futex", "clock_nanosleep"), []),
    ],
)
def test_without_stacks_and_recorder_the_system_calls_differ(calls: tuple[str, ...], ranks: list[int]) -> None:
    examined = []
    for number, call in enumerate(calls):
        task = {"call": call, "state": "R" if call == "running" else "S"}
        examined.append({**rank(number, [], [], task=task), "groups": {}, "joined": False})
    finding = judged(*examined)
    assert finding["ranks"] == ranks
    assert finding["confidence"] == ("likely" if ranks else "not known")


def test_without_a_recorder_the_stacks_say_who_is_in_another_collective() -> None:
    ranks = [waiting(0), waiting(1), waiting(2, name="nccl:all_gather")]
    for one in ranks:
        one["entries"] = []
    finding = judged(*ranks)
    assert (finding["ranks"], finding["confidence"]) == ([2], "likely")
    assert finding["collective"]["operation"] == "all_reduce"
    assert finding["collective"]["sequence"] is None


# --- links -----------------------------------------------------------------------------------------------------------


def end(local: str, remote: str, out: int, into: int, retransmits: int = 0) -> dict[str, Any]:
    host, port = local.split(":")
    other, other_port = remote.split(":")
    found = {"local": [host, int(port)], "remote": [other, int(other_port)], "state": "ESTABLISHED"}
    return {
        **found,
        "segments_out": out,
        "segments_in": into,
        "retransmits": retransmits,
        "send": 9 * (retransmits > 0),
    }


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((50, 30, 6), (30, 44, 0), [(0, 1)]),
        ((50, 20, 6), (30, 50, 6), [(1, 0)]),
        ((50, 20, 6), (30, 40, 6), [(0, 1), (1, 0)]),
        ((50, 30, 1), (30, 44, 0), []),
        ((50, 30, 6), (30, 49, 0), []),
    ],
)
def test_in_which_direction_packets_are_lost(first: Any, second: Any, expected: list[tuple[int, int]]) -> None:
    ranks = (
        {"rank": 0, "sockets": [end("10.0.0.1:5", "10.0.0.2:6", *first)]},
        {"rank": 1, "sockets": [end("10.0.0.2:6", "10.0.0.1:5", *second)]},
    )
    found = lost(dict(enumerate(position(one, "") for one in ranks)))
    assert [(link.source, link.target) for link in found] == expected


@pytest.mark.parametrize(("since_ack", "arrived", "expected"), [(9000, 44, True), (9000, 50, False), (900, 44, False)])
def test_packets_that_this_node_itself_drops(since_ack: int, arrived: int, expected: bool) -> None:
    """The kernel counts no retransmission then: figures of the case network-isolated of HangBench."""
    own_end = {**end("10.0.0.1:5", "10.0.0.2:6", 50, 20), "send": 4424, "since_ack": since_ack}
    other = end("10.0.0.2:6", "10.0.0.1:5", 20, arrived)
    ranks = {"rank": 0, "sockets": [own_end]}, {"rank": 1, "sockets": [other]}
    found = lost(dict(enumerate(position(one, "") for one in ranks)))
    assert [(link.source, link.target) for link in found] == [(0, 1)] * expected
    # Of a peer that was not examined nothing arrives at all, whatever the reason.
    assert lost({0: position(ranks[0], ""), 2: position({"rank": 2}, "")}) == []


def test_two_ranks_that_join_as_the_same_one() -> None:
    ranks = []
    for number, joins_as in enumerate((0, 1, 1)):
        values = {"rank": joins_as, "world_size": 3}
        frames = [{"function": "init_process_group", "file": C10D, "line": 1, "values": values}, own("main")]
        ranks.append({**rank(number, frames, []), "joined": False, "groups": {}})
    finding = judged(*ranks)
    assert (finding["ranks"], finding["kind"], finding["confidence"]) == ([2], "startup", "certain")
    assert "it joins as rank 1 in main" in finding["sentence"]
    assert finding["remedy"] == "Leave RANK=2 as the launcher has set it."


def test_a_peer_that_was_not_examined_is_known_by_its_address() -> None:
    ranks = (
        {"rank": 0, "sockets": [end("10.0.0.1:5", "10.0.0.2:6", 9, 9, 5)]},
        {"rank": 1, "sockets": [end("10.0.0.2:8", "10.0.0.1:7", 9, 9)]},
    )
    found = lost(dict(enumerate(position(one, "") for one in ranks)))
    assert [(link.source, link.target, link.whole) for link in found] == [(0, 1, False)]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], None),
        ([(2, 1)], (2, 1)),
        ([(0, 2), (1, 2)], (None, 2)),
        ([(2, 0), (2, 1)], (2, None)),
        ([(0, 1), (1, 0)], (0, 1)),
        ([(0, 2), (2, 0), (1, 2), (2, 1)], (None, 2)),
    ],
)
def test_the_one_link_that_explains_all(pairs: list[tuple[int, int]], expected: Any) -> None:
    found = common([Link(*pair) for pair in pairs])
    assert (found and (found.source, found.target)) == expected


# --- small parts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "count"),
    [("ababab", 0), ("ababb", 1), ("aaaab", 1), ("abcabcabc", 0), ("abcabcac", 1), ("", 0), ("ab", 0), ("abc", 0)],
)
def test_what_never_followed_before(names: str, count: int) -> None:
    made = [{"group": "0", "operation": name} for name in names]
    assert len(surprises(made)) == count


def test_circles_of_who_waits_for_whom() -> None:
    found = components({0: {1}, 1: {2}, 2: {1}, 3: {9}})
    assert sorted(map(sorted, found)) == [[0], [1, 2], [3]]
    chain = components({one: {one + 1} for one in range(5000)})  # no recursion
    assert len(chain) == 5000


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([0, 1, 2], "0-2"),
        ([1], "1"),
        ([2, 0], "0, 2"),
        (range(0, 40, 2), "0, 2, 4, 6, 8, 10, 12, 14 and 12 more"),
        ([], ""),
    ],
)
def test_ranks_in_words(ranks: Any, words: str) -> None:
    assert names_of(ranks) == words


@pytest.mark.parametrize(
    ("name", "plain"),
    [("gloo:all_reduce", "all_reduce"), ("ALLREDUCE", "all_reduce"), ("nccl:send 0->1", "send"), ("", ""), (":", "")],
)
def test_names_of_operations(name: str, plain: str) -> None:
    assert operation(name) == plain
