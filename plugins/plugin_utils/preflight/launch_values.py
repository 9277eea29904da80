# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The job's variables, compared: among hosts, and with one another. Most of each by itself is its constraint's.

Where a module judges a value too, its own function is called here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ...module_utils.common.secret_names import mask_arguments
from ...module_utils.ds_config.build import Request, build
from ...module_utils.ds_config.facts import AUTO
from ...module_utils.hostfile.filters import parse_filter
from ...module_utils.job.resource import JobError, check_variables
from ..core.kinds import KINDS
from ..core.problems import Problem
from ..core.shell_words import WordsError, words_of
from ..core.values import mapping
from ..launch.program import ProgramError, program
from .inventory import Inventory, by_value, one_for_all

PREFIX = "deepspeed_launch_"
_SEVERAL = re.compile(r"\s--[A-Za-z]|^--[A-Za-z][\w-]*\s+\S")
_COMMAND_FOLLOWS = re.compile("-[a-z]*c")
ONE_FOR_ALL = ("name", "script", "launcher", "transport", "include", "exclude", "master_port")
"""There is one job: what differs between hosts would be that of the node of rank 0 here and of each node there."""


def check_launch_values(inventory: Inventory) -> Iterator[Problem]:
    """There is one job, whose script can be started, whose logs can be kept, and which pdsh could start."""
    for name in ONE_FOR_ALL:
        yield from one_for_all(inventory, PREFIX + name, inventory.values(PREFIX + name))
    yield from _judged(inventory, "script", _script, "correct it")
    yield from _judged(inventory, "logs_dir", _folder(inventory), "name a folder on this controller that you can write")
    for name in ("include", "exclude"):
        yield from _judged(inventory, name, _filter(name, inventory.members("cluster")), "write it as gpu1:0,1@gpu2")
    yield from _judged(inventory, "ds_config_preset", _preset, "write one of these")
    yield from _judged(inventory, "ds_config", _configuration, "correct it")
    yield from _arguments(inventory)
    yield from _environment(inventory)
    yield from _secrets(inventory)
    yield from _transport(inventory)
    yield from _lost_arguments(inventory)
    yield from _restart(inventory)


def _judged(inventory: Inventory, name: str, judge: Callable[[Any], str], remedy: str) -> Iterator[Problem]:
    found = {host: judge(value) for host, value in inventory.values(PREFIX + name).items()}
    for text, hosts in by_value({host: text for host, text in found.items() if text}).items():
        yield Problem(PREFIX + name, text + inventory.where(hosts), remedy)


def _script(value: Any) -> str:
    if not KINDS["line"].accepts(value):
        return ""  # empty, or reported by the check of values
    try:
        program(str(value))
    except ProgramError as error:
        return str(error).removeprefix(f"{PREFIX}script: ").rstrip(".")
    return ""


def _filter(name: str, hosts: Collection[str]) -> Callable[[Any], str]:
    """Judge what can be read without the hosts: which slots they have is asked of them."""

    def judge(value: Any) -> str:
        if not isinstance(value, str) or not value:
            return ""
        requested, problems = parse_filter(name, value)
        strangers = [host for host in requested if host not in hosts]
        if problems:
            return problems[0].message.rstrip(". ")
        return f"names {strangers[0]!r}, which is not a host of the cluster" if strangers else ""

    return judge


def _preset(value: Any) -> str:
    wrong = [problem for problem in build(Request(preset=str(value or AUTO))).errors if problem.path == "preset"]
    return wrong[0].message.rstrip(". ") if wrong else ""


def _configuration(value: Any) -> str:
    """Judge the values that DeepSpeed takes on no host; what depends on preset, script and GPUs follows with them."""
    if not isinstance(value, Mapping):
        return ""  # reported by the check of types
    for problem in build(Request(preset="zero3", config=dict(value))).errors:
        found: Any = value
        for key in problem.path.split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        if found is not None and found != AUTO and problem.message.startswith("must be"):
            return f"{problem.path} {problem.message.rstrip('. ')}"
    return ""


def _arguments(inventory: Inventory) -> Iterator[Problem]:
    """Items of the list that were meant as several arguments: the script gets each as one, blanks included."""
    found: dict[str, tuple[str, str]] = {}
    for host, value in inventory.values(PREFIX + "args").items():
        given = [str(item) for item in value] if isinstance(value, (list, tuple)) else []
        several = [_several(item, before) for item, before in zip(given, ["", *given], strict=False)]
        first = next((" ".join(mask_arguments(parts)) for parts in several if parts), "")
        words = [word for item, parts in zip(given, several, strict=True) for word in parts or [item]]
        if first:
            found[host] = first, json.dumps(mask_arguments(words), ensure_ascii=False)
    for first, corrected in dict.fromkeys(found.values()):
        where = inventory.where([host for host, one in found.items() if one == (first, corrected)])
        text = f"{first!r} is one item of the list, so the script gets it as a single argument{where}"
        yield Problem(PREFIX + "args", text, f"write {corrected}, or one text instead of the list", fatal=False)


