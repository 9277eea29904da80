# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The variables that say how Ansible reaches a host, as Ansible itself and its plugins know them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible import constants
from ansible.plugins.loader import become_loader, connection_loader, shell_loader

from ..core.values import mapping

PYTHON = "ansible_python_interpreter"
"""Belongs to no plugin; nor do those of other languages, which modules of other collections use."""


def given_by_ansible(variables: Mapping[str, Any]) -> list[str]:
    """Return the names that Ansible itself gives to variables of a host: of the run, and of facts."""
    facts = variables.get("ansible_facts")
    return [*constants.INTERNAL_STATIC_VARS, *(f"ansible_{name}" for name in mapping(facts))]


def known_names(hosts: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the variables of connections that Ansible knows: those of its plugins, and of what these hosts use."""
    used = [("connection", connection_loader, {"ssh", "local"}, "ansible_connection")]
    used += [("become", become_loader, {"sudo", "su"}, "ansible_become_method"), ("shell", shell_loader, {"sh"}, "")]
    found = {
        PYTHON,
        *constants.COMMON_CONNECTION_VARS,
        *(one for every in constants.MAGIC_VARIABLE_MAPPING.values() for one in every),
    }
    for kind_of, loader, plugins, variable in used:
        for name in {*plugins, *(str(host[variable]) for host in hosts if host.get(variable))}:
            plugin = loader.get(name, class_only=True)
            if plugin is not None:
                found.update(constants.config.get_plugin_vars(kind_of, plugin._load_name))
    return frozenset(name for name in found if name.startswith("ansible_"))
