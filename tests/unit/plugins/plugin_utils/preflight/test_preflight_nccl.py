# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Preflight's words about settings of NCCL and Gloo. Hosts and values are invented."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Report, collect
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import INVENTORY_CHECKS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.nccl import check_interfaces
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

FOUND = "Remedy: remove it: the interface is found on each node, by the training network's subnet"


def report(mode: str = "overlay", **by_host: dict[str, Any]) -> Report:
    inventory = Inventory(
        groups={"cluster": ["lab1", "lab2"], "managers": ["lab1"], "workers": ["lab2"]},
        hosts=by_host,
        names={host: list(variables) for host, variables in by_host.items()},
        defaults={"cluster_name": "demo", "cluster_network_mode": mode},
    )
    return collect({"nccl_env": INVENTORY_CHECKS["nccl_env"]}, inventory)


def lines(mode: str = "overlay", **variables: Any) -> list[str]:
    return [problem.line() for problem in report(mode, lab1=variables, lab2=variables).problems]


def test_nothing_given_and_good_settings_pass() -> None:
    assert lines() == []
    good = {"NCCL_IB_TIMEOUT": "22", "NCCL_SOCKET_IFNAME": "eth", "NCCL_IB_HCA": ""}
    assert lines(nccl_env_settings=good, nccl_env_environment={"HF_HOME": "/data", "GLOO_SOCKET_IFNAME": "eth1"}) == []
    bonds = {"NCCL_SOCKET_IFNAME": "=bond0"}
    assert lines("host", nccl_env_settings=bonds, nccl_env_environment={"GLOO_SOCKET_IFNAME": "bond0"}) == []
    assert lines(nccl_env_timeout="120", nccl_env_version="2.27.3") == []


@pytest.mark.parametrize(("value", "refused"), [(1, 0), ("1", 0), (0, 0), (True, 1), ("yes", 1)])
def test_the_way_to_want_sockets_is_no_reason_for_a_warning(value: Any, refused: int) -> None:
    found = report("host", lab1={"nccl_env_environment": {"NCCL_IB_DISABLE": value}}, lab2={})
    assert (len(found.warnings), len(found.problems)) == (0, refused)
    assert len(report("host", lab1={"nccl_env_environment": {"NCCL_IB_HCA": "=mlx5_0"}}, lab2={}).warnings) == 1


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {"nccl_env_settings": {"NCCL_IB_DISABLE": True}},
            "nccl_env_settings.NCCL_IB_DISABLE: 'true' is not a number, and NCCL would read it as 0; it must be a "
            "whole number from 0 to 1: write 1. Remedy: correct it, or remove it.",
        ),
        (
            {"nccl_env_settings": {"NCCL_RAS_ENABLE": 0}, "nccl_env_version": "2.21.5"},
            "nccl_env_settings.NCCL_RAS_ENABLE: is supported by NCCL from 2.24 on, but the image has 2.21.5. Remedy: "
            "correct it, or remove it.",
        ),
        (
            {"nccl_env_settings": {"NCCL_SOCKET_NTHREADS": 16, "NCCL_NSOCKS_PERTHREAD": "8"}},
            "nccl_env_settings.NCCL_NSOCKS_PERTHREAD: times NCCL_SOCKET_NTHREADS is 128, and NCCL allows 64. Remedy: "
            "lower one of them.",
        ),
        (
            {"nccl_env_settings": {"NCCL_SOCKET_IFNAME": "=bond0"}},
            "nccl_env_settings.NCCL_SOCKET_IFNAME: a container on an overlay has eth0, eth1 and so on, but no "
            f"interface bond0. {FOUND}; the host's own are there with cluster_network_mode: host.",
        ),
        (
            {"nccl_env_environment": {"GLOO_SOCKET_IFNAME": "eth0,ens3"}},
            "nccl_env_environment.GLOO_SOCKET_IFNAME: a container on an overlay has eth0, eth1 and so on, but no "
            f"interface ens3. {FOUND}; the host's own are there with cluster_network_mode: host.",
        ),
        (
            {"nccl_env_environment": {"GLOO_SOCKET_IFNAME": "=eth0"}},
            "nccl_env_environment.GLOO_SOCKET_IFNAME: '=eth0' is not a list of whole names: Gloo supports neither = "
            f"nor ^ nor blanks. {FOUND}.",
        ),
        (
            {"nccl_env_environment": {"NCCL_IB_TIMEOUT": 99}},
            "nccl_env_environment.NCCL_IB_TIMEOUT: '99' is not a whole number from 0 to 31 (4.096 us * 2^n; 0 waits "
            "for ever). Remedy: put it into nccl_env_settings, and correct it.",
        ),
    ],
)
def test_what_is_refused_before_any_connection(variables: dict[str, Any], expected: str) -> None:
    assert lines(**variables) == [expected]
    assert "hf_" not in expected


