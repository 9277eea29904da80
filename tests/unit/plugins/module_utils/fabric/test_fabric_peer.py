# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The ends of all pairs: their words on the wire, and two of them for real on the loopback, by the module itself."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.source_runner import command_for
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric import peer
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.answers import (
    MAGIC,
    Responder,
    ask,
    datagram,
    listen,
    mac,
    magic_filter,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.collective import connected, decode
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.peer import interface_in, read_environment
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.probe_io import (
    Gone,
    SystemPeerIO,
)
from ansible_collections.swarmspeed.cluster.plugins.modules.network_mesh_test import step

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets are root's")
ROUTES = """\
Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
eth1\t00000000\t010012AC\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000400A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth1\t000012AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""
"""As a container on an overlay (10.64.0.0/24) has it; addresses stand in the order of a little-endian machine."""


@pytest.mark.parametrize(
    "subnet, interface",
    [
        ("10.64.0.0/24", "eth0"),
        ("172.18.0.0/16", "eth1"),
        ("10.64.0.0/16", ""),
        ("10.9.0.0/24", ""),
        # one host's address, given by hand: no route of its own, and the default route does not count
        ("10.64.0.7/32", "eth0"),
        ("203.0.113.7/32", ""),
    ],
)
def test_the_interface_is_that_of_the_subnets_own_route(subnet: str, interface: str) -> None:
    assert interface_in(subnet, ROUTES) == interface


def test_the_highest_free_port_is_taken_and_any_where_none_is() -> None:
    with listen("127.0.0.1", [29680, 29689]) as first, listen("127.0.0.1", [29680, 29689]) as second:
        assert first.getsockname()[1] > second.getsockname()[1] >= 29680
    with listen("127.0.0.1", [29679, 29679]) as taken, listen("127.0.0.1", [29679, 29679]) as other:
        assert taken.getsockname()[1] == 29679
        assert other.getsockname()[1] != 29679


def test_who_knows_the_token_is_answered() -> None:
    responder = Responder("gpu2", "secret", "127.0.0.1", [29670, 29678])
    found = ask("127.0.0.1", responder.port, "gpu2", "secret", 5.0)
    assert 0 < found["ms"] < 5000
    assert abs(found["offset"]) < 1.0


@pytest.mark.parametrize("node, token", [("gpu2", "another"), ("gpu3", "secret")])
def test_who_does_not_know_it_or_is_somebody_else_is_found_out(node: str, token: str) -> None:
    responder = Responder("gpu2", "secret", "127.0.0.1", [29670, 29678])
    with pytest.raises(ConnectionError, match=f"something else than {node} answers at 127.0.0.1 port {responder.port}"):
        ask("127.0.0.1", responder.port, node, token, 5.0)


@pytest.mark.parametrize("line", [b"\n", b"GET / HTTP/1.1\n", b"[1]\n", b'{"nonce": 1, "mac": "x"}\n', b"{" * 5000])
def test_odd_questions_get_no_answer_and_do_no_harm(line: bytes) -> None:
    responder = Responder("gpu2", "secret", "127.0.0.1", [29670, 29678])
    with socket.create_connection(("127.0.0.1", responder.port), timeout=5) as connection:
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        try:
            reported = connection.recv(100)
        except ConnectionResetError:  # closed with something left to read
            reported = b""
    assert reported == b""
    assert ask("127.0.0.1", responder.port, "gpu2", "secret", 5.0)["ms"] > 0


def test_the_token_itself_is_in_no_datagram_and_vxlan_drops_them() -> None:
    sent = datagram("secret", "gpu1", "gpu2", 4789)
    assert b"secret" not in sent
    assert not sent[0] & 0x08  # RFC 7348, section 5: without the flag I there is no VXLAN packet
    assert sent[8:16] == MAGIC
    assert mac("secret", "udp", "gpu1", "gpu2", "4789") in sent.decode()
    assert sent != datagram("secret", "gpu2", "gpu1", 4789)


def test_the_kernels_filter_has_the_form_of_the_manual() -> None:
    assert len(magic_filter()) == 5 * 8


@pytest.mark.parametrize(
    "text, found",
    [
        ("A=1\nB=x=y\n", {"A": "1", "B": "x=y"}),
        ("# no\n\nGLOO_SOCKET_IFNAME=eth0", {"GLOO_SOCKET_IFNAME": "eth0"}),
        ("", {}),
    ],
)
def test_the_environment_of_ranks_is_read(text: str, found: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "env").write_text(text, encoding="utf-8")
    assert read_environment(str(tmp_path / "env")) == found
    assert read_environment(str(tmp_path / "none")) == read_environment("") == {}


TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0400400A:7337 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 0400400A:7337 0500400A:9C40 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0 20 4 30 10 -1
   2: 0400400A:A001 0500400A:B001 01 00000000:00000000 00:00000000 00000000     0        0 13 1 0 20 4 30 10 -1
   3: 020012AC:A002 030012AC:0016 01 00000000:00000000 00:00000000 00000000     0        0 99 1 0 20 4 30 10 -1
"""
"""Made up after proc(5): a listening socket, one to the store (port 29495), one of Gloo's, one of somebody else's."""


def test_only_ones_own_sockets_to_other_ranks_count() -> None:
    assert decode("0400400A:7337") == ("10.64.0.4", 29495)
    assert connected([TCP, "header only\n"], {"11", "12", "13"}, 29495) == ["10.64.0.4"]
    assert connected([TCP], {"11", "12"}, 29495) == []


# --- for real, on this host -------------------------------------------------------------------------------------------


def params(node: str, run: str, **change: Any) -> dict[str, Any]:
    return {
        "step": "start",
        "run": run,
        "token": "secret",
        "node": node,
        "hosts": ["one", "two"],
        "container": None,
        "wrapper": [],
        "python": sys.executable,
        "subnet": "127.0.0.0/8",
        "addresses": {"one": "127.0.0.1", "two": "127.0.0.1"},
        "names": {"one": "localhost", "two": "localhost"},
        "ports": [29640, 29669],
        "ssh": False,
        "backend": None,
        "env_file": "",
        "outer": None,
        "peers": {},
        "life": 60,
        **change,
    }


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[dict[str, SystemPeerIO]]:
    """Two nodes on one host."""
    made = {name: SystemPeerIO(f"run{name}", str(tmp_path / "run")) for name in ("one", "two")}
    yield made
    for system in made.values():
        for end in ("inner", "outer"):
            try:
                system.send(end, {"do": "end"})
            except (Gone, OSError):
                continue


def both(ends: dict[str, SystemPeerIO], **change: Any) -> dict[str, dict[str, Any]]:
    return {name: step(params(name, f"run{name}", **change), system, sys.executable) for name, system in ends.items()}


def gone(folder: Path) -> bool:
    until = time.monotonic() + 10
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return not folder.exists()


def test_two_nodes_try_one_another_and_leave_nothing(ends: dict[str, SystemPeerIO], tmp_path: Path) -> None:
    outer = {"subnet": "127.0.0.0/8", "tcp": {"one": [1], "two": [1]}, "udp": [29999]}
    started = both(ends, outer=outer)
    assert all(not answer["trouble"] for answer in started.values()), started
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    assert "secret" not in Path(f"/proc/{os.getpid()}/cmdline").read_text(encoding="utf-8")
    peers = {name: answer["ready"] for name, answer in started.items()}
    both(ends, step="pairs", peers=peers, outer=outer)
    paired = both(ends, step="paired", outer=outer)
    assert all(answer["passable"] for answer in paired.values()), paired
    ended = both(ends, step="end", outer=outer)
    for name, other in (("one", "two"), ("two", "one")):
        found = {(one["end"], one["check"]): one for one in ended[name]["pairs"]}
        assert {one["to"] for one in found.values()} == {other}
        assert found["inner", "tcp"]["ok"] and found["inner", "name"]["ok"]
        assert abs(found["inner", "clock"]["value"]) < 1
        # No process listens on port 1.
        assert found["outer", "tcp"]["said"] == "127.0.0.1 port 1: Connection refused"
        if os.geteuid() == 0:
            assert ended[name]["seen"] == {other: [29999]}
        else:
            assert peers[name]["outer"]["deaf"] == "Operation not permitted"
    assert gone(tmp_path / "run")


def test_a_wrong_address_is_no_way_to_the_other(ends: dict[str, SystemPeerIO]) -> None:
    started = both(ends)
    peers = {name: answer["ready"] for name, answer in started.items()}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        peers["two"] = {"inner": {**peers["two"]["inner"], "port": silent.getsockname()[1], "address": "127.0.0.1"}}
        silent.listen()
        both(ends, step="pairs", peers=peers)
        paired = both(ends, step="paired")
    assert not paired["one"]["passable"]
    (failed,) = [one for one in paired["one"]["pairs"] if not one["ok"]]
    assert (failed["check"], failed["said"]) == ("tcp", f"127.0.0.1 port {peers['two']['inner']['port']}: no answer")
    assert paired["two"]["passable"]


def test_an_end_without_the_network_says_what_it_has(ends: dict[str, SystemPeerIO]) -> None:
    answer = step(params("one", "runone", subnet="203.0.113.0/24"), ends["one"], sys.executable)
    assert answer["trouble"]["text"].startswith("it has no address in 203.0.113.0/24; its own: ")
    assert answer["trouble"]["remedy"] == "correct cluster_underlay_subnet or cluster_address"
    assert answer["ready"] == {}


def test_a_python_that_is_not_there_is_an_answer(ends: dict[str, SystemPeerIO]) -> None:
    answer = step(params("one", "runone", python="no-such-python"), ends["one"], sys.executable)
    assert answer["changed"] is False
    assert answer["trouble"]["text"].startswith("what tries the network on the host gave up (")
    assert "no-such-python" in answer["trouble"]["text"] or "not found" in answer["trouble"]["text"]
    assert answer["trouble"]["remedy"] == "see whether no-such-python runs there"


def test_an_end_goes_when_its_time_is_over(ends: dict[str, SystemPeerIO], tmp_path: Path) -> None:
    step(params("one", "runone", life=1), ends["one"], sys.executable)
    assert gone(tmp_path / "run" / "runone")
    late = step(params("one", "runone", step="end"), SystemPeerIO("runone", str(tmp_path / "run")), sys.executable)
    assert "it ended earlier: its time limit was reached" in late["trouble"]["text"]


def test_a_collective_without_torch_reports_it(ends: dict[str, SystemPeerIO], tmp_path: Path) -> None:
    """A Python without torch stands in for an image without: -S leaves its packages out."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    started = both(ends, backend="gloo", python=str(bare))
    peers = {name: answer["ready"] for name, answer in started.items()}
    assert all(peers[name]["inner"]["store_port"] for name in peers), started
    both(ends, step="pairs", peers=peers, backend="gloo")
    both(ends, step="collective", peers=peers, backend="gloo")
    ended = both(ends, step="end", peers=peers, backend="gloo")
    assert ended["one"]["collective"]["said"] == "No module named 'torch'"


def test_a_container_that_is_not_there_is_reported_as_such() -> None:
    class NoContainer:
        def start(self, *_words: Any) -> None:
            pass

        def send(self, *_words: Any) -> None:
            pass

        def wait(self, *_words: Any) -> dict[str, Any]:
            raise Gone("Error response from daemon: No such container: ai-one")

    answer = step(params("one", "run", container="ai-one"), NoContainer(), sys.executable)
    assert answer["trouble"] == {
        "text": "its container ai-one does not run",
        "remedy": "ansible-playbook site.yml --tags training_container",
    }


def test_the_command_line_holds_the_program_that_reads_and_nothing_else() -> None:
    words = command_for("ai-one", ["sh", "/entry", "run"], "python3")
    assert words[:9] == ["docker", "exec", "-i", "ai-one", "sh", "/entry", "run", "python3", "-B"]
    assert len(words) == 11 and "stdin" in words[10]


def test_what_is_said_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    peer.say("ready", port=1)
    line = capsys.readouterr().out.strip()
    assert json.loads(line[len(peer.MARK) :]) == {"kind": "ready", "port": 1}
