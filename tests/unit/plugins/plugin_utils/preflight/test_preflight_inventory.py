# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The first stage of preflight: groups, names, variables and files, all invented."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Problem, Report, collect, listing
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.role_specs import RoleSpecs, parse_specs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.values import whole
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.controller_files import check_vscode
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import INVENTORY_CHECKS
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

LABEL = "a DNS label (lower-case letters a-z, digits and inner hyphens, at most 63 of them)"

SPECS: RoleSpecs = parse_specs(
    {
        "swarm": {"argument_specs": {"main": {"options": {"swarm_advertise_addr": {}, "swarm_port": {"type": "int"}}}}},
        "docker": {"argument_specs": {"main": {"options": {"docker_daemon_config": {}}}}},
        "preflight": {"argument_specs": {"main": {"options": {"cluster_name": {}, "cluster_network_mode": {}}}}},
    }
)


def groups(managers: list[str], workers: list[str], cluster: list[str] | None = None) -> dict[str, Any]:
    return {
        "cluster": list(dict.fromkeys([*managers, *workers])) if cluster is None else cluster,
        "managers": managers,
        "workers": workers,
    }


def lines(inventory: Inventory, *skip: str) -> list[str]:
    return [problem.line() for problem in collect(INVENTORY_CHECKS, inventory, skip).problems]


def with_variables(**by_host: dict[str, Any]) -> Inventory:
    return Inventory(
        groups=groups(["lab1"], ["lab2", "lab3"]),
        hosts=by_host,
        names={host: list(variables) for host, variables in by_host.items()},
        defaults={"cluster_name": "demo", "cluster_network_mode": "overlay"},
        specs=SPECS,
        invalid=lambda name, value: f"{name} must be an integer" if name == "swarm_port" and value == "x" else None,
    )


def everywhere(name: str, value: Any) -> Inventory:
    return with_variables(**{host: {name: value} for host in ("lab1", "lab2", "lab3")})


NO_MANAGER = "group managers: has no host, and a swarm needs a manager. Remedy: put one host into it."


@pytest.mark.parametrize(
    ("given_groups", "expected"),
    [
        (groups(["a"], []), []),
        (groups(["a"], ["b", "c"]), []),
        (groups(["a", "b", "c"], []), []),
        (groups(["a", "b", "c", "d", "e"], ["f"]), []),
        (
            {},
            [
                "group cluster, group managers, group workers: missing from the inventory. Remedy: define group "
                "cluster with the children managers and workers (workers may be empty)."
            ],
        ),
        (
            groups([], []),
            [
                "group cluster: has no host. Remedy: list at least one host in group managers, a child of cluster.",
                NO_MANAGER,
            ],
        ),
        (groups([], ["a"]), [NO_MANAGER]),
        (
            groups(["a", "b"], ["c"]),
            [
                "group managers: has 2 hosts (a, b); managers decide by majority, so an even number tolerates no "
                "more failures than 1 would. Remedy: use 1, 3 or 5 managers and move the others to group workers."
            ],
        ),
        (
            groups(["a"], ["a", "b"]),
            ["a: listed in both managers and workers. Remedy: keep each host in one of the two groups."],
        ),
        (
            groups(["a"], ["b"], ["a", "b", "c", "d"]),
            [
                "c, d: listed in cluster, but neither in managers nor in workers. Remedy: add each host to one of "
                "the two groups."
            ],
        ),
        (
            groups(["a"], ["b"], ["a"]),
            ["b: listed in managers or workers, but not in cluster. Remedy: make both groups children of cluster."],
        ),
    ],
)
def test_groups_and_managers(given_groups: dict[str, Any], expected: list[str]) -> None:
    assert lines(Inventory(groups=given_groups)) == expected


@pytest.mark.parametrize("host", ["Node1", "gpu_1", "10.0.0.5", "gpu1.example.org", "-a", "a-", "n" * 64, "gpü"])
def test_host_names_that_are_no_labels(host: str) -> None:
    assert lines(Inventory(groups=groups([host], []), defaults={"cluster_name": "demo"})) == [
        f"{host}: not {LABEL}; the training container is named after the host. Remedy: give the host a short name in "
        "the inventory and its address in ansible_host."
    ]


