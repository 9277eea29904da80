# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Preflight runs on the controller alone: it reads variables and facts that Ansible holds, and contacts no host."""

from __future__ import annotations

import difflib
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible import errors
from ansible.errors import AnsibleActionFail, AnsibleError, AnsibleUndefinedVariable
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.errors import UnsupportedError
from ansible.plugins.action import ActionBase
from ansible.release import __version__ as ansible_version
from ansible.utils.collection_loader import AnsibleCollectionConfig

from ..module_utils.common.reported import sentence
from ..module_utils.common.secret_names import mask_text
from ..plugin_utils.bundle.files import problems as bundle_problems
from ..plugin_utils.bundle.manifest import VARIABLE as BUNDLE_VARIABLE
from ..plugin_utils.core.constraints import ConstraintError, judge
from ..plugin_utils.core.problems import Problem, Report, collect
from ..plugin_utils.core.role_specs import RoleSpecError, type_of
from ..plugin_utils.core.shell_words import WordsError, words_of
from ..plugin_utils.core.values import plain
from ..plugin_utils.core.variables import constraints, role_specs, text_as_words
from ..plugin_utils.plan.play_hosts import play_hosts, play_of
from ..plugin_utils.plan.requested import Requested, needs, requested_by
from ..plugin_utils.plan.variables import VariableError, rendered, typed
from ..plugin_utils.preflight.connection_names import given_by_ansible, known_names
from ..plugin_utils.preflight.connections import OF_CONNECTIONS
from ..plugin_utils.preflight.controller import Controller
from ..plugin_utils.preflight.controller_io import copies, kind, text, writable
from ..plugin_utils.preflight.controller_io import names as names_in
from ..plugin_utils.preflight.facts import FACT_CHECKS, Facts
from ..plugin_utils.preflight.inventory import Inventory
from ..plugin_utils.preflight.inventory_checks import GROUPS, INVENTORY_CHECKS, REPEATED
from ..plugin_utils.preflight.origins import origin
from ..plugin_utils.preflight.play import roles_by_themselves
from ..plugin_utils.training_image.settings import Settings, image_troubles
from ..plugin_utils.validate.filters import one_line

CONTROLLER = Controller(ansible_version, platform.python_version())
# ansible-core before 2.19 has no such error.
OMITTED = getattr(errors, "AnsibleValueOmittedError", AnsibleUndefinedVariable)


TABLES = "see the tables of checks in docs/troubleshooting.md"


def searched() -> Iterable[str]:
    """Return the folders in which Ansible looks for collections, in order."""
    if AnsibleCollectionConfig.collection_finder is None:
        return ()
    return list(AnsibleCollectionConfig.collection_paths)


CHECKS_OF_UNDOING = frozenset(
    {
        *(
            set(INVENTORY_CHECKS)
            - {
                "container_options",
                "files",
                "launch_values",
                "vscode",
                "ca_certificate",
                "image_settings",
                "bundle",
                "overlaps",
            }
        ),
        *("reachable", "systemd", "python"),
    }
)
"""What is checked before a playbook that only removes something. It works with hosts as they are, so it fails neither
at what they lack for the requested state nor at files of the controller that site.yml would send."""

FORMER_CHECKS = {"accelerator": "values"}
"""Checks of earlier releases, by the checks that they are part of now."""


@one_line("hosts_facts", "what node_facts returned", AnsibleActionFail)
def check_facts(facts: Facts, skip: Sequence[str] = (), undo: bool = False) -> Report:
    """Run the checks of the second stage. What a node reported stands in them on one line."""
    report = collect(_made(FACT_CHECKS, undo), facts, skip)
    problems, warnings = (
        tuple(replace(one, text=sentence(one.text), remedy=sentence(one.remedy)) for one in found)
        for found in (report.problems, report.warnings)
    )
    return replace(report, problems=problems, warnings=warnings)


