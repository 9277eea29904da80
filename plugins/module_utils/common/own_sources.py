# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The sources of one of our programs: its own, and those of all that it imports by relative imports.

A program that runs in a container or outlives its module is sent there as source. What belongs to it is read from its
imports, so nothing is listed by hand.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType

ROOT = "swarmspeed"
"""The package that stands for module_utils where a program runs, so that relative imports lead to the same files."""
_OUTSIDE = __name__.rpartition(".common.")[0] + "."


def sent_name(module: ModuleType) -> str:
    """Return the name of a module where it is sent."""
    return _sent(module.__name__)


def sources(program: ModuleType) -> dict[str, str]:
    """Return sources by the names that they have there, each after those that it imports."""
    found: dict[str, str] = {}
    _collect(program.__name__, found)
    return {_sent(name): source for name, source in found.items()}


def _sent(name: str) -> str:
    return f"{ROOT}.{name[len(_OUTSIDE) :]}"


def _collect(name: str, found: dict[str, str], above: tuple[str, ...] = ()) -> None:
    if name in found or name in above:
        return
    # The source, not the file: on a node this module runs out of a zip archive itself.
    source = inspect.getsource(sys.modules[name])
    for other in _imported(name, source):
        _collect(other, found, (*above, name))
    found[name] = source


def _imported(name: str, source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            parent = ".".join([*name.split(".")[: -node.level], *([node.module] if node.module else [])])
            if hasattr(sys.modules[parent], "__path__"):
                yield from (f"{parent}.{entry.name}" for entry in node.names)
            else:
                yield parent
