# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a module returns to the controller, and what a user sees of it.

Up to ansible-core 2.21 that is the same. From 2.22 on a module names its secrets to the controller, which masks them in
whatever it displays, and masks them itself in what it logs (module_utils/secrets.py, _internal/_task.py).
"""

from __future__ import annotations

import importlib
import json
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.masking import REGISTRY

NAMED = "_ansible_new_secrets"


def returned(output: str) -> dict[str, Any]:
    """Return a module's result without what the controller keeps for itself."""
    answer: dict[str, Any] = json.loads(output)
    answer.pop(NAMED, None)
    return answer


def displayed(output: str) -> str:
    """Return a module's output, or what it passes to its log, as it would be shown."""
    try:
        registry = importlib.import_module(REGISTRY)
    except ImportError:
        return output
    text = json.dumps(returned(output)) if output.lstrip().startswith("{") else output
    return str(registry.mask_secrets(text))
