# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Passes on a module's reply, in words where it was cut off, without control characters.

Of gpu_info and of the other modules that meta/runtime.yml gives this action.
"""

from __future__ import annotations

from ..plugin_utils.connection.node_action import PlainNodeAction

ActionModule = PlainNodeAction
