# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Saves an image of a host's engine into a bundle on the controller."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail

from ..module_utils.common.reported import ReportedError, accept
from ..module_utils.common.reported import digest as digest_of_image
from ..module_utils.common.whole_file import PART
from ..plugin_utils.bundle.files import digest, read_record, take, write_record
from ..plugin_utils.bundle.folder import own_folder
from ..plugin_utils.bundle.manifest import BundleError
from ..plugin_utils.connection.fetched import fetch_at_most, what_fits
from ..plugin_utils.connection.node_action import NodeAction

FOLDER = "image"


class ActionModule(NodeAction):
    """The archive is called by the image's id, and what it is by a record beside it, written after it."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        dummy, arguments = self.validate_argument_spec(
            argument_spec={
                "bundle": {"type": "path", "required": True},
                "name": {"type": "str", "required": True},
            }
        )
        bundle, name = Path(arguments["bundle"]), arguments["name"]
        image = self._command(["docker", "image", "inspect", "--format", "{{.Id}}", "--", name], variables).strip()
        host = str(variables.get("inventory_hostname", "this host"))
        try:
            accept(host, f"the id of image {name}", image, digest_of_image)
        except ReportedError as error:
            raise AnsibleActionFail(str(error)) from None
        path = bundle / FOLDER / f"{image.rpartition(':')[2][:24]}.tar"
        record = {"name": name, "id": image}
        try:
            there = read_record(path) == record
            if not there and not self._task.check_mode:
                self._save(name, path, variables)
                write_record(path, record)
        except (BundleError, OSError) as error:
            raise AnsibleActionFail(f"{path}: {error}. Remedy: free some space, and run bundle.yml again.") from error
        result.update(changed=not there, id=image, path=path.relative_to(bundle).as_posix())
        return result

    def _save(self, name: str, path: Path, variables: dict[str, Any]) -> None:
        folder = str(self._connection._shell.tmpdir)
        remote = self._connection._shell.join_path(folder, "image.tar")
        self._command(["docker", "save", "--output", remote, "--", name], variables)
        # Whoever logs in is to fetch what root wrote.
        self._command(["chown", "--no-dereference", "--reference", folder, "--", remote], variables)
        reported = self._command(["sha256sum", "--", remote], variables).partition(" ")[0]
        own_folder(path.parent.parent, FOLDER)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=PART) as file:
            fetch_at_most(self._connection, remote, file.name, what_fits(path.parent))
            size, found = digest(Path(file.name))
            if found != reported:
                raise BundleError("the image did not arrive as it was sent")
            with Path(file.name).open("rb") as source:
                take(source, path, (size, found))

    def _command(self, words: list[str], variables: dict[str, Any]) -> str:
        answer = self._execute_module(
            module_name="ansible.legacy.command", module_args={"argv": words}, task_vars=variables
        )
        if answer.get("failed") or answer.get("rc"):
            reported = str(answer.get("stderr") or answer.get("msg") or "").strip()[-300:].rstrip(".")
            raise AnsibleActionFail(f"{' '.join(words[:3])} failed on this host: {reported}.")
        return str(answer.get("stdout") or "")
