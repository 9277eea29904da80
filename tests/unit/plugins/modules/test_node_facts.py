# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue of node_facts, over an invented host with a real temporary folder, and that it returns what it documents."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.digests import keyed_digest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.system_io import NodeError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.vscode.install import apply
from ansible_collections.swarmspeed.cluster.plugins.modules import node_facts

from tests.displayed import displayed, returned
from tests.vsix import FOLDER, vsix

TOKEN = "SWMTKN-1-0iwku0ha2ettwxp3qgmdmdjdf7tx3fqn52ltpbp4irsqq2raj6-6f6neq7zsnph1xhmq67l8to4l"


class Engine:
    """A manager, whose swarm carries join tokens."""

    opened: str

    def __init__(self, path: str) -> None:
        Engine.opened = path

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        assert (method, body) == ("GET", None)
        if path == "/info":
            return {"ServerVersion": "20.10.24", "Swarm": {"LocalNodeState": "active", "ControlAvailable": True}}
        return {"ID": "c1", "JoinTokens": {"Worker": TOKEN, "Manager": TOKEN}} if path == "/swarm" else []


class NoEngine(Engine):
    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        raise EngineError("no answer")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Take GPU, fabric, packages and engine of this machine out of the picture."""
    monkeypatch.setattr(node_facts, "gather_gpu", lambda _io: {"present": False})
    monkeypatch.setattr(node_facts, "gather_fabric", lambda _io, _gpu: {"interfaces": []})
    monkeypatch.setattr(node_facts, "package_facts", dict.fromkeys)
    monkeypatch.setattr(node_facts, "SocketEngine", Engine)
    return monkeypatch


def run(capsys: pytest.CaptureFixture[str], **args: Any) -> dict[str, Any]:
    with patch_module_args(args), pytest.raises(SystemExit) as ended:
        node_facts.main()
    result = returned(capsys.readouterr().out)
    assert (ended.value.code == 0) is not result.get("failed", False)
    return result


@pytest.mark.parametrize("check", [False, True])
def test_everything_that_is_asked_for(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, check: bool
) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "key").write_text("hunter2")
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits/state.json").write_text('{"state": "running"}')
    apply(str(tmp_path / "vscode"), [str(vsix(tmp_path / "x.vsix"))], "", False)
    digest = hashlib.sha256(b"x").hexdigest()
    before = sorted(tmp_path.rglob("*"))
    result = run(
        capsys,
        packages=["rsync"],
        files=[{"path": str(tmp_path / "a"), "content": True}, {"path": str(tmp_path / "key")}],
        trees={str(tmp_path): {"a": digest, "key": digest, "none": digest}, "/none": {}},
        disks=[str(tmp_path)],
        groups=["no_such_group"],
        accounts=["root", "no_such_user"],
        sysctls=["no.such"],
        jobs=str(tmp_path),
        docker_socket="/run/other.sock",
        vscode=str(tmp_path / "vscode"),
        _ansible_check_mode=check,
    )
    assert result["changed"] is False and sorted(tmp_path.rglob("*")) == before
    facts = result["ansible_facts"]["swarmspeed"]
    assert facts["packages"] == {"rsync": None}
    assert facts["files"][str(tmp_path / "a")]["content"] == "x"
    assert "content" not in facts["files"][str(tmp_path / "key")]
    assert facts["trees"] == {str(tmp_path): ["key", "none"], "/none": []}
    assert facts["trees_missing"] == {str(tmp_path): ["none"], "/none": []}
    assert list(facts["disk"]) == [str(tmp_path)]
    assert facts["accounts"] == {"root": True, "no_such_user": False}
    assert (facts["groups"], facts["sysctls"]) == ({"no_such_group": None}, {"no.such": None})
    assert facts["jobs"] == {"digits": "running"}
    assert list(facts["vscode"].values()) == [{"folder": FOLDER, "intact": True}]
    assert (facts["docker"]["version"], Engine.opened) == ("20.10.24", "/run/other.sock")
    documented = from_yaml(node_facts.RETURN)["ansible_facts"]["contains"]["swarmspeed"]["contains"]
    assert set(facts) == set(documented) - {"clock", "host", "run"}  # the action adds them


def test_no_secret_and_no_join_token_is_in_the_result(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("hunter2")
    shown = json.dumps(run(capsys, files=[{"path": str(tmp_path / "key")}], trees={str(tmp_path): {"key": "x"}}))
    assert "SWMTKN" not in shown and "hunter2" not in shown
    assert '"cluster_id": "c1"' in shown  # the swarm that carries the tokens was read


def test_a_secret_file_is_digested_by_the_key_of_the_run(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = str(tmp_path / "env")
    (tmp_path / "env").write_text("PIN=4711\n")
    requested: dict[str, Any] = {"files": [{"path": path, "secret": True}]}

    def digest(**key: str) -> str:
        return str(run(capsys, **requested, **key)["ansible_facts"]["swarmspeed"]["files"][path]["sha256"])

    assert digest(digest_key="k" * 40) == keyed_digest(b"PIN=4711\n", "k" * 40)
    assert len({digest(), digest(), keyed_digest(b"PIN=4711\n", "")}) == 3, "without a key digests cannot be compared"


def test_a_proxys_password_is_nowhere_in_the_result(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], invocation_requested: dict[str, Any]
) -> None:
    """No process uses port 9 of this machine. Ansible can add a module's arguments to its result."""
    plain, secret = "http://127.0.0.1:9", "http://me:hunter2@127.0.0.1:9"
    result = run(capsys, proxies={"host_apt_proxy": secret, "host_pip_proxy": plain}, **invocation_requested)
    found = result["ansible_facts"]["swarmspeed"]["proxies"]
    assert (found["host_apt_proxy"]["given"], found["host_pip_proxy"]["given"]) == (True, False)
    assert found["host_apt_proxy"]["error"] and found["host_apt_proxy"]["address"] == "127.0.0.1:9"
    assert "hunter2" not in displayed(json.dumps(result))
    assert result["invocation"]["module_args"]["proxies"]["host_pip_proxy"] == plain


