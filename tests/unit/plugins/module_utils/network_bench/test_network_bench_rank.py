# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A node's part of a network benchmark. torch is a stand-in of one rank here; the lab's scenario has the real one."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.network_bench import collectives as group
from ansible_collections.swarmspeed.cluster.plugins.module_utils.network_bench import rank
from ansible_collections.swarmspeed.cluster.plugins.module_utils.network_bench.pairs import Trouble
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.fabric.all_reduce import nccl_devices
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.fallback import cause
from hypothesis import given
from hypothesis import strategies as st

from tests.role_values import load


@pytest.mark.parametrize(
    ("op", "world", "expected"),
    [  # by hand from nccl-tests' doc/PERFORMANCE.md
        ("all_reduce", 2, 1.0),
        ("all_reduce", 8, 1.75),
        ("all_gather", 2, 0.5),
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 4, 0.75),
        ("all_reduce", 1, 0.0),
    ],
)
def test_factors_are_those_of_nccls_own_tests(op: str, world: int, expected: float) -> None:
    assert group.factor(op, world) == expected


@given(st.integers(1, 1 << 30), st.integers(1, 512))
def test_a_message_can_be_shared_evenly_and_is_about_as_large_as_asked(size: int, world: int) -> None:
    count = group.elements(size, world)
    assert count % world == 0 and count > 0
    assert size - 4 * (world + 1) < count * 4 <= max(size, 4 * world)


@pytest.mark.parametrize(
    ("seconds", "share", "moved", "most", "expected"),
    [
        (0.1, 1.0, 1, 1e12, 9),  # ten in all, one of which was timed already
        (0.1, 1.0, 1e6, 3e6, 2),  # the bytes end first
        (1e-9, 1.0, 1, 1e12, group.REPETITIONS - 1),
        (2.0, 1.0, 1, 1e12, 0),
        (0.1, -3.0, 1, 1e12, 0),  # the time is over
    ],
)
def test_repetitions_keep_to_time_and_bytes(
    seconds: float, share: float, moved: float, most: float, expected: int
) -> None:
    assert group.repetitions(seconds, share, moved, most) == expected


def test_the_interface_is_found_by_its_subnet() -> None:
    assert rank.own_address("127.0.0.0/8") == ("lo", "127.0.0.1")
    with pytest.raises(Trouble, match=r"no interface of the container is in 203\.0\.113\.0/24: .*lo 127\.0\.0\.1"):
        rank.own_address("203.0.113.0/24")


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        # As torch 2.13 says it where a firewall drops what a node sends to its own address.
        (
            "The client socket has timed out after 30000ms while trying to connect to (10.231.1.11, 29717).",
            "port 29717 does not answer even from this node itself: The client",
        ),
        ("The server socket has failed to listen on any local network address.", "port 29717 cannot be listened on"),
    ],
)
def test_a_store_that_is_not_there_says_why(reported: str, words: str) -> None:
    assert rank.no_store(29717, reported).startswith(words)


def test_a_host_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert rank.find_listener("localhost", port, 0) == "127.0.0.1"
    with pytest.raises(Trouble, match=rf"^127\.0\.0\.1 does not answer on port {port} within 0 s: Connection refused$"):
        rank.find_listener("127.0.0.1", port, 0)


