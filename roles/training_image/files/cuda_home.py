# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs while the image is built: puts a CUDA_HOME together that torch's and DeepSpeed's builders accept.

Usage: cuda_home.py FOLDER REQUIREMENT…

Where the base image has a CUDA toolkit of torch's own release, FOLDER holds links to it. Otherwise the requirements
(nvcc and its headers, as wheels of the release that torch depends on) are installed, and FOLDER is filled with
links into them: the wheels keep their libraries under numbered names alone, and CUDA 12's have a folder for each
package, while builders want one tree with ``lib64`` and names such as ``libcudart.so``. FOLDER/added.txt lists what
was installed.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

TOOLKIT = Path("/usr/local/cuda")
"""Where NVIDIA's own images have it."""
ADDED = "added.txt"
_PARTS = ("bin", "include", "nvvm", "lib")
_RELEASE = re.compile(r"release (\d+\.\d+)")
_LIBRARY = re.compile(r"(lib[\w.+-]+?\.so)\.[\d.]+$")


def release_of(home: Path) -> str:
    """Return the release of the CUDA compiler below this folder, such as ``13.0``, or an empty text."""
    try:
        said = subprocess.run([str(home / "bin" / "nvcc"), "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    found = _RELEASE.search(said.stdout)
    return found[1] if found else ""


def trees(packages: Path) -> Iterator[Path]:
    """The folders of NVIDIA's wheels: one for all of CUDA 13, one for each package of CUDA 12."""
    nvidia = packages / "nvidia"
    for folder in sorted(nvidia.iterdir()) if nvidia.is_dir() else []:
        if any((folder / name).is_dir() for name in _PARTS):
            yield folder


def merge(source: Path, target: Path) -> None:
    """Fill ``target`` with links to the files below ``source``: several packages share its folders."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(source.iterdir()):
        place = target / entry.name
        if entry.is_dir():
            merge(entry, place)
        elif not place.is_symlink():
            place.symlink_to(entry)


def assemble(packages: Path, home: Path) -> None:
    """Fill ``home`` from the wheels below ``packages``."""
    for tree in trees(packages):
        for name in _PARTS:
            if (tree / name).is_dir():
                merge(tree / name, home / name)
    libraries = home / "lib"
    libraries.mkdir(parents=True, exist_ok=True)
    for library in sorted(libraries.iterdir()):
        found = _LIBRARY.match(library.name)
        if found and not (libraries / found[1]).is_symlink():
            (libraries / found[1]).symlink_to(library.name)
    (home / "lib64").symlink_to("lib")
    driver = libraries / "libcuda.so"
    if not driver.is_symlink():
        # The driver's own library comes into a container with the GPU. To link against it, its name is enough.
        shared = ["g++", "-shared", "-x", "c++", os.devnull, "-Wl,-soname,libcuda.so.1", "-o", str(driver)]
        subprocess.run(shared, check=True)


def installed() -> set[str]:
    """The names of the distributions that this Python has."""
    return {str(found.metadata["Name"]) for found in distributions()}


def main(home: Path, requirements: list[str]) -> int:
    """Return the exit status; what is wrong is printed with what to do."""
    import torch  # noqa: PLC0415 - the image's own; tests of the rest do without it

    wanted = torch.version.cuda
    if not wanted:
        remedy = "correct training_image_torch or training_image_torch_index"
        print(f"torch {torch.__version__} has no CUDA in it. Remedy: {remedy}.", file=sys.stderr)
        return 1
    home.mkdir(parents=True)
    if release_of(TOOLKIT) == wanted:
        for entry in TOOLKIT.iterdir():
            (home / entry.name).symlink_to(entry)
        (home / ADDED).touch()
        print(f"CUDA {wanted} of the base image")
        return 0
    before = installed()
    subprocess.run([sys.executable, "-m", "pip", "install", *requirements], check=True)
    assemble(Path(sysconfig.get_paths()["purelib"]), home)
    importlib.invalidate_caches()
    (home / ADDED).write_text("".join(f"{name}\n" for name in sorted(installed() - before)))
    found = release_of(home)
    if found != wanted:
        given = ", ".join(requirements) or "no wheel"
        print(
            f"torch {torch.__version__} is built with CUDA {wanted}, and the compiler of {given} is of "
            f"{found or 'no release'}. Remedy: set training_image_cuda: '{wanted}'.",
            file=sys.stderr,
        )
        return 1
    print(f"CUDA {found} from wheels")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
