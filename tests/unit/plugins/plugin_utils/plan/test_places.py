# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Where folders may be: none in the system's, and none that containers write over one that root works in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.owned.system_folders import system_folder
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.places import (
    NAMED,
    Trouble,
    overlaps,
    paths,
    wrong_places,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.places import (
    check_overlaps,
    check_system_folders,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

ROOT = "/srv/swarmspeed/lab"
DEFAULTS: dict[str, Any] = {
    "cluster_root": ROOT,
    "workspace_path": f"{ROOT}/workspace",
    "assets_path": f"{ROOT}/assets",
    "assets_sources": [{"name": "gpt2"}],
}


def found(real: dict[str, str] | None = None, /, **values: Any) -> list[Trouble]:
    return list(overlaps({**DEFAULTS, **values}, real))


def text(real: dict[str, str] | None = None, /, **values: Any) -> str:
    troubles = found(real, **values)
    assert {trouble.remedy for trouble in troubles} <= {"choose folders that do not contain one another"}
    return "\n".join(f"{trouble.subject}: {trouble.text.partition('. ')[0]}" for trouble in troubles)


# Folders of the system

SYSTEM = ("/", "/etc", "/usr", "/usr/local", "/usr/lib/x", "/var", "/var/lib", "/var/lib/docker/x", "/home", "/root")
ALSO = ("/opt", "/srv", "/boot", "/boot/x", "/proc/1", "/sys", "/dev/shm", "/run/x", "/tmp", "/mnt", "/bin", "/etc/ssh")
OWN = (
    "/opt/team",
    "/srv/swarmspeed/lab",
    "/data",
    "/mnt/disk",
    "/home/me/x",
    "/tmp/x",
    "/var/opt/x",
    "/optional",
    "/e",
)


@pytest.mark.parametrize("path", [*SYSTEM, *ALSO, "//", "/opt/", "/opt/x/..", "/./etc", "//etc//", "/data/../usr"])
@pytest.mark.parametrize("name", NAMED)
def test_folders_of_the_system_are_refused_however_they_are_written(name: str, path: str) -> None:
    (trouble,) = wrong_places({"assets_sources": ["x"], name: path})
    assert trouble.subject == name and trouble.text.startswith(path) and "operating system" in trouble.text


@pytest.mark.parametrize("path", OWN)
def test_folders_of_ones_own_are_not(path: str) -> None:
    assert list(wrong_places({**DEFAULTS, **dict.fromkeys(NAMED, path)})) == []


@pytest.mark.parametrize("path", ["opt/team", "~/team", "./x", "a\0b"])
def test_a_path_that_is_not_absolute_is_named(path: str) -> None:
    (trouble,) = wrong_places({"cluster_root": path})
    assert "is not an absolute path" in trouble.text


def test_a_link_to_a_folder_of_the_system_is_seen_where_it_leads() -> None:
    (trouble,) = wrong_places({"cluster_root": "/data/x"}, {"/data/x": "/etc"})
    assert trouble.text == "/data/x leads to /etc, which is a folder of the operating system or contains one"


def test_without_models_their_folder_does_not_matter() -> None:
    assert list(wrong_places({"assets_path": "/", "assets_sources": []})) == []


@given(st.lists(st.sampled_from(["etc", "usr", "lib", "x", "..", ".", ""]), max_size=6))
def test_whatever_contains_a_folder_of_the_system_is_one(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    if system_folder(path):
        assert system_folder(f"{path}/..")


# Overlaps


def test_the_default_folders_are_apart() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"workspace_path": "/data", "assets_path": "/data/models"},
            "workspace_path: /data contains assets_path (/data/models)",
        ),
        ({"workspace_path": "/srv/swarmspeed"}, f"workspace_path: /srv/swarmspeed contains cluster_root ({ROOT})"),
        ({"workspace_path": ROOT}, f"workspace_path: {ROOT} is cluster_root ({ROOT})"),
        ({"workspace_path": f"{ROOT}/etc"}, f"workspace_path: {ROOT}/etc is cluster_root/etc ({ROOT}/etc)"),
        ({"workspace_path": f"{ROOT}/host_jobs/x"}, "lies in cluster_root/host_jobs"),
        ({"workspace_path": f"{ROOT}/jobs"}, "is cluster_root/jobs"),
        ({"workspace_path": "/data", "assets_path": "/data"}, "workspace_path: /data is assets_path (/data)"),
        ({"workspace_path": "/data/models/code", "assets_path": "/data/models"}, "lies in assets_path"),
        ({"workspace_path": "/data", "workspace_python_environment": "/data/venv"}, "workspace_python_environment"),
        (
            {"training_container_volumes": ["/srv:/srv"]},
            f"training_container_volumes: the volume /srv contains cluster_root ({ROOT})",
        ),
        (
            {"training_container_volumes": [f"{ROOT}/etc/:/x:rw"]},
            f"the volume {ROOT}/etc/ is cluster_root/etc ({ROOT}/etc)",
        ),
        (
            {"training_container_volumes": ["/data:/d"], "assets_path": "/data/models"},
            "the volume /data contains assets",
        ),
        ({"training_container_volumes": ["/var:/var:z"]}, "the record of which folders teardown may remove"),
        ({"training_container_volumes": [f"{ROOT}/jobs:/x"]}, "is cluster_root/jobs"),
        ({"assets_path": f"{ROOT}/jobs/models"}, f"cluster_root: the folder {ROOT}/jobs contains assets_path"),
    ],
)
def test_what_containers_write_is_apart_from_what_root_works_in(values: dict[str, Any], expected: str) -> None:
    values = {"workspace_path": "/code", "assets_path": "/models", **values}
    assert expected in text(**values)
    # Without containers, all of it is root's.
    assert found(**values, deepspeed_launch_runtime="host") == []


