# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which operators of DeepSpeed go into the image. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.training_image.operators import needed_operators


def _needed(accelerator: Any, preset: Any, config: Any, *, named_only: bool = False) -> list[str]:
    if accelerator not in ("cuda", "cpu") or not isinstance(config, Mapping):
        raise AnsibleFilterError("needed_operators: expected 'cuda' or 'cpu', a preset and a dictionary.")
    return needed_operators(accelerator, str(preset or ""), config, named_only=named_only)


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"needed_operators": _needed}
