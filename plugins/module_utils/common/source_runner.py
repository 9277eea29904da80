# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Hands one of our programs to a Python in a container or here, which runs it. Nothing is installed there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from .own_sources import sources

BOOT = """\
import sys
sys.path[:] = [path for path in sys.path if path]
import json, types
given = json.loads(sys.stdin.readline())
for name, source in given["sources"]:
    above = name.split(".")[:-1]
    for package in (".".join(above[:depth + 1]) for depth in range(len(above))):
        sys.modules.setdefault(package, types.ModuleType(package)).__path__ = []
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__package__ = package
    exec(compile(source, name, "exec"), sys.modules[name].__dict__)
sys.modules[name].main(given["requested"])
"""
"""What the command line holds: what is requested, and the program, come over standard input, which stays open after."""


def command_for(container: str | None, wrapper: Sequence[str], python: str) -> list[str]:
    """Return the command that takes a request, in a container or here."""
    prefix = ["docker", "exec", "-i", container] if container else []
    return [*prefix, *wrapper, python, "-B", "-c", BOOT]


def request_for(program: ModuleType, requested: Mapping[str, Any]) -> str:
    """Return the one line that has ``main`` of this module called; what it imports relatively is sent with it."""
    return json.dumps({"sources": list(sources(program).items()), "requested": dict(requested)}) + "\n"
