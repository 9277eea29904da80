# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of ds_config: spares the round trip where a look has found the file as wanted."""

from __future__ import annotations

from ansible_collections.swarmspeed.cluster.plugins.modules import ds_config
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.verify.kept_text_file import LookedAction


class ActionModule(LookedAction):
    """Nothing of its own: the module's code judges, here or on the node."""

    MODULE = ds_config
