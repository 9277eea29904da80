# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A trial of apt in a directory of its own, over copies of the host's sources, lists and preferences.

Where these are, apt itself says: with ``APT_CONFIG`` (a run from an offline bundle) they are others than usual.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ..common.command_io import CommandResult, find_program, run_program

UPDATE_TIMEOUT = 300.0
"""Seconds to fetch the indices, through a slow proxy too."""

TIMEOUT = 120.0
"""Seconds for a simulation."""

NOWHERE = "/dev/null"
"""What apt gets where it is to read no folder of sources."""
_PLACES = {
    "list": ("Dir::Etc::sourcelist/f", "etc/apt/sources.list"),
    "parts": ("Dir::Etc::sourceparts/f", "etc/apt/sources.list.d"),
    "lists": ("Dir::State::lists/f", "var/lib/apt/lists"),
}


class SystemAptIO:
    """``folder`` is empty and removed by the caller; ``without`` are source files of the host that are left out."""

    def __init__(self, folder: str, sources: str, without: Sequence[str] = (), root: str = "/") -> None:
        self._folder, etc, places = Path(folder), Path(root) / "etc/apt", _places(root)
        for part in ("sources.list.d", "preferences.d", "lists/partial", "cache/archives/partial"):
            (self._folder / part).mkdir(parents=True)
        self._copy(places["parts"], "sources.list.d", without)
        self._copy(etc / "preferences.d", "preferences.d", ())
        for name, path in (("sources.list", places["list"]), ("preferences", etc / "preferences")):
            if path.is_file() and str(Path("/etc/apt", name)) not in without:
                shutil.copyfile(path, self._folder / name)
            else:
                (self._folder / name).touch()
        # A file that the role is going to write would not be read either where apt reads none.
        if sources and str(places["parts"]) != NOWHERE:
            (self._folder / "sources.list.d/swarmspeed-nvidia.sources").write_text(sources, encoding="utf-8")
        # Lists that are there spare fetching them again: apt asks only whether they changed.
        self._copy(places["lists"], "lists", ())
        # apt fetches as an account of its own, which must be able to come here and write.
        self._folder.chmod(0o755)
        if os.geteuid() == 0 and root == "/":
            for part in ("lists/partial", "cache/archives/partial"):
                _give_to_apt(self._folder / part)

    def _copy(self, source: Path, part: str, without: Sequence[str]) -> None:
        for path in sorted(source.iterdir()) if source.is_dir() else ():
            if path.is_file() and str(path) not in without and path.name != "lock":
                # With its time, by which apt asks whether an index has changed since.
                shutil.copy2(path, self._folder / part / path.name)

    def _options(self) -> list[str]:
        folder = self._folder
        places = {
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": folder / "sources.list.d",
            "Dir::Etc::preferences": folder / "preferences",
            "Dir::Etc::preferencesparts": folder / "preferences.d",
            "Dir::State::lists": folder / "lists",
            "Dir::Cache": folder / "cache",
        }
        options = [f"-o{name}={value}" for name, value in places.items()]
        return [*options, "-oDebug::NoLocking=1", "-oAcquire::Retries=1"]

    def _run(self, program: str, arguments: Sequence[str], timeout: float) -> CommandResult:
        found = find_program(program)
        if found is None:
            return CommandResult(127, stderr=f"E: {program} is not installed")
        return run_program([found, *self._options(), *arguments], timeout)

    def update(self) -> CommandResult:
        return self._run("apt-get", ["update"], UPDATE_TIMEOUT)

    def policy(self, names: Sequence[str]) -> str:
        return self._run("apt-cache", ["policy", *names], TIMEOUT).stdout

    def pin(self, text: str) -> None:
        (self._folder / "preferences.d/zz-swarmspeed-nvidia.pref").write_text(text, encoding="utf-8")
        # Ours of an earlier run would speak of another version.
        (self._folder / "preferences.d/swarmspeed-nvidia.pref").unlink(missing_ok=True)

    def simulate(self, names: Sequence[str]) -> CommandResult:
        # A package on hold is searched in the answer: apt itself would only say that it finds no solution.
        arguments = ["--simulate", "--assume-yes", "--no-install-recommends", "--allow-downgrades", "--ignore-hold"]
        return self._run("apt-get", [*arguments, "--allow-change-held-packages", "install", *names], TIMEOUT)

    def held(self) -> list[str]:
        program = find_program("apt-mark")
        answer = run_program([program, "showhold"], TIMEOUT) if program else CommandResult(127)
        return [line.partition(":")[0] for line in answer.stdout.split()]


def _places(root: str) -> dict[str, Path]:
    """Return where apt reads its sources and keeps its lists."""
    places = {name: Path(root) / usual for name, (dummy, usual) in _PLACES.items()}
    program = find_program("apt-config") if root == "/" else None
    if program is None:
        return places
    requested = [word for name, (key, dummy) in _PLACES.items() for word in (name, key)]
    answer = run_program([program, "shell", *requested], TIMEOUT)
    printed = dict(re.findall(r"^(\w+)='([^']+)'$", answer.stdout, re.MULTILINE)) if answer.rc == 0 else {}
    return {name: Path(printed.get(name, path)) for name, path in places.items()}


def _give_to_apt(path: Path) -> None:
    try:
        shutil.chown(path, "_apt")
    except LookupError:  # an apt without its account fetches as root
        return
