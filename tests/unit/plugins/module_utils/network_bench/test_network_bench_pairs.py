# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Pairs over real sockets on the loopback interface; only torch's store is a fake, and iperf3 a script."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.network_bench import pairs
from ansible_collections.swarmspeed.cluster.plugins.module_utils.network_bench.pairs import Pairs, Trouble, together

HERE = "127.0.0.1"


class FakeStore:
    """What torch's TCPStore does, within one process; its time-out is a RuntimeError, as torch's is."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._changed = threading.Condition()

    def set(self, key: str, value: str) -> None:
        with self._changed:
            self._values[key] = value
            self._changed.notify_all()

    def get(self, key: str) -> bytes:
        self.wait([key], timedelta(seconds=5))
        return self._values[key].encode()

    def add(self, key: str, amount: int) -> int:
        with self._changed:
            self._values[f"count {key}"] = str(int(self._values.get(f"count {key}", "0")) + amount)
            return int(self._values[f"count {key}"])

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self.check(keys), timeout.total_seconds()):
                raise RuntimeError("wait timeout")

    def check(self, keys: list[str]) -> bool:
        return all(key in self._values for key in keys)


def at_once(*parts: Callable[[], object]) -> None:
    threads = [threading.Thread(target=part) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def two(store: FakeStore, most: int = 1 << 33) -> tuple[Pairs, Pairs]:
    return Pairs(0, HERE, store, seconds=0.1, most=most), Pairs(1, HERE, store, seconds=0.1, most=most)


def test_each_end_notes_what_it_knows() -> None:
    one, other = two(FakeStore())
    began = time.monotonic()
    at_once(lambda: one.meet(1, True), lambda: other.meet(0, False))
    took_ms = 1000 * (time.monotonic() - began)
    assert set(one.found) == set(other.found) == {(0, 1), (1, 0)}
    assert list(one.found[(0, 1)]) == ["latency_ms"] and list(one.found[(1, 0)]) == ["gigabits_per_second"]
    assert 0 < one.found[(0, 1)]["latency_ms"] < took_ms
    assert one.found[(1, 0)]["gigabits_per_second"] > 0.01


def test_no_more_is_sent_than_allowed() -> None:
    sent = 0

    def count() -> None:
        nonlocal sent
        with listener.accept()[0] as sock:
            while piece := len(sock.recv(1 << 20)):
                sent += piece

    with socket.create_server((HERE, 0)) as listener, socket.create_connection(listener.getsockname()[:2]) as sock:
        at_once(count, lambda: pairs.send(sock, 5, 3_000_001))
    assert sent == 3_000_001


def test_a_slow_link_is_measured_by_what_arrives_and_in_time() -> None:
    """A sender that is ahead of the link by megabytes must not make it look fast, nor hold up the round."""
    begun = time.monotonic()
    here, there = socket.socketpair()

    def trickle() -> None:
        with there:
            for dummy in range(200):
                try:
                    there.sendall(b"x" * 12_500)  # 100 kbit every 10 ms: 10 Mbit/s
                except OSError:
                    return
                time.sleep(0.01)

    rates: list[float] = []

    def measure() -> None:
        with here:
            rates.append(pairs.receive(here, 0.5))

    at_once(trickle, measure)
    assert 0.003 < rates[0] < 0.011
    assert time.monotonic() - begun < 3


def test_nothing_that_arrives_is_no_figure() -> None:
    here, there = socket.socketpair()
    there.close()
    with here, pytest.raises(Trouble, match="only 0 bytes arrived"):
        pairs.receive(here, 1)


def test_a_stranger_is_not_taken_for_the_other_node(monkeypatch: pytest.MonkeyPatch) -> None:
    store = FakeStore()
    one, other = two(store)
    host, port = HERE, one._listener.getsockname()[1]
    with socket.create_connection((host, port)) as stranger:
        stranger.sendall(b"00007")
        at_once(lambda: one.meet(1, False), lambda: other.meet(0, True))
    assert (1, 0) in one.found and one.found[(1, 0)]["gigabits_per_second"] > 0


def test_a_node_that_cannot_be_reached_is_named_by_who_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "PATIENCE", 0.3)
    store = FakeStore()
    one, other = two(store)
    port = other._listener.getsockname()[1]
    other.close()
    one.meet(1, True)
    assert one.found[(0, 1)] == {"error": f"no connection to {HERE} port {port}: Connection refused"}
    assert one.found[(1, 0)] == {"error": f"no one connected to {HERE}"}


def test_together_waits_for_the_last_one() -> None:
    store, came = FakeStore(), []

    def late() -> None:
        time.sleep(0.2)
        came.append("late")
        together(store, "round 1", 1, ["gpu1", "gpu2"], 5)

    def early() -> None:
        together(store, "round 1", 0, ["gpu1", "gpu2"], 5)
        came.append("early")

    at_once(late, early)
    assert came == ["late", "early"]


def test_together_names_who_is_missing() -> None:
    store = FakeStore()
    store.set("round 1/2", "here")
    with pytest.raises(Trouble, match=r"^no sign of gpu2, gpu4 at round 1 within 0.1 s$"):
        together(store, "round 1", 0, ["gpu1", "gpu2", "gpu3", "gpu4"], 0.1)


IPERF = """#!/bin/sh
# A stand-in for iperf3: only what is said to it and by it.
case "$*" in
*--version*) echo "iperf 3.99 (stand-in)" ;;
*--server*) exec sleep 20 ;;
*--client*) {client} ;;
esac
"""


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, client: str) -> None:
    program = folder / "iperf3"
    program.write_text(IPERF.format(client=client), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_iperf3_counts_what_arrived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported = '{"end": {"sum_sent": {"bits_per_second": 9e9}, "sum_received": {"bits_per_second": 8e9}}}'
    stand_in(tmp_path, monkeypatch, f"echo '{reported}'")
    one, other = two(FakeStore())
    begun = time.monotonic()
    at_once(lambda: one.meet_iperf(1, True), lambda: other.meet_iperf(0, False))
    assert one.floor == {(0, 1): {"gigabits_per_second": 8.0}}
    assert other.floor == {(1, 0): {"gigabits_per_second": 8.0}}
    assert time.monotonic() - begun < 5, "a server is ended when its caller has done"
    assert pairs.iperf_version() == "iperf 3.99"


@pytest.mark.parametrize(
    ("client", "reported"),
    [
        ('echo \'{"error": "unable to send control message: Bad file descriptor"}\'', "iperf3: unable to send control"),
        ("echo broken >&2; exit 1", "iperf3: broken"),
        ("true", "iperf3: no answer"),
    ],
)
def test_iperf3_that_fails_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str, reported: str
) -> None:
    stand_in(tmp_path, monkeypatch, client)
    one, other = two(FakeStore())
    at_once(lambda: one.meet_iperf(1, True), lambda: other.meet_iperf(0, False))
    assert one.floor[(0, 1)]["error"].startswith(reported)


def test_an_image_without_iperf3_reports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    one, other = two(FakeStore())
    at_once(lambda: one.meet_iperf(1, True), lambda: other.meet_iperf(0, False))
    assert one.floor == {(0, 1): {"error": "the image has no iperf3"}}
    assert pairs.iperf_version() == ""