def test_a_host_without_docker_is_no_failure(bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    bare.setattr(node_facts, "SocketEngine", NoEngine)
    result = run(capsys)
    facts = result["ansible_facts"]["swarmspeed"]
    assert (result["changed"], facts["docker"]["running"], facts["docker"]["error"]) == (False, False, "no answer")
    assert Engine.opened == "/var/run/docker.sock"
    for name in ("disk", "packages", "files", "trees", "groups", "accounts", "sysctls", "jobs"):
        assert facts[name] == {}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            {"trees": {"/srv/x": ["a"]}},
            "trees: /srv/x must have a mapping of relative path to SHA-256, not ['a'].",
        ),
        (
            {"files": [{"path": "/etc/hosts", "block": "a"}, {"path": "/etc/hosts", "block": "b"}]},
            "files: /etc/hosts is asked for twice, in different ways. Ask once.",
        ),
        (
            {"files": [{"path": "/etc/hosts"}, {"path": "/etc/hosts", "content": True}]},
            "files: /etc/hosts is asked for twice, in different ways. Ask once.",
        ),
        (
            {"files": [{"path": "/etc/env", "content": True, "secret": True}]},
            "files: /etc/env holds a secret, so neither its text nor a block of it is returned. Remove content and "
            "block.",
        ),
        ({"files": [{"content": True}]}, "missing required arguments: path found in files"),
        ({"file": []}, "Unsupported parameters for (basic.py) module: file."),
    ],
)
def test_bad_options(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: dict[str, Any], message: str
) -> None:
    result = run(capsys, **args)
    assert result["failed"] is True and result["msg"].startswith(message)
    assert "ansible_facts" not in result


def test_a_file_asked_for_twice_in_one_way_is_fine(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = run(capsys, files=[{"path": "/none"}, {"path": "/none"}])["ansible_facts"]["swarmspeed"]
    assert list(facts["files"]) == ["/none"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            PermissionError(13, "Permission denied", "/etc/x"),
            "Cannot gather facts of this node: [Errno 13] Permission denied: '/etc/x'. "
            "May Ansible's account read it (become: true)?",
        ),
        (
            NodeError("dpkg-query ended with status 2."),
            "Cannot gather facts of this node: dpkg-query ended with status 2.",
        ),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, message: str
) -> None:
    def fail(_names: list[str]) -> None:
        raise error

    bare.setattr(node_facts, "package_facts", fail)
    result = run(capsys)
    assert (result["failed"], result["msg"]) == (True, message)
    assert "exception" not in result and "ansible_facts" not in result
