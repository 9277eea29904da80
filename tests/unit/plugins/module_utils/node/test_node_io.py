# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reading a node: real files in a temporary folder, invented programs and engines."""

from __future__ import annotations

import grp
import hashlib
import json
import os
import pwd
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common import digests
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.digests import keyed_digest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.private import host_jobs_dir
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node import system_io as node_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.content import content_of_image

TOKEN = "SWMTKN-1-0iwku0ha2ettwxp3qgmdmdjdf7tx3fqn52ltpbp4irsqq2raj6-6f6neq7zsnph1xhmq67l8to4l"
ABSENT = {"exists": False, "sha256": None, "mode": None, "owner": None, "group": None}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make(path: Path, text: str, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_read_text(tmp_path: Path) -> None:
    assert node_io.read_text(str(make(tmp_path / "a", "ü\n"))) == "ü\n"
    assert node_io.read_text(str(tmp_path / "none")) == ""
    assert node_io.read_text(str(tmp_path)) == ""
    (tmp_path / "latin").write_bytes(b"\xfcx")
    assert node_io.read_text(str(tmp_path / "latin")) == "\ufffdx"


def test_system_facts() -> None:
    before = time.time()
    facts = node_io.system_facts()
    assert before <= facts.pop("time") <= time.time()
    assert facts["cpus"] >= 1 and facts["memory_bytes"] > 0 and facts["kernel"] and facts["hostname"]
    assert set(facts) == {
        *("distribution", "release", "codename", "kernel", "architecture", "python", "cpus"),
        *("memory_bytes", "hostname", "systemd"),
    }


def test_a_disk_is_that_of_the_nearest_parent(tmp_path: Path) -> None:
    missing = str(tmp_path / "not" / "yet")
    found = node_io.disk_facts([str(tmp_path), missing, "/"])
    assert list(found) == [str(tmp_path), missing, "/"]
    assert found[missing]["total_bytes"] == found[str(tmp_path)]["total_bytes"] > 0
    assert all(0 <= disk["free_bytes"] <= disk["total_bytes"] for disk in found.values())
    assert node_io.disk_facts([]) == {}


def dpkg(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put an invented dpkg-query first in PATH, which notes its arguments."""
    make(folder / "dpkg-query", f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/arguments\n{script}\n', 0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # dpkg-query ends with 1 when it does not know one of the names, and lists the others all the same.
    dpkg(tmp_path, monkeypatch, "printf 'rsync\\tii \\t3.2\\n'; echo 'no packages found matching zz' >&2; exit 1")
    assert node_io.package_facts(["rsync", "zz"]) == {"rsync": "3.2", "zz": None}
    assert (tmp_path / "arguments").read_text().split("\n")[-3:] == ["rsync", "zz", ""]
    assert node_io.package_facts(["rsync=3.*", "zz:amd64=1"]) == {"rsync=3.*": "3.2", "zz:amd64=1": None}
    assert (tmp_path / "arguments").read_text().split("\n")[-3:] == ["rsync", "zz:amd64", ""]


def test_no_package_is_asked_for_in_vain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dpkg(tmp_path, monkeypatch, "exit 0")
    assert node_io.package_facts([]) == {}
    assert not (tmp_path / "arguments").exists()
    monkeypatch.setattr(node_io, "find_program", lambda _name: None)
    assert node_io.package_facts(["rsync"]) == {"rsync": None}
    assert not (tmp_path / "arguments").exists()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "echo 'error: parsing file /var/lib/dpkg/status' >&2; exit 2",
            "dpkg-query ended with status 2 and printed: error: parsing file /var/lib/dpkg/status. Run it on this "
            "host.",
        ),
        (
            "exec sleep 10",
            "dpkg-query ended with status 124 and printed: no answer within 0.2 seconds. Run it on this host.",
        ),
    ],
)
def test_a_package_database_that_cannot_be_read_is_no_list_of_missing_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    dpkg(tmp_path, monkeypatch, script)
    monkeypatch.setattr(node_io, "COMMAND_TIMEOUT", 0.2)
    with pytest.raises(node_io.NodeError) as caught:
        node_io.package_facts(["rsync"])
    assert str(caught.value) == message


@pytest.mark.parametrize("content", [False, True])
def test_a_file(tmp_path: Path, content: bool) -> None:
    path = make(tmp_path / "f", "hallo ü\n", 0o640)
    expected: dict[str, Any] = {
        "exists": True,
        "sha256": sha("hallo ü\n"),
        "mode": "0640",
        "owner": os.getuid(),
        "group": path.stat().st_gid,
    }
    if content:
        expected.update(content="hallo ü\n")
    assert node_io.file_facts(str(path), content=content, block=None) == expected


@pytest.mark.parametrize(
    ("text", "marked"),
    [("# Kept by us (x)\na\n", True), ("a\n# Kept by us\n", False), ("", False), ("Kept by us", True)],
)
def test_a_mark_is_searched_for_in_the_first_line_only(tmp_path: Path, text: str, marked: bool) -> None:
    path = str(make(tmp_path / "pip.conf", text))
    assert node_io.file_facts(path, content=False, block=None, mark="Kept by us")["marked"] is marked
    assert "marked" not in node_io.file_facts(path, content=False, block=None)


def test_the_text_of_a_file_is_returned_only_when_asked_for(tmp_path: Path) -> None:
    path = make(tmp_path / "id_ed25519", "hunter2\n# BEGIN b\nhunter2\n# END b\n", 0o600)
    for block in (None, "b"):
        facts = node_io.file_facts(str(path), content=False, block=block)
        assert "hunter2" not in json.dumps(facts) and facts["mode"] == "0600"


def test_of_a_secret_only_who_has_the_key_can_tell_the_digest(tmp_path: Path) -> None:
    path = make(tmp_path / "env", "PIN=4711\n", 0o600)
    facts = node_io.file_facts(str(path), content=True, block=None, key="k")
    assert facts["keyed"] is True and facts["sha256"] == keyed_digest(b"PIN=4711\n", "k") != sha("PIN=4711\n")
    assert "content" not in facts and facts["mode"] == "0600"
    assert node_io.file_facts(str(tmp_path), content=False, block=None, key="k")["sha256"] is None
    assert node_io.file_facts(str(tmp_path / "none"), content=False, block=None, key="k") == ABSENT


def test_a_directory_a_link_and_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    facts = node_io.file_facts(str(folder), content=True, block="b")
    assert facts == {"exists": True, "sha256": None, "mode": "0700", "owner": os.getuid(), "group": os.getgid()}
    assert node_io.file_facts(str(tmp_path / "link"), content=True, block=None) == facts
    below_a_file = make(tmp_path / "f", "") / "x"
    for path in (tmp_path / "none", tmp_path / "dangling", below_a_file):
        assert node_io.file_facts(str(path), content=True, block=None) == ABSENT


def test_the_sticky_bit_is_part_of_the_mode(tmp_path: Path) -> None:
    path = make(tmp_path / "f", "")
    path.chmod(0o4711)
    assert node_io.file_facts(str(path), content=False, block=None)["mode"] == "4711"


def test_a_block(tmp_path: Path) -> None:
    path = str(make(tmp_path / "hosts", "127.0.0.1 mine\n# BEGIN s x\n10.0.0.1 lab1\n# END s x\nmine too\n"))
    facts = node_io.file_facts(path, content=True, block="s x")
    assert (facts["content"], facts["sha256"]) == ("10.0.0.1 lab1\n", sha("10.0.0.1 lab1\n"))
    assert "mine" not in facts["content"]
    assert node_io.file_facts(path, content=True, block="s y") == ABSENT


def test_a_file_that_may_not_be_read_is_not_taken_for_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(_path: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied", "/etc/x")

    monkeypatch.setattr(Path, "stat", forbid)
    with pytest.raises(PermissionError):
        node_io.file_facts("/etc/x", content=False, block=None)


def test_tree_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "CHUNK", 3)  # so that a file takes several reads
    make(tmp_path / "a", "a" * 10)
    make(tmp_path / "sub/b", "")
    make(tmp_path / "mine", "x")
    found = node_io.tree_digests(str(tmp_path), ["a", "sub/b", "sub", "none"])
    assert found == {"a": sha("a" * 10), "sub/b": sha(""), "sub": None, "none": None}
    assert node_io.tree_digests(str(tmp_path / "none"), ["a"]) == {"a": None}


def test_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = grp.struct_group(("docker", "x", 999, ["zoe", "amy"]))

    def lookup(name: str) -> grp.struct_group:
        if name != "docker":
            raise KeyError(name)
        return entry

    monkeypatch.setattr(grp, "getgrnam", lookup)
    assert node_io.group_facts(["docker", "none"]) == {"docker": ["amy", "zoe"], "none": None}


def test_accounts_are_those_that_the_host_knows_from_whatever_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the C library, so by /etc/nsswitch.conf: an account of a directory service is in no file of the host."""
    known = pwd.getpwuid(0)

    def lookup(name: str) -> pwd.struct_passwd:
        if name == "ldap-ada":
            return pwd.struct_passwd((name, *known[1:]))
        if "\0" in name:
            raise ValueError("embedded null byte")
        raise KeyError(name)

    monkeypatch.setattr(pwd, "getpwnam", lookup)
    assert node_io.account_facts(["ldap-ada", "none", "a\0b"]) == {"ldap-ada": True, "none": False, "a\0b": False}


def test_sysctls_are_one_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n", "/proc/sys/vm/swappiness": "60\n"}
    monkeypatch.setattr(node_io, "read_text", lambda path: texts.get(path, ""))
    assert node_io.sysctl_facts(["net.ipv4.tcp_rmem", "vm.swappiness", "vm.none"]) == {
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "vm.swappiness": "60",
        "vm.none": None,
    }


def test_jobs(tmp_path: Path) -> None:
    make(tmp_path / "digits/state.json", '{"state": "running", "tail": ["hunter2"]}')
    for name, text in {"cut": '{"sta', "list": "[]", "other": "{}"}.items():
        make(tmp_path / name / "state.json", text)
    make(tmp_path / "new/spec.json", "{}")
    make(tmp_path / "state.json", '{"state": "running"}')
    assert node_io.job_facts(str(tmp_path), "k")["jobs"] == {
        "cut": "unreadable",
        "digits": "running",
        "list": "unreadable",
        "other": "unreadable",
    }
    nothing: dict[str, Any] = {"jobs": {}, "jobs_succeeded": {}}
    assert node_io.job_facts(str(tmp_path / "none"), "k") == node_io.job_facts(None, "k") == nothing


def test_of_a_job_that_succeeded_it_is_returned_when_and_a_digest_that_only_the_key_makes(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    done = {"state": "succeeded", "spec_hash": "5e", "finished_at": "2026-11-24T03:51:55Z"}
    others = {"ended": {**done, "state": "failed"}, "odd": {**done, "spec_hash": 5}, "early": {"state": "succeeded"}}
    for name, state in {"digits": done, **others}.items():
        make(jobs / name / "state.json", json.dumps(state))
    found = node_io.job_facts(str(jobs), "k")["jobs_succeeded"]
    assert found == {"digits": {"spec": keyed_digest(b"5e", "k"), "finished_at": "2026-11-24T03:51:55Z"}}
    assert node_io.job_facts(str(jobs), "other")["jobs_succeeded"]["digits"]["spec"] != found["digits"]["spec"]
    # The host's word goes before a container's.
    make(Path(host_jobs_dir(str(jobs))) / "digits/state.json", json.dumps({**done, "state": "running"}))
    assert node_io.job_facts(str(jobs), "k")["jobs_succeeded"] == {}


INFO: dict[str, Any] = {
    "ServerVersion": "20.10.24",
    "DockerRootDir": "/data/docker",
    "Runtimes": {"runc": {}, "nvidia": {}},
    "Swarm": {"LocalNodeState": "active", "NodeID": "n1", "NodeAddr": "10.0.0.1", "ControlAvailable": True},
}
SWARM = {
    "ID": "c1",
    "Spec": {"Labels": {"swarmspeed.cluster": "lab"}},
    "JoinTokens": {"Worker": TOKEN, "Manager": TOKEN},
}


ATTACHED = {
    "Spec": {"NetworkAttachmentSpec": {"ContainerID": "ab12"}, "Runtime": "attachment"},
    "NodeID": "n1",
    "Status": {"State": "running"},
    "DesiredState": "running",
    "NetworksAttachments": [{"Network": {"Spec": {"Name": "lab"}}, "Addresses": ["10.64.0.4/24"]}],
}
"""Shortened from what an engine 20.10 said."""


class FakeEngine:
    """Returns what it is given; records every call; refuses to change anything."""

    def __init__(self, **answers: Any) -> None:
        self.calls: list[str] = []
        self.answers: dict[str, Any] = {
            "/info": INFO,
            "/networks": [{"Name": "lab", "Id": "net1"}],
            "/containers/json?all=1": [{"Id": "c1", "Names": ["/lab-lab1"]}],
            "/images/json": [{"Id": "sha256:1", "RepoTags": ["a:1"], "Labels": {"swarmspeed.cluster": "lab"}}],
            "/swarm": SWARM,
            "/nodes": [{"ID": "n1", "Status": {"State": "ready"}}],
            f"/tasks?filters={node_io.ATTACHMENTS}": [ATTACHED],
            **{f"/{name}": answer for name, answer in answers.items()},
        }

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        assert (method, body) == ("GET", None), "node_facts only reads"
        self.calls.append(path)
        answer = self.answers[path]
        if isinstance(answer, EngineError):
            raise answer
        return answer


def test_docker_of_a_manager() -> None:
    engine = FakeEngine()
    facts = node_io.docker_facts(engine)
    assert sorted(engine.calls) == sorted(engine.answers)  # each once
    assert (facts["running"], facts["version"], facts["root"], facts["error"]) == (
        True,
        "20.10.24",
        "/data/docker",
        None,
    )
    assert facts["runtimes"] == ["nvidia", "runc"]
    assert (list(facts["networks"]), list(facts["containers"]), facts["images"]) == (
        ["lab"],
        ["lab-lab1"],
        {"a:1": "sha256:1"},
    )
    assert facts["image_clusters"] == {"a:1": "lab"}
    assert (facts["swarm"]["cluster_id"], facts["swarm"]["nodes"][0]["id"]) == ("c1", "n1")
    assert facts["swarm"]["attached"] == [{"container": "ab12", "node": "n1", "networks": ["lab"]}]


def test_the_content_of_images_is_read_where_it_is_asked_for() -> None:
    image = {"Os": "linux", "Architecture": "amd64"}
    engine = FakeEngine(**{"images/a:1/json": image})
    assert node_io.docker_facts(engine, ["b"])["image_contents"] == {}
    assert node_io.docker_facts(engine, ["a"])["image_contents"] == {"a:1": content_of_image(image)}


def test_no_join_token_gets_into_the_facts() -> None:
    assert TOKEN in json.dumps(FakeEngine().answers)
    assert "SWMTKN" not in json.dumps(node_io.docker_facts(FakeEngine()))


def test_a_worker_is_not_asked_what_only_managers_know() -> None:
    engine = FakeEngine(info={**INFO, "Swarm": {"LocalNodeState": "active", "NodeID": "n2"}})
    facts = node_io.docker_facts(engine)
    assert not {"/swarm", "/nodes"} & set(engine.calls)
    assert (facts["swarm"]["state"], facts["swarm"]["manager"], facts["swarm"]["cluster_id"]) == ("active", False, None)


NO_LEADER = "rpc error: code = Unknown desc = The swarm does not have a leader."


@pytest.mark.parametrize("path", ["swarm", "nodes"])
def test_a_manager_without_quorum_keeps_what_was_read(path: str) -> None:
    facts = node_io.docker_facts(FakeEngine(**{path: EngineError(NO_LEADER, 503)}))
    assert (facts["running"], facts["error"], facts["version"]) == (True, NO_LEADER, "20.10.24")
    assert (facts["swarm"]["state"], facts["swarm"]["manager"], facts["swarm"]["nodes"]) == ("active", True, [])
    assert facts["containers"] and facts["images"] and facts["networks"]


def test_an_engine_that_does_not_answer_is_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_io, "find_program", lambda name: "/usr/sbin/dockerd" if name == "dockerd" else None)
    engine = FakeEngine(info=EngineError("no answer"))
    facts = node_io.docker_facts(engine)
    assert engine.calls == ["/info"]
    assert (facts["installed"], facts["running"], facts["error"]) == (True, False, "no answer")
    assert (facts["swarm"]["state"], facts["networks"], facts["containers"], facts["images"]) == (
        "inactive",
        {},
        {},
        {},
    )
    assert set(facts) == set(node_io.docker_facts(FakeEngine()))  # the roles find the same keys
    monkeypatch.setattr(node_io, "find_program", lambda _name: None)
    assert node_io.docker_facts(engine)["installed"] is False