class FakeStore:
    """Of one rank only."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def get(self, key: str) -> bytes:
        return self.values[key].encode()

    def add(self, key: str, amount: int) -> int:
        return amount

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        if not self.check(keys):
            raise RuntimeError("wait timeout")

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.SimpleNamespace]:
    """A stand-in for torch of one rank. ``calls`` counts; ``act`` may sleep or raise."""
    seen = types.SimpleNamespace(calls=[], task_input=lambda name, size: None, environment={})

    def call(name: str) -> Callable[..., None]:
        def run(*tensors: Any, **dummy: Any) -> None:
            size = max(getattr(tensor, "size", 1) for tensor in tensors)
            seen.calls.append((name, size))
            seen.task_input(name, size)

        return run

    fake, dist = types.ModuleType("torch"), types.ModuleType("torch.distributed")
    fake.__dict__.update(
        device=lambda kind, index=None: types.SimpleNamespace(type=kind, index=index),
        zeros=lambda size, **dummy: types.SimpleNamespace(size=size),
        tensor=lambda values, **dummy: types.SimpleNamespace(item=lambda: values[0]),
        float32="float32",
        float64="float64",
        distributed=dist,
    )
    dist.__dict__.update(
        init_process_group=lambda *dummy, **kept: seen.calls.append(("init", kept["world_size"])),
        destroy_process_group=lambda: seen.calls.append(("destroy", 0)),
        PrefixStore=lambda name, store: store,
        ReduceOp=types.SimpleNamespace(MAX="max"),
        all_reduce=call("all_reduce"),
        all_gather_into_tensor=call("all_gather"),
        reduce_scatter_tensor=call("reduce_scatter"),
        TCPStore=lambda *dummy, **kept: FakeStore(),
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setitem(sys.modules, "torch.distributed", dist)
    yield seen


REQUESTED: dict[str, Any] = {
    "nodes": ["gpu1"],
    "node": 0,
    "slots": [2],
    "backend": "gloo",
    "sizes": [4096, 16384],
    "collective_seconds": 1.0,
    "collective_bytes": 1 << 40,
}


def measure(**changes: Any) -> tuple[dict[str, Any], list[str]]:
    reported: list[str] = []
    return group.collectives({**REQUESTED, **changes}, FakeStore(), 0, 0, reported.append), reported


def test_every_operation_is_timed_for_every_size(torch: types.SimpleNamespace) -> None:
    found, reported = measure()
    assert [(case["op"], case["bytes"]) for case in found["measured"]] == [
        (op, size) for size in (4096, 16384) for op in group.OPS
    ]
    assert all(case["repetitions"] == group.REPETITIONS and case["seconds"] >= 0 for case in found["measured"])
    assert (found["stopped"], found["unsupported"], found["world_size"]) == ("", {}, 2)
    assert reported[0] == "all_reduce of 4096 bytes" and torch.calls[-1] == ("destroy", 0)


def test_what_would_take_too_long_is_left_and_said(torch: types.SimpleNamespace) -> None:
    torch.task_input = lambda name, size: time.sleep(0.1) if size == 1024 else None
    found, dummy = measure(collective_seconds=0.9)
    assert {case["bytes"] for case in found["measured"]} == {4096}
    assert found["stopped"] == "no messages from 16384 bytes on: all_reduce takes too long for the time there is"
    assert not [size for name, size in torch.calls if size == 4096 and name != "init"]


def test_an_operation_that_the_backend_lacks_is_reported_and_left(torch: types.SimpleNamespace) -> None:
    def task_input(name: str, size: int) -> None:
        if name == "reduce_scatter":
            raise RuntimeError("Backend gloo does not support reduce_scatter\ntrace")

    torch.task_input = task_input
    found, dummy = measure()
    assert found["unsupported"] == {"reduce_scatter": "Backend gloo does not support reduce_scatter"}
    assert {case["op"] for case in found["measured"]} == {"all_reduce", "all_gather"}


def test_a_broken_network_names_what_it_broke(torch: types.SimpleNamespace) -> None:
    def task_input(name: str, size: int) -> None:
        if name == "all_gather":
            raise RuntimeError("Connection closed by peer [10.0.0.3]:4711\ntrace")

    torch.task_input = task_input
    with pytest.raises(Trouble, match=r"^all_gather of 4096 bytes: Connection closed by peer \[10\.0\.0\.3\]:4711$"):
        measure()


def test_main_prints_one_line_and_sets_the_interface(
    torch: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    requested = {
        **REQUESTED,
        "slots": [1],
        "port": 1,
        "master": "gpu1",
        "subnet": "127.0.0.0/8",
        "rounds": [],
        "floor_rounds": [],
        "pair_seconds": 0.1,
        "pair_bytes": 1,
        "gather_seconds": 1,
        "limit_seconds": 60,
        "environment": {"NCCL_IB_DISABLE": 1, "NCCL_X": "=@IFNAME@"},
    }
    monkeypatch.setenv(rank.REQUESTED, json.dumps(requested))
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_X"):
        monkeypatch.setenv(name, "before")
    assert rank.main() == 0
    (line,) = capsys.readouterr().out.splitlines()
    answer = json.loads(line.removeprefix(rank.MARK))
    assert answer["nodes"] == [{"pairs": [], "floor": [], "iperf3": "", "interface": "lo", "nccl": []}]
    assert len(answer["collectives"]["measured"]) == 6 and answer["seconds"] >= 0
    import os  # noqa: PLC0415

    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_X")
    assert [os.environ[name] for name in names] == ["lo", "=lo", "1", "=lo"]


def test_what_nccl_said_comes_with_the_figures(
    torch: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The log is the recorded one of an H100 without HCAs; torch is a stand-in, which writes none."""
    fixtures = Path(__file__).parents[1] / "fixtures/job"
    lines = (fixtures / "nccl_h100_x1.txt").read_text(encoding="utf-8")
    log = tmp_path / "nccl.log"
    monkeypatch.setattr(rank, "NCCL_LOG", str(log))
    for name in ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        monkeypatch.setenv(name, "before")
    fakes: dict[str, Any] = {
        "cuda": types.SimpleNamespace(set_device=lambda device: None, synchronize=lambda device: None)
    }
    vars(sys.modules["torch"]).update(fakes)
    torch.task_input = lambda name, size: log.write_text(lines, encoding="utf-8") and None
    requested = {
        **{**REQUESTED, "backend": "nccl", "slots": [1], "port": 1, "subnet": "127.0.0.0/8", "environment": {}},
        **{"rounds": [], "floor_rounds": [], "pair_seconds": 0.1, "pair_bytes": 1, "gather_seconds": 1},
    }
    answer = rank.Rank(requested, 0).measure()
    (node,) = answer["nodes"]
    assert nccl_devices(node["nccl"]) == ("Socket", ["lo"])
    assert cause(node["nccl"]).startswith("libibverbs found none of them")
    import os  # noqa: PLC0415

    assert (os.environ["NCCL_DEBUG"], os.environ["NCCL_DEBUG_FILE"]) == ("INFO", str(log))


