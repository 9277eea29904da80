# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A node of the job that lies: it knows the secret, and what it sends is authentic. That costs its channel, no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.main import options
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.messages import listing_messages
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.nodes import Nodes

from tests.adversary.channel import Job, lines

FILES = {"files": [], "latest": {}, "truncated": False}
LAUNCH = "[2026-11-20 10:00:00,000] [INFO] [launch.py:1:main] "


class Led(Job):
    """The leader's whole supervisor serves the followers, without a launcher of its own."""

    def __init__(self, folder: Path, transport: str = "direct") -> None:
        super().__init__()
        members = [{"name": f"lab{number}", "address": "127.0.0.1", "slots": [0]} for number in (1, 2, 3)]
        spec = {"members": members, "world_size": 3, "nodes": 3, "environment": {}, "transport": transport}
        (folder / "spec.json").write_text(json.dumps({"spec": spec, "node": "lab1"}))
        (folder / "state.json").write_text(json.dumps({"state": "starting"}))
        self.folder = folder
        self.nodes = Nodes(folder, options().parse_args([str(folder)]))
        self.nodes.open()
        self.nodes.hub = self.hub
        self.hub._log = self.nodes.channel_closed
        self.handle = self._supervise

    def _supervise(self) -> None:
        """One turn of the leader, and all that it asks of what was heard."""
        nodes = self.nodes
        nodes.tick()
        nodes.judge.failed(nodes.codes(), nodes.rank_codes())
        nodes.judge.wrong_world()

    def log(self, name: str = "launcher.log") -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def still_led(self) -> None:
        """lab3, which is honest, is heard."""
        self.beside.send(lines("still here"))
        self.until(lambda: "lab3: rank 1: still here" in self.log())


@pytest.fixture
def led(tmp_path: Path) -> Iterator[Led]:
    made = Led(tmp_path)
    made.together()
    yield made
    made.close()


def send(led: Led, payload: bytes) -> None:
    """A payload that lab2 has sealed itself."""
    wire = led.link._wire
    assert wire is not None and wire._sealer is not None
    wire.write(wire._sealer.seal(payload))


LIES: dict[str, Any] = {
    "a kind that is unknown": {"t": "run", "command": ["id"]},
    "a kind that is a list": {"t": []},
    "what only a leader says": {"t": "end", "grace": 0},
    "lines that are missing": {"t": "lines"},
    "lines that are a number": {"t": "lines", "lines": 7},
    "lines that are no pairs": {"t": "lines", "lines": [["x"]]},
    "a rank that is a text": {"t": "lines", "lines": [["0", "text"]]},
    "a rank that is negative": {"t": "lines", "lines": [[-1, "text"]]},
    "a line that is a number": {"t": "lines", "lines": [[1, 5]]},
    "a line of another node": {"t": "lines", "lines": [[1, "x\nlab3: rank 2: forged"]]},
    "a line of the supervisor's": {"t": "stop", "reason": "x\nswarmspeed: forged"},
    "a line that never ends": {"t": "lines", "lines": [[1, "x" * 900_000]]},
    "steps without a rank": {"t": "steps", "lines": [[None, "step 1/2 loss 0.1"]], "sign": True},
    "exit codes that are a list": {"t": "part", "ranks": [1], "seen": [], "code": None, "clean": False},
    "an exit code of no rank": {"t": "part", "ranks": {"../x": 1}, "seen": [], "code": None, "clean": False},
    "an exit code that is a text": {"t": "part", "ranks": {"1": "1"}, "seen": [], "code": None, "clean": False},
    "an exit code that is a list": {"t": "part", "ranks": {}, "seen": [], "code": [1], "clean": False},
    "an exit code that is not a number": {"t": "part", "ranks": {"1": float("nan")}, "seen": [], "code": 0, "clean": 1},
    "ranks that are a number": {"t": "part", "ranks": {}, "seen": 5, "code": None, "clean": False},
    "an end without a code": {"t": "ended", "problem": "x"},
    "a problem with a second line": {"t": "ended", "ranks": {}, "code": 1, "problem": "x\nlab3: forged"},
    "a listing without files": {"t": "listing"},
    "a checkpoint that is an option": {
        "t": "listing",
        "found": {**FILES, "files": [["-oProxyCommand=id/mp_rank_00_model_states.pt", 5]]},
        "more": False,
    },
    "a checkpoint outside": {
        "t": "listing",
        "found": {**FILES, "files": [["../../x/mp_rank_00_model_states.pt", 5]]},
        "more": False,
    },
    "a checkpoint for a shell": {
        "t": "listing",
        "found": {**FILES, "latest": {"latest_universal": "x'; id; '"}},
        "more": False,
    },
    "a size that is a text": {"t": "listing", "found": {**FILES, "files": [["a/b.pt", "5"]]}, "more": False},
    "an examination outside": {"t": "examined", "name": "../0", "piece": "", "more": False, "problem": ""},
    "an examination that is a list": {"t": "examined", "name": "0001", "piece": [], "more": False, "problem": ""},
    "a field too many": {"t": "beat", "more": 1},
}


