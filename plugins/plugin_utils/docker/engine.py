# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The plan for a host's Docker engine: what differs from what is requested, what it costs, and what forbids it.

Pure: facts and what is requested go in. The role acts, and has ``docker_daemon_config`` write daemon.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils.apt.pins import exclusion, names, recorded
from ...module_utils.engine.daemon_config import changed_keys, merge
from ...module_utils.engine.daemon_config_keys import needs_restart
from ...module_utils.engine.state import CONFIG_PATH, as_config, sealed, unsealed
from ..plan.files import found_file
from ..plan.managed_file import ManagedFile
from .files import managed_files
from .gathered import CA_PATH, DROPIN_PATH, PROXY_PATH, RECORD_PATH, SOURCES_PATH, STALE_SOURCES
from .host import DOCKER, LOCKED, Host, Request, holds, packages_wanted, parse_request
from .problems import config_problems, request_problems

UNIT_FILES = (DROPIN_PATH, PROXY_PATH, CA_PATH)
"""What is read when the engine starts."""
_FRESH = {"log-driver": "json-file", "log-opts": {"max-size": "50m", "max-file": "3"}}
"""Set once, where the engine is installed: logs that cannot fill the disk."""


def docker_plan(facts: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan, in the form that the role reads."""
    requested, host = parse_request(request), Host(facts)
    packages, exact = packages_wanted(requested, host)
    version = requested.version if exact else ""
    files = managed_files(requested, host, exact)
    sources = next(entry["content"] for entry in files if entry["path"] == SOURCES_PATH)
    found = as_config(host.part("engine").get("config"))
    keys = patched({} if host.installed else fresh_config(requested, found), as_config(requested.config))
    merged = merge(found, as_config(sealed(keys, requested.digest_key)))
    held, released = holds(requested, host, packages)
    members = names(host.part("groups").get("docker"))
    units = other_units(files, host, requested.digest_key)
    return {
        "packages": packages,
        "version": version,
        "locked": [name for name in packages if name in (*LOCKED, "docker.io", "docker-cli")] if exact else [],
        "preview": bool(packages) and (requested.source == DOCKER or exact),
        "sources": sources,
        "stale_sources": list(STALE_SOURCES) if sources else [],
        "files": files,
        "config": keys,
        "merged": merged,
        "differing_keys": changed_keys(found, merged),
        "users": [name for name in dict.fromkeys(requested.users) if name not in members and host.has_account(name)],
        "hold": held,
        "recorded": recorded(host.part("files"), RECORD_PATH),
        "release": released,
        "record": exclusion("docker", held) if held else "",
        "other_units": units,
        "restart_reasons": restart_reasons(host, needs_restart(found, merged), units, version) if host.running else [],
        "problems": [*request_problems(requested, host), *config_problems(requested, host, keys, merged)],
    }


def fresh_config(requested: Request, found: Mapping[str, Any]) -> dict[str, Any]:
    """Values for an engine that is new. What is there already, and docker_daemon_config, win."""
    fresh: dict[str, Any] = {"mtu": requested.mtu} if requested.mtu < 1500 else {}
    driver = as_config(requested.config).get("log-driver") or found.get("log-driver") or "json-file"
    # Another driver does not know these options, and the engine would not start a container.
    return _without({**_FRESH, **fresh} if driver == "json-file" else fresh, found)


def _without(fresh: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in fresh.items():
        there = found.get(key)
        if key not in found:
            kept[key] = value
        elif isinstance(value, Mapping) and isinstance(there, Mapping):
            below = _without(value, there)
            if below:
                kept[key] = below
    return kept


def patched(patch: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return one merge patch that does what the two do, one after the other: a null stays a null."""
    joined = dict(patch)
    for key, value in other.items():
        below = joined.get(key)
        joined[key] = patched(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return joined


def other_units(files: Sequence[Mapping[str, Any]], host: Host, key: str) -> list[str]:
    """Return which files that the engine reads when it starts have another content than they should."""
    others = []
    for item in (ManagedFile(**entry) for entry in files if entry["path"] in UNIT_FILES):
        there = found_file(host.part("files"), item.path)
        if not item.same_text(there, key) if item.wanted else there.get("exists") is True:
            others.append(item.path)
    return others


def restart_reasons(host: Host, keys: Sequence[str], units: Sequence[str], version: str) -> list[str]:
    """Why a running engine must be restarted: ``keys`` of its file, ``units``, another ``version``, ports it keeps."""
    reasons = [f"{', '.join(keys)} in {CONFIG_PATH} (docker_daemon_config)"] if keys else []
    if DROPIN_PATH in units or PROXY_PATH in units:
        reasons.append("its proxy (docker_proxy)")
    if CA_PATH in units:
        reasons.append("a certificate authority (host_ca_certificate)")
    if version:
        reasons.append(f"version {version} (docker_version)")
    if host.stale_swarm_ports:
        reasons.append(f"port {' and '.join(map(str, host.stale_swarm_ports))}, held since it left a swarm")
    return reasons


def shown_pair(before: Mapping[str, Any], after: Mapping[str, Any], key: str) -> tuple[Any, Any]:
    """Return both values of a dotted key to show: a secret is not, and that it is another one is said."""
    one, other = _value(before, key), _value(after, key)
    shown = unsealed(one), unsealed(other)
    if shown[0] == shown[1] and one != other:
        return shown[0], f"{shown[1]} (another secret)"
    return shown


def _value(config: Mapping[str, Any], key: str) -> Any:
    """A key may itself hold dots, so every name that fits is tried."""
    if key in config:
        return config[key]
    for name, below in config.items():
        if isinstance(below, Mapping) and key.startswith(f"{name}."):
            found = _value(below, key[len(name) + 1 :])
            if found is not None:
                return found
    return None