def _several(item: str, before: str) -> list[str]:
    """Return the arguments that an item was meant as; none where it is one, or the command of a shell's ``-c``."""
    if not _SEVERAL.search(item) or _COMMAND_FOLLOWS.fullmatch(before):
        return []
    try:
        return [str(word) for word in words_of(item)]
    except WordsError:
        return item.split()


def _folder(inventory: Inventory) -> Callable[[Any], str]:
    def judge(value: Any) -> str:
        if not isinstance(value, str) or not KINDS["controller_path"].accepts(value):
            return ""  # reported by the check of values
        return "" if inventory.writable(value) else f"{value} on the controller cannot be written to"

    return judge


def _environment(inventory: Inventory) -> Iterator[Problem]:
    """What pdsh would change, where the job is certain to have several nodes."""
    several = len(inventory.members("cluster")) > 1
    transports, chosen = (inventory.values(PREFIX + name) for name in ("transport", "include"))
    left_out, found = inventory.values(PREFIX + "exclude"), {}
    for host, value in inventory.values(PREFIX + "environment").items():
        forwarded = several and transports.get(host) == "pdsh" and not chosen.get(host) and not left_out.get(host)
        parts = {str(key): part for key, part in mapping(value).items()} if forwarded else {}
        try:
            check_variables({key: part for key, part in parts.items() if _is_variable(key, part)}, forwarded=True)
        except JobError as error:
            found[host] = str(error).removeprefix("environment: ").rstrip(".")
    for text, hosts in by_value(found).items():
        yield Problem(PREFIX + "environment", text + inventory.where(hosts), "correct that variable")


def _secrets(inventory: Inventory) -> Iterator[Problem]:
    """One variable, one value; and by pdsh they would stand in the process list."""
    name = f"{PREFIX}secrets"
    transports, environments = (inventory.values(PREFIX + one) for one in ("transport", "environment"))
    twice, shown_by_pdsh = {}, []
    for host, value in inventory.values(name).items():
        given = mapping(value)
        both = sorted(str(key) for key in given if key in mapping(environments.get(host)))
        if both:
            twice[host] = ", ".join(both)
        if given and transports.get(host) == "pdsh":
            shown_by_pdsh.append(host)
    for names, hosts in by_value(twice).items():
        yield Problem(
            name,
            f"{names} is also set in {PREFIX}environment{inventory.where(hosts)}",
            f"take it out of {PREFIX}environment",
        )
    if shown_by_pdsh:
        yield Problem(
            name,
            f"{PREFIX}transport pdsh would show them in the process list of every node{inventory.where(shown_by_pdsh)}",
            f"set {PREFIX}transport: direct, or give them in nccl_env_environment, which travels by file",
        )


def _is_variable(key: str, value: Any) -> bool:
    """Whether this can be a variable of a process; what cannot is reported by the check of values."""
    return KINDS["environment_key"].accepts(key) and KINDS["scalar"].accepts(value)


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
            f"is pdsh, which starts only DeepSpeed's launcher, but {PREFIX}launcher is {launchers[hosts[0]]}"
            + inventory.where(hosts),
            f"set {PREFIX}transport: direct",
        )


def _lost_arguments(inventory: Inventory) -> Iterator[Problem]:
    """Arguments that would not reach the script."""
    words = {host: _words(value) for host, value in inventory.values(PREFIX + "args").items()}
    hosts = [host for host, value in inventory.values(PREFIX + "transport").items() if value == "pdsh"]
    hosts = [host for host in hosts if "" in words.get(host, [])]
    if hosts:
        yield Problem(
            PREFIX + "args",
            f"has an empty argument, with which pdsh loses those after it{inventory.where(hosts)}",
            f"leave it out, or set {PREFIX}transport: direct",
        )
    hosts = [host for host, value in inventory.values(PREFIX + "launcher").items() if value != "per_node"]
    hosts = [host for host in hosts if words.get(host, [])[:1] == ["--"]]
    if hosts:
        yield Problem(
            PREFIX + "args",
            f"begins with --, which the launcher takes for itself{inventory.where(hosts)}",
            f"put another argument before it, or set {PREFIX}launcher: per_node",
        )


def _words(value: Any) -> list[str]:
    try:
        words = words_of(value)
    except WordsError:  # reported by the check of values
        return []
    return [str(word) for word in words] if isinstance(words, (list, tuple)) else []


def _restart(inventory: Inventory) -> Iterator[Problem]:
    """A hang that is to end in a restart, of a job that is not restarted."""
    resumes: Mapping[str, Any] = inventory.values(PREFIX + "resume")
    hosts = [
        host
        for host, value in inventory.values(PREFIX + "on_hang").items()
        if value == "restart" and resumes.get(host) == "never"
    ]
    if hosts:
        text = f"is restart, but with {PREFIX}resume: never the job would be ended and not started again"
        remedy = f"set {PREFIX}resume: auto, or {PREFIX}on_hang: stop"
        yield Problem(PREFIX + "on_hang", text + inventory.where(hosts), remedy, fatal=False)
