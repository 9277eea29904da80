# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How many bytes Ansible sends to a node with each module: the module, all that it imports, and its wrapper.

Usage: python -m tests.payloads
Prints a table in Markdown, the largest first. Modules that run on the controller alone send nothing and are left out.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ansible.executor.module_common import modify_module
from ansible.modules import ping
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar

ROOT = Path(__file__).resolve().parents[1]
MODULES = ROOT / "collections/ansible_collections/swarmspeed/cluster/plugins/modules"


@cache
def _templar() -> Templar:
    init_plugin_loader([str(ROOT / "collections")])
    return Templar(DataLoader())


def payload(name: str = "") -> int:
    """Return the bytes sent to run a module without arguments, or one that imports nothing of this collection."""
    templar = _templar()
    built = modify_module(
        module_name=f"swarmspeed.cluster.{name}" if name else "ansible.builtin.ping",
        module_path=str(MODULES / f"{name}.py") if name else ping.__file__,
        module_args={},
        templar=templar,
        task_vars={"ansible_python_interpreter": "/usr/bin/python3"},
        module_compression="ZIP_DEFLATED",
        async_timeout=0,
        environment={},
        become_plugin=None,
    )
    data: bytes = built[0] if isinstance(built, tuple) else built.b_module_data
    return len(data)


def table() -> str:
    """Return the table."""
    names = [path.stem for path in MODULES.glob("*.py")]
    nothing = payload()
    # A stub that documents an action has no code to send.
    sizes = {name: payload(name) for name in names}
    rows = sorted(((size, name) for name, size in sizes.items() if size > nothing), reverse=True)
    lines = [f"| `{name}` | {size / 1000:.0f} kB | {(size - nothing) / 1000:.0f} kB |" for size, name in rows]
    return "\n".join(["| module | sent | of that this collection |", "|---|---|---|", *lines])


if __name__ == "__main__":
    print(table())
