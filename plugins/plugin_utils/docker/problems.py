# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Why a host's Docker engine cannot be as requested: texts with their remedies."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

from ...module_utils.apt.pins import names, recorded, satisfies, source_problems
from ...module_utils.engine.daemon_config import changed_keys, merge, wanted_problems
from ...module_utils.engine.daemon_config_keys import (
    check,
    parse_version,
    requests_swarm_nftables,
    swarm_problems,
    swarm_takes_nftables,
)
from ...module_utils.engine.daemon_config_pools import overlap_problems
from ...module_utils.engine.daemon_config_unit import Unit, conflicts, other_file
from ...module_utils.engine.state import CONFIG_PATH, as_config, unit_from_facts
from .files import sources_wanted
from .gathered import RECORD_PATH
from .host import DISTRIBUTION, DOCKER, KEEP, PROXY_NAMES, SHIPPED, Host, Request, packages_wanted

Found = list[tuple[str, str]]
"""Texts with their remedies."""


def request_problems(requested: Request, host: Host) -> Found:
    problems = []
    family, version = host.family, host.engine_version
    if requested.version and family is not None and not satisfies(version, requested.version):
        if requested.source == KEEP:
            problems.append(
                (
                    f"docker_version is {requested.version} and the engine here is {version}, but docker_source is "
                    "keep",
                    "change the version yourself, or leave docker_version out",
                )
            )
        elif (family, requested.source) not in (("docker.io", DISTRIBUTION), ("docker-ce", DOCKER)):
            owner = "it was not installed by apt" if family == "other" else f"it is {family}"
            problems.append(
                (
                    f"docker_version is {requested.version}, from docker_source {requested.source}, but the engine "
                    f"here is {version} ({owner}), and the role does not replace one kind by another",
                    "remove that engine yourself (its images and containers stay below its data folder), or leave "
                    "docker_version out to keep it",
                )
            )
    packages, exact = packages_wanted(requested, host)
    if sources_wanted(requested, host, exact):
        problems += [
            (problem, "correct it")
            for problem in source_problems("docker", requested.repository_url, requested.repository_key)
        ]
    problems += [
        (
            f"docker_users has {user!r}, but there is no such account",
            f"create it (sudo adduser {quote(user)}), or remove it from docker_users",
        )
        for user in dict.fromkeys(requested.users)
        if not host.has_account(user)
    ]
    ours = recorded(host.part("files"), RECORD_PATH)
    foreign = [name for name in names(host.facts.get("held")) if exact and name in packages and name not in ours]
    if foreign:
        problems.append(
            (
                f"{', '.join(foreign)} is on hold in version {host.engine_version}, but docker_version is "
                f"{requested.version}",
                f"apt-mark unhold {' '.join(foreign)} if it may change, or leave docker_version out",
            )
        )
    problems += _proxy_problems(requested)
    return problems


def _proxy_problems(requested: Request) -> Found:
    unknown = sorted(str(name) for name in requested.proxy if name not in PROXY_NAMES)
    if unknown:
        return [
            (f"docker_proxy has unknown keys ({', '.join(unknown)}); known are http, https and no_proxy", "correct it")
        ]
    broken = [name for name, value in requested.proxy.items() if any(mark in str(value or "") for mark in "\n\r\0")]
    return [(f"docker_proxy: {name} holds a line break", "correct it") for name in broken]


def config_problems(requested: Request, host: Host, keys: Mapping[str, Any], merged: Mapping[str, Any]) -> Found:
    engine = host.part("engine")
    if engine.get("problem"):
        return [(str(engine["problem"]), "fix it by hand")]
    unwritable = wanted_problems(requested.config, "docker_daemon_config")
    if unwritable:
        return [(str(problem), "correct it") for problem in unwritable]
    version = parse_version(requested.version if packages_wanted(requested, host)[1] else host.engine_version)
    if version is None and requested.source == DISTRIBUTION:
        version = SHIPPED.get(host.codename)
    unit = unit_from_facts(engine.get("unit"))
    before = as_config(engine.get("config"))
    found = check(requested.config, merge(before, dict(keys)), version)
    found += swarm_problems(dict(merged), version) if requested.swarm else []
    # As docker_daemon_config does, the whole file is judged where it is to be written.
    found += conflicts(unit, dict(merged)) if changed_keys(before, dict(merged)) else []
    found += overlap_problems(before, dict(merged))
    problems = [(f"{CONFIG_PATH}: {problem}", "correct docker_daemon_config or the file") for problem in found]
    settings = host.part("docker").get("settings")
    if requested.swarm and isinstance(settings, Mapping):
        problems += _engine_problems(settings, merged, version, unit)
    elsewhere = other_file(unit, CONFIG_PATH)
    if elsewhere and keys:
        elsewhere = elsewhere.partition(". Set path")[0]
        problems.append((elsewhere, "remove that flag from the unit, or leave docker_daemon_config empty"))
    return problems


def _engine_problems(
    settings: Mapping[str, Any], merged: Mapping[str, Any], version: tuple[int, int] | None, unit: Unit
) -> Found:
    """What the running engine says of itself and daemon.json does not: a flag on its unit."""
    problems = []
    if settings.get("live_restore") and "live-restore" not in merged:
        problems.append(
            (
                "the engine runs with live-restore, which is incompatible with swarm mode",
                "remove --live-restore from its unit, and restart it",
            )
        )
    # Of a unit's flags only the names are known here, so one that sets features leaves it open.
    unknown = any(flag.name == "feature" for flag in unit.flags)
    taken = swarm_takes_nftables(version, requests_swarm_nftables(dict(merged)) or (None if unknown else False))
    if settings.get("firewall_backend") == "nftables" and "firewall-backend" not in merged and not taken:
        problems.append(
            (
                "the engine runs with the nftables firewall backend, which is incompatible with swarm mode",
                "remove --firewall-backend from its unit, and restart it",
            )
        )
    return problems
