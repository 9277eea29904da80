# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is planned for a host without an engine follows from the engine that its release brings. Invented hosts."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.host import SHIPPED

from tests.role_values import ROLES
from tests.toolkit_hosts import node, plan


@pytest.mark.parametrize(
    ("codename", "mode", "config"),
    [
        ("bookworm", "runtime", ["exec-opts", "runtimes"]),
        ("trixie", "cdi", ["features"]),
        ("jammy", "cdi", []),
        ("noble", "cdi", []),
    ],
)
def test_a_fresh_host_gets_gpus_as_its_engine_will_give_them(codename: str, mode: str, config: list[str]) -> None:
    distribution = "ubuntu" if codename in ("jammy", "noble") else "debian"
    system = {"distribution": distribution, "codename": codename, "architecture": "x86_64"}
    found = plan(
        node(
            system=system, packages={"docker.io": None}, docker={"installed": False, "running": False, "version": None}
        ),
        engine_source="distribution",
    )
    assert (found["mode"], sorted(found["config"])) == (mode, config)


def test_every_release_that_is_supported_has_its_engine() -> None:
    platforms = yaml.safe_load((ROLES / "docker/meta/main.yml").read_text(encoding="utf-8"))["galaxy_info"]["platforms"]
    assert set(SHIPPED) == {version for platform in platforms for version in platform["versions"]}
