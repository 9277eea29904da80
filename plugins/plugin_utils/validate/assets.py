# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What asset_transfer returned on a node, before other nodes connect to that node as it says."""

from __future__ import annotations

from ...module_utils.common.reported import absolute_path, hex_digest
from .shape import by_name, mapping
from .transfer import ACCESS, COUNT, Replies

_WHOLE = mapping(
    {
        "lacking_bytes": COUNT,
        "lacking_files": COUNT,
        "spooled_bytes": COUNT,
        "free_bytes": COUNT,
        "root": absolute_path,
        **ACCESS,
    }
)
REPLIES = Replies("asset_transfer", _WHOLE, {"needed": by_name(hex_digest, COUNT)})
gathered, reply = REPLIES.gathered, REPLIES.reply
