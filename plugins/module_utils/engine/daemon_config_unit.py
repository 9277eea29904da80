# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The engine's systemd unit, read from ``systemctl cat``: which flags it starts with and which file each comes from.

dockerd refuses a key that its command line sets too (``findConfigurationConflicts`` in moby's daemon/config/config.go).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ..common.problems import Problem

FLAG_KEYS = {
    "add-runtime": "runtimes",
    "authorization-plugin": "authorization-plugins",
    "cdi-spec-dir": "cdi-spec-dirs",
    "cluster-store-opt": "cluster-store-opts",
    "default-address-pool": "default-address-pools",
    "default-network-opt": "default-network-opts",
    "default-ulimit": "default-ulimits",
    "dns-opt": "dns-opts",
    "exec-opt": "exec-opts",
    "feature": "features",
    "host": "hosts",
    "insecure-registry": "insecure-registries",
    "label": "labels",
    "log-opt": "log-opts",
    "node-generic-resource": "node-generic-resources",
    "registry-mirror": "registry-mirrors",
    "storage-opt": "storage-opts",
}
"""The key of each flag whose key is not called as the flag is (NamedOption in moby's source)."""
_SHORT = {
    "D": "debug",
    "G": "group",
    "H": "host",
    "b": "bridge",
    "g": "graph",
    "l": "log-level",
    "p": "pidfile",
    "r": "restart",
    "s": "storage-driver",
    "v": "version",
}
_SWITCHES = "Drv"
_MAY_BE_BOTH = ("runtimes",)
"""Set both ways, their values are joined (``skipDuplicates``)."""

_HEADER = re.compile(r"# (/\S+\.(?:service|conf))\s*")
_SETTING = re.compile(r"([A-Za-z]+)\s*=\s*(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$\$|\$\{(\w+)\}|\$(\w+)")
_PREFIXES = "@-:+!|"


@dataclass(frozen=True)
class Flag:
    """One flag by its long name, and the file that sets it."""

    name: str
    value: str
    source: str

    @property
    def key(self) -> str:
        return FLAG_KEYS.get(self.name, self.name)


@dataclass(frozen=True)
class Unit:
    """How systemd starts the engine. ``can_reload``: whether it has a command for ``systemctl reload``."""

    program: str = ""
    flags: tuple[Flag, ...] = ()
    can_reload: bool = False

    @property
    def config_file(self) -> Flag | None:
        return next((flag for flag in reversed(self.flags) if flag.name == "config-file"), None)


class _Setting(NamedTuple):
    name: str
    value: str
    source: str


class _Variable(NamedTuple):
    value: str
    source: str


def parse_unit(text: str, read: Callable[[str], str]) -> Unit:
    """The unit in the output of ``systemctl cat``. ``read`` gives the text of an EnvironmentFile, or nothing."""
    start: list[_Setting] = []
    reload = False
    inline: dict[str, _Variable] = {}
    files: list[str] = []
    for setting in _settings(text):
        if setting.name == "ExecStart":
            start = [*start, setting] if setting.value else []
        elif setting.name == "ExecReload":
            reload = bool(setting.value)
        elif setting.name == "Environment":
            inline = {**inline, **_assignments(_words(setting.value), setting.source)} if setting.value else {}
        elif setting.name == "EnvironmentFile":
            files = [*files, setting.value.lstrip("-")] if setting.value else []
    if not start:
        return Unit(can_reload=reload)
    variables = dict(inline)
    for path in files:  # they win over Environment, wherever it stands
        variables.update(_assignments(_file_words(read(path)), path))
    words = [word for word in _words(start[0].value) if word]
    expanded = [word for raw in words for word in _expand(raw, start[0].source, variables)]
    program = expanded[0][0].lstrip(_PREFIXES) if expanded else ""
    return Unit(program, tuple(_flags(expanded[1:])), reload)


def conflicts(unit: Unit, config: dict[str, Any]) -> list[Problem]:
    """Keys of the file that the command line sets too, which dockerd does not start with."""
    keys = {key: key for key in config}
    proxies = config.get("proxies")
    if isinstance(proxies, dict):
        keys.update({key: f"proxies.{key}" for key in proxies})
    if "host-gateway-ip" in config:  # the old name of the same setting
        keys.setdefault("host-gateway-ips", "host-gateway-ip")
    problems = []
    for flag in {flag.key: flag for flag in unit.flags}.values():
        key = "host-gateway-ips" if flag.key == "host-gateway-ip" else flag.key
        if key not in keys or key in _MAY_BE_BOTH:
            continue
        remedy = "remove the one or the other (null removes a key)"
        if key == "hosts":
            remedy = "leave hosts out, or start dockerd without -H by a drop-in that resets ExecStart"
        problems.append(
            Problem(
                keys[key],
                f"is also set by the flag --{flag.name} in {flag.source}, so dockerd would not start; {remedy}",
            )
        )
    return problems


def other_file(unit: Unit, path: str) -> str:
    """What is wrong where the unit reads another file than ``path``; empty where it reads this one."""
    flag = unit.config_file
    if flag is None or flag.value == path:
        return ""
    return f"the engine does not read {path}: --config-file in {flag.source} names {flag.value}. Set path: {flag.value}"


def parse_properties(text: str) -> dict[str, str]:
    """The output of ``systemctl show``."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _settings(text: str) -> Iterator[_Setting]:
    """The settings of the section [Service], continued lines joined."""
    source, section, pending = "", "", ""
    for raw in text.splitlines():
        line = raw.strip()
        header = _HEADER.fullmatch(raw)
        if header and not pending:
            source, section = header.group(1), ""
            continue
        if line.startswith(("#", ";")):  # also in the middle of a continued line
            continue
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        line, pending = pending + line, ""
        if line.startswith("["):
            section = line
        found = _SETTING.fullmatch(line)
        if found and section == "[Service]":
            yield _Setting(found.group(1), found.group(2).strip(), source)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quotation mark that nothing closes
        return text.split()


def _file_words(text: str) -> list[str]:
    """The assignments of an EnvironmentFile: one a line, the value perhaps in quotes."""
    assignments = []
    for line in text.replace("\\\n", " ").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith(("#", ";")):
            value = value.strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            assignments.append(f"{name.strip()}={value[1:-1] if quoted else value}")
    return assignments


def _assignments(words: list[str], source: str) -> dict[str, _Variable]:
    pairs = (word.split("=", 1) for word in words if "=" in word)
    return {name: _Variable(value, source) for name, value in pairs}


def _expand(word: str, source: str, variables: dict[str, _Variable]) -> list[tuple[str, str]]:
    """One word of ExecStart as words with their sources: ``$NAME`` alone becomes as many as its value has."""
    alone = re.fullmatch(r"\$(\w+)", word)
    if alone:
        variable = variables.get(alone.group(1))
        return [(part, variable.source) for part in _words(variable.value)] if variable else []

    def value(found: re.Match[str]) -> str:
        name = found.group(1) or found.group(2)
        return "$" if name is None else variables[name].value if name in variables else ""

    return [(_VARIABLE.sub(value, word), source)]


def _flags(words: list[tuple[str, str]]) -> Iterator[Flag]:
    rest = list(reversed(words))

    def following() -> str:
        # dockerd takes no arguments but flags, so a word without a dash is the value of the flag before it.
        return rest.pop()[0] if rest and not rest[-1][0].startswith("-") else ""

    while rest:
        word, source = rest.pop()
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            yield Flag(name, value if equals else following(), source)
        elif word.startswith("-") and len(word) > 1:
            letters = word[1:]
            while letters and letters[0] in _SWITCHES and not letters[1:].startswith("="):
                yield Flag(_SHORT[letters[0]], "", source)
                letters = letters[1:]
            if letters:
                name, value = _SHORT.get(letters[0], letters[0]), letters[1:]
                yield Flag(name, value[1:] if value.startswith("=") else value or following(), source)


def program_name(unit: Unit) -> str:
    """The last part of the path that the unit starts; empty where it is not known."""
    return PurePosixPath(unit.program).name if unit.program else ""


_TELLING = re.compile(
    "failed to start daemon|unable to configure|reconfiguring the daemon|reloading configuration|validation failed"
    "|level=fatal|level=panic|^panic:|directives",
    re.IGNORECASE,
)
_LOG_FIELD = re.compile(r'\b(?:msg|error)="((?:[^"\\]|\\.)*)"')


def engine_words(text: str, most: int = 3) -> str:
    """What the engine reported of its trouble, out of its journal or its error output: a few lines as one text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)]
    telling = telling or [line for line in lines if "level=error" in line] or lines
    words = list(dict.fromkeys(_plain(line) for line in telling))[-most:]
    return "; ".join(word[:500].rstrip(". ") for word in words)


def _plain(line: str) -> str:
    """The message of a line of the engine's log, or the line."""
    fields = _LOG_FIELD.findall(line) if "level=" in line else []
    return ": ".join(re.sub(r"\\(.)", r"\1", text) for text in fields) or line
