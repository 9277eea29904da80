# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The channel between supervisors, over real sockets on the loopback interface; time is a counter."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import channel
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import link as job_link
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.channel import Hub
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.frames import MAC, read_secret
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.link import Link

SECRET = b"s" * 32


START = {"t": "start", "attempt": 1, "master_port": 29500, "arguments": [], "members": ["lab1", "lab3"], "config": None}
PART: dict[str, Any] = {"t": "part", "ranks": {}, "seen": [1], "code": None, "clean": False}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Ends:
    """A hub and its links, polled in turn."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.hub = Hub(SECRET, "digits/1", ["lab2", "lab3"], address="127.0.0.1", clock=self.clock)
        self.links: list[Link] = []
        self.to_leader: list[tuple[str, dict[str, Any]]] = []
        self.to_follower: dict[int, list[dict[str, Any]]] = {}

    def link(self, node: str, secret: bytes = SECRET, run: str = "digits/1", port: int = 0) -> Link:
        made = Link(secret, run, node, address="127.0.0.1", port=port or self.hub.port, clock=self.clock)
        self.links.append(made)
        return made

    def turn(self) -> None:
        for link in self.links:
            self.to_follower.setdefault(id(link), []).extend(link.poll())
        self.to_leader += self.hub.poll()

    def until(self, what: Any) -> None:
        deadline = time.monotonic() + 10
        while not what():
            assert time.monotonic() < deadline, (self.to_leader, self.to_follower)
            self.turn()
            time.sleep(0.002)

    def rest(self, turns: int = 30) -> None:
        for _turn in range(turns):
            self.turn()
            time.sleep(0.002)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    for link in made.links:
        link.close()
    made.hub.close()


def test_words_go_both_ways_whole_and_in_order(ends: Ends) -> None:
    two, three = ends.link("lab2"), ends.link("lab3")
    ends.until(lambda: ends.hub.connected() == ["lab2", "lab3"] and two.welcome and three.welcome)
    for number in range(50):
        two.send({"t": "lines", "lines": [[number, "é" * 3000]]})
    ends.hub.send("lab3", START)
    ends.until(lambda: len(ends.to_leader) == 50 and ends.to_follower[id(three)])
    assert ends.to_leader == [("lab2", {"t": "lines", "lines": [[n, "é" * 3000]]}) for n in range(50)]
    assert ends.to_follower[id(three)] == [START]
    assert ends.to_follower[id(two)] == []


@pytest.mark.parametrize(
    ("node", "secret", "run"),
    [("lab2", b"o" * 32, "digits/1"), ("lab2", SECRET, "digits/2"), ("lab9", SECRET, "digits/1")],
)
def test_who_does_not_belong_to_the_run_is_turned_away(ends: Ends, node: str, secret: bytes, run: str) -> None:
    stranger = ends.link(node, secret, run)
    ends.rest()
    stranger.send(PART)
    ends.rest()
    assert ends.hub.connected() == []
    assert ends.to_leader == []
    assert not stranger.welcome


def greet_all(hub: Hub) -> None:
    """Let anybody in, with a proof that is none."""
    hub._greet = lambda item, hello, now: item.wire.write(b"0" * MAC)  # type: ignore[method-assign]


def test_a_leader_without_the_secret_is_not_believed(ends: Ends) -> None:
    false = Hub(b"f" * 32, "digits/1", ["lab2"], address="127.0.0.1", clock=ends.clock)
    greet_all(false)
    link = ends.link("lab2", port=false.port)
    try:
        for _turn in range(50):
            false.poll()
            assert link.poll() == []
            time.sleep(0.002)
        assert not link.welcome
        assert link.problem == "the leader does not know the cluster's secret, or leads another run"
    finally:
        false.close()


def test_a_connection_is_bound_to_the_attempt_the_leader_names(ends: Ends) -> None:
    ends.hub.attempt = 7
    link = ends.link("lab2")
    ends.until(lambda: link.welcome)
    assert ends.hub.connected() == ["lab2"]


def test_silence_is_noticed_at_both_ends(ends: Ends) -> None:
    link = ends.link("lab2")
    ends.until(lambda: link.welcome)
    for _beat in range(int(2 * channel.SILENCE / channel.BEAT)):  # beats keep both content
        ends.clock.now += channel.BEAT
        ends.rest(10)
    assert ends.hub.gone() == {}
    assert link.silent() <= channel.BEAT
    ends.links.clear()  # the follower is not heard any more, its connection stays
    ends.clock.now += channel.SILENCE + 1
    ends.rest(3)
    assert list(ends.hub.gone()) == ["lab2"]
    assert link.silent() > channel.SILENCE


def test_a_lost_connection_is_made_again(ends: Ends) -> None:
    link = ends.link("lab2")
    ends.until(lambda: link.welcome)
    assert link._wire is not None
    link._wire.sock.shutdown(socket.SHUT_RDWR)
    ends.until(lambda: not link.welcome)
    ends.clock.now += job_link.RETRY + 0.1
    ends.until(lambda: link.welcome and link.greeted == 2)
    link.send(PART)
    ends.until(lambda: ends.to_leader == [("lab2", PART)])


def test_a_second_connection_of_a_node_replaces_the_first(ends: Ends) -> None:
    first, second = ends.link("lab2"), ends.link("lab2")
    ends.until(lambda: second.greeted and first.greeted)
    ends.rest()
    assert ends.hub.connected() == ["lab2"]


def test_a_connection_that_says_nothing_is_closed(ends: Ends) -> None:
    with socket.create_connection(("127.0.0.1", ends.hub.port)):
        ends.until(lambda: ends.hub._pending)
        ends.clock.now += channel.HANDSHAKE + 1
        ends.until(lambda: not ends.hub._pending)


def test_a_leader_that_is_not_there_yet_is_tried_again(ends: Ends) -> None:
    port = ends.hub.port
    ends.hub.close()
    link = ends.link("lab2", port=port)
    ends.links.clear()
    for _turn in range(20):
        link.poll()
        ends.clock.now += 0.1
        time.sleep(0.002)
    assert link.problem == "Connection refused"
    ends.hub = Hub(SECRET, "digits/1", ["lab2"], address="127.0.0.1", port=port, clock=ends.clock)
    ends.links.append(link)
    ends.clock.now += 1
    ends.until(lambda: link.welcome)


def test_the_secret_is_made_from_the_file(tmp_path: Any) -> None:
    for name, text in (("one", b"key"), ("two", b"key"), ("three", b"other")):
        (tmp_path / name).write_bytes(text)
    one, two, three = (read_secret(str(tmp_path / name)) for name in ("one", "two", "three"))
    assert one == two != three
    assert b"key" not in one


def test_who_was_left_out_is_notified_when_it_comes_back_and_ignored(ends: Ends) -> None:
    stays, gone = ends.link("lab2"), ends.link("lab3")
    ends.until(lambda: ends.hub.connected() == ["lab2", "lab3"])
    gone.close()
    ends.links.remove(gone)
    ends.until(lambda: ends.hub.connected() == ["lab2"])
    ends.hub.leave_out(["lab3"], {"t": "bye", "state": "failed", "reason": "too late"})
    assert ends.hub.nodes == ["lab2"]
    ends.clock.now += 60
    ends.rest()
    assert "lab3" not in ends.hub.gone()
    back = ends.link("lab3")
    ends.until(lambda: {"t": "bye", "state": "failed", "reason": "too late"} in ends.to_follower.get(id(back), []))
    back.send(PART)
    ends.rest()
    assert ends.hub.connected() == ["lab2"] and stays.welcome
    assert [node for node, _message in ends.to_leader if node == "lab3"] == []


def test_who_is_left_out_while_connected_is_notified_at_once(ends: Ends) -> None:
    link = ends.link("lab3")
    ends.until(lambda: ends.hub.connected() == ["lab3"])
    ends.hub.leave_out(["lab3"], {"t": "bye"})
    ends.until(lambda: {"t": "bye"} in ends.to_follower.get(id(link), []))
    assert ends.hub.connected() == []


def ended(link: Link) -> bool:
    """Whether the leader has closed a follower's connection, which is not polled meanwhile."""
    assert link._wire is not None
    try:
        while link._wire.sock.recv(65536):
            pass
    except BlockingIOError:
        return False
    return True


def test_who_is_left_out_and_stays_is_cut_off(ends: Ends) -> None:
    link = ends.link("lab3")
    ends.until(lambda: ends.hub.connected() == ["lab3"])
    ends.links.clear()  # it hears the farewell, and neither answers nor goes
    ends.hub.leave_out(["lab3"], {"t": "bye"})
    ends.rest()
    assert not ended(link)
    ends.clock.now += channel.HANDSHAKE + 1
    ends.until(lambda: ended(link))
    link.close()


def test_who_was_left_out_and_comes_back_again_and_again_holds_few_connections(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "PENDING", 4)
    ends.hub.leave_out(["lab3"], {"t": "bye"})
    links = []
    for _number in range(7):
        link = ends.link("lab3")
        ends.until(lambda made=link: {"t": "bye"} in ends.to_follower.get(id(made), []))
        ends.links.clear()  # it does not go
        links.append(link)
    assert [ended(link) for link in links] == [True, True, True, False, False, False, False]
    for link in links:
        link.close()
