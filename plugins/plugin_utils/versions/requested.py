# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the user set of PyTorch, CUDA and the GPUs that an image is built for. Empty means: to be chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from .numbers import is_capability, without_letter
from .problem import Problem
from .table import Base, Table

_PIN = re.compile(r"(?:^|\s)torch\s*={2,3}\s*([0-9][0-9.]*)(?:\+([a-z0-9.]+))?(?=$|[\s;,])", re.ASCII)
_INDEX = re.compile(r"/(cu\d{2,4}|cpu)/?$", re.ASCII)
_PYTHON = re.compile(r"(?:.*/)?python(\d+\.\d+)$", re.ASCII)
_SYSTEM = re.compile(r"(debian|ubuntu)[:-]?(\d+(?:\.\d+)?)", re.ASCII)
_CODENAMES = {
    "bookworm": "debian12",
    "trixie": "debian13",
    "jammy": "ubuntu22.04",
    "noble": "ubuntu24.04",
    "resolute": "ubuntu26.04",
}


def cuda_of_name(name: str) -> str:
    """Return the CUDA of an index or of a local version such as ``cu128``; empty for ``cpu`` and what is neither."""
    return f"{name[2:-1]}.{name[-1]}" if re.fullmatch(r"cu\d{3,4}", name, re.ASCII) else ""


@dataclass(frozen=True)
class RequestedVersions:
    """The variables ``training_image_…`` by their names without the prefix, as text."""

    torch: str = ""
    torch_index: str = ""
    cuda: str = ""
    compute_capabilities: tuple[str, ...] = ()
    deepspeed_version: str = ""
    base: str = ""
    python: str = ""
    wheelhouse: str = ""

    @property
    def release(self) -> str:
        """Return the release of PyTorch that is pinned, empty where none is."""
        found = _PIN.search(self.torch)
        return found[1].rstrip(".") if found else ""

    @property
    def local(self) -> str:
        """Return the local version of the pin, such as ``cu128``."""
        found = _PIN.search(self.torch)
        return (found[2] or "") if found else ""

    @property
    def index_name(self) -> str:
        """Return the last part of the index where it names a build: ``cu128`` or ``cpu``."""
        found = _INDEX.search(self.torch_index)
        return found[1] if found else ""

    def python_of(self, table: Table) -> str:
        """Return the Python of the image, where its variables state it: that of the interpreter, or of the base."""
        named = _PYTHON.fullmatch(self.python)
        if named:
            return named[1]
        base = self.base_of(table)
        return base.python if base else ""

    def base_of(self, table: Table) -> Base | None:
        """Return the row of the system that the base is made of, where its name states it."""
        base = self.base
        for codename, release in _CODENAMES.items():
            base = base.replace(codename, release)
        system = _SYSTEM.search(base)
        image = f"{system[1]}:{system[2]}" if system else ""
        return next((row for row in table.bases if row.image == image), None)

    def problems(self, table: Table) -> Iterator[Problem]:
        """Yield what makes no sense by itself."""
        known = [row.release for row in table.cuda]
        if self.cuda and self.cuda not in known:
            yield Problem(
                "version_values",
                ("training_image_cuda",),
                f"CUDA {self.cuda!r} is not in the table of versions",
                f"set one of {', '.join(known)}, or leave it empty to have one chosen",
            )
        wrong = [text for text in self.compute_capabilities if not is_capability(text)]
        if wrong:
            yield Problem(
                "version_values",
                ("training_image_compute_capabilities",),
                f"not a compute capability: {', '.join(wrong)}",
                'write a list such as ["8.0", "9.0"], or leave it empty to have the GPUs of the cluster asked',
            )
        letters = [text for text in self.compute_capabilities if is_capability(text) and without_letter(text) != text]
        if letters:
            # Its int() of "0a" would end the build after minutes.
            plain = dict.fromkeys(without_letter(text) for text in letters)
            yield Problem(
                "version_values",
                ("training_image_compute_capabilities",),
                f"DeepSpeed reads no architecture with a letter ({', '.join(letters)}), but its operators need none",
                f"write {', '.join(plain)} instead, for the same GPUs",
            )
        reported = {
            "training_image_cuda": self.cuda if self.cuda in known else "",
            "training_image_torch": cuda_of_name(self.local),
            "training_image_torch_index": cuda_of_name(self.index_name),
        }
        named = {name: cuda for name, cuda in reported.items() if cuda}
        if len(set(named.values())) > 1:
            shown = ", ".join(f"{name}: {cuda}" for name, cuda in named.items())
            yield Problem(
                "version_values",
                tuple(named),
                f"they name different releases of CUDA ({shown})",
                "name one release in all of them, or leave training_image_cuda empty",
            )


def parse_requested(given: Mapping[str, Any]) -> RequestedVersions:
    """Read the variables. YAML may give 12.8 as a number, and the command line a list as text."""
    values: dict[str, Any] = {}
    for variable in fields(RequestedVersions):
        value = given.get(variable.name)
        if variable.name == "compute_capabilities":
            parts = value if isinstance(value, (list, tuple)) else re.split(r"[;,\s]+", str(value or ""))
            values[variable.name] = tuple(text for text in (str(part).strip() for part in parts) if text)
        elif value not in (None, "", []):
            values[variable.name] = str(value).strip()
    return RequestedVersions(**values)
