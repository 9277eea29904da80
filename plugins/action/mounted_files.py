# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Passes on what mounted_files replies, in words where it was cut off, without control characters."""

from __future__ import annotations

from ..plugin_utils.connection.node_action import PlainNodeAction

ActionModule = PlainNodeAction
