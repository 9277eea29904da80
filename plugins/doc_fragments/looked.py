# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the modules that write one file say of C(looked)."""

from __future__ import annotations


class ModuleDocFragment:
    """What Ansible merges into their documentation."""

    DOCUMENTATION = r"""
options:
  looked:
    description:
      - Compare on the controller with what M(swarmspeed.cluster.node_facts), asked for the file's C(content), has
        found in this run. Where nothing is to change the reply is the same and the node is not contacted; in every
        other case the module runs there and judges by the file itself.
      - Only for a task before which nothing can have written the file since that look. A loop or a second use of the
        same path must not say it.
      - Asynchronous and delegated tasks go to the node all the same, as do files that are not C(root)'s or are links,
        and tasks that ask for other file attributes than O(mode) or give that in symbols.
    type: bool
    default: false
"""
