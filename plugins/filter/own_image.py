# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What goes into the build of an image, and what an image of one's own lacks. Documented in the .yml files beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.system_io import file_digest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.archive import choose_loaded
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.inputs import Trouble, read_source
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.needs import (
    check_problem,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.network import KEYS, network_script


def _network(given: Any) -> str:
    if not isinstance(given, Mapping) or set(given) - set(KEYS):
        raise AnsibleFilterError(f"build_network: expected a dictionary with some of {', '.join(KEYS)}.")
    return network_script(given)


def _source(text: Any) -> dict[str, str]:
    found = read_source(str(text or ""))
    if isinstance(found, Trouble):
        raise AnsibleFilterError(str(found))
    return {
        "kind": found.kind,
        "path": found.path,
        "suffix": found.suffix,
        "url": found.url,
        "reference": found.reference,
    }


def _digest(path: Any) -> str:
    if not isinstance(path, str) or not Path(path).is_file():
        raise AnsibleFilterError(f"file_sha256: {path} is not a file on the controller.")
    return file_digest(path)


def _loaded(names: Any, expected: str, archive: str, variable: str) -> dict[str, str]:
    if not isinstance(names, list):
        raise AnsibleFilterError(f"loaded_image: expected a list of names, not {type(names).__name__}.")
    found = choose_loaded([str(name) for name in names], expected, archive, variable)
    return {"untagged": found.untagged, "problem": found.problem}


def _problem(run: Any, job: Any, image: str, node: str) -> str:
    if not isinstance(run, Mapping):
        raise AnsibleFilterError(f"image_check_problem: expected the result of a command, not {type(run).__name__}.")
    if not isinstance(job, Mapping):
        raise AnsibleFilterError(
            f"image_check_problem: expected a dictionary that describes the job, not {type(job).__name__}."
        )
    return check_problem(job, run, image, node)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "build_network": _network,
            "deepspeed_source": _source,
            "file_sha256": _digest,
            "image_check_problem": _problem,
            "loaded_image": _loaded,
        }