@pytest.mark.parametrize("name", ["demo", "a", "a-b", "7b", 7])
def test_cluster_names_that_are_fine(name: Any) -> None:
    assert lines(everywhere("cluster_name", name)) == []


def test_the_name_of_a_container_is_one_label() -> None:
    inventory = Inventory(groups=groups(["n" * 40], ["m" * 39]), defaults={"cluster_name": "c" * 23})
    container = f"{'c' * 23}-{'n' * 40}"
    assert lines(inventory) == [
        f"{'n' * 40}: the name of its container, {container}, has 64 characters; DNS allows 63. Remedy: shorten "
        "cluster_name or the host's name in the inventory."
    ]


@pytest.mark.parametrize(
    ("inventory", "expected"),
    [
        (with_variables(), []),
        (everywhere("cluster_network_mode", "host"), []),
        (
            with_variables(lab2={"cluster_network_mode": "host"}),
            [
                "cluster_network_mode: differs between hosts of one cluster: 'overlay' for lab1, lab3; "
                "'host' for lab2. Remedy: set it once, for the whole group cluster."
            ],
        ),
        (
            with_variables(lab2={"cluster_name": "other"}),
            [
                "cluster_name: differs between hosts of one cluster: 'demo' for lab1, lab3; 'other' for lab2. "
                "Remedy: set it once, for the whole group cluster."
            ],
        ),
    ],
)
def test_modes(inventory: Inventory, expected: list[str]) -> None:
    assert lines(inventory, "variable_names") == expected


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ([8, 8, 8], []),
        (["8", 0, None], []),
        ([0, None, None], []),  # what the others have, gpu_info will say
        (
            [0, "0", 0],
            [
                "gpu_slots: is 0 for every host, so no process would run. "
                "Remedy: set it to 1 or more for at least one host."
            ],
        ),
    ],
)
def test_gpu_slots(slots: list[Any], expected: list[str]) -> None:
    inventory = with_variables(**{f"lab{index}": {"gpu_slots": value} for index, value in enumerate(slots, 1)})
    assert lines(inventory, "variable_names") == expected


def test_a_misspelt_name_is_a_problem_and_a_stranger_a_warning() -> None:
    report = collect(
        INVENTORY_CHECKS,
        with_variables(
            lab1={"swarm_advertize_addr": 1, "docker_edition": "ce", "docker_users": [], "mine": 1},
            lab2={"swarm_advertize_addr": 1, "cluster_zzzzzzzzzzzz": 1, "swarn_advertise_addr": 1},
        ),
    )
    skip = "if it is another role's, add variable_names to preflight_skip"
    assert [problem.line() for problem in report.problems] == [
        "cluster_zzzzzzzzzzzz: is not a variable of this collection, although its name begins with cluster_ (set for "
        f"lab2). Remedy: remove it, or rename it; {skip}.",
        "swarm_advertize_addr: is not a variable of this collection, although its name begins with swarm_ (set for "
        f"lab1, lab2). Remedy: did you mean swarm_advertise_addr? Rename it; {skip}.",
    ]
    assert [problem.line() for problem in report.warnings] == [
        "docker_edition, docker_users: is not a variable of this collection, although its name begins with docker_ "
        "(set for lab1). Remedy: remove it, or rename it unless another role of yours uses it.",
        "swarn_advertise_addr: is not a variable of this collection, but looks like one (set for lab2). Remedy: did "
        "you mean swarm_advertise_addr? Rename it unless another role of yours uses it.",
    ]
    assert [notice.rpartition("uses it. ")[2] for notice in report.notices()] == ["(check: variable_names)"] * 2


