"""What tests learn of nodes' engines: tunnels, against an ssh that stands in for OpenSSH, and the API's lists."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import engines
from tests.engines import EngineError, Engines, NoEngine, SwarmNode

# Made up: forwards to nothing, but answers itself as an engine would. Files beside it say what is wrong with the node.
SSH = r"""
import http.server, json, pathlib, socketserver, sys

here = pathlib.Path(__file__).parent
with (here / "started").open("a") as log:
    print(sys.argv[-1], file=log)
if (here / "unreachable").exists():
    sys.exit("ssh: connect to host: No route to host")
path, dummy, remote = sys.argv[sys.argv.index("-L") + 1].partition(":")
assert remote == "/run/docker.sock" and "-N" in sys.argv


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if (here / "no-engine").exists():
            return
        version = (here / "version").read_text()
        answers = {
            "/version": {"ApiVersion": version},
            f"/v{version}/info": {"Swarm": {"LocalNodeState": "active"}},
        }
        body = json.dumps(answers.get(self.path, {"message": "No such container"})).encode()
        self.send_response(200 if self.path in answers else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "node"


socketserver.ThreadingUnixStreamServer(path, Answer).serve_forever()
"""


class Node:
    """The node that the stand-in leads to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def started(self) -> list[str]:
        """The nodes for which ssh was started, in turn."""
        path = self.folder / "started"
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    def write(self, name: str, text: str = "") -> None:
        (self.folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    program = tmp_path / "ssh"
    program.write_text(f"#!{sys.executable}\n{SSH}", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(engines, "login", lambda name: ["-i", "key", f"root@{name}"])
    found = Node(tmp_path)
    found.write("version", "1.41")
    return found


@pytest.fixture
def requested(node: Node, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    with contextlib.closing(Engines()) as opened:
        monkeypatch.setattr(engines, "_engines", opened)
        yield opened


def pid(requested: Engines, name: str) -> int:
    process = requested._tunnels[name]._ssh
    assert process is not None
    return process.pid


def test_a_node_is_connected_to_when_it_is_first_asked_and_once(node: Node, requested: Engines) -> None:
    assert node.started == []
    assert [engines.swarm_state(name) for name in ("lab1", "lab1", "lab2", "lab1")] == ["active"] * 4
    assert node.started == ["root@lab1", "root@lab2"]


def test_the_version_is_that_of_the_engine_also_of_another_that_is_installed_later(
    node: Node, requested: Engines
) -> None:
    assert engines.engine("lab1").api.api_version == "1.41"
    node.write("version", "1.52")
    assert engines.engine("lab1").api.api_version == "1.52"
    assert engines.swarm_state("lab1") == "active"
    assert len(node.started) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_connection_that_ended_is_opened_again(node: Node, requested: Engines, number: signal.Signals) -> None:
    engines.engine("lab1")
    gone = pid(requested, "lab1")
    os.kill(gone, number)
    assert engines.swarm_state("lab1") == "active"  # whether or not the end was noticed before
    assert pid(requested, "lab1") != gone
    assert node.started == ["root@lab1"] * 2


def test_where_no_engine_answers_that_is_reported_and_asked_again_each_time(node: Node, requested: Engines) -> None:
    node.write("no-engine")
    for dummy in range(2):
        with pytest.raises(NoEngine, match=r"^lab1: no engine answers: "):
            engines.engine("lab1")
    (node.folder / "no-engine").unlink()
    assert engines.swarm_state("lab1") == "active"


def test_a_node_without_connection_is_named_with_what_ssh_says(node: Node, requested: Engines) -> None:
    node.write("unreachable")
    with pytest.raises(EngineError, match=r"^lab1: no connection: ssh: connect to host: No route to host$") as caught:
        engines.engine("lab1")
    assert not isinstance(caught.value, NoEngine)
    (node.folder / "unreachable").unlink()
    assert engines.swarm_state("lab1") == "active"


def test_at_the_end_no_ssh_and_no_socket_is_left(node: Node) -> None:
    opened = Engines()
    opened.client("lab1")
    running, folder = pid(opened, "lab1"), opened._folder
    os.kill(running, 0)
    assert folder and folder.is_dir()
    opened.close()
    opened.close()  # nothing to do
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(running, 0)


def test_a_container_does_not_run_where_no_engine_answers_and_is_unknown_without_connection(
    node: Node, requested: Engines
) -> None:
    node.write("no-engine")
    assert not engines.is_running("lab1", "swarmspeed-lab1")
    node.write("unreachable")
    requested.close()
    with pytest.raises(EngineError, match="no connection"):
        engines.is_running("lab1", "swarmspeed-lab1")


def test_a_container_or_an_image_that_is_not_there(node: Node, requested: Engines) -> None:
    assert engines.container_state("lab1", "swarmspeed-lab1") == ""
    assert not engines.has_image("lab1", "team:1")
    with pytest.raises(Exception, match="No such container"):
        engines.inspect("lab1", "container", "swarmspeed-lab1")


def test_states_are_by_the_containers_own_names() -> None:
    listed: list[dict[str, Any]] = [
        {"Names": ["/web/database", "/database"], "State": "running"},
        {"Names": ["/swarmspeed-lab1"], "State": "paused"},
        {"Names": None, "Id": "abc", "State": "removing"},
    ]
    assert engines.states(listed) == {"database": "running", "swarmspeed-lab1": "paused", "abc": "removing"}
    assert engines.states([]) == {}


def entry(**more: Any) -> dict[str, Any]:
    return {
        "ID": "abc",
        "Description": {"Hostname": "lab2"},
        "Status": {"State": "down"},
        "Spec": {"Availability": "drain", "Role": "worker"},
        **more,
    }


def test_nodes_of_a_swarm() -> None:
    worker = SwarmNode("abc", "lab2", "down", "drain", "worker", "")
    assert engines.swarm_node(entry()) == worker
    assert engines.swarm_node(entry(ManagerStatus=None)) == worker
    assert engines.swarm_node(entry(Description={})).host == ""
    manager = {"Reachability": "unreachable", "Addr": "192.0.2.1:2377"}
    assert engines.swarm_node(entry(ManagerStatus=manager)).manager == "unreachable"
    leader = {"Leader": True, "Reachability": "reachable"}
    assert engines.swarm_node(entry(ManagerStatus=leader)).manager == "leader"


def test_names_of_images() -> None:
    listed: list[dict[str, Any]] = [
        {"RepoTags": ["team:1", "team:2"]},
        {"RepoTags": ["<none>:<none>"]},
        {"RepoTags": None},
        {"RepoTags": []},
    ]
    assert engines.names(listed) == {"team:1", "team:2"}
