"""What the user has on a node beside us was not touched by all that came before, nor by one more run."""

from __future__ import annotations

from typing import Any

from tests.playbook_run import LABEL, whole


def test_the_users_container_network_and_image_are_the_same(
    bystander_before: dict[str, Any], bystander_now: dict[str, Any]
) -> None:
    assert LABEL not in bystander_before["Config"]["Labels"]
    assert bystander_before["started"][0] == "running"
    whole()
    assert bystander_now == bystander_before
