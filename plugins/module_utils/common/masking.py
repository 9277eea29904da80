# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Secrets that a module learns while it runs: nothing that is returned, logged or displayed shows them.

Up to ansible-core 2.21 a module masks its own result and log by ``no_log_values``. From 2.22 on that set is only
reported (module_utils/basic.py): what is registered as a secret is masked in the log of the node, and handed to the
controller, which masks it wherever it displays anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

REGISTRY = "ansible.module_utils.secrets"
"""Part of what every module of 2.22 brings, as basic.py imports it; not there before."""


def hide(module: Any, values: Iterable[str]) -> None:
    """Mask these values in everything that comes of the module; an empty one would mask everything."""
    secrets = {value for value in values if value}
    module.no_log_values.update(secrets)
    try:
        registry = importlib.import_module(REGISTRY)
    except ImportError:
        return
    registry.register_secrets(secrets)
