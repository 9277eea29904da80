#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether a container reaches the others over their overlay network."""

from __future__ import annotations

DOCUMENTATION = r"""
module: overlay_reach
short_description: Test whether a container reaches the others over the overlay network
version_added: 0.1.0
description:
  - From inside the container, resolves the name of each of O(hosts) and connects to O(port) there, all at once, within
    seconds. A refused connection counts as reached, as the network carried it.
  - After containers change, an overlay network takes up to a minute to converge. For O(patience) seconds, what is not
    reached is tried again, with a message.
  - Does not judge the result, and fails only where it cannot test. The filter
    P(swarmspeed.cluster.overlay_faults#filter) determines which nodes are at fault.
options:
  container: {type: str, required: true, description: The container to test from.}
  hosts: {type: dict, required: true, description: "Containers to reach, by their names in the overlay network's DNS,
      each under a name for the result."}
  port: {type: int, required: true, description: "The TCP port to connect to, such as that of the containers' sshd."}
  seconds: {type: int, default: 3, description: "Seconds that one try may take, 1 to 30."}
  patience: {type: int, default: 0, description: Seconds to wait for what is not reached at first. Used by the action
      plugin only.}
  python: {type: str, default: python3, description: "Python in the container, 3.8 or later."}
extends_documentation_fragment: [swarmspeed.cluster.attributes.read_only]
author: The swarmspeed.cluster founders (@swarmspeed)
seealso:
  - {plugin: swarmspeed.cluster.overlay_faults, plugin_type: filter}
"""

EXAMPLES = r"""
- name: Test the overlay network from each container
  swarmspeed.cluster.overlay_reach:
    container: "swarmspeed-{{ inventory_hostname }}"
    hosts: {node2: swarmspeed-node2}
    port: 2222
    patience: 90
  register: reached
"""

RETURN = r"""
reached: {returned: success, type: dict, description: "C(stage) and C(error), by the names in O(hosts). The stage is
    V(done) where the host was reached, V(name) where its name does not resolve, V(connect) where nothing answers at its
    address."}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.engine.api_io import SocketEngine
from ..module_utils.fabric.reach_io import SECONDS, SLACK, ReachError, reached
from ..module_utils.job.probe_io import SystemProbeIO


def run_module(params: dict[str, Any], system: Any) -> dict[str, Any]:
    """Try, and return how far each got."""
    if not 1 <= params["seconds"] <= 30:
        raise ReachError(f"seconds: {params['seconds']} is not within 1 and 30.")
    names = ("container", "hosts", "port", "seconds", "python")
    return {"changed": False, "reached": reached(system.run, **{name: params[name] for name in names})}


def main() -> None:
    """Try and return."""
    module = AnsibleModule(
        argument_spec={
            "container": {"type": "str", "required": True},
            "hosts": {"type": "dict", "required": True},
            "port": {"type": "int", "required": True},
            "seconds": {"type": "int", "default": SECONDS},
            "patience": {"type": "int", "default": 0},
            "python": {"type": "str", "default": "python3"},
        },
        supports_check_mode=True,
    )
    try:
        result = run_module(module.params, SystemProbeIO(SocketEngine(), module.params["seconds"] + SLACK))
    except ReachError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
