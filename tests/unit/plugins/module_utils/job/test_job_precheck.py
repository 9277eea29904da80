# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The checks of a node: each part on this machine, the whole as it runs on a node."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import (
    NOT_STARTED,
    TIMED_OUT,
    CommandResult,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.source_runner import command_for
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import probe
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.probe import (
    MARK,
    Parallel,
    check_file,
    check_path,
    check_port,
    check_space,
    last_lines,
    local_addresses,
    locked_memory,
    missing_module,
    resolve,
    shared_memory,
    try_ssh,
    versions,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.probe_io import (
    SystemProbeIO,
    image_content,
    read_answer,
    request_for,
)

FIB_TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.0.1.0/24 2 0 2
        |-- 10.0.1.0
           /24 link UNICAST
        |-- 10.0.1.5
           /32 host LOCAL
Local:
     |-- 10.0.1.5
        /32 host LOCAL
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 10.0.1.255
        /32 link BROADCAST
     |-- 172.18.0.3
        /32 host LOCAL
"""


def requested(**change: Any) -> dict[str, Any]:
    return {
        "names": {},
        "ssh": [],
        "ssh_config": "",
        "packages": ["pytest", "no-such-package-here"],
        "programs": ["sh", "no-such-program-here"],
        "modules": ["train", "json.tool", "no_such_package.here"],
        "chdir": "",
        "script": "",
        "data_paths": [],
        "checkpoints": "",
        "ds_config": "",
        "hostfile": "",
        "torch_extensions": "/nonexistent",
        "operators": [],
        "accelerator": "cpu",
        "master_port": 0,
        "smi": False,
        "remove_locks": False,
        "sees_all": True,
        "patience": 0,
        **change,
    }


def gather(**change: Any) -> dict[str, Any]:
    """The whole look, as a node runs it: another Python, both sources over standard input."""
    command = command_for(None, [], sys.executable)
    done = subprocess.run(command, input=request_for(requested(**change)).encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    answer = read_answer(done.stdout.decode())
    assert answer is not None
    return answer


def test_the_whole_look(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print()")
    (tmp_path / "cache" / "op").mkdir(parents=True)
    (tmp_path / "cache" / "op" / "lock").touch()
    os.utime(tmp_path / "cache" / "op" / "lock", (1, 1))
    answer = gather(
        chdir=str(tmp_path),
        script="train.py",
        ds_config="ds_config.json",
        hostfile="hostfile",
        data_paths=["train.py", "data", "/"],
        checkpoints="out/deep",
        torch_extensions=str(tmp_path / "cache"),
        remove_locks=True,
        names={"here": "localhost"},
    )
    assert answer["python"] == ".".join(map(str, sys.version_info[:3]))
    assert answer["versions"] == {"pytest": pytest.__version__, "no-such-package-here": None}
    assert answer["programs"] == {"sh": shutil.which("sh"), "no-such-program-here": None}
    assert answer["modules"] == {"train": "", "json.tool": "", "no_such_package.here": "no_such_package"}
    assert "127.0.0.1" in answer["addresses"]
    assert answer["shm"]["size"] > 0 and answer["shm"]["error"] == ""
    assert answer["chdir"] == "" and answer["script"]["error"] == ""
    assert answer["ds_config"] == {"path": f"{tmp_path}/ds_config.json", "sha256": "", "error": "is not there"}
    assert answer["hostfile"] == {"path": f"{tmp_path}/hostfile", "sha256": "", "error": "is not there"}
    assert answer["paths"] == {"train.py": "", "data": "is not there", "/": ""}
    assert answer["checkpoints"]["at"] == str(tmp_path) and answer["checkpoints"]["free"] > 0
    assert [(lock["path"], lock["state"]) for lock in answer["locks"]] == [(f"{tmp_path}/cache/op/lock", "removed")]
    assert answer["names"] == {"here": {"host": "localhost", "addresses": ["127.0.0.1"], "error": ""}}
    assert (answer["ssh"], answer["smi"], answer["port"]) == ({}, None, None)
    assert answer["operators"] == {"compile": [], "missing": []}


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("package.train", ""),
        ("package", "package.__main__"),
        ("package.inner", ""),  # it has a __main__
        ("package.gone", "package.gone"),
        ("package.train.more", "package.train.more"),
        ("loose.train", ""),  # a folder without __init__.py
        ("gone.train", "gone"),
        ("train", "train"),
    ],
)
def test_whether_a_module_can_be_run_is_found_without_importing_it(tmp_path: Path, name: str, missing: str) -> None:
    for file in ("package/__init__.py", "package/train.py", "package/inner/__init__.py", "package/inner/__main__.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("raise SystemExit('imported')", encoding="utf-8")
    (tmp_path / "loose").mkdir()
    (tmp_path / "loose" / "train.py").touch()
    before = list(sys.path)
    assert missing_module(name, [str(tmp_path)]) == missing
    assert sys.path == before


def test_what_lies_in_the_working_directory_is_not_taken_for_a_module(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken')")
    monkeypatch.chdir(tmp_path)
    assert gather()["python"]


MEETING = """#!/bin/sh
touch "{folder}/$$"
while [ "$(ls "{folder}" | wc -l)" -lt {count} ]; do sleep 0.05; done
{words}
"""
"""A program that goes on only when all of its kind run: one after another they would never end."""


def meeting(tmp_path: Path, monkeypatch: Any, name: str, count: int, words: str) -> None:
    (tmp_path / "met").mkdir()
    (tmp_path / name).write_text(MEETING.format(folder=tmp_path / "met", count=count, words=words))
    (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_nvidia_smi_is_asked_three_times_side_by_side(tmp_path: Path, monkeypatch: Any) -> None:
    meeting(tmp_path, monkeypatch, "nvidia-smi", 3, 'echo "$1"; echo words >&2; exit 9')
    answer = gather(smi=True)
    assert answer["smi"]["list"] == {"rc": 9, "out": "-L\n", "err": "words\n"}
    assert answer["smi"]["gpus"]["out"].startswith("--query-gpu=index,uuid,memory.used,memory.total,compute_mode")
    assert answer["smi"]["apps"]["out"].startswith("--query-compute-apps=gpu_uuid,pid,used_memory,process_name")


def test_ssh_to_many_nodes_is_side_by_side(tmp_path: Path, monkeypatch: Any) -> None:
    meeting(tmp_path, monkeypatch, "ssh", 12, 'echo "ssh: refused" >&2; exit 255')
    answer = gather(ssh=[f"gpu{number}" for number in range(12)], patience=60)
    assert answer["ssh"] == {f"gpu{number}": "ssh: refused" for number in range(12)}


def test_ssh_gets_a_configuration_and_no_shared_connection(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "ssh").write_text('#!/bin/sh\necho "$*" >&2\nexit 1\n')
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    options = "-o BatchMode=yes -o ConnectTimeout=8 -o ConnectionAttempts=1 -o ControlMaster=no -o ControlPath=none"
    assert try_ssh("gpu1", "/c", 10) == f"-n -F /c {options} -- gpu1 true"
    assert try_ssh("gpu1", "", 10) == f"-n {options} -- gpu1 true"
    (tmp_path / "ssh").write_text("#!/bin/sh\necho motd >&2\n")
    assert try_ssh("gpu1", "", 10) == ""
    (tmp_path / "ssh").write_text("#!/bin/sh\nexit 3\n")
    assert try_ssh("gpu1", "", 10) == "ssh ended with exit code 3"
    (tmp_path / "ssh").write_text("#!/bin/sh\nexec sleep 60\n")
    assert try_ssh("gpu1", "", 0.2) == "no answer within 0.2 s"
    monkeypatch.setenv("PATH", "/nonexistent")
    assert try_ssh("gpu1", "", 10) == "ssh: No such file or directory"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        (
            "Warning: Permanently added 'x' to the list\nPermission denied (publickey).\n",
            "Permission denied (publickey).",
        ),
        ("a\n\n b  c\nd\ne\n", "b c; d; e"),
        ("x" * 600, "x" * 500),
    ],
)
def test_the_last_words_of_a_command(text: str, words: str) -> None:
    assert last_lines(text) == words


def test_a_name_is_asked_for_until_it_is_there(monkeypatch: Any) -> None:
    answers: list[Any] = [socket.gaierror(-2, "Name or service not known"), [(0, 0, 0, "", ("10.0.1.5", 0))]]

    def getaddrinfo(*arguments: Any) -> Any:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    found = resolve("gpu1.example", time.monotonic() + 30)
    assert (found, answers) == ({"host": "gpu1.example", "addresses": ["10.0.1.5"], "error": ""}, [])
    answers = [socket.gaierror(-2, "Name or service not known")]
    found = resolve("gpu1.example", time.monotonic())
    assert found == {"host": "gpu1.example", "addresses": [], "error": "Name or service not known"}


def test_a_name_that_cannot_be_one_is_an_answer() -> None:
    assert resolve("a" * 70, time.monotonic())["addresses"] == []


def test_waiting_is_side_by_side_and_a_late_one_is_left_behind() -> None:
    waiting, all_of_them, never = Parallel(), threading.Barrier(20, timeout=60), threading.Event()
    for number in range(20):
        waiting.add("name", str(number), all_of_them.wait)
    waiting.wait(time.monotonic() + 60)
    assert {waiting.get("name", str(number), "late") for number in range(20)} == set(range(20))
    waiting.add("name", "late", never.wait)
    waiting.wait(time.monotonic() + 0.1)
    assert waiting.get("name", "late", "left") == "left"
    never.set()


def test_a_name_that_never_answers_does_not_hold_the_look(monkeypatch: Any) -> None:
    never = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments: never.wait() and [])
    answer = probe.probe(requested(names={"gpu1": "gpu1.example"}, patience=1))
    never.set()
    assert answer["names"] == {"gpu1": {"host": "gpu1.example", "addresses": [], "error": "no answer within 1 s"}}


def test_own_addresses() -> None:
    assert local_addresses(FIB_TRIE) == ["10.0.1.5", "127.0.0.1", "172.18.0.3"]
    assert local_addresses("") == []


def test_versions_are_read_without_an_import(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "torch-9.9.9+cu121.dist-info").mkdir()
    (tmp_path / "torch-9.9.9+cu121.dist-info" / "METADATA").write_text("Name: torch\nVersion: 9.9.9+cu121\n")
    (tmp_path / "torch.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert versions(["torch", "no-such-package-here"]) == {"torch": "9.9.9+cu121", "no-such-package-here": None}


def test_shared_memory(tmp_path: Path, monkeypatch: Any) -> None:
    assert shared_memory(str(tmp_path / "absent")) == {
        "size": 0,
        "free": 0,
        "error": "No such file or directory",
        "largest": [],
    }
    for name, size in (("nccl-1", 30_000), ("torch_2", 90_000), ("sem.x", 10), ("psm_3", 60_000)):
        (tmp_path / name).write_bytes(b"x" * size)
    seen = os.statvfs(tmp_path)
    full = os.statvfs_result([*seen[:2], 100, 40, 40, *seen[5:]])
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    found = shared_memory(str(tmp_path))
    assert (found["size"], found["free"]) == (100 * seen.f_frsize, 40 * seen.f_frsize)
    assert found["largest"] == ["torch_2", "psm_3", "nccl-1"]


@pytest.mark.parametrize(
    ("status", "uid_map", "exempt"),
    [
        ("CapEff:\t0000003fffffffff\n", "0 0 4294967295", True),
        ("CapEff:\t0000000000004000\n", "0 0 4294967295", True),
        ("CapEff:\t00000000a80425fb\n", "0 0 4294967295", False),  # Docker's default
        ("CapEff:\t0000003fffffffff\n", "0 100000 65536", False),
        ("", "", False),
    ],
)
def test_who_may_lock_memory_without_a_limit(status: str, uid_map: str, exempt: bool) -> None:
    assert locked_memory(status, uid_map)["exempt"] is exempt


def test_files_and_folders(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "a").write_text("text")
    digest = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
    assert check_file(f"{tmp_path}/a") == {"path": f"{tmp_path}/a", "sha256": digest, "error": ""}
    assert check_file(str(tmp_path))["error"] == "is not a file"
    assert check_file(f"{tmp_path}/a/b")["error"] == "is not there"
    assert check_path(f"{tmp_path}/b") == "is not there"
    assert check_path(str(tmp_path)) == ""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert check_path(str(tmp_path)) == "may not be read"
    monkeypatch.setattr(probe, "MOST_BYTES", 1)
    assert check_file(f"{tmp_path}/a")["error"] == "may not be read"
    assert check_space(f"{tmp_path}/c/d")["writable"] is False

    def broken(path: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "stat", broken)
    assert check_path(str(tmp_path)) == "cannot be read (Input/output error)"


def test_what_deepspeed_would_export_to_all_nodes_is_named_without_its_value(tmp_path: Path, monkeypatch: Any) -> None:
    """gdGPT brings such a file: NCCL_SOCKET_IFNAME=lo."""
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home, work):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (work / ".deepspeed_env").write_text("TOKEN=s3cret\nNCCL_SOCKET_IFNAME=lo\nNCCL_IB_HCA=mlx5_0\nblank\n\n")
    (home / ".deepspeed_env").write_text("PYTHONPATH=/x\n")
    (home / "mine").write_bytes(b"\xff\nGLOO_SOCKET_IFNAME=eth0")
    found = gather(chdir=str(work), ssh=["gpu2"], patience=0)["exports"]
    assert found == {f"{work}/.deepspeed_env": ["NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"]}
    assert gather(chdir=str(work))["exports"] == {}  # without ssh the runner starts nothing elsewhere
    monkeypatch.setenv("DS_ENV_FILE", "mine")
    assert gather(chdir=str(work), ssh=["gpu2"])["exports"] == {f"{home}/mine": ["GLOO_SOCKET_IFNAME"]}
    (work / "mine").mkdir()
    monkeypatch.setenv("DS_ENV_FILE", str(work / "mine"))
    assert gather(chdir=str(work), ssh=["gpu2"])["exports"] == {}


def test_a_free_port_and_one_that_is_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        other.listen()
        found = check_port(port)
        assert (found["port"], found["error"]) == (port, "Address already in use")
    assert check_port(port) == {"port": port, "error": "", "holder": ""}


def test_a_host_without_ipv6(monkeypatch: Any) -> None:
    made = socket.socket

    def without(family: int, kind: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return made(family, kind)

    with made() as other:
        other.bind(("0.0.0.0", 0))
        port = other.getsockname()[1]
        other.listen()
        monkeypatch.setattr(socket, "socket", without)
        assert check_port(port)["error"] == "Address already in use"
    assert check_port(port)["error"] == ""


class FakeEngine:
    """Answers by path; an exception is raised."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.paths: list[str] = []

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        self.paths.append(f"{method} {path}")
        found = self.answers[path.split("/")[1]]
        if isinstance(found, Exception):
            raise found
        return found


CONTAINER = {"Image": "sha256:12", "State": {"Running": True}, "Config": {"Image": "train:1"}}


def test_the_image_of_a_container() -> None:
    engine = FakeEngine(containers=CONTAINER, images={"RootFS": {"Layers": ["sha256:a", "sha256:b"]}})
    found = SystemProbeIO(engine).inspect("lab-lab1")
    assert found is not None
    assert (found["running"], found["reference"], found["id"]) == (True, "train:1", "sha256:12")
    assert found["content"] == image_content({"RootFS": {"Layers": ["sha256:a", "sha256:b"]}}) != ""
    assert engine.paths == ["GET /containers/lab-lab1/json", "GET /images/sha256:12/json"]


def test_an_image_removed_under_its_container_is_known_by_its_id() -> None:
    engine = FakeEngine(containers=CONTAINER, images=EngineError("no such image", 404))
    assert (SystemProbeIO(engine).inspect("c") or {})["content"] == "sha256:12"
    with pytest.raises(EngineError, match="broken"):
        SystemProbeIO(FakeEngine(containers=CONTAINER, images=EngineError("broken", 500))).inspect("c")


def test_a_container_that_is_not_there_or_paused() -> None:
    assert SystemProbeIO(FakeEngine(containers=EngineError("no such container", 404))).inspect("c") is None
    with pytest.raises(EngineError, match="no answer"):
        SystemProbeIO(FakeEngine(containers=EngineError("no answer"))).inspect("c")
    paused = {**CONTAINER, "State": {"Running": True, "Paused": True}}
    assert (SystemProbeIO(FakeEngine(containers=paused, images={})).inspect("c") or {})["running"] is False


def test_the_order_of_layers_counts_and_their_absence_is_no_content() -> None:
    assert image_content({"RootFS": {"Layers": ["a", "b"]}}) != image_content({"RootFS": {"Layers": ["b", "a"]}})
    assert image_content({}) == image_content({"RootFS": {"Layers": None}}) == ""


def test_running_a_command() -> None:
    system = SystemProbeIO(FakeEngine(), timeout=30)
    assert system.run(["cat"], "text") == CommandResult(0, "text", "")
    assert system.run(["no-such-program-here"], "") == CommandResult(
        NOT_STARTED, "", "no-such-program-here: No such file or directory"
    )
    assert SystemProbeIO(FakeEngine(), timeout=0.1).run(["sleep", "60"], "") == CommandResult(
        TIMED_OUT, "", "no answer within 0.1 seconds"
    )


def test_nothing_of_what_is_asked_shows_on_the_command_line() -> None:
    command = command_for("lab-lab1", ["sh", "/entry", "run"], "python3")
    assert command[:9] == ["docker", "exec", "-i", "lab-lab1", "sh", "/entry", "run", "python3", "-B"]
    assert command[9] == "-c" and len(command) == 11
    assert command_for(None, [], "/venv/bin/python")[:2] == ["/venv/bin/python", "-B"]
    sources = json.loads(request_for(requested()))["sources"]
    assert [name for name, dummy in sources] == [f"swarmspeed.job.{name}" for name in ("locks", "operators", "probe")]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (f'noise\n{MARK}{{"a": 1}}\nmore noise\n', {"a": 1}),
        (f'{MARK}{{"a": 1}}\n{MARK}{{"a": 2}}\n', {"a": 2}),
        (f"{MARK}[1]\n", None),
        (f"{MARK}{{\n", None),
        ("noise\n", None),
    ],
)
def test_the_answer_is_found_among_other_words(text: str, answer: Any) -> None:
    assert read_answer(text) == answer


def test_what_the_source_has_is_checked_in_the_code_of_the_run(tmp_path: Path) -> None:
    code = tmp_path / ".swarmspeed/code/abc"
    code.mkdir(parents=True)
    for folder, text in ((tmp_path, "later"), (code, "own")):
        (folder / "train.py").write_text(text)
    (code / "late.py").write_text("")
    (tmp_path / "theirs.py").write_text("")
    (tmp_path / "data").mkdir()
    wanted = {"chdir": str(tmp_path), "code": ".swarmspeed/code/abc", "data_paths": ["data"]}
    for script in ("train.py", f"{tmp_path}/train.py"):
        found = gather(script=script, modules=["late", "theirs", "none"], **wanted)
        assert found["script"]["sha256"] == hashlib.sha256(b"own").hexdigest()
        assert found["modules"] == {"late": "", "theirs": "", "none": "none"}
        assert found["paths"] == {"data": ""}
