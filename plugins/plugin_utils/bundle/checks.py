# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What forbids using an offline bundle: files that are not whole, other variables, hosts it was not made for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.problems import Problem, listing
from ..core.values import texts
from ..versions.holds import missing
from .manifest import AGAIN, VARIABLE, Entry, Manifest, system_name


def damage(entry: Entry, found: tuple[int, str] | str | None) -> str | None:
    """Return what is wrong with a file of which size and digest were found; a text is why it cannot be read."""
    if found is None:
        return f"{entry.path} is missing"
    if isinstance(found, str):
        return f"{entry.path} cannot be read ({found})"
    if found[0] != entry.size:
        return f"{entry.path} has {found[0]} bytes, but should have {entry.size}"
    return None if found[1] == entry.sha256 else f"{entry.path} is damaged (its SHA-256 differs)"


def check_files(manifest: Manifest, found: Mapping[str, tuple[int, str] | str | None]) -> Iterator[Problem]:
    """Every file is there and whole. Those of a kind that are missing are reported together."""
    broken = [text for entry in manifest.files if (text := damage(entry, found.get(entry.path)))]
    if broken:
        yield Problem(VARIABLE, listing(broken), AGAIN)


def check_variables(manifest: Manifest, wanted: Mapping[str, Any]) -> Iterator[Problem]:
    """It was made for these values of the variables that decide what is in it."""
    for name in sorted({*manifest.variables, *wanted}):
        one, other = _plain(manifest.variables.get(name)), _plain(wanted.get(name))
        if one != other:
            yield Problem(
                VARIABLE,
                f"was made on {manifest.made_at} with {name}: {_shown(one)}, but now it is {_shown(other)}",
                f"set {name} back, or {AGAIN}",
            )


def check_image(manifest: Manifest, folder: str) -> Iterator[Problem]:
    """Its image, of this collection's Dockerfile, holds what that puts into it today."""
    lacking = missing(manifest.image.get("holds", "")) if manifest.image else []
    if lacking:
        yield Problem(
            VARIABLE,
            f"was made on {manifest.made_at}, but its image {manifest.image.get('name')} lacks {', '.join(lacking)}, "
            "which this release of the collection puts into it",
            "make it again where there is internet access (ansible-playbook bundle.yml -i INVENTORY -e "
            f"cluster_bundle={folder}; it fetches only what is missing), and copy the folder again",
        )


def check_fit(bundle: Mapping[str, Any], systems: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """It has packages for the distribution and architecture of every host, and is for what these compute on.

    ``bundle`` has ``systems`` and ``accelerator_made_for`` as its manifest says, and ``accelerator`` as was found;
    empty where there is none.
    """
    made_for = texts(bundle.get("systems"))
    for host, facts in systems.items() if bundle else ():
        name = system_name(facts)
        if name not in made_for:
            yield Problem(
                host,
                f"the system is {name}, but the bundle contains packages for {', '.join(made_for) or 'nothing'}",
                f"put a host or container of that system into group bundle, and {AGAIN}",
            )
    accelerator, other = str(bundle.get("accelerator") or ""), str(bundle.get("accelerator_made_for") or "")
    if bundle and accelerator and accelerator != other:
        yield Problem(
            VARIABLE,
            f"was made with cluster_accelerator: {other}, but these hosts compute with {accelerator}",
            f"set cluster_accelerator: {accelerator} where it is made, and {AGAIN}",
        )


def _plain(value: Any) -> Any:
    """Return a value as JSON would have it, numbers in text as the command line gives them."""
    if isinstance(value, Mapping):
        return {str(name): _plain(below) for name, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(below) for below in value]
    return value if value is None or isinstance(value, bool) else str(value)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}..."
