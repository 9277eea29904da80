# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a node has that matters for a transfer: the image, layers of other images, and room for more. Reads only."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...engine.api_io import Engine, EngineError
from ..room import free_bytes, nearest
from .content import MACHINES, content_of_image

CONTAINERD = "/etc/containerd/config.toml"


def gather(engine: Engine, image: str, place: Path) -> dict[str, Any]:
    """Return the engine's store, the image, the layers of all images, and the room."""
    info = engine.call("GET", "/info")
    images = []
    for entry in engine.call("GET", "/images/json"):
        with contextlib.suppress(EngineError):  # it may just have been removed
            found = engine.call("GET", f"/images/{entry['Id']}/json")
            images.append({"id": entry["Id"], "layers": (found.get("RootFS") or {}).get("Layers") or []})
    store = image_store(info)
    root = engine_root(info, store)
    free, same = room(root, place)
    return {
        "architecture": info.get("Architecture") or "",
        "store": store,
        "image": _image(engine, image),
        "images": images,
        "free": {**free, "same": same},
        "places": {"engine": root, "spool": str(place.parent)},
    }


def image_store(info: Mapping[str, Any]) -> str:
    """Return whether images are kept by a ``graph`` driver or in ``containerd``'s image store, from GET /info."""
    status = dict(pair for pair in info.get("DriverStatus") or [] if len(pair) == 2)
    return "containerd" if "containerd" in status.get("driver-type", "") else "graph"


def engine_root(info: Mapping[str, Any], store: str) -> str:
    """Return where the engine keeps images."""
    root = str(info.get("DockerRootDir") or "/var/lib/docker")
    if store == "graph":
        return root
    # Engines from 28 on say where their containerd is: one that they have started themselves keeps its data in theirs.
    if "/docker/" in str((info.get("Containerd") or {}).get("Address") or ""):
        return f"{root}/containerd"
    with contextlib.suppress(OSError):
        found = re.search(r"^root\s*=\s*[\"'](/[^\"']*)", Path(CONTAINERD).read_text(encoding="utf-8"), re.MULTILINE)
        if found:
            return found[1]
    return "/var/lib/containerd"


def _image(engine: Engine, image: str) -> dict[str, Any]:
    try:
        found = engine.call("GET", f"/images/{image}/json")
    except EngineError as error:
        if error.status == 404:
            return {}
        raise
    content = content_of_image(found)
    if not content:
        return {}
    steps = engine.call("GET", f"/images/{image}/history")
    return {
        "content": content,
        "layers": (found.get("RootFS") or {}).get("Layers") or [],
        "os": found["Os"],
        "architecture": MACHINES.get(found["Architecture"], found["Architecture"]),
        "history": [int(step.get("Size") or 0) for step in reversed(steps)],
    }


def room(root: str, place: Path) -> tuple[dict[str, int], bool]:
    """Return the free bytes of the engine's disk and of the spool's, and whether they are one."""
    engine, spool = nearest(Path(root)), nearest(place)
    sizes = {"engine": free_bytes(engine), "spool": free_bytes(spool)}
    return sizes, engine.stat().st_dev == spool.stat().st_dev
