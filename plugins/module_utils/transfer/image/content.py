# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What an image is, whatever store its engine keeps it in: a digest that is the same on all of them.

The id is not. On a graph driver it is the digest of the image's configuration, in containerd's image store that of a
manifest, which also depends on how the layers are compressed; and no engine API reports the digest of the configuration
there (read in moby at b985e231, 2026-11-23, and seen on 26.1 and 28.5). The digest here is of what a container gets:
the layers (diff ids), the system, the processor and the settings. Both stores show these alike in
GET /images/{name}/json, and the configuration itself holds them, so it can be checked before it is loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ...engine.api_io import Engine, EngineError

MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
"""The kernel's names of what images call otherwise."""
SETTINGS = (
    "Cmd",
    "Entrypoint",
    "Env",
    "Labels",
    "OnBuild",
    "Shell",
    "StopSignal",
    "User",
    "Volumes",
    "WorkingDir",
)
"""As in https://github.com/opencontainers/image-spec/blob/main/config.md and docker-image-spec (read 2026-11-23), less
ArgsEscaped, which is of Windows. Engines before 29 show more of a container's settings, all empty in an image."""
HEALTHCHECK = ("Test", "Interval", "Timeout", "StartPeriod", "Retries")
"""Without StartInterval, which engines before 25 leave out."""


def _settings(config: Any) -> dict[str, Any]:
    config = config if isinstance(config, Mapping) else {}
    found = {key: config.get(key) for key in SETTINGS}
    # Engines from 29 on show ports as they stand in the image, older ones with a protocol in any case.
    ports = config.get("ExposedPorts") or {}
    found["ExposedPorts"] = sorted(port if "/" in port else f"{port}/tcp" for port in ports)
    check = config.get("Healthcheck") or {}
    found["Healthcheck"] = {key: check[key] for key in HEALTHCHECK if check.get(key)}
    return {key: value for key, value in found.items() if value}


def _digest(system: Any, machine: Any, layers: Any, config: Any) -> str:
    if not system or not machine:
        return ""  # an index without an image for this machine
    content = {
        "os": system,
        "architecture": MACHINES.get(machine, machine),
        "layers": list(layers or []),
        "settings": _settings(config),
    }
    return "sha256:" + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def content_of_image(found: Mapping[str, Any]) -> str:
    """Return the digest of an image as GET /images/{name}/json shows it, empty without one for this machine."""
    layers = (found.get("RootFS") or {}).get("Layers")
    return _digest(found.get("Os"), found.get("Architecture"), layers, found.get("Config"))


def content_of_config(config: bytes) -> str:
    """Return the digest of an image from its configuration; empty where that is none."""
    try:
        found = json.loads(config)
        layers = found["rootfs"]["diff_ids"]
        return _digest(found["os"], found["architecture"], layers, found.get("config"))
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""


def image_contents(engine: Engine, images: Mapping[str, str], repositories: Iterable[str]) -> dict[str, str]:
    """Return the digests of those images, given by their tags, that are in one of the repositories."""
    wanted = set(repositories)
    contents = {}
    for tag in images:
        if tag.rpartition(":")[0] in wanted:
            try:
                contents[tag] = content_of_image(engine.call("GET", f"/images/{tag}/json"))
            except EngineError as error:
                if error.status != 404:  # removed since the images were listed
                    raise
    return {tag: digest for tag, digest in contents.items() if digest}
