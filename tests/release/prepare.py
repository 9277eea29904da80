# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""`make release VERSION=…`: version, documents and changelog of a release. docs/releasing.md says what comes next."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

from .tarball import git

ROOT = Path(__file__).parents[2]
_WITH_VERSION = r"swarmspeed-cluster-\d+\.\d+\.\d+"
TARBALL = re.compile(rf"{_WITH_VERSION}\.tar\.gz")
_NAMES = re.compile(rf"{_WITH_VERSION}(?=\.tar\.gz|\.asc)")
_FIXES = {"bugfixes", "security_fixes", "known_issues", "release_summary", "trivial"}
"""Sections of the changelog that a release of fixes may have."""
_BREAKS = {"breaking_changes", "removed_features"}


class NotReady(Exception):
    """Why there is no release."""


def numbers(version: str) -> tuple[int, int, int]:
    """Return the parts of a version such as 1.2.3, which are all that a release of this collection has."""
    found = re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", version)
    if found is None:
        raise NotReady(f"{version!r} is not a version such as 1.2.3.")
    return int(found[1]), int(found[2]), int(found[3])


def check_version(version: str, released: Iterable[str], sections: Iterable[str]) -> None:
    """Refuse a version that does not say what semantic versioning wants of these sections of the changelog."""
    new, before, given = numbers(version), max(map(numbers, released), default=None), set(sections)
    if not given:
        raise NotReady("There is no fragment in changelogs/fragments.")
    if before is None:
        if new != (1, 0, 0):
            raise NotReady("The first release is 1.0.0.")
        return
    steps = {
        "major": (before[0] + 1, 0, 0),
        "minor": (before[0], before[1] + 1, 0),
        "patch": (before[0], before[1], before[2] + 1),
    }
    least = "major" if given & _BREAKS else "minor" if given - _FIXES else "patch"
    allowed = [steps[step] for step in ("major", "minor", "patch")][: ("major", "minor", "patch").index(least) + 1]
    if new not in allowed:
        versions = " or ".join(".".join(map(str, one)) for one in reversed(allowed))
        why = ", ".join(sorted(given & _BREAKS or given - _FIXES)) or "fixes alone"
        raise NotReady(f"The next version is {versions}, because of {why}.")


def sections(root: Path) -> set[str]:
    """Return the sections that the fragments have."""
    fragments = sorted((root / "changelogs/fragments").glob("*.yml"))
    return {name for path in fragments for name in yaml.safe_load(path.read_text(encoding="utf-8"))}


def set_version(root: Path, version: str) -> list[Path]:
    """Write the version into galaxy.yml and into the names of tarball and signature; return what has changed."""
    changed = []
    names = ("galaxy.yml", "execution-environment.yml", "*.md", "docs/**/*.md", "tests/docs_site/*.cfg")
    for path in sorted(path for name in names for path in root.glob(name)):
        before = path.read_text(encoding="utf-8")
        after = re.sub(r"(?m)^version: .*$", f"version: {version}", before) if path.name == "galaxy.yml" else before
        after = _NAMES.sub(f"swarmspeed-cluster-{version}", after)
        if after != before:
            path.write_text(after, encoding="utf-8")
            changed.append(path)
    return changed


def take_back(root: Path, version: str) -> None:
    """Make a fragment again of a release that was prepared: its section is written again, with what came since."""
    changelog = root / "changelogs/changelog.yaml"
    content = yaml.safe_load(changelog.read_text(encoding="utf-8"))
    changes = content["releases"].pop(version)["changes"]
    for path, data in ((root / f"changelogs/fragments/{version}.yml", changes), (changelog, content)):
        path.write_text(yaml.safe_dump(data, explicit_start=True, allow_unicode=True, width=120), encoding="utf-8")


def main(version: str) -> None:
    releases = yaml.safe_load((ROOT / "changelogs/changelog.yaml").read_text(encoding="utf-8"))["releases"]
    prepared = version in releases and not git(ROOT, "tag", "--list", version)
    ours = releases.pop(version)["changes"] if prepared else {}
    check_version(version, releases, sections(ROOT) | set(ours))
    if git(ROOT, "status", "--porcelain", "--untracked-files=no"):
        raise NotReady("There are changes that are not committed. See git status.")
    if prepared:
        take_back(ROOT, version)
    set_version(ROOT, version)
    # It looks for ansible-doc there, and says nothing if it finds none.
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["antsibull-changelog", "release"], cwd=ROOT, env={**os.environ, "PATH": tools}, check=True)
    print(f"{version} is prepared. Next: docs/releasing.md, from step 3 on.")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except NotReady as reason:
        raise SystemExit(str(reason)) from None