def test_of_nccls_log_no_more_is_read_than_is_needed(tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    assert rank.nccl_lines(str(log)) == []
    log.write_bytes(b"\xff NCCL INFO Using network " + b"x" * 9000 + b"\nnoise\n" + b"NCCL INFO NET/IB : y\n" * 90)
    found = rank.nccl_lines(str(log))
    assert (len(found), max(map(len, found)), found[1]) == (rank.MOST_LINES, rank.LONGEST_LINE, "NCCL INFO NET/IB : y")


def test_main_says_why_it_could_not(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    requested = {**REQUESTED, "subnet": "203.0.113.0/24", "limit_seconds": 60, "environment": {}}
    monkeypatch.setenv(rank.REQUESTED, json.dumps(requested))
    with contextlib.suppress(SystemExit):
        assert rank.main() == 1
    answer = json.loads(capsys.readouterr().out.removeprefix(rank.MARK))
    assert answer["error"].startswith("no interface of the container is in 203.0.113.0/24")


def test_the_files_that_a_node_gets_run_without_the_collection(tmp_path: Path) -> None:
    files = load("overlay_network/vars/main.yml")["_overlay_network_bench_files"]
    (tmp_path / "network_bench").mkdir()
    for name in files:
        (tmp_path / "network_bench" / name).write_bytes(Path(rank.__file__).with_name(name).read_bytes())
    requested = {**REQUESTED, "subnet": "203.0.113.0/24", "limit_seconds": 60, "environment": {}}
    done = subprocess.run(
        [sys.executable, "-B", "-m", "network_bench.rank"],
        cwd=tmp_path,
        env={rank.REQUESTED: json.dumps(requested)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "no interface of the container is in 203.0.113.0/24" in done.stdout
