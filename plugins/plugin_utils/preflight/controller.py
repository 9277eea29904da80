# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which releases of ansible-core may run the playbooks. Ansible only warns where ``requires_ansible`` does not hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.problems import Problem

LEAST = (2, 19, 0)
"""Before, a template inside a value turned null into empty text, and an error in the branch of a condition that is
not taken ended the task; 2.18.19 ends in preflight for both. Before 2.18.3 ``meta: end_role`` ended a role for the
first host only (ansible#84660), and before 2.18.1 what nodes had returned was templated once more when it was read
from hostvars."""

CURRENT, CURRENT_PACKAGE, CURRENT_PYTHON = "2.21", "14", (3, 12)
"""The newest release that is tried, the release of the package ``ansible`` that brings it, and the Python it needs."""

ENDED = {"2.19": "November 2026"}
"""End of life by release, from ansible-core's support matrix: https://docs.ansible.com/ansible-core/devel/
reference_appendices/release_and_maintenance.html"""


@dataclass(frozen=True)
class Controller:
    """Versions of ansible-core and of the Python that runs it, as they write them themselves.

    ``copies`` are folder and version of each copy of this collection that Ansible could find, the one that runs first.
    """

    core: str
    python: str
    copies: Sequence[tuple[str, str]] = ()


def check_ansible_version(controller: Controller | None) -> Iterator[Problem]:
    """ansible-core is new enough, and its authors still maintain it; one they no longer maintain is a warning."""
    core = _numbers(controller.core) if controller else ()
    if controller is None or not core:
        return
    subject = f"ansible-core {controller.core}"
    if core < LEAST:
        yield Problem(
            subject,
            f"is older than {_text(LEAST)}, the first release whose templates keep null and numbers as they are",
            _remedy(controller),
        )
        return
    ended = ENDED.get(_text(core[:2]))
    if ended:
        yield Problem(
            subject,
            f"reached its end of life in {ended} and no longer gets fixes, not even for security",
            f"{_remedy(controller)}; or leave this check out with preflight_skip",
            fatal=False,
        )


def check_copies(controller: Controller | None) -> Iterator[Problem]:
    """No newer copy of this collection is installed where Ansible does not look first."""
    if controller is None or len(controller.copies) < 2:
        return
    (folder, version), *others = controller.copies
    newer = [f"{other} in {place}" for place, other in others if _numbers(other) > _numbers(version) > ()]
    if newer:
        yield Problem(
            f"swarmspeed.cluster {version}",
            f"is used instead of {' or '.join(newer)}, because collections_path lists the folder of {folder} first",
            "remove the older copy, or change the order in collections_path",
            fatal=False,
        )


def _remedy(controller: Controller) -> str:
    install = f"pip install --upgrade 'ansible>={CURRENT_PACKAGE}', which brings ansible-core {CURRENT}"
    python = _numbers(controller.python)
    if python and python < CURRENT_PYTHON:
        return f"run Ansible with Python {_text(CURRENT_PYTHON)} or later (this is {controller.python}): {install}"
    return install


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, those of ``2.21.0rc1`` for it; nothing where it has none."""
    found = re.match(r"\d+(\.\d+)+", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _text(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
