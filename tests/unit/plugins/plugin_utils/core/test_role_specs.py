# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Names of variables: whose they are, and which was meant. The specs here are invented."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.role_specs import (
    RoleSpecError,
    RoleSpecs,
    Unknown,
    parse_specs,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples


def spec(*names: str, **options: Any) -> dict[str, Any]:
    return {"argument_specs": {"main": {"options": {**{name: {"type": "str"} for name in names}, **options}}}}


@pytest.fixture
def specs() -> RoleSpecs:
    return parse_specs(
        {
            "swarm": spec("swarm_advertise_addr", "swarm_allow_leave_foreign"),
            "docker": spec("docker_daemon_config", "docker_allow_restart"),
            "overlay_network": spec("overlay_network_subnet"),
            "preflight": spec("cluster_name", "gpu_slots", "preflight_skip"),
        }
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("swarm_advertise_addr", None),
        ("_swarm_anything", None),
        ("ansible_host", None),
        ("my_own_variable", None),
        ("swarm", None),
        ("swarming_bees", None),
        ("swarm_advertize_addr", Unknown("swarm_advertize_addr", "swarm", "swarm_advertise_addr", certain=True)),
        ("swarm_q", Unknown("swarm_q", "swarm", None, certain=True)),
        ("cluster_nam", Unknown("cluster_nam", "cluster", "cluster_name", certain=True)),
        (
            "overlay_network_subnett",
            Unknown("overlay_network_subnett", "overlay_network", "overlay_network_subnet", certain=True),
        ),
        # Another collection's docker_* is left alone, a typing error in this collection's is not.
        ("docker_edition", Unknown("docker_edition", "docker", None, certain=False)),
        ("docker_daemon_options", Unknown("docker_daemon_options", "docker", None, certain=False)),
        ("docker_deamon_config", Unknown("docker_deamon_config", "docker", "docker_daemon_config", certain=True)),
        ("gpu_slot", Unknown("gpu_slot", "gpu", "gpu_slots", certain=True)),
        ("swarn_advertise_addr", Unknown("swarn_advertise_addr", None, "swarm_advertise_addr", certain=False)),
    ],
)
def test_judge(specs: RoleSpecs, name: str, expected: Unknown | None) -> None:
    assert specs.judge(name) == expected


def test_the_longest_prefix_owns_a_variable() -> None:
    specs = parse_specs({"swarm": spec(), "swarm_extra": spec("swarm_extra_x")})
    assert specs.prefix("swarm_extra_y") == "swarm_extra"
    assert specs.prefix("swarm_y") == "swarm"
    assert specs.prefix("nothing") is None


def test_all_entry_points_count_and_the_first_role_wins() -> None:
    documents = {
        "b": spec(shared={"type": "int"}),
        "a": {
            "argument_specs": {"main": {"options": {"shared": {"type": "str"}}}, "verify": {"options": {"a_more": {}}}}
        },
        "c": {"argument_specs": {"main": {"short_description": "no options"}}},
    }
    specs = parse_specs(documents)
    assert dict(specs.options) == {"shared": {"type": "str"}, "a_more": {}}
    assert specs.roles == ("a", "b", "c")


@pytest.mark.parametrize("document", [None, [], {}, {"argument_specs": None}, {"argument_specs": {}}, "text"])
def test_a_document_of_another_shape_is_an_error(document: Any) -> None:
    with pytest.raises(RoleSpecError) as error:
        parse_specs({"swarm": document})
    assert str(error.value) == (
        "role swarm: meta/argument_specs.yml has no mapping argument_specs. Remedy: reinstall the collection."
    )


@pytest.mark.parametrize("entry", [None, [], {"options": ["swarm_x"]}, {"options": {"swarm_x": "str"}}])
def test_options_of_another_shape_are_an_error(entry: Any) -> None:
    with pytest.raises(RoleSpecError) as error:
        parse_specs({"swarm": {"argument_specs": {"main": entry}}})
    assert str(error.value) == (
        "role swarm: the options of entry point main in meta/argument_specs.yml are not mappings. "
        "Remedy: reinstall the collection."
    )


@settings(max_examples=examples(100), deadline=None)
@given(name=st.text(max_size=30) | st.sampled_from(["swarm_", "docker_", "gpu_", "cluster_"]))
def test_judge_never_suggests_the_name_itself(name: str) -> None:
    specs = parse_specs({"swarm": spec("swarm_advertise_addr"), "docker": spec("docker_allow_restart")})
    unknown = specs.judge(name)
    if unknown:
        assert unknown.name == name
        assert unknown.nearest in {None, "swarm_advertise_addr", "docker_allow_restart"} - {name}
        assert unknown.certain or unknown.prefix is None or unknown.prefix in ("docker", "gpu", "host")
