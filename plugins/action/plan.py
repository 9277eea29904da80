# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Plans on the controller what the roles would change, from what was gathered, and reports a role's part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..plugin_utils.connection.stdout import aside
from ..plugin_utils.core.files import write_private
from ..plugin_utils.core.problems import Problem
from ..plugin_utils.core.roles import PLANNED, TOGETHER, concern_group, requested_roles
from ..plugin_utils.core.values import plain
from ..plugin_utils.plan.again import followed, unforeseen
from ..plugin_utils.plan.changes import Inputs
from ..plugin_utils.plan.document import written
from ..plugin_utils.plan.drift import drift
from ..plugin_utils.plan.fold import Plan
from ..plugin_utils.plan.outcome import outcome
from ..plugin_utils.plan.play_hosts import apart, play_hosts
from ..plugin_utils.plan.text import unforeseen_text
from ..plugin_utils.validate.filters import one_line_action
from ..plugin_utils.validate.own_facts import check_own_facts

PLAN = "swarmspeed_plan"
"""The variable in which tasks keep the plan."""


def show(text: str) -> None:
    """Print a plan as it is; as the result of a task it would be one long line of JSON."""
    Display().display(f"\n{text}\n", **aside())


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Runs on the controller only."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        dummy, arguments = self.validate_argument_spec(
            argument_spec={
                "stage": {"type": "str", "choices": ["check", "make", "print", "report", "drift"], "default": "make"},
                "roles": {"type": "list", "elements": "str", "default": list(PLANNED), "choices": list(PLANNED)},
                "hosts": {"type": "list", "elements": "str", "default": []},
                "gathered": {"type": "str", "default": ""},
                "cluster": {"type": "dict", "default": {}},
                "run": {"type": "str", "default": ""},
                "file": {"type": "str", "default": ""},
                "print": {"type": "bool", "default": False},
            }
        )
        if arguments["stage"] == "check":
            return {**result, **self._check(arguments["roles"], arguments["hosts"], variables)}
        if arguments["stage"] == "print":
            show(str((variables.get(PLAN) or {}).get("text", "")))
            return {**result, "changed": False}
        if arguments["stage"] == "report":
            return {**result, **self._report(arguments["roles"], variables)}
        if arguments["stage"] == "drift":
            return {**result, **self._drift(variables)}
        return {**result, **self._make(arguments, variables)}

    def _check(self, roles: list[str], hosts: list[str], variables: Mapping[str, Any]) -> dict[str, Any]:
        """Return the hosts that these roles are planned for. Fails where they must be together and are not."""
        batch = [str(host) for host in variables.get("ansible_play_batch") or []]
        whole = [role for role, name in concern_group(roles).items() if not name or self._given(name, variables)]
        if whole:
            problem = apart(whole[0], hosts, play_hosts(variables, self._task))
            if problem:
                raise AnsibleActionFail(problem)
        return {"changed": False, "whole_group": bool(whole), "hosts": hosts if whole else batch}

    def _given(self, name: str, variables: Mapping[str, Any]) -> bool:
        """Whether a variable is set to something."""
        return bool(self._templar.template(variables.get(name, "")))

    @one_line_action("what node_facts returned")
    def _make(self, arguments: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
        # Imports the planners, of which most tasks only report what they have planned.
        from ..plugin_utils.registry.making import UnplannableError, make_plan  # noqa: PLC0415

        alone = bool(variables.get("swarmspeed_alone"))
        if alone:
            self._refuse_former_names(arguments["hosts"], variables)
        # The key was drawn for this run; node_facts got it, too.
        inputs = Inputs(plain(arguments["cluster"]), digest_key=str(variables.get("_preflight_digest_key") or ""))
        tags, skipped = variables.get("ansible_run_tags") or ["all"], variables.get("ansible_skip_tags") or []
        selected = requested_roles(tags, skipped)
        found = self._gathered(arguments, variables)
        try:
            made = make_plan(arguments["roles"], found, inputs, self._loader, selected, not alone)
        except UnplannableError as error:
            raise AnsibleActionFail(str(error)) from None
        return self._result(made.plan, selected, made.needed, arguments, variables)

    def _result(
        self,
        plan: Plan,
        selected: Sequence[str],
        needed: Sequence[Problem],
        arguments: Mapping[str, Any],
        variables: Mapping[str, Any],
    ) -> dict[str, Any]:
        file = arguments["file"]
        made = outcome(plan, arguments["run"], selected, needed)
        first = (variables.get(PLAN) or {}).get("report") or {}
        again = bool(arguments["run"]) and first.get("run") == arguments["run"]
        report = followed(first, made["document"]) if again else made["document"]
        found = unforeseen(first, made["document"]) if again else []
        if file:
            path = Path(file).expanduser()
            try:
                write_private(path if path.is_absolute() else Path.cwd() / path, written(report))
            except OSError as error:
                raise AnsibleActionFail(
                    f"cluster_plan_file: {path} cannot be written ({error.strerror}). Remedy: name another file"
                ) from error
        if arguments["print"]:
            show(made["text"])
        elif found:
            changes = plan.only(selected).changes
            show(unforeseen_text(changes[place] for place in found))
        made["report"] = report
        # What the roles' tasks read may hold secrets. The text, which is shown by a task of its own, holds none.
        return {"changed": False, **made, "_ansible_no_log": True}

    def _gathered(self, arguments: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return what was gathered of each host in this run. One that could not be reached is not planned."""
        found: dict[str, dict[str, Any]] = {}
        hostvars = variables["hostvars"]
        for host in arguments["hosts"]:
            # Results of tasks: no templates in them, and none that a node sent would be filled.
            known = hostvars.raw_get(host)
            gathered = known.get(arguments["gathered"]) if isinstance(known, Mapping) else None
            facts = gathered.get("ansible_facts", {}).get("swarmspeed") if isinstance(gathered, Mapping) else None
            # Facts may come from a cache, and then of another run.
            if isinstance(facts, Mapping) and facts.get("run", "") == arguments["run"]:
                found[host] = plain(gathered)
                kept = known.get("ansible_facts")
                check_own_facts(host, kept.get("swarmspeed") if isinstance(kept, Mapping) else None)
        return found

    def _refuse_former_names(self, hosts: Iterable[str], variables: Mapping[str, Any]) -> None:
        """Refuse variables of earlier releases, as preflight does in a whole run."""
        from ..plugin_utils.core.role_specs import RENAMED, renamed  # noqa: PLC0415

        for host in hosts:
            names = (variables, variables["hostvars"].raw_get(host) or {})
            for former, today in RENAMED.items():
                if any(former in given for given in names):
                    text, remedy = renamed(today)
                    raise AnsibleActionFail(f"{host}: {former} {text}. Remedy: {remedy}")

    def _planned(self, variables: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return this host's name, and the plan that it is part of."""
        host, plan = str(variables.get("inventory_hostname", "")), variables.get(PLAN) or {}
        if host not in plan.get("hosts", []):
            raise AnsibleActionFail(f"{host}: nothing was planned for it in this run.")
        return host, plan

    def _drift(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """List what the selected roles would change on this host."""
        host, plan = self._planned(variables)
        tags = variables.get("ansible_run_tags") or ["all"]
        planned = {role: plan["drift"][host].get(role, []) for role in plan["roles"]}
        found = drift(planned, requested_roles(tags, variables.get("ansible_skip_tags") or []), tags)
        return {
            "changed": False,
            "by_role": [{"role": one.role, "what": list(one.what)} for one in found],
            "msg": "\n".join(one.sentence(host) for one in found),
        }

    def _report(self, roles: Iterable[str], variables: Mapping[str, Any]) -> dict[str, Any]:
        """Report the changes that are planned for this host: in check mode as changed, as nothing makes them there."""
        host, plan = self._planned(variables)
        stops = [sentence for role in roles for sentence in plan["stops"][host].get(role, [])]
        if stops:
            raise AnsibleActionFail(f"{host}: {' '.join(sentence.rstrip('.') + '.' for sentence in stops)}")
        # A part of the hosts would leave the cluster between two states, where the play goes on with those.
        for role in roles:
            stopped = [other for other in plan["hosts"] if role in TOGETHER and plan["stops"][other].get(role)]
            if stopped:
                first = plan["stops"][stopped[0]][role][0].rstrip(".")
                raise AnsibleActionFail(f"{host}: skipped because of {stopped[0]}: {first}.")
        changes = [
            {key: change[key] for key in ("role", "what", "action", "before", "after", "why")}
            for change in plan["document"]["changes"]
            if change["host"] == host and change["role"] in roles
        ]
        diffs = [entry for role in roles for entry in plan["diffs"][host].get(role, [])]
        found: dict[str, Any] = {"changed": bool(diffs) and self._task.check_mode, "changes": changes}
        if diffs:
            found["diff"] = diffs
        return found
