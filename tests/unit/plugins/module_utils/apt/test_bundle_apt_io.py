# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""apt for a bundle: asked as on an empty host; a source laid out on a node. Programs are invented, files are real."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt import bundle_io, trial_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.bundle_io import (
    BundleAptError,
    EmptyHost,
    ask,
    configuration,
    installed,
    lay_out,
    pack,
    remove,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.bundle_packages import Deb, parse_deb
from ansible_collections.swarmspeed.cluster.plugins.module_utils.apt.trial_io import SystemAptIO
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult

Commands = list[list[str]]


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> tuple[Commands, dict[str, CommandResult]]:
    """Commands that were run, and what a command answers by a word in it; others answer nothing, well."""
    commands: Commands = []
    answers: dict[str, CommandResult] = {}

    def run(command: Sequence[str], _timeout: float) -> CommandResult:
        commands.append(list(command))
        return next((answer for word, answer in answers.items() if word in command), CommandResult(0))

    for module in (bundle_io, trial_io):
        monkeypatch.setattr(module, "find_program", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(module, "run_program", run)
    return commands, answers


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def deb(name: str, data: bytes, architecture: str = "amd64") -> Deb:
    return parse_deb(
        f"Package: {name}\nVersion: 1:2\nArchitecture: {architecture}\nFilename: pool/{name}_2.deb\n"
        f"Size: {len(data)}\nSHA256: {sha256(data)}"
    )


def test_apt_is_asked_as_on_an_empty_host(tmp_path: Path, programs: tuple[Commands, dict[str, CommandResult]]) -> None:
    commands, answers = programs
    answers["--print-uris"] = CommandResult(0, "'http://x/one_2.deb' one_1%3a2_amd64.deb 3 \n")
    answers["show"] = CommandResult(0, f"{deb('one', b'one').stanza}\n\n")
    io = EmptyHost(str(tmp_path), "")
    assert (io.update().rc, io.update().rc) == (0, 0)
    assert sum("update" in command for command in commands) == 1
    wanted = io.wanted(["one"])
    assert io.shown(wanted) == [deb("one", b"one")]
    assert (tmp_path / "status").read_text(encoding="utf-8") == ""
    for command in commands[-2:]:
        assert f"-oDir::State::status={tmp_path / 'status'}" in command
    assert commands[-1][-1] == "one=1:2"
    assert io.held() == []


def test_what_was_begun_in_a_folder_is_gone_on_with(
    tmp_path: Path, programs: tuple[Commands, dict[str, CommandResult]]
) -> None:
    EmptyHost(str(tmp_path), "").update()
    before = len(programs[0])
    assert EmptyHost(str(tmp_path), "").update().rc == 0
    assert len(programs[0]) == before


def test_what_apt_cannot_do_is_reported(tmp_path: Path, programs: tuple[Commands, dict[str, CommandResult]]) -> None:
    io = EmptyHost(str(tmp_path), "")
    programs[1].update({word: CommandResult(100, "", "E: no") for word in ("--print-uris", "show", "sh")})
    with pytest.raises(BundleAptError, match="apt cannot say what one, two need: E: no"):
        io.wanted(["one", "two"])
    with pytest.raises(BundleAptError, match="apt-cache show ended with 100 and printed: E: no"):
        io.shown([("one", "1", "amd64")])
    with pytest.raises(BundleAptError, match=r"apt could not download all packages: E: no\. Run bundle\.yml again"):
        io.download([deb("one", b"one")], tmp_path / "packages")


def test_packages_are_downloaded_where_they_are_packed(
    tmp_path: Path, programs: tuple[Commands, dict[str, CommandResult]]
) -> None:
    io = EmptyHost(str(tmp_path), "")
    folder, archive = tmp_path / "packages", tmp_path / "packages.tar"
    debs = [deb("one", b"one"), deb("two", b"two", "all")]
    io.download(debs, folder)
    command = programs[0][-1]
    assert command[:4] == ["sh", "-c", 'cd "$0" && exec "$@"', str(folder)]
    assert command[-3:] == ["download", "one:amd64=1:2", "two=1:2"]
    for name in ("one", "two"):  # apt's own names hold the epoch
        (folder / f"{name}_1%3a2_x.deb").write_bytes(name.encode())
    pack(debs, folder, archive)
    with tarfile.open(archive) as tar:
        assert tar.getnames() == ["one_2.deb", "two_2.deb"]
    assert not folder.exists()
    folder.mkdir()
    with pytest.raises(BundleAptError, match="apt did not download one 1:2, or another file than announced"):
        pack(debs, folder, archive)


def sent(path: Path, **files: bytes) -> dict[str, str]:
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return {name: sha256(data) for name, data in files.items()}


def test_a_source_is_laid_out_for_those_who_know_its_path(tmp_path: Path) -> None:
    place, archive = tmp_path / "place", tmp_path / "sent.tar"
    files = sent(archive, Packages=b"list", one=b"one")
    (place / "packages").mkdir(parents=True)
    (place / "packages/old").write_text("of an earlier run", encoding="utf-8")
    lay_out(place, archive, files)
    assert sorted(path.name for path in (place / "packages").iterdir()) == ["Packages", "one"]
    assert (place / "bundle.list").read_text(encoding="utf-8") == f"deb [trusted=yes] file:{place}/packages ./\n"
    assert (place / "apt.conf").read_text(encoding="utf-8") == configuration(str(place))
    # apt reads as an account of its own.
    assert all(path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644) for path in place.rglob("*"))
    remove(place)
    remove(place)
    assert not place.exists()


