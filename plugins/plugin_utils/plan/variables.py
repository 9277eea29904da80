# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The variables of one host, rendered where they can be seen: in the task that gathers its facts.

``hostvars`` holds neither a role's defaults nor a play's variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ...module_utils.common.secret_names import mask_text
from ..core.role_specs import type_of
from ..core.shell_words import WordsError, words_of
from ..core.variables import role_specs, text_as_words


class VariableError(Exception):
    """A variable cannot be rendered, or is of another type; the text names it."""


class HostVariables(dict[str, Any]):
    """By name. Reading one that could not be rendered raises ``VariableError``, which says why."""

    def __init__(self, values: Mapping[str, Any], unrendered: Mapping[str, str], host: str = "") -> None:
        super().__init__(values)
        self.unrendered = unrendered
        self.host = host

    def __missing__(self, name: str) -> Any:
        text = f"{name}: {self.unrendered[name]}" if name in self.unrendered else f"{name} is not defined"
        raise VariableError(f"{self.host}: {text}" if self.host else text)


def changed(variables: Mapping[str, Any], values: Mapping[str, Any]) -> HostVariables:
    """Return the variables with these values."""
    return HostVariables({**variables, **values}, getattr(variables, "unrendered", {}), getattr(variables, "host", ""))


def rendered(
    names: Iterable[str],
    variables: Mapping[str, Any],
    render: Callable[[Any], Any],
    failures: tuple[type[Exception], ...],
) -> HostVariables:
    """Return the rendered variables of one host. ``failures`` is what ``render`` raises.

    A template may use what only a later task knows (``swarmspeed_cluster``), so one that fails matters where
    it is read.
    """
    values: dict[str, Any] = {}
    unrendered: dict[str, str] = {}
    for name in names:
        if name in variables:
            try:
                values[name] = render(variables[name])
            except failures as error:
                unrendered[name] = " ".join(str(error).split()).rstrip(".")
    return HostVariables(values, unrendered)


def typed(host: str, values: Mapping[str, Any], unrendered: Mapping[str, str]) -> HostVariables:
    """Return a host's rendered variables with the types that argument specs say. Raises ``VariableError``."""
    options = role_specs().options
    declared = {name: value for name, value in values.items() if name in options}
    for name in declared.keys() & text_as_words():
        try:
            declared[name] = words_of(declared[name])
        except WordsError as error:
            raise VariableError(f"{host}: {name} {error}") from None
    checked = ArgumentSpecValidator({name: type_of(options[name]) for name in declared}).validate(declared)
    if checked.error_messages:
        # Ansible's text quotes the value.
        raise VariableError(f"{host}: {mask_text('; '.join(text.rstrip('.') for text in checked.error_messages))}")
    found = {name: checked.validated_parameters[name] for name in declared}
    return HostVariables({**values, **found}, unrendered, host)
