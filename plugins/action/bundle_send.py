# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of bundle_send: compares, packs, sends."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail

from ..module_utils.apt.bundle_packages import Deb, DebError, lacking, packages_text, parse_deb, release_text, stanzas
from ..module_utils.common.reported import ReportedError, accept, text
from ..plugin_utils.bundle.files import listed_text, pack
from ..plugin_utils.bundle.manifest import BundleError, system_name
from ..plugin_utils.connection.node_action import NodeAction
from ..plugin_utils.validate.shape import by_name

MODULE = "swarmspeed.cluster.bundle_send"
INSTALLED = by_name(text(300), text(300))
"""Versions by package and architecture; they are compared with those of the bundle, and go nowhere."""


class ActionModule(NodeAction):
    """Only what the node lacks is packed, and only that is in its list: apt never asks for a file that is not there."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        arguments = dict(self._task.args)
        if not arguments.get("bundle") or not isinstance(arguments.get("system"), dict):
            raise AnsibleActionFail("bundle and system are needed: a folder, and what node_facts says of the node.")
        bundle, host = Path(arguments["bundle"]).expanduser(), str(variables.get("inventory_hostname", "this host"))
        answer = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=variables)
        if answer.get("failed"):
            return {**result, **answer}
        folder = bundle
        try:
            name = system_name(arguments["system"])
            folder = bundle / "apt" / name
            installed = accept(host, "bundle_send.installed", answer.get("installed"), INSTALLED)
            listed = listed_text(bundle, f"apt/{name}/Packages")
            debs = lacking([parse_deb(stanza) for stanza in stanzas(listed)], installed)
            if not self._task.check_mode:
                sent = self._send(arguments, folder, debs, variables)
                if sent.get("failed"):
                    return {**result, **sent}
        except ReportedError as error:
            raise AnsibleActionFail(str(error)) from None
        except (BundleError, DebError, OSError) as error:
            raise AnsibleActionFail(
                f"{folder}: {error}. Remedy: run bundle.yml again where there is internet access."
            ) from error
        result.update(changed=True, sent=[deb.file for deb in debs], bytes=sum(deb.size for deb in debs))
        return result

    def _send(
        self, arguments: dict[str, Any], folder: Path, debs: list[Deb], variables: dict[str, Any]
    ) -> dict[str, Any]:
        listed = packages_text(debs)
        texts = {"Packages": listed, "Release": release_text(listed)}
        files = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
        files.update({deb.file: deb.sha256 for deb in debs})
        remote = self._connection._shell.join_path(self._connection._shell.tmpdir, "packages.tar")
        with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
            pack(archive, folder, {deb.file: (deb.size, deb.sha256) for deb in debs}, texts)
            archive.flush()
            self._transfer_file(archive.name, remote)
        answer: dict[str, Any] = self._execute_module(
            module_name=MODULE, module_args={**arguments, "archive": remote, "files": files}, task_vars=variables
        )
        return answer
