# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Settings of NCCL and Gloo that the user gives, judged before any host is contacted, and by the hosts' interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from ...module_utils.common.secret_names import secret_variables
from ..cluster.underlay import IGNORED_NAMES
from ..core.kinds import KINDS
from ..core.problems import Problem, listing
from ..core.values import mapping, whole
from ..nccl_env.ranges import as_text, complaint, misspelt, parse_release
from ..nccl_env.readers import Reader, reader
from ..nccl_env.settings import unknown_interfaces

SETTINGS, ENVIRONMENT = "nccl_env_settings", "nccl_env_environment"
VERSION = "nccl_env_version"
VARIABLES = (SETTINGS, ENVIRONMENT, VERSION)

CONTAINER = "training_container_environment"

MOST_SOCKETS = 64
"""NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD may not be more (NCCL's user guide)."""

_IN_A_CONTAINER = re.compile(r"eth[0-9]*|lo", re.ASCII)
_FOUND = "remove it: the interface is found on each node, by the training network's subnet"


def check_settings(given: Mapping[str, Any], network_mode: Any) -> Iterator[Problem]:
    """Judge one host's variables; ``given`` holds those of ``VARIABLES`` that are known."""
    settings, environment = mapping(given.get(SETTINGS)), mapping(given.get(ENVIRONMENT))
    release = parse_release(str(given.get(VERSION) or ""))
    for name, value in settings.items():
        wrong, other, meant = complaint(str(name), value, release), reader(str(name)), misspelt(str(name))
        if wrong:
            yield Problem(f"{SETTINGS}.{name}", wrong, other.remedy if other else "correct it, or remove it")
        elif other and not other.plugin:
            yield Problem(f"{SETTINGS}.{name}", other.text, other.remedy, fatal=False)
        elif meant:
            yield Problem(f"{SETTINGS}.{name}", _misspelling(meant), f"write {meant}", fatal=False)
    yield from _of_plugins(settings)
    threads, sockets = (_number(settings.get(name)) for name in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"))
    if threads * sockets > MOST_SOCKETS:
        yield Problem(
            f"{SETTINGS}.NCCL_NSOCKS_PERTHREAD",
            f"times NCCL_SOCKET_NTHREADS is {threads * sockets}, and NCCL allows {MOST_SOCKETS}",
            "lower one of them",
        )
    yield from _environment(environment)
    if network_mode == "overlay":
        yield from _names_of_the_host(settings, environment)


def _misspelling(meant: str) -> str:
    return f"is not read by NCCL, and looks like a misspelling of {meant}"


def _of_plugins(settings: Mapping[str, Any]) -> Iterator[Problem]:
    """One warning for all settings of a plugin, which has many."""
    names: dict[Reader, list[str]] = {}
    for name in settings:
        other = reader(str(name))
        if other and other.plugin:
            names.setdefault(other, []).append(str(name))
    for other, known in names.items():
        verb = "are" if len(known) > 1 else "is"
        yield Problem(SETTINGS, f"{listing(known)} {verb} {other.text}", other.remedy, fatal=False)


def check_container(environment: Mapping[str, Any]) -> Iterator[Problem]:
    """The environment of a container holds no secret: ``docker inspect``, labels and results of modules show it."""
    for name in secret_variables(environment):
        yield Problem(
            f"{CONTAINER}.{name}",
            "holds a secret, judged by its name or by a password in an address, and docker inspect shows it",
            f"put it into {ENVIRONMENT}, which reaches every rank by a file that root alone can read",
        )


def _number(value: Any) -> int:
    return whole(value) or 1


def _environment(environment: Mapping[str, Any]) -> Iterator[Problem]:
    # A value may be a secret: it is shown only of names that are NCCL's or Gloo's.
    for name, value in environment.items():
        subject = f"{ENVIRONMENT}.{name}"
        if not KINDS["environment_name"].accepts(name) or not KINDS["scalar_line"].accepts(value):
            continue  # reported by the check of values
        if str(name).startswith("NCCL_"):
            yield from _in_the_environment(subject, str(name), value)
        elif name == "GLOO_SOCKET_IFNAME" and re.search(r"[\s^=]", as_text(value)):
            text = f"'{value}' is not a list of whole names: Gloo supports neither = nor ^ nor blanks"
            yield Problem(subject, text, _FOUND)


def _in_the_environment(subject: str, name: str, value: Any) -> Iterator[Problem]:
    wrong, other, meant = complaint(name, value), reader(name), misspelt(name)
    if wrong:
        yield Problem(subject, wrong, f"put it into {SETTINGS}, and correct it")
    elif other and not other.plugin:
        yield Problem(subject, other.text, other.remedy, fatal=False)
    elif meant:
        yield Problem(subject, _misspelling(meant), f"put {meant} into {SETTINGS}", fatal=False)
    elif name != "NCCL_IB_DISABLE":  # the way to want sockets, which every node then uses
        text = "overrides the settings of each node, and DeepSpeed copies that of rank 0 to every node"
        yield Problem(subject, text, f"put it into {SETTINGS}", fatal=False)


def _names_of_the_host(settings: Mapping[str, Any], environment: Mapping[str, Any]) -> Iterator[Problem]:
    for variable, given, name in (
        (SETTINGS, settings, "NCCL_SOCKET_IFNAME"),
        (ENVIRONMENT, environment, "GLOO_SOCKET_IFNAME"),
    ):
        value = as_text(given.get(name) or "")
        parts = [] if value.startswith("^") else value.lstrip("=").split(",")
        foreign = [part for part in parts if part and part != "@IFNAME@" and not _of_a_container(part, name)]
        if foreign:
            yield Problem(
                f"{variable}.{name}",
                f"a container on an overlay has eth0, eth1 and so on, but no interface {', '.join(foreign)}",
                f"{_FOUND}; the host's own are there with cluster_network_mode: host",
            )


def _of_a_container(part: str, name: str) -> bool:
    # NCCL takes the beginning of a name, and "et" is one of eth0.
    return _IN_A_CONTAINER.fullmatch(part) is not None or (name.startswith("NCCL") and "eth".startswith(part))


def check_interfaces(fabrics: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Any]) -> Iterator[Problem]:
    """Each interface that is named for NCCL or Gloo is there. ``wanted``: setting to host to its value."""
    for name, by_host in wanted.items():
        for host, value in mapping(by_host).items():
            interfaces = mapping(fabrics.get(host)).get("interfaces")
            names = [str(mapping(entry).get("name")) for entry in interfaces] if isinstance(interfaces, list) else []
            missing = unknown_interfaces(str(value or ""), names, exact=name.startswith("GLOO")) if names else []
            if missing:
                fit = [one for one in names if not any(fnmatchcase(one, pattern) for pattern in IGNORED_NAMES)]
                yield Problem(
                    host,
                    f"{name} names {', '.join(missing)}, but the host has no such interface; it has {listing(fit)}",
                    _FOUND,
                )
