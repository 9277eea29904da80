# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role assets needs gathered: every worker that gathers reads this."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..plan.controller import here
from ..plan.gathered import Gathered
from ..plan.variables import VariableError
from .manifest import Manifest, from_text
from .sources import AssetError, Source, sources

ROLE = "assets"
ENVIRONMENTS = ("training_container_environment", "nccl_env_environment", "deepspeed_launch_environment")
"""Of other roles: what ranks get."""


def manifest_path(cache: Path, source: Source) -> Path:
    """Return where the controller keeps the list of files of a source."""
    return cache / "manifests" / f"{source.key}.json"


def cache_of(role_vars: Mapping[str, Any]) -> Path:
    return here(str(role_vars["assets_cache"]))


def sources_of(role_vars: Mapping[str, Any]) -> list[Source]:
    """Return a host's models and data sets. Raises ``AssetError``."""
    return sources(role_vars["assets_sources"] or [], str(role_vars["assets_huggingface_endpoint"]))


def known_manifest(cache: Path, source: Source) -> Manifest | None:
    """Return the list of files that the action asset_sources has found, in this run or before."""
    try:
        return from_text(manifest_path(cache, source).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def by_role_vars(role_vars: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is gathered for a host's own variables."""
    try:
        listed = sources_of(role_vars)
    except AssetError as error:
        raise VariableError(str(error).partition(". Remedy:")[0]) from error
    if not listed:
        return {}
    wanted = {}
    for source in listed:
        known = known_manifest(cache_of(role_vars), source)
        if known is None:
            # Listed once a run, with the variables of the first host of the play.
            raise VariableError(
                f"assets_sources: {source.name} differs from those of the first host; assets_sources must be the "
                "same on all hosts"
            )
        wanted[source.name] = known.digest
    return {"assets": {"root": str(role_vars["assets_path"]), "wanted": wanted}}


GATHERED = Gathered(by_role_vars=by_role_vars)
