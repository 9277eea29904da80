# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The folders of a host that variables name: none is the operating system's, and what containers write is kept apart.

Root in a container can put anything into a folder that is mounted there, and replace what lies in it by links. So what
root on the host reads or writes is in no such folder, and no such folder is in it. The one exception is designed: below
``cluster_root`` lie the jobs and, by default, the workspace, each beside what is root's alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.owned.folders_io import PLACE
from ...module_utils.owned.names import ETC, JOBS, PASSING
from ...module_utils.owned.system_folders import is_below, normal, system_folder
from .volumes import volume_parts

ROOT, WORKSPACE, ASSETS = "cluster_root", "workspace_path", "assets_path"
ENVIRONMENT, VOLUMES = "workspace_python_environment", "training_container_volumes"
NAMED = (ROOT, WORKSPACE, ASSETS, ENVIRONMENT)
"""Variables that each name a folder for this collection."""
READ = (*NAMED, "assets_sources", VOLUMES, "deepspeed_launch_runtime")
"""All that decides where folders are."""
_APART = "choose folders that do not contain one another"
_PRIVATE = (ETC, *JOBS, "vscode", *sorted(PASSING))


@dataclass(frozen=True)
class Place:
    """A folder: ``subject`` is the variable that it comes from, ``what`` how a message begins to name it."""

    subject: str
    path: str
    what: str


@dataclass(frozen=True)
class Trouble:
    """What is wrong, without a full stop, and what to do."""

    subject: str
    text: str
    remedy: str


def named(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the folders by variable. Without models and data sets, nothing is where they would be."""
    found = {name: values.get(name) for name in NAMED}
    if not values.get("assets_sources"):
        found.pop(ASSETS)
    return {name: path for name, path in found.items() if isinstance(path, str) and path}


def wrong_places(values: Mapping[str, Any], real: Mapping[str, str] | None = None) -> Iterator[Trouble]:
    """Yield which variables name a folder of the operating system; ``real`` are paths without links, by path."""
    for name, path in named(values).items():
        if not path.startswith("/") or "\0" in path:
            yield Trouble(name, f"{path!r} is not an absolute path", "write it from the root: /data/…")
            continue
        place = _real(path, real or {})
        system = system_folder(place)
        named_so = path if place == normal(path) else f"{path} leads to {place}, which"
        if system == place:
            text = f"{named_so} is a folder of the operating system or contains one"
        elif system:
            text = f"{named_so} lies in {system}, which is the operating system's"
        else:
            continue
        yield Trouble(name, text, f"name a folder of its own, such as {_better(place)}")


def overlaps(values: Mapping[str, Any], real: Mapping[str, str] | None = None) -> Iterator[Trouble]:
    """Yield which folders that containers write overlap with what root reads or writes on the host."""
    places = named(values)
    root = places.get(ROOT, "")
    if values.get("deepspeed_launch_runtime") == "host" or not root.startswith("/"):
        return  # there are no containers; or the path is wrong, which is reported
    private = [Place(ROOT, f"{normal(root)}/{name}", f"{ROOT}/{name}") for name in _PRIVATE]
    private += [Place(name, places[name], name) for name in (ASSETS, ENVIRONMENT) if name in places]
    private.append(Place("", PLACE, "the record of which folders teardown may remove"))
    # A role that is applied alone does not know the variables of others, and so their defaults hold.
    written = [Place(WORKSPACE, places.get(WORKSPACE) or f"{root}/workspace", "")]
    written += [Place(VOLUMES, path, "the volume ") for path in _writable(values.get(VOLUMES))]
    written.append(Place(ROOT, f"{normal(root)}/jobs", "the folder "))
    seen: set[tuple[str, str]] = set()
    for one in written:
        for other in private:
            if one.path == other.path and one.subject == other.subject:
                continue  # the jobs themselves
            relation = _relation(one, other, real or {})
            key = (one.path, other.subject or other.what)
            if relation and key not in seen and one.path.startswith("/"):
                seen.add(key)
                yield Trouble(one.subject, relation, _APART)


def _relation(one: Place, other: Place, real: Mapping[str, str]) -> str:
    mine, theirs = _real(one.path, real), _real(other.path, real)
    above = Place(ROOT, _parent(other.path), ROOT)
    if other.subject == ROOT and one.subject != ROOT and is_below(_real(above.path, real), mine):
        other, theirs = above, _real(above.path, real)
    if not (is_below(mine, theirs) or is_below(theirs, mine)):
        return ""
    how = "is" if mine == theirs else "contains" if is_below(theirs, mine) else "lies in"
    return (
        f"{one.what}{_shown(one.path, mine, ',')} {how} {other.what} ({_shown(other.path, theirs)}). Containers can "
        "write to the one, and root on the host works in the other"
    )


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _shown(path: str, real: str, end: str = "") -> str:
    return path if normal(path) == real else f"{path}, which leads to {real}{end}"


def _real(path: str, real: Mapping[str, str]) -> str:
    return normal(real.get(path) or real.get(normal(path)) or path)


def _writable(volumes: Any) -> Iterator[str]:
    """Yield the hosts' folders that are mounted for writing: neither volumes by name nor read-only ones."""
    for volume in volumes if isinstance(volumes, (list, tuple)) else ():
        source, dummy, options = volume_parts(str(volume))
        if source.startswith("/") and "ro" not in options.split(","):
            yield source


def paths(values: Mapping[str, Any]) -> list[str]:
    """Return all folders whose real paths decide."""
    places = named(values)
    below = [f"{places[ROOT]}/{name}" for name in _PRIVATE] if ROOT in places else []
    return list(dict.fromkeys([*places.values(), *below, *_writable(values.get(VOLUMES))]))


def _better(path: str) -> str:
    return f"{path}/swarmspeed" if path in ("/opt", "/srv") else "/srv/swarmspeed"
