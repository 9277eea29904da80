# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Hands the source of some of our modules to a Python in a container or here, which runs them.

Nothing is installed there.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

BOOT = """\
import sys
sys.path[:] = [path for path in sys.path if path]
import json, types
given = json.loads(sys.stdin.readline())
for name, source in given["sources"]:
    sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), sys.modules[name].__dict__)
sys.modules[name].main(given["asked"])
"""
"""What the command line holds: what is asked, and the program, come over standard input, which stays open after."""


def command_for(container: str | None, wrapper: Sequence[str], python: str) -> list[str]:
    """Return the command that takes a request, in a container or here."""
    prefix = ["docker", "exec", "-i", container] if container else []
    return [*prefix, *wrapper, python, "-B", "-c", BOOT]


def request_for(modules: Sequence[ModuleType], asked: Mapping[str, Any]) -> str:
    """Return the one line that has ``main`` of the last of ``modules`` called; each may import those before it."""
    # The source, not the file: on a target a module of Ansible's runs out of a zip archive.
    sources = [(module.__name__.rpartition(".")[2], inspect.getsource(module)) for module in modules]
    return json.dumps({"sources": sources, "asked": dict(asked)}) + "\n"
