# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The command that starts a job. Documented in launch_command.yml and launch_program.yml beside this file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.core.shell_words import WordsError, words_of
from ..plugin_utils.launch.command import Launch, LaunchError, command
from ..plugin_utils.launch.program import ProgramError, program


def launch_command(script: str, launch: Mapping[str, Any]) -> list[str]:
    """Return the command as a list of arguments."""
    given: dict[str, Any] = {
        key: [str(item) for item in value] if isinstance(value, (list, tuple)) else value
        for key, value in launch.items()
    }
    try:
        if not isinstance(given.get("args") or [], list):
            given["args"] = words_of(str(given["args"]))
        return command(Launch(script=script, **given))
    except WordsError as error:
        raise AnsibleFilterError(f"launch_command: args {error}.") from None
    except LaunchError as error:
        raise AnsibleFilterError(f"launch_command: {error}") from None
    except TypeError as error:
        raise AnsibleFilterError(f"launch_command: {error}. Give the keys that are documented.") from None


def launch_program(script: str, launcher_args: Sequence[Any] = ()) -> dict[str, str]:
    """Return kind and name of what the launcher starts."""
    try:
        found = program(str(script), [str(word) for word in launcher_args])
    except ProgramError as error:
        raise AnsibleFilterError(str(error)) from None
    return {"kind": found.kind, "name": found.name}


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"launch_command": launch_command, "launch_program": launch_program}
