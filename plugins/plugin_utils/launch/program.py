# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What ``deepspeed_launch_script`` names: a file of the workspace, or a module or command that the image has. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

FILE, MODULE, COMMAND = "file", "module", "command"
_MODULE = re.compile(r"-m\s+(?P<name>\S.*)")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
AS_MODULE = ("-m", "--module")
AS_COMMAND = ("--no_python", "--no-python")


class ProgramError(Exception):
    """It names nothing that can be started. The text says why, and what to do."""


@dataclass(frozen=True)
class Program:
    """``kind`` is one of FILE, MODULE and COMMAND; ``given`` whether the launcher's arguments say so already."""

    kind: str
    name: str
    given: bool = False


def in_workspace(script: str) -> str:
    """Return a script that is given by its path in the containers, or with ./, relative to the workspace."""
    return script.strip().removeprefix("/workspace/").removeprefix("./")


def program(script: str, launcher_args: Sequence[str] = ()) -> Program:
    """Return what the script is. Raises ``ProgramError``."""
    module = _MODULE.fullmatch(script.strip())
    if module:
        if not _DOTTED.fullmatch(module["name"]):
            raise ProgramError(
                f"deepspeed_launch_script: {module['name']!r} is not a valid name of a Python module. Write it as in "
                "-m package.module, and its arguments into deepspeed_launch_args."
            )
        return Program(MODULE, module["name"], given=any(word in launcher_args for word in AS_MODULE))
    for kind, words in ((MODULE, AS_MODULE), (COMMAND, AS_COMMAND)):
        if any(word in launcher_args for word in words):
            return Program(kind, script, given=True)
    # A command is found on the PATH, so it has no folder; a file without an ending is written with one: ./train.
    return Program(FILE if "/" in script or script.endswith(".py") else COMMAND, script)
