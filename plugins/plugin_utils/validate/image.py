# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What image_transfer returned on a node, before other nodes connect to that node as it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.common.reported import (
    absolute_path,
    digest,
    file_name,
    flag,
    identity,
    word,
)
from .shape import by_name, listing, mapping, one_of
from .transfer import ACCESS, COUNT, Replies

_LAYERS = listing(digest, 10_000)


def _image(value: Any) -> Any:
    """The image, an empty mapping where the node does not have it."""
    return value if isinstance(value, Mapping) and not value else _IMAGE(value)


_IMAGE = mapping(
    {
        "content": digest,
        "layers": _LAYERS,
        "os": word,
        "architecture": word,
        "history": listing(COUNT, 10_000),
    }
)

_WHOLE = mapping(
    {
        "architecture": word,
        "store": one_of("graph", "containerd"),
        "image": _image,
        "images": listing(mapping({"id": identity, "layers": listing(word, 10_000)}), 100_000),
        "free": mapping({"engine": COUNT, "spool": COUNT, "same": flag}),
        "places": mapping({"engine": absolute_path, "spool": absolute_path}),
        "spooled": by_name(file_name, COUNT, 100_000),
        **ACCESS,
    }
)
REPLIES = Replies("image_transfer", _WHOLE, {"state": word})
gathered, reply = REPLIES.gathered, REPLIES.reply
