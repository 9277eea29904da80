# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads no hosts: stops at a syntax error before the plugins that do, each of which would report it in its own way."""

from __future__ import annotations

DOCUMENTATION = """
name: syntax
short_description: Report syntax errors in the files of an inventory in one sentence
version_added: 0.1.0
description:
  - Enabled as the first inventory plugin, it parses the YAML files of an inventory, C(group_vars) and C(host_vars)
    before any other. A file with a syntax error ends the run with one sentence that names file and line.
  - It reads no hosts. All files are passed on to the plugins after it.
options: {}
requirements:
  - Set C(enable_plugins) in the section C([inventory]) of ansible.cfg to this plugin and those that Ansible enables
    by default.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = """
# ansible.cfg
# [inventory]
# enable_plugins = swarmspeed.cluster.syntax, host_list, script, auto, yaml, ini, toml
"""

from typing import Any

from ansible.plugins.inventory import BaseInventoryPlugin
from ansible.utils.display import Display

from ..plugin_utils.console.files_io import SYNTAX_ERROR, inventory_problems


class InventoryModule(BaseInventoryPlugin):  # type: ignore[misc]  # ansible-core has no types
    """Ansible asks each plugin in turn whether a file is for it."""

    NAME = "swarmspeed.cluster.syntax"

    def verify_file(self, path: str) -> bool:
        problems = inventory_problems([path])
        for problem in problems:
            Display().error(problem, wrap_text=False)
        if problems:
            # An exception would only make Ansible try the next plugin.
            raise SystemExit(SYNTAX_ERROR)
        return False

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Required of a plugin, and never called."""
        super().parse(inventory, loader, path, cache)
