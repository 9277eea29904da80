# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The job's command as a debug configuration of VS Code, beside those of others. Pure."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils.common.secret_names import is_secret
from ...module_utils.ds_config.hjson import HjsonError, loads
from .command import LaunchError

PLACEHOLDER = re.compile("@[a-z_]+@")
"""What the command leaves open."""
PORT = "@master_port@"
LOGS = "@logs@"
EMPTY: dict[str, Any] = {"version": "0.2.0", "configurations": []}


def arguments(command: Sequence[str], port: int) -> list[str]:
    """Return the command as one process runs it: ranks' output to the terminal instead of files, a port filled in."""
    words = [str(word) for word in command]
    if LOGS in words:
        at = words.index(LOGS)
        del words[at - 1 : at + 1]  # with the option before it
    words = [str(port) if word == PORT else word for word in words]
    left = [word for word in words if PLACEHOLDER.fullmatch(word)]
    if left:
        raise ValueError(
            f"the command has {' and '.join(left)} in it, which differs between nodes, and a debugger starts one "
            "process. Give the command of launcher deepspeed with transport pdsh"
        )
    return words


def configuration(
    name: str, command: Sequence[str], *, folder: str, cwd: str, environment: Mapping[str, str], env_file: str
) -> dict[str, Any]:
    """Return one configuration for VS Code's Python debugger; the first word of the command is its program."""
    program, *rest = command
    found: dict[str, Any] = {
        "name": name,
        "type": "debugpy",
        "request": "launch",
        "python": f"{folder}/python3",
        # By its absolute path: VS Code looks into no PATH for it.
        "program": posixpath.join(folder, program),
        "args": [_literal(word) for word in rest],
        "cwd": cwd,
        "env": {key: _literal(str(value)) for key, value in sorted(environment.items()) if not is_secret(key, value)},
        "console": "integratedTerminal",
        "justMyCode": False,
        # A job on one node has its ranks as children, which are debugged too; on more nodes they are started over ssh.
        "subProcess": True,
    }
    if env_file:
        found["envFile"] = env_file
    return found


def merged(current: str, ours: dict[str, Any]) -> str:
    """Return the file with our configuration in it: in the place of one of the same name, else as the last."""
    try:
        # VS Code's files are JSON with comments and trailing commas.
        found = loads(current) if current.strip() else dict(EMPTY)
    except HjsonError as error:
        raise ValueError(f".vscode/launch.json is not JSON: {error}. Fix or remove it") from error
    others = found.get("configurations", []) if isinstance(found, dict) else None
    if not isinstance(others, list):
        raise ValueError(".vscode/launch.json has no list named configurations in it. Fix or remove it")
    at = [
        number for number, other in enumerate(others) if isinstance(other, dict) and other.get("name") == ours["name"]
    ]
    if at and others[at[0]] == ours and len(at) == 1:
        return current
    kept = [other for number, other in enumerate(others) if number not in at[1:]]
    if at:
        kept[at[0]] = ours
    else:
        kept.append(ours)
    return json.dumps({**EMPTY, **found, "configurations": kept}, indent=4, ensure_ascii=False) + "\n"


def vscode_launch(
    current: str | None,
    command: Sequence[str],
    name: str,
    *,
    port: int = 29600,
    folder: str = "/opt/swarmspeed/bin",
    cwd: str = "/workspace",
    environment: Mapping[str, Any] | None = None,
    env_file: str = "",
) -> str:
    """Return the text of .vscode/launch.json with a configuration that runs the command. Raises ``LaunchError``."""
    try:
        ours = configuration(
            name,
            arguments(command, port),
            folder=folder,
            cwd=cwd,
            environment={key: str(value) for key, value in (environment or {}).items()},
            env_file=env_file,
        )
        return merged(current or "", ours)
    except ValueError as error:
        raise LaunchError(str(error)) from None


def _literal(text: str) -> str:
    """Return the text so that VS Code does not look for a variable of its own in it."""
    # VS Code has no escape for ${…}, and an unknown variable stops it with a question at every start.
    if "${" in text:
        raise ValueError(f"{text!r} has ${{ in it, which VS Code would replace. Write it without")
    return text
