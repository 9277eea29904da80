# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What asset_transfer returned on a node, before other nodes connect to that node as it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import (
    UnfitError,
    absolute_path,
    accept,
    account,
    file_name,
    flag,
    hex_digest,
    number,
    sentence,
    ssh_public_key,
    whole,
    word,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.shape import by_name, data, listing, mapping

_COUNT = whole()


def _said(value: Any) -> Any:
    """Who runs another transfer: numbers and words of a file, for a message."""
    return sentence(str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value)


_RUNNING = by_name(word, _said, 100)
_WHOLE = mapping(
    {
        "lacking_bytes": _COUNT,
        "lacking_files": _COUNT,
        "spooled_bytes": _COUNT,
        "free_bytes": _COUNT,
        "root": absolute_path,
        "account": account,
        "host_key": ssh_public_key,
        "public_key": ssh_public_key,
    }
)


def _look(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise UnfitError(value, "a mapping")
    if value.get("running"):
        return {"running": _RUNNING(value["running"])}
    if value.get("trouble"):
        return {"trouble": sentence(value["trouble"])}
    return _WHOLE(value)


def looks(reported: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what every node reported; raises ``ReportedError`` that names node and field."""
    return {
        name: accept(name, "asset_transfer.look", accept(name, "asset_transfer.look", value, data), _look)
        for name, value in reported.items()
    }


_REPLY = mapping(
    {},
    {
        "look": _look,
        "over": flag,
        "trouble": sentence,
        "received": by_name(file_name, _COUNT, 10_000),
        "resumed": _COUNT,
        "notes": listing(sentence, 100),
        "seconds": number,
        "progress": mapping({}, {"bytes": _COUNT, "spooled": _COUNT, "state": sentence}),
        "needed": by_name(hex_digest, _COUNT),
    },
)
FIELDS = ("look", "over", "trouble", "received", "resumed", "notes", "seconds", "progress", "needed")


def reply(host: str, reported: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply of asset_transfer, one that failed as it is; raises ``ReportedError``."""
    if reported.get("failed") or reported.get("unreachable") or reported.get("skipped"):
        return dict(reported)
    own = {key: value for key, value in reported.items() if key in FIELDS}
    return {**reported, **accept(host, "asset_transfer", own, _REPLY)}