def _made(checks: Mapping[str, Any], undo: bool) -> dict[str, Any]:
    return {name: check for name, check in checks.items() if not undo or name in CHECKS_OF_UNDOING}


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Collect all problems of one stage, then fail once."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        _validation, arguments = self.validate_argument_spec(
            argument_spec={
                "stage": {"type": "str", "required": True, "choices": ["inventory", "facts"]},
                "skip": {"type": "list", "elements": "str", "default": []},
                "undo": {"type": "bool", "default": False},
                "launches": {"type": "bool", "default": False},
                "files": {"type": "dict", "default": {}},
                "bundle_variables": {"type": "dict", "default": {}},
                "bundle_built": {"type": "bool", "default": False},
                "found": {"type": "list", "elements": "dict", "default": []},
                "hosts_facts": {"type": "dict"},
                "unreachable": {"type": "dict", "default": {}},
                "cluster": {"type": "dict", "default": {}},
                "image": {"type": "str", "default": ""},
                "builds_image": {"type": "bool", "default": False},
                "space": {"type": "dict", "default": {}},
                "launch": {"type": "dict", "default": {}},
                "bundle": {"type": "dict", "default": {}},
                "applies": {"type": "bool", "default": False},
            },
            required_if=[("stage", "facts", ("hosts_facts",))],
        )
        check_skips(arguments["skip"])
        if arguments["stage"] == "facts" and not arguments["hosts_facts"] and not arguments["unreachable"]:
            raise AnsibleActionFail(
                "hosts_facts: no host is listed, so nothing would be checked. Remedy: list every host."
            )
        try:
            if arguments["stage"] == "inventory":
                checks = _made(INVENTORY_CHECKS, arguments["undo"])
                inventory = self._inventory(arguments, variables)
                report = collect(checks, inventory, arguments["skip"])
                result["by_themselves"] = roles_by_themselves(inventory)
            else:
                facts = Facts(arguments["hosts_facts"], self._requested(arguments, variables), arguments["unreachable"])
                report = check_facts(facts, arguments["skip"], arguments["undo"])
        except (RoleSpecError, ConstraintError) as error:
            raise AnsibleActionFail(str(error)) from error
        except VariableError as error:
            raise AnsibleActionFail(f"{error}. Remedy: correct this variable") from error
        made = outcome(report)
        return made if made["failed"] else {**result, **made}

    def _requested(self, arguments: Mapping[str, Any], variables: Mapping[str, Any]) -> Requested:
        """Return what this host's variables ask of the cluster, with what the plan of this run stops at."""
        current = str(variables.get("inventory_hostname", "localhost"))
        found = rendered(role_specs().options, variables, self._templar.template, (AnsibleError,))
        plan = variables.get("swarmspeed_plan") or {}
        each = {}
        for host in arguments["hosts_facts"]:
            raw = variables["hostvars"].raw_get(host)
            gathered = raw.get("_preflight_gathered") if isinstance(raw, Mapping) else None
            each[host] = plain(gathered.get("role_vars") or {}) if isinstance(gathered, Mapping) else {}
        requested = requested_by(
            typed(current, found, found.unrendered),
            each,
            list((variables.get("groups") or {}).get("managers") or []),
            plain(arguments["cluster"]),
            arguments["image"],
            arguments["builds_image"],
        )
        return replace(
            requested,
            min_free=needs(plain(arguments["space"])),
            launch=plain(arguments["launch"]),
            bundle=plain(arguments["bundle"]),
            refused=plan.get("refused") or {},
            # Where the roles follow. verify.yml lists the changes themselves.
            consents=plan.get("consents") or {} if arguments["applies"] else {},
        )

    def _inventory(self, arguments: Mapping[str, Any], variables: Mapping[str, Any]) -> Inventory:
        files = self._absolute(arguments["files"])
        specs, rules = role_specs(), constraints()
        wanted = dict.fromkeys([*specs.options, *OF_CONNECTIONS])
        groups = variables.get("groups") or {}
        names: dict[str, list[str]] = {}
        values: dict[str, dict[str, Any]] = {}
        broken: dict[str, dict[str, str]] = {}
        for host in dict.fromkeys(host for group in GROUPS for host in groups.get(group) or []):
            # hostvars hold what inventory, variable files and command line set, and no role's defaults.
            found = variables["hostvars"][host]
            names[host] = list(found)
            values[host], broken[host] = evaluate(found, wanted)
        # A play's own variables are in no hostvars; the current host's task sees them, and its role's defaults.
        current = str(variables.get("inventory_hostname", "localhost"))
        names[current] = list(dict.fromkeys([*names.get(current, []), *variables]))
        defaults, failed = evaluate(_Templated(variables, self._templar), wanted)
        for name in self._of_play(variables, current).intersection(wanted):
            for host in set(names) - {current}:
                broken[host].pop(name, None)
                if name in defaults and not self._templar.is_template(variables[name]):
                    values[host][name] = defaults[name]
                else:  # its own value there, which is not known here
                    values[host].pop(name, None)
                    names[host] = list(dict.fromkeys([*names[host], name]))
        values[current] = {**values.get(current, {}), **defaults}
        broken[current] = {**broken.get(current, {}), **failed}
        return Inventory(
            groups=groups,
            hosts=values,
            names=names,
            defaults=defaults,
            specs=specs,
            invalid=lambda name, value: invalid(name, specs.options[name], value),
            rules=rules,
            judge=lambda name, value: judge(name, rules[name], specs.options[name], value) if name in rules else None,
            origin=origin,
            broken=broken,
            files=files,
            found=arguments["found"],
            kind=kind,
            text=text,
            writable=writable if arguments["launches"] else lambda _path: True,
            bundle=lambda: self._bundle(files.get(BUNDLE_VARIABLE), arguments),
            image=image_problems,
            controller=replace(CONTROLLER, copies=copies(searched())),
            play=play_hosts(variables, self._task),
            connections=known_names(values.values()),
            from_ansible={
                host: given_by_ansible(variables["hostvars"][host]) for host in names if host in variables["hostvars"]
            },
            folders=self._variable_folders(variables),
            listed=names_in,
        )

    def _of_play(self, variables: Mapping[str, Any], current: str) -> set[str]:
        """Return the variables that the play sets, on whatever the inventory has: for all hosts, as Ansible does."""
        raw = variables["hostvars"].raw_get(current) if current in variables["hostvars"] else {}
        files = {name for name in raw if name in variables and raw[name] != variables[name]}
        return files.union(getattr(play_of(self._task), "vars", None) or ())

    @staticmethod
    def _bundle(folder: Any, arguments: Mapping[str, Any]) -> Iterable[Problem]:
        if not isinstance(folder, str) or not folder:
            return ()
        return bundle_problems(folder, plain(arguments["bundle_variables"]), built=arguments["bundle_built"])

    def _variable_folders(self, variables: Mapping[str, Any]) -> list[str]:
        """Return the folders in which Ansible looks for group_vars and host_vars: inventories' and the playbook's."""
        sources = [Path(str(source)) for source in variables.get("ansible_inventory_sources") or ()]
        beside = [str(source if source.is_dir() else source.parent) for source in sources if source.exists()]
        return list(dict.fromkeys([*beside, str(self._loader.get_basedir())]))

    def _absolute(self, files: Mapping[str, Any]) -> dict[str, Any]:
        """Make paths absolute as Ansible does, from the playbook's folder; what is not a path stays for the check."""
        return {
            name: self._loader.path_dwim(path) if isinstance(path, str) and path and "\0" not in path else path
            for name, path in files.items()
        }


