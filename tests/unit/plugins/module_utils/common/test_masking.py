# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Secrets that a module learns while it runs, with and without the registry of ansible-core 2.22."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.masking import REGISTRY, hide

from tests.displayed import returned


class Module:
    def __init__(self) -> None:
        self.no_log_values: set[str] = set()


def test_without_the_registry_the_module_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, REGISTRY, None)  # as where it is not there
    module = Module()
    hide(module, ["hunter2", "", "hunter2"])
    assert module.no_log_values == {"hunter2"}


def test_with_the_registry_the_controller_learns_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen with 2.22.0rc1: without it they were displayed, in a task with ``inject_invocation``."""
    registered: list[str] = []

    def register_secrets(values: Iterable[str]) -> None:
        registered.extend(values)

    registry = ModuleType(REGISTRY)
    vars(registry)["register_secrets"] = register_secrets
    monkeypatch.setitem(sys.modules, REGISTRY, registry)
    module = Module()
    hide(module, ["hunter2", ""])
    assert module.no_log_values == {"hunter2"} and registered == ["hunter2"]


def test_what_the_controller_keeps_is_no_part_of_the_result() -> None:
    assert returned('{"_ansible_new_secrets": ["hunter2"], "a": 1}') == {"a": 1} == returned('{"a": 1}')
