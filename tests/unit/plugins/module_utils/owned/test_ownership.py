# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Folders are recorded before they are used, and teardown removes what is ours: on real folders."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.owned import folders_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.owned.folders_io import (
    NAME,
    OwnedError,
    SystemFolders,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.owned.names import OF_ETC
from ansible_collections.swarmspeed.cluster.plugins.module_utils.owned.ownership import (
    Outcome,
    Removal,
    record_folders,
    remove_folders,
    states,
)


class Host:
    """A host with a node state directory, ``team``, and the record beside it."""

    def __init__(self, path: Path) -> None:
        self.root, self.place = path / "team", path / "records"
        self.etc, self.jobs, self.workspace = (self.root / name for name in ("etc", "jobs", "workspace"))
        self.folders = SystemFolders("lab", str(self.place))

    def record(self, *paths: Path, check_mode: bool = False) -> Outcome:
        return record_folders(self.folders, str(self.root), list(map(str, paths)), check_mode=check_mode)

    def remove(self, *removals: Removal, check_mode: bool = False) -> Outcome:
        return remove_folders(self.folders, str(self.root), removals, check_mode=check_mode)

    def teardown(self, check_mode: bool = False) -> Outcome:
        """As role ssh_trust does it."""
        return self.remove(
            Removal(str(self.etc), known=True), Removal(str(self.root), known=True), check_mode=check_mode
        )

    def state(self, path: Path) -> str:
        return str(states(self.folders, str(self.root), [str(path)])[str(path)]["state"])

    def fill_etc(self) -> None:
        """With all that any role of this collection puts there."""
        for name in OF_ETC:
            file = self.etc / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(name)

    def job(self, name: str = "digits", files: str = "spec.json") -> Path:
        folder = self.jobs / name
        folder.mkdir(parents=True)
        (folder / files).write_text("{}")
        (folder / "checkpoints").mkdir()
        return folder


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def tree(path: Path) -> set[str]:
    return {str(one.relative_to(path)) for one in path.rglob("*")}


# Recording


def test_folders_are_made_and_recorded_once(host: Host) -> None:
    first = host.record(host.root, host.etc)
    assert first.changed and first.created == [str(host.root), str(host.etc)]
    assert [entry["after"] for entry in first.diff] == ["ours\n", "ours\n"]
    assert (host.state(host.root), host.state(host.etc)) == ("ours", "ours")
    host.fill_etc()
    again = host.record(host.root, host.etc)
    assert not again.changed and again.diff == []


def test_only_root_can_read_and_write_the_record(host: Host) -> None:
    host.record(host.root)
    file = host.place / "lab" / NAME
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700


def test_check_mode_makes_and_records_nothing(host: Host) -> None:
    predicted = host.record(host.root, host.etc, check_mode=True)
    assert not host.root.exists() and not host.place.exists()
    assert predicted.diff == host.record(host.root, host.etc).diff


@pytest.mark.parametrize(("content", "state"), [("", "ours"), ("mine.conf", "theirs")])
def test_what_was_there_is_ours_only_if_it_was_empty(host: Host, content: str, state: str) -> None:
    host.root.mkdir()
    if content:
        (host.root / content).write_text("mine")
    host.record(host.root)
    assert host.state(host.root) == state


def test_a_folder_that_becomes_empty_later_does_not_change_hands(host: Host) -> None:
    host.workspace.mkdir(parents=True)
    (host.workspace / "notes.txt").write_text("mine")
    host.record(host.workspace)
    (host.workspace / "notes.txt").unlink()
    assert not host.record(host.workspace).changed and host.state(host.workspace) == "theirs"