class _Templated(Mapping[str, Any]):
    """The variables of the current task, each templated when it is read, as hostvars are."""

    def __init__(self, variables: Mapping[str, Any], templar: Any) -> None:
        self._variables = variables
        self._templar = templar

    def __getitem__(self, name: str) -> Any:
        return self._templar.template(self._variables[name])

    def __contains__(self, name: object) -> bool:
        return name in self._variables  # Mapping's own would evaluate the template

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


def evaluate(variables: Mapping[str, Any], wanted: Iterable[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of those wanted variables that are set, and why the others' templates fail.

    A template that uses an undefined variable is in neither: a role's default, not loaded yet, may define it.
    """
    values: dict[str, Any] = {}
    failures: dict[str, str] = {}
    for name in wanted:
        if name not in variables:
            continue
        try:
            values[name] = variables[name]
        except (AnsibleUndefinedVariable, OMITTED):
            continue
        except AnsibleError as error:
            failures[name] = " ".join(str(error).split()).rstrip(".")
    return values, failures


def invalid(name: str, option: Mapping[str, Any], value: Any) -> str | None:
    """Return what is wrong with a variable's value by its argument spec, or None. A secret is never part of it."""
    try:
        given = words_of(value) if name in text_as_words() else value
    except WordsError as error:
        return str(error)
    result = ArgumentSpecValidator({name: type_of(option)}).validate({name: given})
    # Ansible's own text for an unknown key is not a sentence: "docker_daemon.y. Supported parameters include: x."
    messages = [
        f"{'no such key: ' if isinstance(error, UnsupportedError) else ''}{error.msg}" for error in result.errors
    ]
    if messages and option.get("no_log"):
        return f"its value is not of type {option.get('type', 'str')}, or not among the choices"
    # Ansible's text quotes the value, and one such as "HF_TOKEN=…" instead of a mapping is a secret.
    return mask_text("; ".join(messages)) or None


def image_problems(inventory: Inventory) -> Iterator[Problem]:
    """Check the settings of the training image, which are the same for all hosts."""

    def value(name: str) -> Any:
        return next(iter(inventory.values(name).values()), None)

    for trouble in image_troubles(Settings(value, inventory.files, inventory.kind, inventory.text)):
        yield Problem(trouble.subject, trouble.text, trouble.remedy)


def check_skips(skip: Iterable[str]) -> None:
    """Refuse names that no check has, in either stage: a misspelt one would skip nothing, silently."""
    known = [*INVENTORY_CHECKS, *FACT_CHECKS]
    for name in skip:
        if name == "play_hosts":
            raise AnsibleActionFail(
                "skip: play_hosts cannot be left out, as the plan would lack hosts. Remedy: run without --limit."
            )
        if name not in known:
            if name in FORMER_CHECKS:
                raise AnsibleActionFail(
                    f"skip: {name} is a check of an earlier release and is now part of {FORMER_CHECKS[name]}. Remedy: "
                    f"take {name} out of preflight_skip."
                )
            nearest = difflib.get_close_matches(name, known, n=1)
            meant = f"did you mean {nearest[0]}? Otherwise " if nearest else ""
            raise AnsibleActionFail(f"skip: unknown check {name}. Remedy: {meant}{TABLES}.")


def outcome(report: Report) -> dict[str, Any]:
    """Return the report as the result of a task. One that failed is printed, so that it has each sentence once."""
    result = {"changed": False, "failed": bool(report.problems), "msg": report.message(), "warnings": report.notices()}
    problems = [{"check": problem.check, "subject": problem.subject} for problem in report.problems]
    if problems:
        return {**result, "problems": problems}
    repeated = [problem.line() for problem in report.warnings if problem.check in REPEATED]
    return {**result, "problems": [], "checked": list(report.checked), "repeated": repeated}