def test_one_hosts_own_is_named_and_several_problems_are_reported_together() -> None:
    found = report(lab1={}, lab2={"nccl_env_settings": {"NCCL_IB_DISABLE": 3, "NCCL_IB_RETRY_CNT": 9}})
    assert [problem.line() for problem in found.problems] == [
        "nccl_env_settings.NCCL_IB_DISABLE: '3' is not a whole number from 0 to 1 (set for lab2). Remedy: correct it, "
        "or remove it.",
        "nccl_env_settings.NCCL_IB_RETRY_CNT: '9' is not a whole number from 0 to 7 (set for lab2). Remedy: correct "
        "it, or remove it.",
    ]


def test_what_may_be_meant_is_a_warning() -> None:
    found = report(
        lab1={"nccl_env_settings": {"NCCL_IB_TIMOUT": 22, "NCCL_OFI_X": 1}, "nccl_env_environment": {"NCCL_NET": "IB"}},
        lab2={},
    )
    assert found.problems == ()
    assert [problem.line() for problem in found.warnings] == [
        "nccl_env_settings.NCCL_IB_TIMOUT: is not read by NCCL, and looks like a misspelling of NCCL_IB_TIMEOUT (set "
        "for lab1). Remedy: write NCCL_IB_TIMEOUT.",
        "nccl_env_environment.NCCL_NET: overrides the settings of each node, and DeepSpeed copies that of rank 0 to "
        "every node (set for lab1). Remedy: put it into nccl_env_settings.",
    ]


TCPXO = {
    "NCCL_FASTRAK_CTRL_DEV": "eth0",
    "NCCL_FASTRAK_IFNAME": "eth1,eth2",
    "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE": "/var/lib/tcpxo/lib64/a3plus_guest_config.textproto",
    "NCCL_TUNER_PLUGIN": "libnccl-tuner.so",
    "NCCL_TUNER_CONFIG_PATH": "/var/lib/tcpxo/lib64/a3plus_tuner_config.textproto",
    "NCCL_P2P_NVL_CHUNKSIZE": 1048576,
}
KEEP = "Remedy: keep it if the image has that plugin, else remove it."
NO_TIMEOUT = "is read by neither NCCL, which has no such time-out, nor PyTorch (set for lab1). Remedy: set"
NO_TIMEOUT += " DEEPSPEED_TIMEOUT, in minutes, in nccl_env_environment, or give a timeout to init_distributed in the"
NO_TIMEOUT += " script; the wait for an RDMA connection is nccl_env_timeout."


