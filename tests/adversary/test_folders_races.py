# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Root in a container changes files and folders while the host works in them: it acts between two steps of the host."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_folder import (
    FolderError,
    UntrustedFolder,
    kind_of,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.private import host_jobs_dir, make_private
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import JobError

from tests.adversary.job_attacks import SECRET, untouched


def swap(path: Path, to: Path) -> None:
    """Put a link in the place of a file or folder."""
    if path.is_symlink():
        return
    path.rename(path.with_name(f"{path.name}.moved"))
    path.symlink_to(to)


@pytest.fixture
def before_each(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], None]], None]:
    """Run something just after a call of ``os``, which is when the container is scheduled.

    After ``scandir`` means: when all names of the folder have been read, and before any is used.
    """

    def arrange(name: str, task_input: Callable[[], None]) -> None:
        original = getattr(os, name)
        acting: list[bool] = []

        def once() -> None:
            if not acting:  # what the container does calls os, too
                acting.append(True)
                task_input()
                acting.clear()

        def replaced(*args: Any, **given: Any) -> Any:
            result = original(*args, **given)
            if name == "scandir":
                return Listing(result)
            once()
            return result

        class Listing:
            def __init__(self, inner: Any) -> None:
                self._inner = inner

            def __enter__(self) -> Any:
                return self._inner.__enter__()

            def __exit__(self, *args: Any) -> None:
                self._inner.__exit__(*args)
                once()

        monkeypatch.setattr(os, name, replaced)

    return arrange


@pytest.mark.parametrize("step", ["open", "stat", "fstat"])
def test_a_file_that_becomes_a_link_while_it_is_read(
    workspace: Path, victim: Path, before_each: Callable[[str, Callable[[], None]], None], step: str
) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "secret").write_text("the container's")
    before_each(step, lambda: swap(workspace / "sub" / "secret", victim))
    try:
        assert UntrustedFolder(workspace).read("sub/secret") == b"the container's"
    except FolderError as error:
        assert "is a link" in str(error)


@pytest.mark.parametrize("step", ["open", "stat", "mkdir"])
def test_a_folder_that_becomes_a_link_while_it_is_used(
    workspace: Path, victim: Path, before_each: Callable[[str, Callable[[], None]], None], step: str
) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "secret").write_text("the container's")
    folder = UntrustedFolder(workspace)
    before_each(step, lambda: swap(workspace / "sub", victim.parent))
    uses: list[Callable[[], None]] = [
        lambda: folder.write("sub/secret", b"owned"),
        lambda: folder.make_folder("sub/new"),
        lambda: folder.rename("sub/secret", "sub/other"),
        lambda: folder.remove("sub/secret"),
        lambda: folder.remove("sub"),
    ]
    for use in uses:
        try:
            use()
        except FolderError as error:
            assert "is a link" in str(error) or "has no folder" in str(error) or "cannot be used" in str(error)
        assert untouched(victim)


# --- opening alone has an effect: a watchdog is armed, a tape rewound, a pipe's writer goes on


