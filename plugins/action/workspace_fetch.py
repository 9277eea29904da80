# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Fetches the source of the workspace from a git repository, on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils.bundle.manifest import BundleError
from ..plugin_utils.plan.controller import here
from ..plugin_utils.workspace.bundled import pack, take
from ..plugin_utils.workspace.repository import SourceError, named, parse
from ..plugin_utils.workspace.repository_io import fetch, place

SPEC: dict[str, Any] = {
    "source": {"type": "str", "required": True},
    "reference": {"type": "str", "default": ""},
    "folder": {"type": "str", "default": ""},
    "cache": {"type": "path"},
    "bundle": {"type": "str", "default": ""},
    "pack": {"type": "str", "default": ""},
    "collect": {"type": "bool", "default": False},
}


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Runs on the controller only; meant for run_once."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        dummy, arguments = self.validate_argument_spec(argument_spec=SPEC)
        source = arguments["source"]
        requested = (source, arguments["reference"], arguments["folder"])
        result.update(
            changed=False,
            folder=str(here(source)) if source else "",
            name=source,
            commit="",
            notes=[],
            problems=[],
            packed="",
        )
        try:
            if named(*requested):
                repository = parse(*requested)
                cache = Path(arguments["cache"]).absolute() if arguments["cache"] else place()
                if arguments["bundle"]:
                    folder, commit = take(Path(arguments["bundle"]), repository, cache)
                    return {**result, "folder": str(folder), "name": repository.name(commit), "commit": commit}
                fetched = fetch(repository, cache)
                result.update(
                    folder=str(fetched.folder),
                    name=repository.name(fetched.commit),
                    commit=fetched.commit,
                    notes=list(fetched.notes),
                )
                if fetched.notes:
                    result["warnings"] = list(fetched.notes)
                if arguments["pack"] and not self._task.check_mode:
                    bundle = Path(arguments["pack"])
                    result["packed"] = pack(bundle, repository, fetched.tree, fetched.commit)
        except (BundleError, OSError) as error:
            raise AnsibleActionFail(
                f"{arguments['pack']}: {error}. Remedy: free some space, and run bundle.yml again."
            ) from error
        except SourceError as error:
            if not arguments["collect"]:
                raise AnsibleActionFail(str(error)) from error
            problem = {"subject": error.subject, "text": error.text, "remedy": error.remedy}
            result.update(folder="", name="", problems=[problem])
        return result