def test_a_variable_of_an_earlier_release_is_named_with_its_name_of_today() -> None:
    inventory = with_variables(lab1={"swarm_departed": []}, lab2={"swarm_departed": []})
    assert lines(inventory) == [
        "swarm_departed: is the name that an earlier release had for swarm_removed_nodes (set for lab1, lab2). "
        "Remedy: rename it to swarm_removed_nodes."
    ]


def test_values_are_checked_against_the_specs() -> None:
    remedy = "Remedy: correct it in the inventory or in the variables file that sets it."
    inventory = with_variables(lab1={"swarm_port": "x"}, lab2={"swarm_port": 3}, lab3={"swarm_port": "x"})
    assert lines(inventory) == [f"swarm_port: swarm_port must be an integer (set for lab1, lab3). {remedy}"]
    assert lines(everywhere("swarm_port", "x")) == [f"swarm_port: swarm_port must be an integer. {remedy}"]
    assert lines(everywhere("swarm_port", None)) == []
    broken = Inventory(groups=groups(["a"], []), specs=SPECS, broken={"a": {"swarm_port": "no filter named x"}})
    assert lines(broken) == [f"swarm_port: its template cannot be evaluated: no filter named x. {remedy}"]


def test_a_value_that_is_not_known_yet_is_not_guessed() -> None:
    inventory = Inventory(
        groups=groups(["a"], ["b"]),
        hosts={"a": {}, "b": {"cluster_network_mode": "host"}},
        names={"a": ["cluster_network_mode"], "b": ["cluster_network_mode"]},
        defaults={"cluster_network_mode": "overlay"},
        specs=SPECS,
    )
    assert lines(inventory) == []


KINDS = {"/src": "directory", "/src/train.py": "file", "/image.tar": "file"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "workspace_source": "/src",
                "deepspeed_launch_script": "/src/train.py",
                "training_image_archive": "/image.tar",
            },
            [],
        ),
        ({"workspace_source": None, "training_image_archive": ""}, []),
        (
            {"workspace_source": "/gone", "deepspeed_launch_script": "/gone/train.py"},
            ["workspace_source: there is no directory /gone on the controller. Remedy: create it or correct the path."],
        ),
        (
            {"workspace_source": "/src", "deepspeed_launch_script": "/src/tran.py"},
            [
                "deepspeed_launch_script: there is no file /src/tran.py on the controller. "
                "Remedy: create it or correct the path."
            ],
        ),
        (
            {"deepspeed_launch_script": "/src", "training_image_wheelhouse": "/image.tar"},
            [
                "deepspeed_launch_script: /src on the controller is a directory, not a file. Remedy: correct the path.",
                "training_image_wheelhouse: /image.tar on the controller is a file, not a directory. "
                "Remedy: correct the path.",
            ],
        ),
        (
            {"training_image_archive": 7},
            ["training_image_archive: 7 is not a path. Remedy: give the path of a file on the controller."],
        ),
    ],
)
def test_files(files: dict[str, Any], expected: list[str]) -> None:
    assert lines(Inventory(groups=groups(["a"], []), files=files, kind=KINDS.get)) == expected


@pytest.mark.parametrize(
    ("variables", "found", "reported"),
    [
        ({}, "file", True),
        ({"deepspeed_launch_vscode": "yes"}, "file", True),
        ({}, None, False),
        ({}, "directory", False),
        ({"deepspeed_launch_vscode": False}, "file", False),
        ({"deepspeed_launch_vscode": ["yes"]}, "file", False),  # no boolean, which another check reports
        ({"deepspeed_launch_script": ""}, "file", False),
        ({"workspace_exclude": [".git", ".vscode"]}, "file", False),
        ({"workspace_exclude": ["launch.json"]}, "file", False),
        ({"workspace_exclude": "launch.json"}, "file", True),  # no list, which another check reports
    ],
)
def test_a_launch_json_that_comes_with_the_source(variables: dict[str, Any], found: str | None, reported: bool) -> None:
    job = {"deepspeed_launch_vscode": True, "deepspeed_launch_script": "train.py", "workspace_exclude": [".git"]}
    inventory = Inventory(
        groups=groups(["a"], []),
        hosts={"a": {**job, **variables}},
        files={"workspace_source": "/code"},
        kind=lambda path: found if path == "/code/.vscode/launch.json" else "directory",
    )
    text = (
        "workspace_source: contains .vscode/launch.json, which would replace the one that deepspeed_launch_vscode "
        "writes on every run. Remedy: add .vscode to workspace_exclude, or set deepspeed_launch_vscode: false."
    )
    assert [one.line() for one in collect({"vscode": check_vscode}, inventory).problems] == [text] * reported


