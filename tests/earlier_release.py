# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The release from which scenario ``upgrade`` upgrades: its tree, out of this repository's own history.

Usage: python -m tests.earlier_release PLACE
Installs it into PLACE. Ends with 1 and one sentence on stderr where the clone does not have its commit.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.installed import Installed
from tests.playbook_run import ROOT

COMMIT = "6074c8e3a8e9110f1421384982f2662db66de564"
"""The latest release (CONTRIBUTING.md, "Standards")."""


class MissingReleaseError(Exception):
    """The history of this clone does not reach back to the earlier release."""


def unpack(place: Path, commit: str = COMMIT, repository: Path = ROOT) -> Path:
    """Return the tree of a commit, unpacked into an empty folder."""
    known = ["git", "-C", str(repository), "cat-file", "-e", f"{commit}^{{commit}}"]
    if subprocess.run(known, stderr=subprocess.DEVNULL, check=False).returncode:
        raise MissingReleaseError(
            f"This clone lacks commit {commit[:8]}, the release to upgrade from. Remedy: git fetch --unshallow origin"
        )
    place.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "-C", str(repository), "archive", commit], stdout=subprocess.PIPE, check=True, timeout=120
    )
    subprocess.run(["tar", "-x", "-C", str(place)], input=archive.stdout, check=True, timeout=120)
    return place


def tree_in(place: Path) -> Path:
    return place / "earlier"


def installed_in(place: Path) -> Installed:
    """Return what is installed there, with the lab's inventory as the earlier release has it."""
    return Installed(place, tree_in(place) / "inventories" / "lab")


def main(place: Path) -> int:
    installed = installed_in(place)
    installed.make_empty()
    try:
        tree = unpack(tree_in(place))
    except MissingReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    installed.install_from(tree)
    (tree / ".lab").symlink_to(ROOT / ".lab")  # key and addresses of the nodes, base image and wheels
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
