#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Put a new training container in the place of the running one."""

from __future__ import annotations

DOCUMENTATION = r"""
module: container_swap
short_description: Put a new container in the place of the running one, and keep that until the new one works
version_added: 0.1.0
description:
  - The role P(swarmspeed.cluster.training_container#role) creates the new container as C(NAME.new), so that what the
    engine refuses is refused while the old one runs.
  - Only containers that this collection made are touched.
options:
  name: {type: str, required: true, description: Name of the container.}
  state: {type: str, choices: [swapped, settled, restored], required: true, description: "V(swapped) stops C(NAME),
      keeps it as C(NAME.old), and starts C(NAME.new) as C(NAME). If that fails, the earlier one is started again.
      V(settled) removes C(NAME.old) and C(NAME.new). V(restored) starts C(NAME.old) again as C(NAME), and keeps what
      was C(NAME) as C(NAME.new), stopped."}
  others: {type: list, elements: str, default: [], description: "Containers of this host from when it had another name.
      They end with O(state=swapped), are removed with O(state=settled), and are started again with O(state=restored),
      or where V(swapped) fails."}
  docker_socket: {type: path, default: /var/run/docker.sock, description: The socket of the Docker engine.}
attributes:
  check_mode: {support: none, description: Predicts changes and makes none.}
  diff_mode: {support: none, description: Shows what changes.}
  idempotent: {support: partial, description: A second call with the same options changes nothing., details: V(swapped)
      needs a new container each time.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Start the new container in the place of the running one
  swarmspeed.cluster.container_swap:
    name: "swarmspeed-{{ inventory_hostname }}"
    state: swapped
"""

RETURN = r"""#"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.engine.api_io import Engine, EngineError, SocketEngine
from ..module_utils.engine.swap import Swap, SwapError


def run_module(params: dict[str, Any], engine: Engine) -> dict[str, Any]:
    """Do what the state says; raise ``SwapError``."""
    swap = Swap(engine, params["name"], params["others"])
    act = {"swapped": swap.swapped, "settled": swap.settled, "restored": swap.restored}[params["state"]]
    try:
        return {"changed": act()}
    except EngineError as error:
        why = " ".join(str(error).split()).rstrip(".")
        raise SwapError(f"Container {params['name']}: the engine refuses: {why}.") from error


def main() -> None:
    """Act and report."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "required": True, "choices": ["swapped", "settled", "restored"]},
            "others": {"type": "list", "elements": "str", "default": []},
            "docker_socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=False,
    )
    try:
        result = run_module(module.params, SocketEngine(module.params["docker_socket"]))
    except SwapError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