def test_what_arrives_otherwise_is_no_source(tmp_path: Path) -> None:
    place, archive = tmp_path / "place", tmp_path / "sent.tar"
    files = sent(archive, Packages=b"list")
    with pytest.raises(BundleAptError, match="Packages did not arrive as it was sent"):
        lay_out(place, archive, {**files, "Packages": sha256(b"other")})
    with pytest.raises(BundleAptError, match="two did not arrive"):
        lay_out(place, archive, {**files, "two": sha256(b"two")})
    assert not (place / "apt.conf").exists()


def test_a_name_that_leads_out_is_not_written(tmp_path: Path) -> None:
    files = sent(tmp_path / "sent.tar", **{"../escaped": b"x"})
    lay_out(tmp_path / "place" / "deep", tmp_path / "sent.tar", files)
    assert list(tmp_path.rglob("escaped")) == []


def test_apt_reads_the_source_and_nothing_else(
    tmp_path: Path, programs: tuple[Commands, dict[str, CommandResult]]
) -> None:
    commands, answers = programs
    ask(tmp_path, ["one"])
    assert all(
        command[:4] == ["env", f"APT_CONFIG={tmp_path}/apt.conf", "/usr/bin/apt-get", "-qq"] for command in commands
    )
    assert [command[4] for command in commands] == ["update", "--simulate"]
    commands.clear()
    ask(tmp_path, [])
    assert len(commands) == 1
    answers["--simulate"] = CommandResult(100, "have unmet dependencies:\n one : Depends: libc6 (= 1)\n")
    with pytest.raises(
        BundleAptError, match=r"apt cannot install one from the bundle: one : Depends: libc6 \(= 1\)\. Rem"
    ):
        ask(tmp_path, ["one"])
    answers["update"] = CommandResult(100, "", "E: broken")
    with pytest.raises(BundleAptError, match="apt cannot read the packages of the bundle: E: broken"):
        ask(tmp_path, ["one"])


def test_dpkg_is_asked_of_all_packages(programs: tuple[Commands, dict[str, CommandResult]]) -> None:
    programs[1]["-W"] = CommandResult(0, "ii  one amd64 1\n")
    assert installed() == "ii  one amd64 1\n"
    programs[1]["-W"] = CommandResult(2, "", "locked")
    with pytest.raises(BundleAptError, match="dpkg-query ended with 2 and printed: locked"):
        installed()


def test_a_preview_reads_what_apt_reads_and_no_file_that_apt_would_not(
    tmp_path: Path, programs: tuple[Commands, dict[str, CommandResult]]
) -> None:
    place = tmp_path / "place"
    (place / "lists").mkdir(parents=True)
    (place / "bundle.list").write_text("deb file:/x ./\n", encoding="utf-8")
    (place / "lists" / "x_Packages").write_text("Package: x\n", encoding="utf-8")
    reported = f"list='{place}/bundle.list'\nparts='/dev/null'\nlists='{place}/lists/'\n"
    programs[1]["shell"] = CommandResult(0, reported)
    folder = tmp_path / "trial"
    folder.mkdir()
    SystemAptIO(str(folder), "Types: deb\n")
    assert (folder / "sources.list").read_text(encoding="utf-8") == "deb file:/x ./\n"
    assert list((folder / "sources.list.d").iterdir()) == []
    assert (folder / "lists/x_Packages").exists()
    assert programs[0][0][:2] == ["/usr/bin/apt-config", "shell"]