def device(path: Path) -> None:
    """Of /dev/zero; Docker leaves a container the right to make one."""
    try:
        os.mknod(path, 0o020666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was opened, other than plain files and folders, and other than by O_PATH."""
    original, found = os.open, []

    def noted(*args: Any, **given: Any) -> int:
        handle = original(*args, **given)
        if not args[1] & os.O_PATH:
            found.append(kind_of(os.fstat(handle).st_mode))
        return handle

    monkeypatch.setattr(os, "open", noted)
    return found


@pytest.mark.parametrize("plant", [device, os.mkfifo])
@pytest.mark.parametrize("step", ["stat", "open", "fstat", "close", None])
def test_no_device_and_no_pipe_is_opened(
    workspace: Path,
    before_each: Callable[[str, Callable[[], None]], None],
    opened: list[str],
    plant: Callable[[Path], None],
    step: str | None,
) -> None:
    def task_input() -> None:
        if (workspace / "other").exists():
            (workspace / "other").replace(workspace / "x")

    if step is not None:
        before_each(step, task_input)
    folder = UntrustedFolder(workspace)
    uses: list[Callable[[str], Any]] = [folder.read, folder.read_json, folder.digest, folder.open]
    for use in uses:
        for left in workspace.iterdir():
            left.unlink()
        (workspace / "x").write_text("{}")
        plant(workspace / "other")
        if step is None:
            task_input()
        try:
            found = use("x")
            if use == folder.open:
                found.close()
        except FolderError as error:
            assert "is a device" in str(error) or "is a named pipe" in str(error)
        if step != "stat":  # there may be none
            assert not (workspace / "other").exists(), "the container was not scheduled"
    assert set(opened) <= {"a plain file", "a folder"}


def test_no_device_is_opened_while_two_names_are_exchanged_all_the_time(workspace: Path, opened: list[str]) -> None:
    """A real race, with another process."""
    device(workspace / "other")
    (workspace / "x").write_text("{}")
    exchange = (
        "import os, sys\nos.chdir(sys.argv[1])\n"
        "while True:\n    os.link('other', 'a'); os.rename('a', 'b'); os.link('x', 'c')\n"
        "    os.rename('b', 'x'); os.rename('c', 'file'); os.rename('file', 'x')\n"
    )
    container = subprocess.Popen([sys.executable, "-c", exchange, str(workspace)])
    try:
        outcomes = {"read": 0, "refused": 0}
        until = time.monotonic() + 20
        while min(outcomes.values()) < 2000 and time.monotonic() < until:
            try:
                assert UntrustedFolder(workspace).read("x") == b"{}"
                outcomes["read"] += 1
            except FolderError as error:
                assert "is a device" in str(error)
                outcomes["refused"] += 1
    finally:
        container.kill()
        container.wait()
    assert min(outcomes.values()) >= 100, "the two were not exchanged"
    assert set(opened) <= {"a plain file", "a folder"}


@pytest.mark.parametrize("kind", ["F_RDLCK", "F_WRLCK"])
def test_a_lease_keeps_no_one_waiting(workspace: Path, kind: str) -> None:
    """The kernel has whoever opens such a file wait until its holder gives it back, 45 seconds at most."""
    (workspace / "x").write_text("{}")
    holder = (
        "import fcntl, os, signal, sys, time\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\n"
        f"handle = os.open(sys.argv[1], os.O_RDONLY if '{kind}' == 'F_RDLCK' else os.O_RDWR)\n"
        f"fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.{kind})\nprint('held', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", holder, str(workspace / "x")], stdout=subprocess.PIPE) as container:
        try:
            assert container.stdout is not None and container.stdout.readline() == b"held\n"
            begun = time.monotonic()
            if kind == "F_WRLCK":
                for use in (UntrustedFolder(workspace).read, UntrustedFolder(workspace).digest):
                    with pytest.raises(FolderError, match="cannot be used"):
                        use("x")
            else:  # it may be read by others
                assert UntrustedFolder(workspace).read("x") == b"{}"
            UntrustedFolder(workspace).write("x", b"new")
            assert UntrustedFolder(workspace).read("x") == b"new"
            assert time.monotonic() - begun < 5
        finally:
            container.kill()


# --- removing


@pytest.mark.parametrize("window", ["scandir", "open", "rename", "unlink", "rmdir", "close"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_folder_that_becomes_a_link_while_it_is_removed(
    workspace: Path,
    victim: Path,
    before_each: Callable[[str, Callable[[], None]], None],
    window: str,
    times: int,
) -> None:
    (workspace / "job" / "sub" / "deep" / "deeper").mkdir(parents=True)
    (workspace / "job" / "sub" / "deep" / "file").write_text("")
    (workspace / "job" / "file").write_text("")
    swapped: list[Path] = []

    def task_input() -> None:
        for path in sorted(workspace.glob("job/*")) + sorted(workspace.glob("job/*/*")):
            if len(swapped) < times and path.is_dir() and not path.is_symlink():
                swapped.append(path)
                swap(path, victim.parent)

    before_each(window, task_input)
    try:
        UntrustedFolder(workspace).remove("job")
    except FolderError as error:
        assert "cannot be used" in str(error)
    assert swapped and untouched(victim)


# --- writing


@pytest.mark.parametrize(
    "plant",
    [
        lambda path, victim: path.symlink_to(victim),
        lambda path, victim: path.symlink_to(victim.parent / "new"),
        lambda path, victim: path.hardlink_to(victim),
        lambda path, victim: os.mkfifo(path),
        lambda path, victim: path.mkdir(),
    ],
)
def test_a_temporary_name_that_was_foreseen_all_the_same_is_not_written(
    workspace: Path, victim: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path, Path], Any]
) -> None:
    """The defence behind the name that cannot be foreseen."""
    monkeypatch.setattr("secrets.token_hex", lambda _bytes: "foreseen")
    plant(workspace / ".foreseen.new", victim)
    with pytest.raises(FolderError, match="cannot be used"):
        UntrustedFolder(workspace).write("x", b"owned")
    assert victim.read_text() == SECRET and untouched(victim)
    assert not (workspace / "x").exists()


def test_a_file_that_the_container_holds_open_is_not_written(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _bytes: "foreseen")
    with (workspace / ".foreseen.new").open("w+") as held:
        with pytest.raises(FolderError, match="cannot be used"):
            UntrustedFolder(workspace).write("x", b"a secret of the host")
        assert held.read() == ""


# --- a place of the host's own, made by somebody else first


@pytest.mark.parametrize("case", ["others may write", "the group may write", "another's", "a link", "above it"])
def test_a_place_that_was_made_by_somebody_else_first_is_not_used(tmp_path: Path, victim: Path, case: str) -> None:
    place = host_jobs_dir(str(tmp_path / "cluster" / "jobs"))
    place.parent.mkdir(mode=0o700)
    if case == "a link":
        place.symlink_to(victim.parent)
    else:
        place.mkdir(mode=0o700)
    if case == "above it":
        place.parent.chmod(0o777)
    elif case == "another's":
        if os.geteuid() != 0:
            pytest.skip("only root gives files away")
        os.chown(place, 65534, 65534)
    elif case != "a link":
        place.chmod(0o777 if case == "others may write" else 0o770)
    with pytest.raises(JobError, match="must be a folder of root that no one else can write"):
        make_private(place)


def test_a_temporary_name_cannot_be_foreseen(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    rename = os.rename

    def noted(old: str, new: str, **given: Any) -> None:
        names.append(old)
        rename(old, new, **given)

    monkeypatch.setattr(os, "rename", noted)
    for dummy in range(3):
        UntrustedFolder(workspace).write("x", b"")
    assert len(set(names)) == 3 and all(len(name) > 32 for name in names)
    assert [path.name for path in workspace.iterdir()] == ["x"]
