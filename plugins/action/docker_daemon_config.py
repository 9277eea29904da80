# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of docker_daemon_config: runs the module, and reports where it was cut off."""

from __future__ import annotations

from ..plugin_utils.connection.node_action import PlainNodeAction

ActionModule = PlainNodeAction