def loses_its_channel(led: Led) -> None:
    led.until(lambda: led.hub.connected() == ["lab3"])
    led.turns(3)
    (reported,) = [line for line in led.log("supervisor.log").splitlines() if "lab2" in line]
    assert "The connection of lab2 was closed: " in reported
    assert " Remedy: " in reported
    assert len(reported) < 500
    assert not [line for line in led.log().splitlines() if line.startswith(("lab3:", "swarmspeed:"))]
    led.still_led()


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_message_that_does_not_fit_ends_that_channel(led: Led, lie: dict[str, Any]) -> None:
    led.link.send(lie)
    loses_its_channel(led)


@pytest.mark.parametrize(
    "payload",
    [
        b"[" * 500_000,
        b'{"t":' * 100_000,
        b'{"t":"ready","pid":' + b"9" * 900_000 + b"}",
        b'{"t":"ready","pid":1e400}',
        b'{"t":"stop","reason":"\\ud800"}',
        b"\xff\xfe\x00",
        b"",
        b"null",
        b"[[],[],[]]",
    ],
    ids=["nesting", "mappings", "digits", "infinity", "surrogate", "binary", "nothing", "null", "a list"],
)
def test_a_payload_that_is_no_message_ends_that_channel(led: Led, payload: bytes) -> None:
    send(led, payload)
    loses_its_channel(led)


@pytest.mark.parametrize(
    "line",
    [
        f"{LAUNCH}dist_world_size={'9' * 60000}",
        f"{LAUNCH}nnodes=3, num_local_procs=1, node_rank={'9' * 60000}",
        f"{LAUNCH}['x'] exits with return code = {'9' * 60000}",
        f"pdsh@lab1: lab3: ssh exited with exit code {'9' * 60000}",
        f"step {'9' * 20000}/{'9' * 20000} loss: {'9' * 20000}",
        f"[rank{'9' * 60000}]: ValueError: x",
        f"Epoch 1/3: 5%|x| {'9' * 5000}/{'9' * 5000} [00:01<{'9' * 5000}]",
        "\x1b[" * 30000,
        "\r" * 60000,
        "\x00" * 60000,
    ],
    ids=["world", "node", "exit", "ssh", "step", "rank", "bar", "escapes", "redrawn", "zeros"],
)
def test_a_line_with_any_text_is_a_line(led: Led, line: str) -> None:
    # A rank may print this as well: the channel stays, and the leader lives.
    led.link.send(lines(line))
    led.link.send({"t": "steps", "lines": [[1, line]], "sign": True})
    led.turns(10)
    assert led.hub.connected() == ["lab2", "lab3"]
    led.still_led()


@pytest.mark.parametrize("transport", ["direct", "pdsh"])
def test_no_node_speaks_for_another_node(tmp_path: Path, transport: str) -> None:
    led = Led(tmp_path, transport)
    try:
        led.together()
        forged = "lab3: ValueError: forged"
        led.link.send({"t": "lines", "lines": [[None, forged], [1, forged]]})
        led.until(lambda: led.log().count("forged") == 2)
        assert led.log().splitlines() == [f"lab2: {forged}", f"lab2: rank 1: {forged}"]
        led.still_led()
    finally:
        led.close()


def test_pieces_of_a_listing_without_an_end_are_bounded(led: Led) -> None:
    piece = {"t": "listing", "found": {**FILES, "files": [["a/b", 1]] * 1000}, "more": True}
    for _number in range(100):
        led.link.send(piece)
        led.turn()
    led.turns()
    assert len(led.nodes._pieces.get("lab2", [])) < 32
    led.still_led()


def test_a_large_listing_of_an_honest_node_arrives_whole(led: Led) -> None:
    files = [[f"run/global_step{number}/mp_rank_00_model_states.pt", number] for number in range(40000)]
    for part in listing_messages({"files": files, "latest": {"run/latest": "x"}, "truncated": False}):
        led.link.send(part)
    led.until(lambda: "lab2" in led.nodes._listings)
    assert led.nodes._listings["lab2"] == {"files": files, "latest": {"run/latest": "x"}, "truncated": False}


def test_a_message_longer_than_any_is_refused(led: Led) -> None:
    wire = led.link._wire
    assert wire is not None and wire._sealer is not None
    wire.write(wire._sealer.seal(b"x" * (1 << 20) + b"x"))
    loses_its_channel(led)


def test_a_member_that_says_the_same_lie_for_ever_is_logged_seldom(led: Led) -> None:
    for _number in range(30):
        led.until(lambda: led.link.welcome)
        led.link.send({"t": "lines"})
        led.turns(4)
        led.clock.now += 1
    assert led.link.greeted > 20
    assert led.log("supervisor.log").count("\n") <= 1
    led.still_led()
