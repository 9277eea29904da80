# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Extensions of VS Code: which files of role assets they are, and which of them a node has not unpacked. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..assets.gathered import cache_of, manifest_path, sources_of
from ..assets.manifest import from_text
from ..assets.sources import AssetError, Source
from ..core.values import mapping
from ..plan.changes import Changes
from ..plan.controller import TEXT
from .gathered import OF_ASSETS, on_hosts, vscode_of

OPTION = "deepspeed_launch_vscode_extensions"
UNPACKED = "unpacked"


class ExtensionError(Exception):
    """An extension cannot be had as it is listed; ``remedy`` is the second argument."""


def manifests(role_vars: Mapping[str, Any]) -> Iterator[str]:
    """Yield which lists of files the plan reads on the controller."""
    for source in _sources(role_vars):
        yield f"{TEXT}{manifest_path(cache_of(role_vars), source)}"


def digests(role_vars: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, str] | None:
    """Return the SHA-256 of each listed extension; None where nothing is known of files. Raises ``ExtensionError``."""
    paths: Sequence[str] = [str(path) for path in role_vars[OPTION]]
    if paths and on_hosts(role_vars):
        text = f"{OPTION} is for VS Code in training containers, not for deepspeed_launch_runtime: host"
        raise ExtensionError(text, f"leave {OPTION} out")
    if paths and not all(name in role_vars for name in OF_ASSETS):  # the role is applied alone
        return None
    known: dict[str, str] = {}
    for source in _sources(role_vars):
        manifest = from_text(files.get(f"{TEXT}{manifest_path(cache_of(role_vars), source)}", ""))
        known.update({f"{source.name}/{path}": sha256 for path, dummy, sha256 in (manifest.files if manifest else ())})
    found: dict[str, str] = {}
    for path in paths:
        if path not in known:
            remedy = "write NAME/FILE, with the name of an asset that has it"
            raise ExtensionError(f"{OPTION}: {path} is not a file of assets_sources", remedy)
        if known[path] in found.values():
            raise ExtensionError(f"{OPTION}: {path} is listed twice, perhaps by another name", "list it once")
        found[path] = known[path]
    return found


def plan(
    changes: Changes, role_vars: Mapping[str, Any], facts: Mapping[str, Any], files: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Add what differs on a node. Return what its tasks read, empty where nothing does, and the facts afterwards."""
    there, wanted = mapping(facts.get("vscode")), digests(role_vars, files)
    if wanted is None:
        return {}, dict(there)
    count = len(changes.found)
    for path, sha256 in wanted.items():
        one = mapping(there.get(sha256))
        if not one.get("intact"):
            before = "removed from its folder or from VS Code's list" if one else None
            changes.add(f"VS Code extension {path}", before, UNPACKED)
    for folder in sorted({str(one.get("folder")) for sha256, one in there.items() if sha256 not in wanted.values()}):
        changes.add(f"VS Code extension {folder}", UNPACKED, None)
    # Of its folder only the extension itself knows the name.
    after = {sha256: {"folder": "known-after-apply", "intact": True} for sha256 in wanted.values()}
    if len(changes.found) == count:
        return {}, after
    return {"root": vscode_of(role_vars), "files": [f"{role_vars['assets_path']}/{path}" for path in wanted]}, after


def _sources(role_vars: Mapping[str, Any]) -> list[Source]:
    """Return where files come from; none where the role is applied alone, or where preflight says what is wrong."""
    if not role_vars[OPTION] or not all(name in role_vars for name in OF_ASSETS):
        return []
    try:
        return sources_of(role_vars)
    except AssetError:
        return []
