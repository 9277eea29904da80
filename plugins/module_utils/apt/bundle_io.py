# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""apt on a host that makes a bundle, and on a node that takes its packages from one."""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..common.command_io import CommandResult, find_program, run_program
from ..common.digests import CHUNK, Hashed
from .bundle_packages import Deb, parse_deb, parse_uris, stanzas
from .trial_io import NOWHERE, TIMEOUT, UPDATE_TIMEOUT, SystemAptIO

PLACE = "/var/lib/swarmspeed-bundle"
"""Where packages of a bundle lie on a node while the playbook runs."""
DOWNLOAD_TIMEOUT = 3600.0
"""Seconds for all packages together; apt itself gives up earlier where a server does not answer."""


class BundleAptError(Exception):
    """apt, or what it is to work with, is not as it must be; the text says what to do."""


class EmptyHost(SystemAptIO):
    """apt as on a host on which nothing is installed, so that every dependency is named, whatever this host has.

    In a folder where one was made before, it goes on with that one's lists.
    """

    def __init__(self, folder: str, sources: str, without: Sequence[str] = ()) -> None:
        self._updated: CommandResult | None = None
        self._status = Path(folder) / "status"
        if self._status.exists():
            self._folder = Path(folder)
            self._updated = CommandResult(0)
        else:
            super().__init__(folder, sources, without)
            self._status.touch()

    def _options(self) -> list[str]:
        return [*super()._options(), f"-oDir::State::status={self._status}", "-oAPT::Get::AutomaticRemove=false"]

    def update(self) -> CommandResult:
        if self._updated is None:
            self._updated = super().update()
        return self._updated

    def held(self) -> list[str]:
        return []

    def wanted(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return name, version and architecture of all that the installation of these packages needs."""
        arguments = ["--print-uris", "--assume-yes", "--no-install-recommends", "install", *names]
        answer = self._run("apt-get", arguments, TIMEOUT)
        if answer.rc != 0:
            raise BundleAptError(f"apt cannot say what {', '.join(names)} need: {answer.text[-400:]}")
        return parse_uris(answer.stdout)

    def shown(self, wanted: Sequence[tuple[str, str, str]]) -> list[Deb]:
        """Return what the repositories say of these packages."""
        names = [f"{name}={version}" for name, version, dummy in wanted]
        answer = self._run("apt-cache", ["show", "--no-all-versions", *names], TIMEOUT)
        if answer.rc != 0:
            raise BundleAptError(f"apt-cache show ended with {answer.rc} and printed: {answer.text[-400:]}")
        return [parse_deb(stanza) for stanza in stanzas(answer.stdout)]

    def download(self, debs: Sequence[Deb], folder: Path) -> None:
        """Fetch these packages into an empty folder. apt checks them by the repositories' signed lists."""
        folder.mkdir(parents=True)
        program = find_program("apt-get")
        if program is None:
            raise BundleAptError("there is no apt-get on this host")
        names = [f"{deb.name}:{deb.architecture}={deb.version}" for deb in debs]
        names = [name.replace(":all=", "=") for name in names]
        # It writes where it is run, and as root: the folder is not of apt's own account.
        command = [program, *self._options(), "-oAPT::Sandbox::User=root", "download", *names]
        there = ["sh", "-c", 'cd "$0" && exec "$@"', str(folder)]
        answer = run_program([*there, *command], DOWNLOAD_TIMEOUT)
        if answer.rc != 0:
            raise BundleAptError(f"apt could not download all packages: {answer.text[-400:]}. Run bundle.yml again")


def pack(debs: Sequence[Deb], folder: Path, archive: Path) -> None:
    """Put downloaded packages into one archive, under the names of the repository's pool, and remove the folder."""
    by_digest = {_sha256(path): path for path in sorted(folder.iterdir()) if path.is_file()}
    archive.unlink(missing_ok=True)  # the account that logs in can write there: what has the name is not followed
    with tarfile.open(archive, "x") as tar:
        for deb in debs:
            path = by_digest.get(deb.sha256)
            if path is None:
                raise BundleAptError(f"apt did not download {deb.name} {deb.version}, or another file than announced")
            tar.add(path, arcname=deb.file)
    shutil.rmtree(folder)


def installed() -> str:
    """Return what dpkg-query says of all packages, for ``parse_installed``."""
    program = find_program("dpkg-query")
    if program is None:
        raise BundleAptError("there is no dpkg-query on this host, so it does not run Debian or Ubuntu")
    answer = run_program([program, "-W", "-f", "${db:Status-Abbrev} ${Package} ${Architecture} ${Version}\n"], TIMEOUT)
    if answer.rc != 0:
        raise BundleAptError(
            f"dpkg-query ended with {answer.rc} and printed: {answer.text[-400:]}. Run it on this host"
        )
    return answer.stdout


def configuration(place: str) -> str:
    """Return apt's configuration for whoever has it as ``APT_CONFIG``: this source alone, and lists of its own."""
    return (
        f'Dir::Etc::sourcelist "{place}/bundle.list";\nDir::Etc::sourceparts "{NOWHERE}";\n'
        f'Dir::State::lists "{place}/lists";\nDir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n'
        'Acquire::Languages "none";\n'
    )


def lay_out(place: Path, archive: Path, files: Mapping[str, str]) -> None:
    """Make a source of apt of an archive. Each file's SHA-256 is checked; ``apt.conf`` is written last."""
    shutil.rmtree(place, ignore_errors=True)
    packages = place / "packages"
    packages.mkdir(parents=True)
    (place / "lists" / "partial").mkdir(parents=True)
    for folder in (place, packages, place / "lists", place / "lists" / "partial"):
        folder.chmod(0o755)
    missing = dict(files)
    with tarfile.open(archive) as tar:
        for member in tar:
            expected = missing.pop(member.name, None)
            content = tar.extractfile(member) if expected and member.isfile() else None
            if content is None or re.search(r"[/\0]", member.name):
                continue
            path = packages / member.name
            with path.open("wb") as file:
                shutil.copyfileobj(content, file, CHUNK)
            path.chmod(0o644)
            if _sha256(path) != expected:
                raise BundleAptError(f"{member.name} did not arrive as it was sent. Run the playbook again")
    if missing:
        raise BundleAptError(f"{', '.join(sorted(missing)[:4])} did not arrive. Run the playbook again")
    # trusted: the list was checked on the controller against the manifest and came over ssh; apt checks files by it.
    _write(place / "bundle.list", f"deb [trusted=yes] file:{packages} ./\n")
    _write(place / "apt.conf", configuration(str(place)))


def ask(place: Path, packages: Sequence[str]) -> None:
    """Have apt read the source and simulate the installation: what does not fit is known before anything changes."""
    program = find_program("apt-get")
    if program is None:
        raise BundleAptError("there is no apt-get on this host")
    apt = ["env", f"APT_CONFIG={place / 'apt.conf'}", program, "-qq"]
    answer = run_program([*apt, "update"], UPDATE_TIMEOUT)
    if answer.rc != 0:
        raise BundleAptError(f"apt cannot read the packages of the bundle: {answer.text[-400:]}")
    if not packages:
        return
    arguments = ["--simulate", "--assume-yes", "--no-install-recommends", "--allow-change-held-packages", "install"]
    answer = run_program([*apt, *arguments, *packages], TIMEOUT)
    if answer.rc != 0:
        reported = " ".join(answer.text.partition("unmet dependencies:")[2].split() or answer.text.split())[:400]
        raise BundleAptError(
            f"apt cannot install {', '.join(packages)} from the bundle: {reported}. Remedy: make the bundle again, "
            "against a system of this distribution that is at least as new as this one"
        )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return Hashed(file).read_all().sha256


def remove(place: Path) -> None:
    """Leave nothing of the source."""
    shutil.rmtree(place, ignore_errors=True)