@pytest.mark.parametrize(
    ("variable", "given", "expected"),
    [
        (
            "nccl_env_settings",
            TCPXO,
            [
                "nccl_env_settings: NCCL_FASTRAK_CTRL_DEV, NCCL_FASTRAK_IFNAME,"
                " NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE are read by Google's plugin for GPUDirect-TCPXO, not by"
                f" NCCL: without that plugin in the image there is no effect (set for lab1). {KEEP}",
                "nccl_env_settings: NCCL_TUNER_CONFIG_PATH is read by the tuner plugin that NCCL_TUNER_PLUGIN names,"
                f" not by NCCL: without that plugin in the image there is no effect (set for lab1). {KEEP}",
            ],
        ),
        ("nccl_env_settings", {"NCCL_TIMEOUT": 25200}, [f"nccl_env_settings.NCCL_TIMEOUT: {NO_TIMEOUT}"]),
        ("nccl_env_environment", {"NCCL_TIMEOUT": 25200}, [f"nccl_env_environment.NCCL_TIMEOUT: {NO_TIMEOUT}"]),
        (
            "nccl_env_settings",
            {"NCCL_BLOCKING_WAIT": 1},
            [
                "nccl_env_settings.NCCL_BLOCKING_WAIT: is not read by NCCL; it is the old name of PyTorch's"
                " TORCH_NCCL_BLOCKING_WAIT, which it reads from the environment (set for lab1). Remedy: put"
                " TORCH_NCCL_BLOCKING_WAIT into nccl_env_environment instead.",
            ],
        ),
        (
            "nccl_env_settings",
            {"NCCL_TREE_THRESHOLD": 0},
            [
                "nccl_env_settings.NCCL_TREE_THRESHOLD: is not read by any NCCL since 2.5 (set for lab1). Remedy:"
                " remove it; NCCL chooses by itself, and NCCL_ALGO and NCCL_PROTO limit its choice.",
            ],
        ),
        (
            "nccl_env_settings",
            {"NCCL_CHECK_DISABLE": 1},
            [
                "nccl_env_settings.NCCL_CHECK_DISABLE: is not read by any NCCL since 2.3 (set for lab1). Remedy: remove"
                " it; arguments are checked only with NCCL_CHECK_POINTERS: 1.",
            ],
        ),
        (
            "nccl_env_settings",
            {"NCCL_IB_CUDA_SUPPORT": 1},
            [
                "nccl_env_settings.NCCL_IB_CUDA_SUPPORT: is not read by any NCCL since 2.4 (set for lab1). Remedy: set"
                " NCCL_NET_GDR_LEVEL.",
            ],
        ),
        (
            "nccl_env_environment",
            {"NCCL_SOCKET_IFNAM": "eth0"},
            [
                "nccl_env_environment.NCCL_SOCKET_IFNAM: is not read by NCCL, and looks like a misspelling of"
                " NCCL_SOCKET_IFNAME (set for lab1). Remedy: put NCCL_SOCKET_IFNAME into nccl_env_settings.",
            ],
        ),
        ("nccl_env_environment", {"TORCH_NCCL_BLOCKING_WAIT": 1}, []),
        ("nccl_env_settings", {"NCCL_NVTX_DISABLE": 1, "NCCL_OF_SOMEONE": 1}, []),
    ],
)
def test_who_reads_what_nccl_does_not(variable: str, given: dict[str, Any], expected: list[str]) -> None:
    found = report("host", lab1={variable: given}, lab2={})
    assert found.problems == ()
    assert [problem.line() for problem in found.warnings] == expected


def test_what_pytorch_reads_is_refused_in_nccls_file() -> None:
    found = report("host", lab1={"nccl_env_settings": {"TORCH_NCCL_BLOCKING_WAIT": 1}}, lab2={})
    assert [problem.line() for problem in found.problems] == [
        "nccl_env_settings.TORCH_NCCL_BLOCKING_WAIT: is read by PyTorch from the environment, and never from NCCL's"
        " file (set for lab1). Remedy: put it into nccl_env_environment.",
    ]


FABRICS = {name: {"interfaces": [{"name": "lo"}, {"name": "bond0"}, {"name": "eno1"}]} for name in ("a", "b")}


def test_a_wrong_interface_name_is_named_with_those_that_are_there() -> None:
    wanted = {
        "NCCL_SOCKET_IFNAME": {"a": "=bond9", "b": "=bond0"},
        "GLOO_SOCKET_IFNAME": {"a": "", "b": "bond"},
    }
    assert [problem.line() for problem in check_interfaces(FABRICS, wanted)] == [
        f"a: NCCL_SOCKET_IFNAME names bond9, but the host has no such interface; it has bond0, eno1. {FOUND}.",
        f"b: GLOO_SOCKET_IFNAME names bond, but the host has no such interface; it has bond0, eno1. {FOUND}.",
    ]
    assert list(check_interfaces(FABRICS, {})) == []
    # What the host has could not be read: another check says so.
    assert list(check_interfaces({"a": {"interfaces": None}}, {"NCCL_SOCKET_IFNAME": {"a": "=x0", "c": "=x0"}})) == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=4,
)
NAMES = st.sampled_from(["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_SOCKET_NTHREADS", "X"])


@settings(max_examples=examples(150), deadline=None)
@given(st.dictionaries(NAMES, VALUES) | VALUES, st.dictionaries(NAMES, VALUES) | VALUES, VALUES, VALUES)
def test_any_variables_pass_or_get_words(given_ones: Any, environment: Any, timeout: Any, version: Any) -> None:
    variables = {
        "nccl_env_settings": given_ones,
        "nccl_env_environment": environment,
        "nccl_env_timeout": timeout,
        "nccl_env_version": version,
    }
    for problem in report("overlay", lab1=variables, lab2={}).problems:
        assert problem.text and problem.remedy