@pytest.mark.parametrize(
    "volume",
    [
        "/srv:/srv:ro",
        "/srv:/srv:z,ro",
        "cache:/root/.cache",
        "/data:/data",
        "/srv/swarmspeed2:/x",
        "/srv",
        "/srv:z",
        "",
        "x",
    ],
)
def test_a_volume_that_is_read_only_named_or_elsewhere_is_fine(volume: str) -> None:
    assert found(training_container_volumes=[volume]) == []


@pytest.mark.parametrize("value", [None, "text", 1, {"a": 1}, [None, 1, {}]])
def test_values_of_other_types_are_left_to_the_check_that_names_them(value: Any) -> None:
    assert found(training_container_volumes=value) == []
    if not isinstance(value, str):
        assert found(assets_path=value) == [] and list(wrong_places({"cluster_root": value})) == []


@pytest.mark.parametrize(
    ("real", "expected"),
    [
        ({"/code": f"{ROOT}/etc"}, f"workspace_path: /code, which leads to {ROOT}/etc, is cluster_root/etc"),
        ({f"{ROOT}/etc": "/code/etc"}, f"workspace_path: /code contains cluster_root/etc ({ROOT}/etc, which leads to"),
        ({"/models": "/code/m"}, "workspace_path: /code contains assets_path (/models, which leads to /code/m)"),
        ({"/data": "/models"}, "the volume /data, which leads to /models, is assets_path (/models)"),
    ],
)
def test_links_are_resolved_first(real: dict[str, str], expected: str) -> None:
    apart: dict[str, Any] = {
        "workspace_path": "/code",
        "assets_path": "/models",
        "training_container_volumes": ["/data:/data"],
    }
    assert found(**apart) == []
    assert expected in text(real, **apart)
    assert set(real) <= set(paths({**DEFAULTS, **apart}))


NAMES = st.sampled_from(["a", "b", "etc", "jobs"])
FOLDERS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@settings(max_examples=examples(300), deadline=None)
@given(root=FOLDERS, workspace=FOLDERS, assets=FOLDERS)
def test_two_folders_overlap_exactly_if_one_holds_the_other(root: str, workspace: str, assets: str) -> None:
    """Compared with another way to say it: the parts of the paths."""

    def overlap(one: str, other: str) -> bool:
        return all(mine == theirs for mine, theirs in zip(one.split("/"), other.split("/")))

    private = [f"{root}/{name}" for name in ("etc", "jobs", "host_jobs", "vscode")]
    expected = any(overlap(workspace, other) for other in (*private, assets)) or overlap(f"{root}/jobs", assets)
    values = {"cluster_root": root, "workspace_path": workspace, "assets_path": assets, "assets_sources": ["x"]}
    assert bool(list(overlaps(values))) == expected


# The checks


def test_the_checks_name_the_hosts_concerned() -> None:
    inventory = Inventory(
        groups={"cluster": ["a", "b"]},
        hosts={"b": {"cluster_root": "/", "workspace_path": "/code"}},
        defaults={**DEFAULTS, "training_container_volumes": ["/srv:/srv"]},
    )
    assert not list(check_overlaps(replace(inventory, defaults=DEFAULTS, hosts={})))
    (system,) = check_system_folders(inventory)
    assert system.line() == (
        "cluster_root: / is a folder of the operating system or contains one (set for b). Remedy: name a folder of "
        "its own, such as /srv/swarmspeed."
    )
    problems = {problem.subject: problem.text for problem in check_overlaps(inventory)}
    assert "the volume /srv contains" in problems["training_container_volumes"]
