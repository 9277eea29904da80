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
from .files import differs, managed_files, sources_wanted
from .host import (
    CA_PATH,
    DOCKER,
    DROPIN_PATH,
    LOCKED,
    PROXY_PATH,
    RECORD_PATH,
    SOURCES_PATH,
    STALE_SOURCES,
    Host,
    Request,
    holds,
    packages_wanted,
    parse_request,
)
from .problems import config_problems, request_problems

_FRESH = {"log-driver": "json-file", "log-opts": {"max-size": "50m", "max-file": "3"}}
"""Set once, where the engine is installed: logs that cannot fill the disk."""


def docker_plan(facts: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan, in the form that the role reads."""
    requested, host = parse_request(request), Host(facts)
    packages, exact = packages_wanted(requested, host)
    files = managed_files(requested, host, exact)
    found = as_config(host.part("engine").get("config"))
    keys = patched({} if host.installed else fresh_config(requested, found), as_config(requested.config))
    merged = merge(found, as_config(sealed(keys, requested.digest_key)))
    changed = changed_keys(found, merged)
    held, unheld, released = holds(requested, host, packages)
    reasons = restart_reasons(
        host, needs_restart(found, merged), files, requested.version if exact else "", requested.digest_key
    )
    shown = {key: shown_pair(found, merged, key) for key in changed}
    states: dict[str, tuple[Any, Any]] = {
        "packages_missing": ([name for name in packages if not host.version_of(name)], []),
        "running": (host.running, True),
        "daemon_json": ({key: pair[0] for key, pair in shown.items()}, {key: pair[1] for key, pair in shown.items()}),
        "users_missing": (_users_missing(requested, host), []),
    }
    if exact:
        states["version"] = (host.engine_version, requested.version)
    if held:
        states["not_held"] = (unheld, [])
    if released:
        states["held"] = (released, [])
    return {
        "family": host.family,
        "packages": packages,
        "version": requested.version if exact else "",
        "locked": [name for name in packages if name in (*LOCKED, "docker.io", "docker-cli")] if exact else [],
        "preview": bool(packages) and (requested.source == DOCKER or exact),
        "sources": next((entry["content"] for entry in files if entry["path"] == SOURCES_PATH), ""),
        "stale_sources": list(STALE_SOURCES) if sources_wanted(requested, host, exact) else [],
        "files": files,
        "config": keys,
        "differing_keys": changed,
        "hold": held,
        "recorded": recorded(host.part("files"), RECORD_PATH),
        "release": released,
        "record": exclusion("docker", held) if held else "",
        "restart_reasons": reasons,
        "in_the_way": host.running_containers if reasons and not requested.restart else [],
        "problems": [*request_problems(requested, host), *config_problems(requested, host, keys, merged)],
        "found": {name: pair[0] for name, pair in states.items()},
        "wanted": {name: pair[1] for name, pair in states.items()},
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


def _users_missing(requested: Request, host: Host) -> list[str]:
    members = names(host.part("groups").get("docker"))
    return [user for user in requested.users if user not in members and host.has_account(user)]


def restart_reasons(
    host: Host, keys: Sequence[str], files: Sequence[Mapping[str, Any]], version: str, digest_key: str = ""
) -> list[str]:
    """Why a running engine must be restarted: ``keys`` of its file, its proxy, another ``version``, ports it keeps."""
    if not host.running:
        return []
    reasons = []
    if keys:
        reasons.append(f"{', '.join(keys)} in {CONFIG_PATH} (docker_daemon_config)")
    if any(differs(entry, host, digest_key) for entry in files if entry["path"] in (DROPIN_PATH, PROXY_PATH)):
        reasons.append("its proxy (docker_proxy)")
    if any(differs(entry, host) for entry in files if entry["path"] == CA_PATH):
        reasons.append("a certificate authority (host_ca_certificate)")
    if version:
        reasons.append(f"version {version} (docker_version)")
    if host.stale_swarm_ports:
        reasons.append(f"port {' and '.join(map(str, host.stale_swarm_ports))}, kept from a swarm that it has left")
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
