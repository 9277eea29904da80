# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""No role reads another role's private name. Between roles there are ``swarmspeed_*`` alone, among them the plan."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
# The longest first, as a name could begin with that of another role.
PRIVATE = re.compile(rf"(?<!\w)_({'|'.join(sorted(ROLES, key=len, reverse=True))})_\w+")
PARAMETERS = {
    "_preflight_roles": "which roles to plan, of every role that is applied alone",
    "_preflight_applies": "of site.yml: the roles follow",
    "_preflight_launches": "of site.yml and launch.yml: a job follows, where one is configured",
    "_preflight_undoes": "of teardown.yml: what there is goes",
    "_host_apt_failed": "what failed, of the tasks that explain why apt did",
}
"""Names that are set for the tasks of another role which are included, as the arguments of a call."""


def strangers(owner: str, text: str) -> set[str]:
    """Return the private names in a text that are another role's."""
    return {match[0] for match in PRIVATE.finditer(text) if match[1] != owner} - PARAMETERS.keys()


def sources() -> list[Path]:
    return [path for room in ("roles", "playbooks") for path in sorted((ROOT / room).rglob("*.y*ml"))]


@pytest.mark.parametrize("owner", [*ROLES, "playbooks"])
def test_no_role_reads_the_private_names_of_another(owner: str) -> None:
    folder = ROOT / "playbooks" if owner == "playbooks" else ROOT / "roles" / owner
    files = [path for path in sources() if path.is_relative_to(folder)]
    assert files
    found = {path.relative_to(ROOT): names for path in files if (names := strangers(owner, path.read_text("utf-8")))}
    assert found == {}


def test_every_parameter_is_one() -> None:
    texts = {path: path.read_text("utf-8") for path in sources()}
    for name in PARAMETERS:
        assert any(re.search(rf"^ +{name}: ", text, re.MULTILINE) for text in texts.values()), name


def test_a_private_name_of_another_role_is_noticed() -> None:
    text = "{{ _swarm_input.x }} {{ _docker_input }} {{ not_docker_x }} {{ _training_image_ref }} {{ _training_x }}"
    assert strangers("docker", text) == {"_swarm_input", "_training_image_ref"}
