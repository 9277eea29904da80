# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of bundle_collect: knows what is there already, and takes what the host has downloaded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail

from ..module_utils.apt.bundle_packages import packages_text
from ..module_utils.common.reported import ReportedError
from ..module_utils.common.whole_file import PART
from ..plugin_utils.bundle.files import unpack, whole, write_text
from ..plugin_utils.bundle.folder import own_folder
from ..plugin_utils.bundle.manifest import BundleError, system_name
from ..plugin_utils.connection.fetched import archive_bytes, fetch_at_most
from ..plugin_utils.connection.node_action import NodeAction
from ..plugin_utils.docker.engine import docker_plan
from ..plugin_utils.nvidia_container_toolkit.toolkit import toolkit_plan
from ..plugin_utils.validate.bundle import reported

MODULE = "swarmspeed.cluster.bundle_collect"
PLANS = {"docker": docker_plan, "nvidia_container_toolkit": toolkit_plan}


def resolved(system: Mapping[str, Any], groups: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the module's arguments, with what the roles would install on a host like this one that has nothing yet."""
    bare = {"system": system, "packages": {}, "docker": {}, "engine": {}, "files": {}, "held": []}
    made: list[dict[str, Any]] = []
    sources: list[str] = []
    without: list[str] = []
    for group in groups:
        one = dict(group)
        if "request" in one:
            plan = PLANS[one["prefix"]](bare, one.pop("request"))
            packages = plan["packages"]
            one.update(packages=packages, locked=plan.get("locked", packages), version=plan["version"])
            sources.append(plan["sources"])
            without += plan["stale_sources"]
        if one.get("packages"):
            made.append(one)
    return {"groups": made, "sources": "\n".join(filter(None, sources)), "without": without}


class ActionModule(NodeAction):
    """List, compare, download, fetch."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        arguments = dict(self._task.args)
        if not arguments.get("bundle") or not isinstance(arguments.get("system"), dict):
            raise AnsibleActionFail("bundle and system are needed: a folder, and what node_facts says of the host.")
        bundle = Path(arguments["bundle"]).expanduser()
        work = str(self._connection._shell.tmpdir)
        arguments.update(resolved(arguments["system"], arguments.get("groups") or []), folder=work)
        answer = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=variables)
        if answer.get("failed"):
            return {**result, **answer}
        host, folder = str(variables.get("inventory_hostname", "this host")), bundle / "apt"
        try:
            name = system_name(arguments["system"])
            folder = bundle / "apt" / name
            debs = reported(host, answer.get("debs"))
            expected = {deb.file: (deb.size, deb.sha256) for deb in debs}
            lacking = sorted(set(expected) - whole(folder, expected))
            if not self._task.check_mode:
                own_folder(bundle, "apt", name)
                if lacking:
                    self._fetch({**arguments, "lacking": lacking}, folder, expected, variables)
                # The list of all, from which a node's own is made.
                write_text(folder / "Packages", packages_text(debs))
        except ReportedError as error:
            raise AnsibleActionFail(str(error)) from None
        except (BundleError, OSError) as error:
            raise AnsibleActionFail(f"{folder}: {error}. Remedy: free some space, and run bundle.yml again.") from error
        packages = [
            {
                "name": deb.name,
                "version": deb.version,
                "source": f"{deb.source} {deb.source_version}",
                "file": deb.file,
                "size": deb.size,
                "sha256": deb.sha256,
            }
            for deb in debs
        ]
        result.update(changed=bool(lacking), system=name, packages=packages, fetched=lacking)
        return result

    def _fetch(
        self, arguments: dict[str, Any], folder: Path, expected: dict[str, tuple[int, str]], variables: dict[str, Any]
    ) -> None:
        answer = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=variables)
        if answer.get("failed"):
            raise AnsibleActionFail(str(answer.get("msg")))
        # Where the module puts it, whatever it answers.
        remote = self._connection._shell.join_path(arguments["folder"], "packages.tar")
        self._readable(remote, variables)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=PART) as archive:
            most = archive_bytes(expected[name][0] for name in arguments["lacking"])
            fetch_at_most(self._connection, remote, archive.name, most)
            missing = unpack(Path(archive.name), folder, {name: expected[name] for name in arguments["lacking"]})
        if missing:
            raise BundleError(f"{', '.join(missing[:4])} did not arrive")

    def _readable(self, path: str, variables: dict[str, Any]) -> None:
        """Give a file that root wrote to the account that logs in."""
        words = ["chown", "--no-dereference", "--reference", str(self._connection._shell.tmpdir), "--", path]
        self._execute_module(module_name="ansible.legacy.command", module_args={"argv": words}, task_vars=variables)