def test_a_run_that_is_cut_off_between_making_and_recording_is_made_up_for(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is cut off: what the run has made is ours in the end."""
    for stop in range(3):
        written: list[int] = []
        real = SystemFolders.write

        def write(
            self: SystemFolders,
            record: dict[str, object],
            stop: int = stop,
            written: list[int] = written,
            real: Callable[..., None] = real,
        ) -> None:
            if len(written) == stop:
                raise KeyboardInterrupt
            written.append(1)
            real(self, record)

        with monkeypatch.context() as patched:
            patched.setattr(SystemFolders, "write", write)
            with pytest.raises(KeyboardInterrupt):
                host.record(host.root, host.etc, host.jobs)
        host.record(host.root, host.etc, host.jobs)
        assert {host.state(path) for path in (host.root, host.etc, host.jobs)} == {"ours"}
        host.remove(*(Removal(str(path), whole=True) for path in (host.jobs, host.etc, host.root)))
        assert not host.root.exists() and not host.place.exists()


def test_another_folder_at_the_path_is_not_the_one_that_was_recorded(host: Host) -> None:
    host.record(host.root, host.workspace)
    host.workspace.rename(host.root / "kept")  # so that its inode stays taken
    host.workspace.mkdir()
    (host.workspace / "mine").write_text("mine")
    assert host.state(host.workspace) == "in_use"
    host.remove(Removal(str(host.workspace), whole=True))
    assert (host.workspace / "mine").read_text() == "mine"


def test_a_link_to_another_folder_is_not_the_one_that_was_recorded(host: Host, tmp_path: Path) -> None:
    host.record(host.root, host.workspace)
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "mine").write_text("mine")
    host.workspace.rmdir()
    host.workspace.symlink_to(victim)
    done = host.remove(Removal(str(host.workspace), whole=True))
    assert tree(victim) == {"mine"} and "is kept" in done.kept[0]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"version": 2}', '{"version": 1, "folders": {"/x": {}}}', "\xff"])
def test_without_a_record_that_can_be_read_each_folder_is_judged_by_what_it_holds(host: Host, damage: str) -> None:
    host.record(host.root, host.workspace)
    (host.workspace / "notes.txt").write_text("mine")
    (host.place / "lab" / NAME).write_bytes(damage.encode("latin-1"))
    assert host.state(host.workspace) == "in_use"


@pytest.mark.parametrize("which", ["", "lab"])
def test_a_record_that_others_could_have_written_is_refused(host: Host, which: str) -> None:
    host.record(host.root)
    (host.place / which).chmod(0o777)
    with pytest.raises(OwnedError, match=r"must be a folder of root that no one else can write.*chmod go-w"):
        host.state(host.root)


def test_a_file_where_a_folder_is_to_be_is_named(host: Host) -> None:
    host.root.write_text("")
    with pytest.raises(OwnedError, match=r"team cannot be opened: it is not a folder\. Remedy: "):
        host.record(host.root)


@pytest.mark.parametrize("path", ["/", "/etc", "/srv", "/usr/lib/x", "/var/lib/swarmspeed", "/proc/1"])
def test_folders_of_the_system_are_neither_recorded_nor_removed(host: Host, path: str) -> None:
    with pytest.raises(OwnedError, match="belongs to the operating system"):
        host.record(Path(path))
    with pytest.raises(OwnedError, match="belongs to the operating system"):
        host.remove(Removal(path, whole=True, known=True))


def test_a_link_to_a_folder_of_the_system_is_refused_too(host: Host) -> None:
    host.root.symlink_to("/etc")
    with pytest.raises(OwnedError, match=r"team, which leads to /etc, belongs to the operating system"):
        host.teardown()


# Teardown


def test_teardown_removes_what_this_collection_made(host: Host) -> None:
    host.record(host.root, host.etc)
    host.fill_etc()
    done = host.teardown()
    assert done.changed and done.kept == [] and not host.root.exists() and not host.place.exists()
    assert not host.teardown().changed


def test_a_users_file_stays_with_its_folder(host: Host) -> None:
    host.etc.mkdir(parents=True)
    (host.etc / "mine.conf").write_text("mine")
    host.record(host.root, host.etc)
    host.fill_etc()
    (host.etc / "ssh" / "config.d").mkdir()
    done = host.teardown()
    assert tree(host.root) == {"etc", "etc/mine.conf", "etc/ssh", "etc/ssh/config.d"}
    assert done.kept == [
        f"{host.etc} is kept: it had files in it when it was first used here (now: mine.conf, ssh)",
        f"{host.root} is kept: it had files in it when it was first used here",
    ]
    assert not host.teardown().changed


def test_a_folder_of_the_name_of_a_file_of_ours_stays(host: Host) -> None:
    host.record(host.root, host.etc)
    host.fill_etc()
    (host.etc / ".ansible_tmp_mine").mkdir()
    (host.etc / ".ansible_tmp_mine" / "notes.txt").write_text("mine")
    assert host.teardown().kept == [
        f"{host.etc} is kept: it holds what this collection did not put there (.ansible_tmp_mine)"
    ]
    assert tree(host.etc) == {".ansible_tmp_mine", ".ansible_tmp_mine/notes.txt"}


def test_a_users_file_that_came_later_stays_too(host: Host) -> None:
    host.record(host.root, host.etc)
    host.fill_etc()
    (host.etc / "mine.conf").write_text("mine")
    done = host.teardown()
    assert tree(host.root) == {"etc", "etc/mine.conf"}
    assert done.kept == [f"{host.etc} is kept: it holds what this collection did not put there (mine.conf)"]
    (host.etc / "mine.conf").unlink()
    assert host.teardown().kept == [] and not host.root.exists()


@pytest.mark.parametrize(("count", "more"), [(5, ""), (7, " and 2 more")])
def test_of_many_users_files_a_few_are_named(host: Host, count: int, more: str) -> None:
    host.record(host.root, host.etc)
    for number in range(count):
        (host.etc / f"mine{number}").write_text("mine")
    listed = f"mine0, mine1, mine2, mine3, mine4{more}"
    assert host.teardown().kept == [f"{host.etc} is kept: it holds what this collection did not put there ({listed})"]


def test_jobs_and_workspace_that_stay_are_no_reason_to_speak(host: Host) -> None:
    host.record(host.root, host.etc, host.jobs)
    host.fill_etc()
    host.job()
    assert host.teardown().kept == [] and host.jobs.is_dir() and not host.etc.exists()
    assert host.state(host.jobs) == "ours"


@pytest.mark.parametrize("foreign", [False, True])
def test_check_mode_predicts_what_teardown_removes(host: Host, foreign: bool) -> None:
    host.record(host.root, host.etc)
    host.fill_etc()
    if foreign:
        (host.etc / "mine.conf").write_text("mine")
    before = tree(host.root)
    predicted = host.teardown(check_mode=True)
    assert tree(host.root) == before
    done = host.teardown()
    assert (predicted.removed, predicted.kept, predicted.diff) == (done.removed, done.kept, done.diff)


def test_a_whole_folder_goes_only_if_it_is_ours(host: Host) -> None:
    whole = Removal(str(host.workspace), whole=True, files=["train.py", "sub/a.py"])
    for state in ("ours", "theirs"):
        if state == "theirs":
            host.workspace.mkdir(parents=True)
            (host.workspace / "notes.txt").write_text("mine")
        host.record(host.root, host.workspace)
        (host.workspace / "sub").mkdir()
        for name in ("train.py", "sub/a.py", "checkpoint"):
            (host.workspace / name).write_text("")
        done = host.remove(whole)
        if state == "ours":
            assert not host.workspace.exists() and done.kept == []
        else:
            assert tree(host.workspace) == {"notes.txt", "checkpoint"}
            assert done.kept == [
                f"{host.workspace} is kept: it had files in it when it was first used here (now: checkpoint, notes.txt)"
            ]


def test_a_folder_however_deep_is_removed(host: Host) -> None:
    host.record(host.root, host.workspace)
    handle = os.open(host.workspace, os.O_RDONLY)
    for _level in range(3000):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    assert host.remove(Removal(str(host.workspace), whole=True)).removed == [str(host.workspace)]
    assert not host.workspace.exists()


def test_of_a_folder_of_jobs_that_is_not_ours_only_the_jobs_go(host: Host) -> None:
    host.jobs.mkdir(parents=True)
    (host.jobs / "plan.txt").write_text("mine")
    (host.jobs / "photos").mkdir()
    host.record(host.root, host.jobs)
    host.job(), host.job("other", "state.json")
    done = host.remove(Removal(str(host.jobs), whole=True, jobs=True))
    assert tree(host.jobs) == {"plan.txt", "photos"}
    assert "(now: photos, plan.txt)" in done.kept[0]


def test_what_somebody_else_removed_is_forgotten(host: Host, tmp_path: Path) -> None:
    host.record(host.root, host.etc, tmp_path / "code")
    (tmp_path / "code").rmdir()
    host.teardown()
    assert not host.place.exists()


# Adoption of what was deployed before there was a record


def deployed(host: Host) -> None:
    """As releases without a record left it: in this order."""
    host.fill_etc()
    host.job()
    host.workspace.mkdir()
    (host.workspace / "train.py").write_text("")


def test_what_is_provably_ours_is_adopted(host: Host) -> None:
    deployed(host)
    paths = (host.root, host.etc, host.jobs, host.workspace)
    assert {host.state(path) for path in paths} == {"made"}
    assert [entry["after"] for entry in host.record(*paths).diff] == ["ours\n"] * 4
    assert not host.record(*paths).changed


def test_teardown_alone_removes_of_it_what_it_always_did(host: Host) -> None:
    deployed(host)
    host.remove(Removal(str(host.jobs), whole=True, jobs=True))
    host.remove(Removal(str(host.workspace), whole=True))
    assert host.teardown().kept == [] and not host.root.exists()


@pytest.mark.parametrize("foreign", ["mine.conf", "etc/mine.conf", "etc/ssh/mine"])
def test_a_file_of_somebody_elses_in_it_is_against_it(host: Host, foreign: str) -> None:
    deployed(host)
    (host.root / foreign).write_text("mine")
    assert {host.state(path) for path in (host.root, host.etc, host.jobs, host.workspace)} == {"in_use"}


def test_files_of_our_names_alone_prove_nothing(host: Host) -> None:
    """Others have an etc with a file env, and jobs."""
    host.etc.mkdir(parents=True)
    (host.etc / "env").write_text("mine")
    host.job()
    host.workspace.mkdir()
    (host.workspace / "mine").write_text("")
    assert {host.state(path) for path in (host.root, host.etc, host.jobs, host.workspace)} == {"in_use"}


def test_files_of_a_users_own_etc_that_would_be_replaced_are_told(host: Host) -> None:
    def replaced() -> list[str] | None:
        known: list[str] | None = states(host.folders, str(host.root), [str(host.etc)])[str(host.etc)].get("replaced")
        return known

    host.etc.mkdir(parents=True)
    assert replaced() is None
    (host.etc / "mine.conf").write_text("mine")
    assert replaced() == []
    for name in ("hostfile", "entrypoint.sh", "ssh/authorized_keys"):
        (host.etc / name).parent.mkdir(exist_ok=True)
        (host.etc / name).write_text("mine")
    assert replaced() == ["entrypoint.sh", "hostfile", "ssh/authorized_keys"]
    (host.etc / "nccl.conf.host").write_text("")  # of an older release, in an etc into which a user put a file
    assert replaced() == []
    host.record(host.etc)
    assert replaced() is None


def test_a_file_in_the_place_of_etc_is_refused(host: Host) -> None:
    host.root.mkdir()
    host.etc.write_text("mine")
    with pytest.raises(OwnedError, match=r"team/etc cannot be opened: it is not a folder. Remedy: correct the path"):
        host.state(host.etc)


def test_a_workspace_older_than_the_rest_is_not_adopted(host: Host) -> None:
    host.workspace.mkdir(parents=True)
    (host.workspace / "mine").write_text("mine")
    host.fill_etc()
    assert (host.state(host.etc), host.state(host.workspace)) == ("made", "in_use")


@pytest.mark.parametrize("name", ["jobs/notes.txt", "jobs/photos/1.png"])
def test_jobs_beside_something_else_are_not_adopted(host: Host, name: str) -> None:
    deployed(host)
    (host.root / name).parent.mkdir(exist_ok=True)
    (host.root / name).write_text("mine")
    assert host.state(host.jobs) == "in_use"


def test_more_jobs_than_are_read_one_by_one_are_not_adopted(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is root in a container makes as many folders as the disk has room for."""
    deployed(host)
    host.job("other")
    monkeypatch.setattr(folders_io, "MOST_JOBS", 2)
    assert host.state(host.jobs) == "made"
    host.job("third")
    assert host.state(host.jobs) == "in_use"


@pytest.mark.parametrize("name", ["etc", "jobs", "workspace"])
def test_a_link_is_not_adopted(host: Host, tmp_path: Path, name: str) -> None:
    deployed(host)
    (host.root / name).rename(tmp_path / "elsewhere")
    (host.root / name).symlink_to(tmp_path / "elsewhere")
    assert host.state(host.root / name) == "in_use"


def test_a_node_state_directory_through_which_an_image_was_sent_first_is_ours(host: Host) -> None:
    (host.root / "image.build").mkdir(parents=True)
    assert host.state(host.root) == "made"
    (host.root / "jobs").mkdir()
    assert host.state(host.root) == "in_use"


def test_the_record_can_be_read_by_a_person(host: Host) -> None:
    host.record(host.root)
    found = json.loads((host.place / "lab" / NAME).read_text())["folders"][str(host.root)]
    status = host.root.stat()
    assert (found["ours"], found["device"], found["inode"]) == (True, status.st_dev, status.st_ino)
