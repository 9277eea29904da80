# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The chain of an image, and what of it each node lacks.

Who lacks most stands nearest to the holder; a node then always finds with the one before it what it lacks itself, as
what a node lacks is the upper end of one list of layers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...module_utils.transfer.image.content import MACHINES
from ...module_utils.transfer.image.load import GROUP
from ...module_utils.transfer.receive import mebibytes
from .chain import blocked, links

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def shared(wanted: Sequence[str], images: Iterable[Mapping[str, Any]]) -> tuple[int, str]:
    """Return how many of the lowest layers one of the images has, and which: a layer counts only on top of the same."""
    most, best = 0, ""
    for image in images:
        count = 0
        for one, other in zip(wanted, image["layers"]):
            if one != other:
                break
            count += 1
        if count > most:
            most, best = count, str(image["id"])
    return most, best


def layer_sizes(count: int, history: Sequence[int]) -> list[int]:
    """Return about how many bytes each layer has, lowest first, from the sizes of the image's history, oldest first.

    Steps that made no layer have size 0 there, as have layers without files; so where the numbers do not agree, those
    with a size count as the upper ones, which is never too little for an upper end of the list.
    """
    sizes = [size for size in history if size > 0][-count:] if count else []
    return [0] * (count - len(sizes)) + sizes


def plan(
    gathered: Mapping[str, Mapping[str, Any]],
    holder: str,
    image: str,
    addresses: Mapping[str, str],
    ports: Mapping[str, int],
) -> dict[str, Any]:
    """Return the order of the nodes, what each does, and in words what forbids it."""
    there = gathered[holder]
    found = there.get("image") or {}
    others = [name for name in gathered if name != holder]
    problems = blocked(gathered, gathered, "an image")
    if not found and not problems:
        problems.append(
            f"{holder}: the image {image} is missing, so it cannot be sent to the others. Remedy: ansible-playbook "
            "site.yml --tags training_image"
        )
    if problems:
        return {"problems": problems, "order": [], "parts": {}}
    problems += [text for name in gathered for text in _foreign(name, gathered[name], found, image)]
    layers = [str(layer) for layer in found["layers"]]
    odd = [text for text in layers if not DIGEST.fullmatch(text)]
    if odd:
        # They become names of files on other nodes.
        problem = (
            f"{holder}: the engine calls a layer of {image} {odd[0]!r}, which is not a digest. Remedy: check its "
            "engine."
        )
        return {"problems": [problem], "order": [], "parts": {}}
    sizes = layer_sizes(len(layers), found["history"])
    best = {name: shared(layers, gathered[name]["images"]) for name in others}
    have = {name: found[0] for name, found in best.items()}
    # Sorted by what they have; equal ones stay in the order of the inventory.
    order = sorted(others, key=lambda name: have[name])
    common = {"image": image, "content": found["content"], "os": found["os"], "architecture": found["architecture"]}
    linked = links(gathered, [holder, *order], addresses, ports)
    parts: dict[str, Any] = {}
    for place, name in enumerate(linked):
        lacked = have[name] if place else min(have.values(), default=len(layers))
        need = sum(sizes[lacked:])
        parts[name] = {
            **common,
            "layers": layers,
            "have": lacked,
            # An image of this node that has them.
            "base": best[name][1] if place else "",
            "store": gathered[name]["store"],
            "bytes": need,
            "skipped": sum(sizes[:lacked]),
            **linked[name],
        }
        problems += _room(name, gathered[name], need, sizes[lacked:], None if place else sum(sizes))
    return {"problems": problems, "order": order, "parts": parts}


def _foreign(name: str, gathered: Mapping[str, Any], found: Mapping[str, Any], image: str) -> list[str]:
    machine = MACHINES.get(gathered["architecture"], gathered["architecture"])
    if machine == found["architecture"]:
        return []
    return [
        f"{name}: the image {image} is built for {found['architecture']}, but the machine is {machine} "
        f"({gathered['architecture']}). Remedy: build or name an image for {machine}."
    ]


def _room(name: str, gathered: Mapping[str, Any], need: int, sizes: Sequence[int], saved: int | None) -> list[str]:
    """Return what does not fit. ``saved`` is the size of the image on the node that hands it out."""
    free = gathered["free"]
    spool = max(0, need - sum(gathered["spooled"].values()))
    if gathered["store"] == "graph":
        # The engine writes a copy of what it hands out, and of what it is just loading.
        engine = saved if saved is not None else need + max([GROUP, *sizes]) if need else 0
    else:
        # Containerd keeps the layers as they came beside those unpacked.
        engine = 2 * need if saved is None else 0
    wanted = {"spool": spool, "engine": engine}
    if free["same"]:
        wanted = {"spool": spool + engine}
    found = []
    for key, size in wanted.items():
        if size > free[key]:
            found.append(
                f"{name}: {mebibytes(free[key])} are free in {gathered['places'][key]}, but the transfer of the image "
                f"needs {mebibytes(size)} there. Remedy: free space (docker image prune), or set cluster_root and the "
                "engine's data-root to a larger disk."
            )
    return found
