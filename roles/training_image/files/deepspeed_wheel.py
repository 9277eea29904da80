# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs while the image is built: makes a wheel of DeepSpeed from an archive or a git reference, and checks its version.

Usage: deepspeed_wheel.py VERSION SOURCE FOLDER [OPTION OF PIP…]

The settings of the build (``DS_ACCELERATOR``, ``DS_BUILD_…``) come with the environment. Built from a repository,
DeepSpeed's version has the commit (``0.19.8+1a2b3c4``), from an archive of one ``+unknown`` (its ``setup.py``, read
2026-11-23); that part counts only where VERSION names it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

VARIABLE = "training_image_deepspeed_source"


class SourceError(Exception):
    """The source cannot be used; the text says why and what to do."""


def check_reference(source: str) -> None:
    """Refuse a branch: the image would be another one tomorrow, under the same tag."""
    if not source.startswith("git+"):
        return
    url, _at, reference = source[len("git+") :].rpartition("@")
    # Exit status 2: there is no such branch. What else goes wrong (network, login), pip meets again and reports.
    command = ["git", "ls-remote", "--exit-code", url, f"refs/heads/{reference}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode == 0 and found.stdout:
        commit = found.stdout.split()[0]
        raise SourceError(
            f"{VARIABLE}: {reference} is a branch, which moves on, and the image's tag would not tell. "
            f"Remedy: name a tag or a commit, which is {commit} now."
        )


def check_wheel(folder: Path, version: str) -> None:
    """Refuse what is not DeepSpeed of this version."""
    names = sorted(wheel.name for wheel in folder.glob("*.whl"))
    parts = names[0].split("-") if len(names) == 1 else []
    if not parts or parts[0].lower() != "deepspeed":
        raise SourceError(
            f"{VARIABLE} is the source of {', '.join(names) or 'nothing'}, not of DeepSpeed. "
            "Remedy: give DeepSpeed's own source."
        )
    built = parts[1]
    if version not in (built, built.partition("+")[0]):
        raise SourceError(
            f"{VARIABLE} is DeepSpeed {built}, and training_image_deepspeed_version is {version}. "
            f"Remedy: set training_image_deepspeed_version: {built.partition('+')[0]}."
        )


def main(version: str, source: str, folder: Path, options: list[str]) -> int:
    """Return the exit status; what is wrong is printed with what to do."""
    command = [sys.executable, "-m", "pip", "wheel", *options, "--no-deps", "--no-build-isolation"]
    try:
        check_reference(source)
        built = subprocess.run([*command, "--wheel-dir", str(folder), source], check=False)
        if built.returncode == 0:
            check_wheel(folder, version)
    except SourceError as error:
        print(error, file=sys.stderr)
        return 1
    return built.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:]))
