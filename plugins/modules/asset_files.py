#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Verify the digests of models and data sets on a node, or remove them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: asset_files
short_description: Verify models and data sets on a node by their digests, or remove them
version_added: 0.1.0
description:
  - Uses the records that M(swarmspeed.cluster.asset_transfer) keeps below O(root). Files without a record are neither
    read nor removed.
options:
  root: {type: path, required: true, description: Folder that holds the folders of the models and data sets.}
  names: {type: list, elements: str, default: [], description: Those to verify. V(absent) removes all that have a
      record.}
  state: {type: str, choices: [verified, absent], required: true, description: "V(verified) reads each recorded file and
      compares it with its SHA-256. V(absent) removes the recorded files, and folders that are then empty."}
attributes:
  check_mode: {support: full, description: "Reads the files, and removes nothing."}
  diff_mode: {support: none, description: Models are not text.}
  idempotent: {support: full, description: What was removed is not removed again.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Verify a model
  swarmspeed.cluster.asset_files:
    root: /srv/models
    names: [qwen]
    state: verified
  register: read
  failed_when: read.damaged | length > 0
"""

RETURN = r"""
damaged: {returned: with O(state=verified), type: list, elements: str, description: "Files that do not have their
    recorded SHA-256, relative to O(root)."}
removed: {returned: with O(state=absent), type: list, elements: str, description: "Models and data sets that were
    removed, or would be."}
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.transfer.assets.files import recorded_names, remove, remove_empty, verify


def verified(root: Path, names: list[str]) -> dict[str, Any]:
    """Return what does not have its digest."""
    return {"changed": False, "damaged": [f"{name}/{path}" for name in names for path in verify(root, name)]}


def absent(root: Path, check: bool) -> dict[str, Any]:
    """Remove what is recorded."""
    names = recorded_names(root)
    for name in names if not check else ():
        remove(root, name)
    if not check:
        remove_empty(root)
    return {"changed": bool(names), "removed": names}


def main() -> None:
    """Read, or remove."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "names": {"type": "list", "elements": "str", "default": []},
            "state": {"type": "str", "choices": ["verified", "absent"], "required": True},
        },
        supports_check_mode=True,
    )
    root = Path(module.params["root"])
    try:
        if module.params["state"] == "verified":
            result = verified(root, module.params["names"])
        else:
            result = absent(root, module.check_mode)
    except OSError as error:
        module.fail_json(msg=f"asset_files: {error}. Use become.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
