# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""An image of the user's own kind out of what a machine has: its system, its Python with torch, the proof's DeepSpeed.

The shipped image cannot be built there, as no package index is reached, and is too large to be brought along. What
docs/own_image.md asks for and the machine may lack (sshd, pdsh, ip …) is Debian 12's, which runs with any later C
library.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.gpu_proof.commands import PYTHON
from tests.gpu_proof.environment import ENVIRONMENT
from tests.gpu_proof.machines import BROUGHT, DRIVER, MACHINES, PLACE, Machine, last, must
from tests.gpu_proof.parts import Failed

NAME = "swarmspeed-proof/torch:1"
ARCHIVE = PLACE / "image.tar"
EXTRA = PLACE / "extra"
PACKAGES = (
    "torch", "torchgen", "functorch", "triton", "nvidia", "numpy", "numpy.libs", "sympy", "mpmath", "networkx",
    "jinja2", "markupsafe", "filelock", "fsspec", "typing_extensions.py", "packaging", "setuptools",
    "_distutils_hack", "psutil", "tqdm", "pydantic", "pydantic_core", "annotated_types", "typing_inspection",
    "ninja", "hjson", "einops", "msgpack", "cpuinfo", "yaml", "_yaml", "cuda",
)  # fmt: skip
"""What torch and DeepSpeed need of the packages beside torch, of which there may be many."""
_LEFT_OUT = (
    "proc", "sys", "dev", "run", "tmp", "mnt", "media", "root", "home", "opt", "srv", "boot", "lost+found",
    "usr/local", "usr/share/doc", "usr/share/man", "usr/share/locale", "etc/passwd", "etc/shadow", "usr/src",
    "usr/lib/modules", "usr/lib/firmware", "usr/lib/google-cloud-sdk", "usr/lib/llvm*", "var/lib", "var/cache",
    "var/log", "var/tmp", "usr/lib/go*", "usr/lib/postgresql", "usr/share/cmake*", "usr/lib/jvm",
    "usr/lib/node_modules", "usr/share/fonts", "usr/share/icons",
)  # fmt: skip
_ASK = """
import json, sys, torch
print(json.dumps({"base": sys.base_prefix, "paths": sys.path}))
"""


def make() -> dict[str, Any]:
    """Write the archive; return its size and how much of it each part is."""
    unpack_extra()
    found = json.loads(must([PYTHON, "-c", _ASK]))
    ARCHIVE.unlink(missing_ok=True)
    left_out = [f"--exclude=./{path}" for path in _LEFT_OUT]
    tops = sorted(
        path.name for path in Path("/").iterdir() if path.name in ("bin", "sbin", "lib", "lib64", "usr", "etc")
    )
    must(["tar", "-C", "/", "-cf", str(ARCHIVE), *left_out, *(f"./{top}" for top in tops)], 300)
    system = ARCHIVE.stat().st_size
    # Docker imports no archive that has a path twice
    names = sorted({name for path in _of_python(found) if not _of_system(name := str(path).lstrip("/"))})
    listed = PLACE / "image.list"
    listed.write_text("".join(f"./{name}\n" for name in names), encoding="utf-8")
    must(["tar", "-C", "/", "-rf", str(ARCHIVE), "--exclude=__pycache__", f"--files-from={listed}"], 300)
    python = ARCHIVE.stat().st_size
    with_extra = PLACE / "image.extra"
    with_extra.write_text("".join(f"./{name}\n" for name in _extra()), encoding="utf-8")
    must(["tar", "-C", str(EXTRA), "-rf", str(ARCHIVE), "--no-recursion", f"--files-from={with_extra}"])
    _add_accounts()
    sizes = {"system": system, "python": python - system, "whole": ARCHIVE.stat().st_size}
    return {name: round(size / 1e6) for name, size in sizes.items()}


def load(machines: tuple[Machine, ...] = MACHINES) -> None:
    """Import it into the engine of every server, at the same time. Raises Failed."""
    with ThreadPoolExecutor(len(machines)) as pool:
        for failure in pool.map(_import, machines):
            if failure:
                raise Failed(failure)


def _import(machine: Machine) -> str:
    path = f"{ENVIRONMENT}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    command = ["docker", "import", "--change", f"ENV PATH={path}", "-", NAME]
    with ARCHIVE.open("rb") as archive:
        ran = subprocess.run(
            ["nsenter", "--all", f"--target={machine.pid}", *command],
            stdin=archive, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
    return f"{machine.name}: docker import: {last(ran.stderr)}" if ran.returncode else ""


def _of_python(found: dict[str, Any]) -> Iterator[Path]:
    """Yield what torch needs to run, and is no file of the system."""
    base = Path(found["base"])
    yield ENVIRONMENT
    loader = DRIVER / "glibc"
    if loader.is_dir():  # the C library that the driver's programs of such an image may ask for
        yield loader
    if base != Path("/usr"):
        yield from (base / name for name in ("bin", "include", "lib"))
    for place in map(Path, found["paths"]):
        if (
            place.name not in ("site-packages", "dist-packages")
            or ENVIRONMENT in place.parents
            or base in place.parents
        ):
            continue
        for entry in place.iterdir() if place.is_dir() else ():
            plain = entry.name.split("-")[0].lower()
            if entry.name in PACKAGES or (entry.suffix == ".dist-info" and _wanted(plain)):
                yield entry


def _of_system(name: str) -> bool:
    return name.startswith("usr/") and not name.startswith("usr/local/")


def _wanted(plain: str) -> bool:
    return plain in PACKAGES or plain.startswith("nvidia_")


def _extra() -> Iterator[str]:
    """Yield the files that are brought along and that the machine lacks."""
    for path in sorted(EXTRA.rglob("*")):
        here = Path("/") / path.relative_to(EXTRA)
        is_file = path.is_symlink() or not path.is_dir()
        if is_file and not here.is_symlink() and not here.exists():
            yield str(path.relative_to(EXTRA))


def _add_accounts() -> None:
    """Write the accounts: sshd's own may be missing, and root's must not be locked."""
    folder = PLACE / "accounts"
    (folder / "etc").mkdir(parents=True, exist_ok=True)
    passwd = Path("/etc/passwd").read_text(encoding="utf-8")
    if "\nsshd:" not in passwd:
        passwd += "sshd:x:106:65534::/run/sshd:/usr/sbin/nologin\n"
    (folder / "etc/passwd").write_text(passwd, encoding="utf-8")
    (folder / "etc/shadow").write_text("root:*:20000:0:99999:7:::\nsshd:!:20000::::::\n", encoding="utf-8")
    (folder / "etc/shadow").chmod(0o640)
    folders = ("root", "tmp", "run", "proc", "sys", "dev", "opt", "var", "var/lib", "var/tmp")
    for name in folders:
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    (folder / "root").chmod(0o700)
    added = [f"./{name}" for name in (*folders, "etc/passwd", "etc/shadow")]
    must(["tar", "-C", str(folder), "--owner=0", "--group=0", "-rf", str(ARCHIVE), "--no-recursion", *added])


def unpack_extra() -> None:
    if not EXTRA.exists():
        with tarfile.open(BROUGHT / "extra.tar.xz", "r:xz") as tar:
            tar.extractall(EXTRA, filter="fully_trusted")
