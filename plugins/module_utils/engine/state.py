# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The engine's daemon.json and its unit as facts, secrets sealed: what the roles compare with what is requested.

A sealed value is masked and carries a piece of its HMAC by the key of the run, so that a change is noticed and the
secret can be neither read nor guessed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from ..common.command_io import CommandResult
from ..common.digests import keyed_digest
from .daemon_config import DaemonConfigError, decode, parse, same, too_deep
from .daemon_config_secrets import mask, printable
from .daemon_config_unit import Flag, Unit, parse_unit

CONFIG_PATH = "/etc/docker/daemon.json"
SERVICE = "docker.service"

_SEAL = " (HMAC "


class EngineFilesIO(Protocol):
    """What is read from a host; tests hand in a fake."""

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None where there is none."""

    def unit(self, service: str) -> str:
        """Return what ``systemctl cat`` prints, empty where there is no such unit."""


def sealed(value: Any, key: str = "", path: tuple[str, ...] = ()) -> Any:
    """Return a copy of a configuration in which secrets can be compared with the key, and not read."""
    if isinstance(value, Mapping):
        return {printable(str(name)): sealed(inner, key, (*path, str(name))) for name, inner in value.items()}
    if isinstance(value, list):
        return [sealed(inner, key, path) for inner in value]
    shown = mask(value, path)
    if same(shown, printable(value) if isinstance(value, str) else value):
        return shown
    return f"{shown}{_SEAL}{keyed_digest(json.dumps(value).encode(), key)[:16]})"


def unsealed(value: Any) -> Any:
    """Return a sealed configuration to show: masked alone."""
    if isinstance(value, Mapping):
        return {key: unsealed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [unsealed(inner) for inner in value]
    return value.partition(_SEAL)[0] if isinstance(value, str) and value.endswith(")") else value


def engine_settings(info: Mapping[str, Any]) -> dict[str, Any]:
    """Shape what GET /info reports of how the engine was set up.

    ``cdi_directories`` is empty where the engine takes no CDI devices, and ``cdi_devices`` where it is too old.
    """
    backend = info.get("FirewallBackend")
    devices = info.get("DiscoveredDevices")
    return {
        "default_runtime": info.get("DefaultRuntime") or None,
        "cgroup_driver": info.get("CgroupDriver") or None,
        "live_restore": info.get("LiveRestoreEnabled") is True,
        "firewall_backend": backend.get("Driver") if isinstance(backend, Mapping) else None,
        "cdi_directories": list(info.get("CDISpecDirs") or []),
        "cdi_devices": sorted(
            str(device.get("ID"))
            for device in (devices if isinstance(devices, list) else [])
            if isinstance(device, Mapping) and device.get("Source") == "cdi"
        ),
    }


def gather_engine_files(io: EngineFilesIO, installed: bool, key: str = "") -> dict[str, Any]:
    """Return what ``node_facts`` keeps as ``engine``. A file that is not JSON is a fact: ``problem`` says why."""
    content, problem, config = io.read(CONFIG_PATH), None, {}
    if content is not None:
        try:
            config = parse(decode(content, CONFIG_PATH), CONFIG_PATH)
        except DaemonConfigError as error:
            problem = printable(str(error))
    text = io.unit(SERVICE) if installed else ""
    return {
        "config_exists": content is not None,
        "config": sealed(config, key),
        "problem": problem,
        "unit": unit_facts(parse_unit(text, lambda path: _text(io.read(path)))) if text else None,
    }


def _text(content: bytes | None) -> str:
    return content.decode("utf-8", "replace") if content is not None else ""


def unit_facts(unit: Unit) -> dict[str, Any]:
    """Names of the flags and where they are set. A flag's value may be a secret, so only --config-file's is kept."""
    return {
        "program": unit.program,
        "can_reload": unit.can_reload,
        "flags": [
            {"name": flag.name, "source": flag.source, "value": flag.value if flag.name == "config-file" else ""}
            for flag in unit.flags
        ],
    }


def unit_from_facts(facts: Any) -> Unit:
    """Read the form of the facts back."""
    if not isinstance(facts, Mapping):
        return Unit()
    flags = facts.get("flags")
    return Unit(
        program=str(facts.get("program") or ""),
        can_reload=facts.get("can_reload") is True,
        flags=tuple(
            Flag(str(flag.get("name")), str(flag.get("value") or ""), str(flag.get("source")))
            for flag in (flags if isinstance(flags, list) else [])
            if isinstance(flag, Mapping)
        ),
    )


def as_config(value: Any) -> dict[str, Any]:
    """Return a configuration where it is one, else an empty one."""
    return dict(value) if isinstance(value, Mapping) and not too_deep(value) else {}


def unit_text(answer: CommandResult) -> str:
    """Return what ``systemctl cat`` printed, nothing where it knows no such unit."""
    return answer.stdout if answer.rc == 0 else ""
