#!/usr/bin/env python3
"""Ansible inventory of a lab made by `make lab`: its nodes as `cluster`, lab1 in `managers`, the others in `workers`.

LAB_NAME (default `swarmspeed`) says which lab; what is read is `.lab/<LAB_NAME>/` in the checkout this script lies in.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

LABS = Path(__file__).resolve().parents[2] / ".lab"


def inventory(nodes: list[dict[str, str]], state: Path) -> dict[str, object]:
    """What Ansible asks an inventory script for with --list; `state` holds the key and the pinned host keys."""
    names = [node["name"] for node in nodes]
    # Nothing but the lab's own key and pinned host keys counts, whatever the user's ssh configuration says.
    ssh_options = {
        "UserKnownHostsFile": f'"{state}/known_hosts"',
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "IdentitiesOnly": "yes",
    }
    common = {
        "ansible_user": "root",
        "ansible_ssh_private_key_file": f"{state}/id_ed25519",
        "ansible_ssh_common_args": " ".join(f"-o {name}={value}" for name, value in ssh_options.items()),
    }
    return {
        "cluster": {"children": ["managers", "workers"]},
        "managers": {"hosts": names[:1]},
        "workers": {"hosts": names[1:]},
        "_meta": {"hostvars": {node["name"]: {"ansible_host": node["address"], **common} for node in nodes}},
    }


def main() -> int:
    """Print the inventory; the exit status is 1, with one line on stderr, where the lab is not up."""
    name = os.environ.get("LAB_NAME", "swarmspeed")
    state = LABS / name
    try:
        nodes = json.loads((state / "inventory.json").read_text(encoding="utf-8"))["nodes"]
    except FileNotFoundError:
        command = "make lab" if name == "swarmspeed" else f"make lab LAB_NAME={name}"
        print(f"the lab '{name}' is not up ({state}/inventory.json is missing): run {command}", file=sys.stderr)
        return 1
    print(json.dumps(inventory(nodes, state), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
