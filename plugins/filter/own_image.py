# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which image an archive holds, and what an image of one's own lacks. Documented in the .yml files beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.training_image.archive import choose_loaded
from ..plugin_utils.training_image.needs import check_problem


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
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "image_check_problem": _problem,
            "loaded_image": _loaded,
        }
