# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The job's variables: values that no host could use, which would else be refused in the last role or after training.

Where a module judges a value too, its own function is called here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import UnfitError, absolute_path
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import (
    JobError,
    check_name,
    check_variables,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.results import ResultsError, check_paths
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.program import ProgramError, program
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import (
    Inventory,
    by_value,
    one_for_all,
    shown,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.problems import Problem, mapping, texts

PREFIX = "deepspeed_launch_"
_MANY = 2**31 - 1
RANGES: dict[str, tuple[float, float, str]] = {
    "master_port": (0, 65535, "a port, or 0 for the first free one"),
    "stall_timeout": (0, _MANY, "a number of seconds, or 0 to wait forever"),
    "restarts": (0, _MANY, "a number of restarts"),
    "gather_mib": (1, 64, "a size in MiB"),
    "checkpoint_gib": (0, _MANY, "a size in GiB, or 0 for no check"),
    "results_gib": (0, _MANY, "a size in GiB"),
}
"""The least and the greatest value of the variables that are numbers, and what the number is."""
ABSOLUTE = ("checkpoints", "path")
"""Folders as ranks see them; of a relative one, nothing says where it would start."""
ONE_FOR_ALL = ("name", "script", "launcher", "transport", "include", "exclude", "master_port")
"""There is one job: what differs between hosts would be that of the node of rank 0 here and of each node there."""
WORDS = ("args", "launcher_args", "resume_args", "config_argument", "script")
"""Words of a command line."""


def check_launch_values(inventory: Inventory) -> Iterator[Problem]:
    """The job can have this name, these numbers, paths and variables."""
    for name in ONE_FOR_ALL:
        yield from one_for_all(inventory, PREFIX + name, inventory.values(PREFIX + name))
    for name, (least, most, what) in RANGES.items():
        wrong = {
            host: shown(value)
            for host, value in inventory.values(PREFIX + name).items()
            if (given := _number(value)) is not None and not least <= given <= most
        }
        for text, hosts in by_value(wrong).items():
            bounds = f"from {least} to {most}" if most != _MANY else f"of at least {least}"
            yield Problem(
                PREFIX + name, f"{text} is not {what} {bounds}{inventory.where(hosts)}", "correct it, or remove it"
            )
    yield from _judged(inventory, "name", _name, "name the job like finetune-10b")
    yield from _judged(inventory, "script", _script, "correct it")
    yield from _judged(inventory, "results", _results, "write it relative to the workspace, as in checkpoints/model")
    for name in ABSOLUTE:
        yield from _judged(inventory, name, _absolute, "write it as ranks see it, beginning with /")
    for name in WORDS:
        yield from _judged(inventory, name, _words, "remove that character")
    yield from _judged(inventory, "logs_dir", _folder(inventory), "name a folder on this controller that you can write")
    yield from _environment(inventory)
    yield from _transport(inventory)


def _judged(inventory: Inventory, name: str, judge: Callable[[Any], str], remedy: str) -> Iterator[Problem]:
    found = {host: judge(value) for host, value in inventory.values(PREFIX + name).items()}
    for text, hosts in by_value({host: text for host, text in found.items() if text}).items():
        yield Problem(PREFIX + name, text + inventory.where(hosts), remedy)


def _name(value: Any) -> str:
    try:
        check_name(str(value))
    except JobError:
        return f"{shown(value)} is not 1 to 63 of a-z, 0-9, '.', '_' and '-', the first of them a letter or digit"
    return ""


def _script(value: Any) -> str:
    try:
        program(str(value))
    except ProgramError as error:
        return str(error).removeprefix(f"{PREFIX}script: ").rstrip(".")
    return ""


def _results(value: Any) -> str:
    for path in texts(value):
        try:
            check_paths([path])
        except ResultsError:
            return f"'{path}' is not a path below the workspace"
    return ""


def _absolute(value: Any) -> str:
    try:
        return "" if value == "" else absolute_path(value) and ""
    except UnfitError:
        return f"{shown(value)} is not an absolute path without steps upwards"


def _words(value: Any) -> str:
    odd = [word for word in texts(value) or [str(value)] if "\0" in word]
    return "has a word with the character NUL, which no command line can hold" if odd else ""


def _folder(inventory: Inventory) -> Callable[[Any], str]:
    def judge(value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            return f"{shown(value)} is not a folder on the controller, and the job's logs are copied to it"
        return "" if inventory.writable(value) else f"{value} on the controller cannot be written to"

    return judge


def _environment(inventory: Inventory) -> Iterator[Problem]:
    """Of pdsh, which changes some characters, only where the job is certain to have several nodes."""
    several = len(inventory.members("cluster")) > 1
    transports, chosen = (inventory.values(PREFIX + name) for name in ("transport", "include"))
    left_out, found = inventory.values(PREFIX + "exclude"), {}
    for host, value in inventory.values(PREFIX + "environment").items():
        forwarded = several and transports.get(host) == "pdsh" and not chosen.get(host) and not left_out.get(host)
        try:
            check_variables({str(key): part for key, part in mapping(value).items()}, forwarded=forwarded)
        except JobError as error:
            found[host] = str(error).removeprefix("environment: ").rstrip(".")
    for text, hosts in by_value(found).items():
        yield Problem(PREFIX + "environment", text + inventory.where(hosts), "correct that variable")


def _transport(inventory: Inventory) -> Iterator[Problem]:
    launchers: Mapping[str, Any] = inventory.values(PREFIX + "launcher")
    hosts = [
        host
        for host, value in inventory.values(PREFIX + "transport").items()
        if value == "pdsh" and launchers.get(host, "deepspeed") != "deepspeed"
    ]
    if hosts:
        yield Problem(
            PREFIX + "transport",
            f"is pdsh, which starts DeepSpeed's launcher only, and {PREFIX}launcher is {launchers[hosts[0]]}"
            + inventory.where(hosts),
            f"set {PREFIX}transport: direct",
        )


def _number(value: Any) -> float | None:
    """Return a number, also where an INI inventory or the command line gave it as text; the type is another check's."""
    if isinstance(value, bool):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(found) else found
