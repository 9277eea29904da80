# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The files of inventories on the controller: those that Ansible reads as YAML."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from .syntax import syntax_problem

VARIABLES = ("group_vars", "host_vars")
YAML = (".yml", ".yaml")
SYNTAX_ERROR = 4
"""The exit status of ansible-playbook for a file that it cannot parse."""
LARGEST = 1 << 20
"""Bytes. A larger file was generated, and is not read."""


def inventory_files(sources: Iterable[str]) -> Iterator[Path]:
    """Yield the YAML files of inventory sources, and of group_vars and host_vars beside them."""
    for source in sources:
        path = Path(source)
        if path.is_dir():
            yield from sorted(file for file in path.iterdir() if file.suffix in YAML and file.is_file())
        elif path.is_file() and path.suffix in YAML:
            yield path
        folder = path if path.is_dir() else path.parent
        for name in VARIABLES if path.exists() else ():
            yield from _variable_files(folder / name)


def _variable_files(folder: Path) -> Iterator[Path]:
    for where, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            # Ansible also reads files without an extension.
            if not name.startswith((".", "~")) and Path(name).suffix in ("", *YAML):
                yield Path(where, name)


def inventory_problems(sources: Iterable[str]) -> list[str]:
    """Return one sentence for each file that cannot be read as YAML, with its path as the user would write it."""
    found = []
    for file in dict.fromkeys(inventory_files(sources)):
        try:
            if file.stat().st_size > LARGEST:
                continue
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue  # Ansible names such a file itself
        here = os.path.relpath(file)
        found.append(syntax_problem(str(file) if here.startswith("..") else here, text))
    return [problem for problem in found if problem]
