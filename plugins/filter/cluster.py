# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Filters over directories and specs, for the roles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.module_utils._cluster import fingerprint, tree_manifest


def _manifest(root: str, exclude: list[str] | None = None) -> dict[str, str]:
    if not Path(root).is_dir():
        raise AnsibleFilterError(f"swarmspeed.cluster.tree_manifest: {root} is not a directory on the controller")
    return tree_manifest(root, list(exclude or []))


class FilterModule:
    """Names as they are used in playbooks."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters."""
        return {"tree_manifest": _manifest, "fingerprint": fingerprint}
