# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The rows of the table that come from the ordinary package index, resolved by pip from metadata alone.

Nothing is installed, and of a wheel only its metadata is fetched (1 MB of 500): pip reads it by ranges (fast-deps), and
from release 24 on a dry run ends there. So the tests bring a pip of their own.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.table import (
    EXTRAS,
    Stack,
    Torch,
    load_table,
)

PIP = "pip==26.3"
TABLE = load_table()
ORDINARY = [stack for stack in TABLE.gpu_stacks() if not stack.index]


@pytest.fixture(scope="session", name="pip")
def fixture_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pip")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = folder / "bin" / "pip"
    subprocess.run([str(pip), "install", "--quiet", PIP], check=True)
    return pip


def resolve(pip: Path, *requirements: str, python: str = "3.11", deps: bool = True) -> dict[str, dict[str, Any]]:
    """Return what pip would install, by name."""
    command = [str(pip), "install", "--quiet", "--dry-run", "--ignore-installed", "--use-feature=fast-deps"]
    # A target and binaries alone: what pip asks for where the Python is not the one that runs it.
    command += ["--python-version", python, "--only-binary", ":all:", "--target", str(pip.parent / "nowhere")]
    done = subprocess.run(
        [*command, "--report", "-", *(() if deps else ("--no-deps",)), *requirements],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    return {re.sub(r"[-_.]+", "-", entry["metadata"]["name"].lower()): entry for entry in report["install"]}


def version(found: dict[str, dict[str, Any]], name: str) -> str:
    return str(found[name]["metadata"]["version"])


@pytest.mark.parametrize("stack", ORDINARY, ids=lambda stack: stack.name)
def test_a_row_resolves_to_the_cuda_and_the_nccl_that_it_claims(pip: Path, stack: Stack) -> None:
    torch = TABLE.torch_row(stack.torch)
    assert torch is not None
    family = torch.cuda.split(".", maxsplit=1)[0]
    compiler = [f"cuda-toolkit[{EXTRAS}]=={torch.toolkit}"] if torch.toolkit else []
    # Three signs: a wheel for CPUs that a machine keeps (2.13.0+cpu) satisfies two.
    found = resolve(pip, f"torch==={torch.release}", *compiler)
    assert version(found, "torch") == torch.release
    assert version(found, f"nvidia-nccl-cu{family}") == torch.nccl
    runtime = "nvidia-cuda-runtime" if torch.toolkit else f"nvidia-cuda-runtime-cu{family}"
    assert version(found, runtime).startswith(f"{stack.cuda}.")
    if torch.toolkit:
        assert version(found, "cuda-toolkit") == torch.toolkit
        assert version(found, "nvidia-cuda-nvcc").startswith(f"{stack.cuda}.")


@pytest.mark.parametrize("torch", TABLE.torch, ids=lambda torch: torch.release)
def test_what_a_release_of_pytorch_brings_and_for_which_python(pip: Path, torch: Torch) -> None:
    for python in torch.python:
        found = resolve(pip, f"torch==={torch.release}", python=python, deps=False)
        needs = [text.partition(";")[0] for text in found["torch"]["metadata"]["requires_dist"]]
        pins = dict(
            re.findall(r"^([a-z0-9-]+)(?:\[[^\]]*\])?\s*\(?==([0-9.]+)\)?", text.strip())[0]
            for text in needs
            if "==" in text
        )
        family = torch.cuda.split(".", maxsplit=1)[0]
        assert pins[f"nvidia-nccl-cu{family}"] == torch.nccl
        assert pins.get("cuda-toolkit", "") == torch.toolkit
        assert torch.toolkit or pins[f"nvidia-cuda-runtime-cu{family}"].startswith(f"{torch.cuda}.")


class Remote(io.RawIOBase):
    """A file that is read by ranges over HTTP."""

    def __init__(self, address: str) -> None:
        self.address, self.place = address, 0
        with urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=60) as answer:
            self.size = int(answer.headers["Content-Length"])

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self.place = offset + (0, self.place, self.size)[whence]
        return self.place

    def tell(self) -> int:
        return self.place

    def readinto(self, buffer: Any) -> int:
        last = min(self.place + len(buffer), self.size) - 1
        if self.place > last:
            return 0
        request = urllib.request.Request(self.address, headers={"Range": f"bytes={self.place}-{last}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 206, "the package index gives no parts of files"
            data: bytes = answer.read()
        buffer[: len(data)] = data
        self.place += len(data)
        return len(data)


def opened(address: str) -> Any:
    """Open a wheel where it is: pip's index may be a folder."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme == "file":
        return Path(urllib.request.url2pathname(parts.path)).open("rb")
    return io.BufferedReader(Remote(address), 1 << 16)


@pytest.mark.parametrize(
    ("requirement", "name", "there"),
    [
        ("nvidia-cuda-nvcc==13.0.88", "nvidia/cu13/bin/nvcc", True),
        ("nvidia-cuda-nvcc-cu12==12.8.93", "nvidia/cuda_nvcc/bin/nvcc", False),
        ("nvidia-cuda-nvcc-cu12==12.6.85", "nvidia/cuda_nvcc/bin/nvcc", False),
    ],
)
def test_which_wheels_have_a_compiler(pip: Path, requirement: str, name: str, *, there: bool) -> None:
    (found,) = resolve(pip, requirement, deps=False).values()
    with opened(found["download_info"]["url"]) as file, zipfile.ZipFile(file) as wheel:
        names = wheel.namelist()
    assert any(entry.endswith("bin/ptxas") for entry in names)
    assert (name in names) is there
