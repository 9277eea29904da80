# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is said of hosts past their end of life, of engines, and of published holes (F13)."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.lifetimes import (
    of_engine,
    of_packages,
    of_system,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.table import load_table

TABLE = load_table()


@pytest.mark.parametrize(
    ("distribution", "release", "today", "words"),
    [
        (
            "debian",
            "12",
            "2026-11-27",
            "regular security updates of Debian 12 ended on 2026-07-11; Debian LTS, which covers fewer packages or "
            "needs a subscription, continues until 2028-06-30; upgrade to Debian 13",
        ),
        ("debian", "12", "2026-07-11", ""),
        ("debian", "13", "2026-11-27", ""),
        (
            "debian",
            "11",
            "2026-11-27",
            "Debian 11 has had no security updates since 2026-08-31; upgrade to Debian 13",
        ),
        (
            "ubuntu",
            "22.04",
            "2027-06-02",
            "regular security updates of Ubuntu 22.04 ended on 2027-06-01; Ubuntu Pro, which covers fewer packages "
            "or needs a subscription, continues until 2032-04-21; upgrade to Ubuntu 24.04",
        ),
        ("ubuntu", "22.04", "2026-11-27", ""),
        (
            "debian",
            "13",
            "2031-01-01",
            "Debian 13 has had no security updates since 2030-06-30; upgrade to a newer release",
        ),
        ("gentoo", "", "2026-11-27", ""),
    ],
)
def test_distributions(distribution: str, release: str, today: str, words: str) -> None:
    found = [f"{one.text}; {one.remedy}" for one in of_system(TABLE.systems, distribution, release, today)]
    assert found == ([words] if words else [])


@pytest.mark.parametrize(
    ("version", "ended"),
    [
        ("5:28.5.2-1~debian.13~trixie", "28.5.2 is installed, but 28 has had no updates since 2025-11-05"),
        ("5:20.10.24~3-0~debian-bookworm", "20.10.24 is installed, but 20.10 has had no updates since 2023-10-25"),
        ("5:29.7.2-1~debian.13~trixie", ""),
        ("5:25.0.17-1", ""),
        ("", ""),
        ("(known after apply)", ""),
    ],
)
def test_engines_of_dockers_repository(version: str, ended: str) -> None:
    found = list(of_engine(TABLE.engines, version, "2026-11-27"))
    assert [one.text for one in found] == ([f"Docker Engine {ended}"] if ended else [])
    assert all("docker_version" in one.remedy for one in found)


@pytest.mark.parametrize(
    ("version", "open_"), [("1.18.2-1", True), ("1.19.1-1", False), ("1.20.0-1", False), (None, False)]
)
def test_the_published_hole_of_the_toolkit(version: str | None, open_: bool) -> None:
    found = list(of_packages(TABLE.holes, {"nvidia-container-toolkit": version}))
    assert len(found) == open_
    for one in found:
        assert one.text.startswith("nvidia-container-toolkit 1.18.2-1 is affected by CVE-2026-24260 (2026-07): ")
        assert "nvidia_container_toolkit_version: 1.19.1" in one.remedy
