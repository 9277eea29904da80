# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Locks of torch's extension cache and holders of ports, against real processes and a made-up /proc."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import locks as launch_locks
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.locks import (
    LOCK_AGE,
    LOCK_AGE_MOUNT,
    Process,
    View,
    extension_roots,
    judge,
    locks,
    mount_of,
    port_holder,
    processes,
)

from tests.effort import examples

MOUNTS = """\
overlay / overlay rw 0 0
proc /proc proc rw 0 0
/dev/sda1 /root/.cache ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb /mnt/with\\040space xfs rw 0 0
"""
NOW = 1_800_000_000.0


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with one lock, ten minutes old, as torch leaves it when its owner is killed."""
    folder = tmp_path / "py311_cpu" / "cpu_adam"
    folder.mkdir(parents=True)
    (folder / "main.cpp").write_text("int main() {}")
    make_lock(folder / "lock", 600)
    return tmp_path


def make_lock(path: Path, age: float) -> None:
    path.touch()
    os.utime(path, (time.time() - age, time.time() - age))


@pytest.fixture
def holder(cache: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has the lock open, as torch.utils.file_baton has while it compiles."""
    script = "import os, sys, time; os.open(sys.argv[1], 0); print(1, flush=True); time.sleep(600)"
    # Through a link of another name, so that the command line does not give it away.
    link = cache / "elsewhere"
    link.symlink_to(cache / "py311_cpu" / "cpu_adam" / "lock")
    process = subprocess.Popen([sys.executable, "-c", script, str(link)], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.read(1) == b"1"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_dead_lock_is_removed_and_nothing_else(cache: Path) -> None:
    lock = cache / "py311_cpu" / "cpu_adam" / "lock"
    (found,) = locks([cache], remove=True, sees_all=True)
    assert (found["path"], found["state"], found["holder"], found["error"]) == (str(lock), "removed", "", "")
    assert 600 <= found["age"] < 700
    assert sorted(path.name for path in lock.parent.iterdir()) == ["main.cpp"]
    assert locks([cache], remove=True, sees_all=True) == []


def test_without_consent_it_is_only_reported(cache: Path) -> None:
    assert [found["state"] for found in locks([cache], remove=False, sees_all=True)] == ["dead"]
    assert (cache / "py311_cpu" / "cpu_adam" / "lock").exists()


def test_a_lock_that_a_process_has_open_stays(cache: Path, holder: subprocess.Popen[bytes]) -> None:
    (found,) = locks([cache], remove=True, sees_all=True)
    assert found["state"] == "held"
    assert found["holder"].startswith(f"{holder.pid} (")
    assert (cache / "py311_cpu" / "cpu_adam" / "lock").exists()


def test_a_lock_beside_a_busy_compiler_stays(cache: Path) -> None:
    folder = cache / "py311_cpu" / "cpu_adam"
    process = subprocess.Popen(["sleep", "600"], cwd=folder)  # as ninja's working directory is
    try:
        # Popen returns before the kernel has put the new program's name and arguments in the old one's place.
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(b"sleep\0"):
            time.sleep(0.01)
        (found,) = locks([cache], remove=True, sees_all=True)
        assert (found["state"], found["holder"]) == ("held", f"{process.pid} (sleep 600)")
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("age", [0, LOCK_AGE - 20])
def test_a_young_lock_stays(cache: Path, age: float) -> None:
    make_lock(cache / "py311_cpu" / "cpu_adam" / "lock", age)
    assert [found["state"] for found in locks([cache], remove=True, sees_all=True)] == ["young"]
    assert (cache / "py311_cpu" / "cpu_adam" / "lock").exists()


def test_only_empty_files_in_the_folders_of_extensions_are_locks(tmp_path: Path) -> None:
    for path in ("lock", "a/b/c/lock", "full/lock", "folder/lock/x", "link/target"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        make_lock(tmp_path / path, 3600)
    (tmp_path / "full" / "lock").write_text("text")
    (tmp_path / "link" / "lock").symlink_to("target")
    make_lock(tmp_path / "full" / "unlock", 3600)
    assert locks([tmp_path, tmp_path / "absent"], remove=True, sees_all=True) == []
    (tmp_path / "own").mkdir()
    make_lock(tmp_path / "own" / "lock", 3600)
    assert [found["path"] for found in locks([tmp_path], remove=True, sees_all=True)] == [
        str(tmp_path / "own" / "lock")
    ]


def test_a_lock_taken_again_meanwhile_stays(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = cache / "py311_cpu" / "cpu_adam" / "lock"

    def judged(path: Path, made_at: float, view: View) -> tuple[str, str]:
        path.unlink()
        path.touch()
        return "dead", ""

    monkeypatch.setattr(launch_locks, "judge", judged)
    assert [found["state"] for found in locks([cache], remove=True, sees_all=True)] == ["held"]
    assert lock.exists()


def test_a_lock_let_go_meanwhile_is_gone(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_locks, "judge", lambda path, made_at, view: (path.unlink() or "dead", ""))
    assert [(found["state"], found["error"]) for found in locks([cache], remove=True, sees_all=True)] == [("gone", "")]


def test_a_lock_that_cannot_be_removed_says_why(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, missing_ok: bool = False) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", refused)
    (found,) = locks([cache], remove=True, sees_all=True)
    assert (found["state"], found["error"]) == ("dead", "Read-only file system")


def view(*running: Process, sees_all: bool = False) -> View:
    return View(list(running), MOUNTS, sees_all, NOW)


SHELL = Process("1", "sleep 9", ["sleep", "9", "/"], True)
HIDDEN = Process("7", "python3 other", [], False)


@pytest.mark.parametrize(
    ("folder", "age", "sees_all", "state"),
    [
        ("/opt/ext/op", 61, False, "dead"),
        ("/opt/ext/op", 59, False, "young"),
        ("/root/.cache/torch_extensions/op", 61, False, "young"),
        ("/root/.cache/torch_extensions/op", LOCK_AGE_MOUNT + 1, False, "dead"),
        ("/root/.cache/torch_extensions/op", 61, True, "dead"),
        ("/home/me/.cache/op", 86400, False, "shared"),
        ("/home/me/.cache/op", 86400, True, "shared"),
    ],
)
def test_where_a_holder_may_be_hidden_more_is_asked_for(folder: str, age: float, sees_all: bool, state: str) -> None:
    assert judge(Path(folder) / "lock", NOW - age, view(SHELL, sees_all=sees_all)) == (state, "")


def test_a_build_that_still_writes_counts_where_its_process_may_be_hidden(tmp_path: Path) -> None:
    (tmp_path / "main.o").touch()
    os.utime(tmp_path / "main.o", (NOW - 100, NOW - 100))
    make_lock(tmp_path / "lock", 0)
    os.utime(tmp_path / "lock", (NOW - 86400, NOW - 86400))
    mounted = View([], f"{MOUNTS}/dev/sdc {tmp_path} ext4 rw 0 0\n", False, NOW)
    assert judge(tmp_path / "lock", NOW - 86400, mounted) == ("young", "")
    os.utime(tmp_path / "main.o", (NOW - LOCK_AGE_MOUNT - 1, NOW - LOCK_AGE_MOUNT - 1))
    assert judge(tmp_path / "lock", NOW - 86400, mounted) == ("dead", "")


@pytest.mark.parametrize(
    ("path", "held"),
    [
        ("/opt/ext/op/lock", True),
        ("/opt/ext/op", True),
        ("-o/opt/ext/op/main.o", True),
        ("/opt/ext/op2/main.o", False),
        ("/opt/ext", False),
    ],
)
def test_what_is_in_its_folder_holds_a_lock(path: str, held: bool) -> None:
    one = Process("9", "c++", [path], True)
    expected = ("held", "9 (c++)") if held else ("dead", "")
    assert judge(Path("/opt/ext/op/lock"), NOW - 3600, view(SHELL, one)) == expected


def test_a_process_whose_files_cannot_be_seen_may_hold_it() -> None:
    assert judge(Path("/opt/ext/op/lock"), NOW - 3600, view(SHELL, HIDDEN)) == ("unknown", "7 (python3 other)")


def test_of_processes_that_cannot_be_seen_only_builders_matter(tmp_path: Path) -> None:
    # Above Linux' largest number: in a container this very process may have a small one, and is left out.
    for number, name in (("5000011", "sshd"), ("5000012", "python3.11"), ("5000013", "cc1plus")):
        entry = tmp_path / number
        entry.mkdir()
        (entry / "cmdline").write_bytes(f"/usr/bin/{name}\0--flag\0".encode())
        (entry / "comm").write_text(f"{name}\n")
        (entry / "fd").write_text("not a folder, as one that may not be read")
        (entry / "cwd").symlink_to("/")
    (tmp_path / "5000014").mkdir()  # it ended meanwhile
    found = {one.number: (one.whole, str(one)) for one in processes(tmp_path)}
    assert found == {
        "5000011": (True, "5000011 (/usr/bin/sshd --flag)"),
        "5000012": (False, "5000012 (/usr/bin/python3.11 --flag)"),
        "5000013": (False, "5000013 (/usr/bin/cc1plus --flag)"),
    }


def test_this_process_is_not_among_them() -> None:
    assert str(os.getpid()) not in [one.number for one in processes(Path("/proc"))]


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/root/.cache/x", ("/root/.cache", "ext4")),
        ("/root/.cachet/x", ("/", "overlay")),
        ("/home", ("/home", "nfs4")),
        ("/mnt/with space/x", ("/mnt/with space", "xfs")),
    ],
)
def test_the_mount_that_holds_a_path(path: str, mount: tuple[str, str]) -> None:
    assert mount_of(path, MOUNTS) == mount


def test_the_mount_of_any_path_is_one_that_holds_it() -> None:
    dice = random.Random(5)
    points = ["/", "/a", "/a/b", "/ab", "/a/b/c"]
    for dummy in range(examples(300)):
        mounted = dice.sample(points[1:], dice.randint(0, 4))
        path = "/" + "/".join(dice.choices(["a", "b", "c", "ab"], k=dice.randint(1, 4)))
        lines = [f"x {point} t{point} rw 0 0" for point in ["/", *mounted]]
        holding = [point for point in ["/", *mounted] if Path(point) in [Path(path), *Path(path).parents]]
        assert mount_of(path, "\n".join(lines)) == (max(holding, key=len), f"t{max(holding, key=len)}")


@pytest.mark.parametrize(
    ("given", "environment", "root"),
    [
        ("", {}, "~/.cache/torch_extensions"),
        ("", {"XDG_CACHE_HOME": "/c"}, "/c/torch_extensions"),
        ("", {"TORCH_EXTENSIONS_DIR": "/e", "XDG_CACHE_HOME": "/c"}, "/e"),
        ("~/ext", {"TORCH_EXTENSIONS_DIR": "/e"}, "~/ext"),
    ],
)
def test_where_torch_keeps_what_it_compiles(given: str, environment: dict[str, str], root: str) -> None:
    assert extension_roots(given, environment) == [Path(root).expanduser()]


def test_who_listens_on_a_port() -> None:
    script = (
        "import socket, time; one = socket.socket(); one.bind(('127.0.0.1', 0)); one.listen(); "
        "print(one.getsockname()[1], flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            assert port_holder(port).startswith(f"{process.pid} (")
        finally:
            process.kill()


def test_no_one_listens_on_a_port_that_is_only_bound() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert port_holder(bound.getsockname()[1]) == ""