def test_what_could_not_be_fetched_is_reported_in_the_place_of_its_files() -> None:
    found = [{"subject": "workspace_source_ref", "text": "it has no tag v9", "remedy": "correct it"}]
    files = {"workspace_source": "", "deepspeed_launch_script": "", "training_image_archive": "/gone.tar"}
    assert lines(Inventory(groups=groups(["a"], []), files=files, kind=KINDS.get, found=found)) == [
        "workspace_source_ref: it has no tag v9. Remedy: correct it.",
        "training_image_archive: there is no file /gone.tar on the controller. Remedy: create it or correct the path.",
    ]


def test_report() -> None:
    inventory = Inventory(groups=groups(["a", "b"], ["b"]))
    report = collect(INVENTORY_CHECKS, inventory, ["managers", "disk"])
    assert report.checked == tuple(name for name in INVENTORY_CHECKS if name != "managers")
    assert report.skipped == ("managers",)
    assert report.notices() == ["Preflight check managers is skipped, as requested."]
    assert report.problems == (
        Problem("b", "listed in both managers and workers", "keep each host in one of the two groups", check="groups"),
    )
    assert report.message() == (
        "Preflight found 1 problem. Nothing was changed.\n"
        "1. b: listed in both managers and workers. Remedy: keep each host in one of the two groups. (check: groups)"
    )
    assert (
        collect(INVENTORY_CHECKS, inventory)
        .message()
        .startswith("Preflight found 2 problems. Nothing was changed.\n1. ")
    )
    assert Report((), (), ("groups", "disk")).message() == "Preflight: 2 checks passed."


def test_long_lists_are_cut() -> None:
    assert listing("abcde") == "a, b, c, d, e"
    assert listing("abcdefg") == "a, b, c, d, e and 2 more"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0), ("12", 12), (-1, None), ("-1", None), (True, None), (1.0, None), ("٣", None), (None, None)],
)
def test_whole(value: Any, expected: int | None) -> None:
    assert whole(value) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=8,
)
HOST = st.sampled_from(["a", "b", "c", "Bad_Host", ""])
VARIABLE = st.sampled_from(
    ["cluster_name", "cluster_network_mode", "cluster_accelerator", "gpu_slots", "swarm_port", "swarm_x"]
)


@settings(max_examples=examples(150), deadline=None)
@given(
    any_groups=st.dictionaries(st.sampled_from(["cluster", "managers", "workers"]), st.lists(HOST, max_size=4) | JSON),
    hosts=st.dictionaries(HOST, st.dictionaries(VARIABLE, JSON, max_size=3), max_size=3),
    defaults=st.dictionaries(VARIABLE, JSON, max_size=3),
    files=st.dictionaries(st.sampled_from(["workspace_source", "deepspeed_launch_script"]), JSON),
)
def test_any_inventory_passes_or_gets_words(
    any_groups: dict[str, Any], hosts: dict[str, Any], defaults: dict[str, Any], files: dict[str, Any]
) -> None:
    inventory = Inventory(
        any_groups, hosts, {host: list(names) for host, names in hosts.items()}, defaults, SPECS, files=files
    )
    report = collect(INVENTORY_CHECKS, inventory)
    assert all(problem.text and problem.remedy and problem.check in INVENTORY_CHECKS for problem in report.problems)
    managers = any_groups.get("managers")
    if isinstance(managers, list) and len(managers) % 2 == 0:
        assert "managers" in {problem.check for problem in report.problems}
