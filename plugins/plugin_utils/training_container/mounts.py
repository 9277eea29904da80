# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The mounts of a container: those of this collection, and which of the user's cannot be added to them. Pure.

Which folders of the *host* may be mounted is not asked here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...module_utils.vscode.state import SERVER
from ..plan.volumes import MODES, is_mode, volume_parts
from .gathered import assets_of

CONFIGURATION, JOBS, WORKSPACE = "/etc/swarmspeed", "/jobs", "/workspace"
NEEDED = ("/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr")
"""Folders of the image without which no program runs in a container."""

_VOLUME = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]+")


def own_targets(values: Mapping[str, Any]) -> dict[str, str]:
    """Return where this collection mounts something in the container, and what."""
    own = {CONFIGURATION: "the configuration", JOBS: "the jobs", WORKSPACE: "the workspace"}
    # Before any connection, what a template says may not be known.
    if {"assets_sources", "assets_path"} <= values.keys() and (values["assets_path"] or values.get("cluster_root")):
        own |= {assets_of(values): "models and data sets"} if assets_of(values) else {}
    if values.get("cluster_root") and values.get("deepspeed_launch_vscode_extensions"):
        own[SERVER] = "extensions of VS Code"
    return own


def wrong_volumes(volumes: Sequence[str], values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the user's mounts, each with its remedy."""
    own, targets = own_targets(values), dict[str, str]()
    for volume in volumes:
        source, target, modes = volume_parts(volume)
        wrong = _form(volume, source, target, modes)
        if wrong:
            yield wrong
            continue
        place = posixpath.normpath(target)
        if place in own:
            yield f"{volume!r}: this collection mounts {own[place]} at {place}", "choose another target"
        elif place.startswith(f"{CONFIGURATION}/"):
            # The folder is read-only, so no mount point can be made in it.
            yield (
                f"{volume!r}: this collection mounts {own[CONFIGURATION]} at {CONFIGURATION}, read-only",
                "choose another target",
            )
        elif place in NEEDED:
            text = f"{volume!r}: without the image's own {place} no program runs in the container"
            yield text, "choose a target of its own, such as /data"
        elif place in targets:
            yield f"{targets[place]!r} and {volume!r} have the same target", "choose another target for one of them"
        targets.setdefault(place, volume)


def _form(volume: str, source: str, target: str, modes: str) -> tuple[str, str] | None:
    if not target.startswith("/") or any(ord(letter) < 32 for letter in volume) or (not source and volume[:1] == ":"):
        return f"{volume!r} is not SOURCE:TARGET[:OPTIONS]", "write it as in /srv/data:/data:ro"
    if posixpath.normpath(target).strip("/") == "":
        return f"{volume!r}: the target is the container's whole file system", "choose a target such as /data"
    if source and source[0] not in "/.~" and not _VOLUME.fullmatch(source):
        return f"{volume!r}: {source!r} is neither a path nor the name of a volume", "begin a folder's path with /"
    if modes and not is_mode(modes):
        return f"{volume!r}: {modes!r} are not options of a mount", f"use some of {', '.join(sorted(MODES))}"
    if {"ro", "rw"} <= set(modes.split(",")):
        return f"{volume!r} is both ro and rw", "leave one of them out"
    return None
