# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What NCCL takes for its settings, and what is said of what it does not."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.ranges import (
    ANY,
    RANGES,
    TEXTS,
    complaint,
    misspelt,
    parse_release,
    shown,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

IFNAME = (
    "names of interfaces such as =eth0 (that very one), eth (all that begin so) or ^docker,lo (none of them), with = "
    "and ^ before the whole list only"
)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("2.27.3", (2, 27, 3)),
        ("2.21.5+cuda12.4", (2, 21, 5)),
        ("2.21", (2, 21, 0)),
        (" 2.30.7-1\n", (2, 30, 7)),
        ("unknown", None),
        ("", None),
        ("2", None),
        ("2.27.3.1", None),
        ("21805", None),
    ],
)
def test_parse_release(text: str, release: tuple[int, int, int] | None) -> None:
    assert parse_release(text) == release


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_IB_TIMEOUT", 22),
        ("NCCL_IB_TIMEOUT", "0x16"),
        ("NCCL_IB_TIMEOUT", "022"),  # octal, as strtoll has it: 18
        ("NCCL_IB_GID_INDEX", -1),
        ("NCCL_IB_DISABLE", "1"),
        ("NCCL_IB_DISABLE", ""),
        ("NCCL_SOCKET_IFNAME", "=eth0"),
        ("NCCL_SOCKET_IFNAME", "^docker,lo"),
        ("NCCL_SOCKET_IFNAME", "^=docker0"),
        ("NCCL_SOCKET_IFNAME", "=@IFNAME@"),
        ("NCCL_SOCKET_IFNAME", "bond0.100,eth1"),
        ("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"),
        ("NCCL_IB_HCA", "=mlx5_0::0:0"),
        ("NCCL_IB_HCA", "^=mlx5_1,mlx5_4"),
        ("NCCL_NET_GDR_LEVEL", "phb"),
        ("NCCL_NET_GDR_LEVEL", 3),
        ("NCCL_P2P_LEVEL", "NVL"),
        ("NCCL_NTHREADS", 512),
        ("NCCL_DEBUG", "info"),
        ("NCCL_DEBUG_SUBSYS", "INIT,NET"),
        ("NCCL_BUFFSIZE", 8388608),
        ("NCCL_ALGO", "ring,collnetdirect;allreduce:tree"),
        ("NCCL_OFI_WHATEVER", "yes"),
    ],
)
def test_what_is_right(name: str, value: Any) -> None:
    assert complaint(name, value) is None


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (
            "NCCL_IB_DISABLE",
            True,
            "'true' is not a number, and NCCL would read it as 0; it must be a whole number from 0 to 1: write 1",
        ),
        (
            "NCCL_P2P_DISABLE",
            "No",
            "'No' is not a number, and NCCL would read it as 0; it must be a whole number from 0 to 1: write 0",
        ),
        ("NCCL_IB_DISABLE", 2, "'2' is not a whole number from 0 to 1"),
        ("NCCL_IB_TIMEOUT", 32, "'32' is not a whole number from 0 to 31 (4.096 us * 2^n; 0 waits for ever)"),
        ("NCCL_IB_TIMEOUT", "22s", "'22s' is not a whole number from 0 to 31 (4.096 us * 2^n; 0 waits for ever)"),
        ("NCCL_IB_TIMEOUT", "09", "'09' is not a whole number from 0 to 31 (4.096 us * 2^n; 0 waits for ever)"),
        ("NCCL_IB_TIMEOUT", 21.5, "'21.5' is not a whole number from 0 to 31 (4.096 us * 2^n; 0 waits for ever)"),
        ("NCCL_IB_RETRY_CNT", 8, "'8' is not a whole number from 0 to 7"),
        ("NCCL_BUFFSIZE", "4M", "'4M' is not a whole number of at least 1024 bytes"),
        ("NCCL_NET_GDR_LEVEL", "FAR", "'FAR' is not one of LOC, PIX, PXB, PHB, SYS, or 0 to 4"),
        ("NCCL_P2P_LEVEL", 5, "'5' is not one of LOC, NVL, PIX, PXB, PHB, SYS, or 0 to 4"),
        ("NCCL_NTHREADS", 100, "'100' is not one of 64, 128, 256, 512"),
        ("NCCL_DEBUG", "loud", "'loud' is not one of VERSION, WARN, INFO, ABORT, TRACE"),
        ("NCCL_DEBUG_SUBSYS", "NETWORK", "'NETWORK' is not a list such as INIT,NET, or ^NET for all but NET"),
        ("NCCL_SOCKET_IFNAME", "=eth0,=eth1", f"'=eth0,=eth1' is not {IFNAME}"),
        ("NCCL_SOCKET_IFNAME", "eth0, eth1", f"'eth0, eth1' is not {IFNAME}"),
        ("NCCL_SOCKET_IFNAME", "a-name-of-16-let", f"'a-name-of-16-let' is not {IFNAME}"),
        ("NCCL_IB_GID_INDEX", [3], "is neither text nor a number"),
        ("NCCL_IB_GID_INDEX", None, "is neither text nor a number"),
        (
            "nccl_debug",
            "INFO",
            "is not a valid name of an NCCL setting: these begin with NCCL_ and are written in capitals",
        ),
        (
            "TORCH_NCCL_BLOCKING_WAIT",
            "1",
            "is read by PyTorch from the environment, and never from NCCL's file",
        ),
        (
            "NCCL_COMM_ID",
            "10.0.0.1:29500",
            "cannot be set for a whole cluster: it names one address for one job, and torch makes it itself",
        ),
        (
            "NCCL_NET",
            "Socket\nNCCL_X=1",
            r"'Socket\nNCCL_X=1' begins or ends with a blank or contains a line break, and NCCL uses lines verbatim",
        ),
        ("NCCL_TOPO_FILE", "/" + "x" * 1023, "has 1024 bytes, but NCCL truncates values after 1023"),
    ],
)
def test_what_is_wrong_is_reported_with_the_range(name: str, value: Any, text: str) -> None:
    assert complaint(name, value) == text


@pytest.mark.parametrize(
    ("name", "release", "text"),
    [
        ("NCCL_SOCKET_RETRY_CNT", "2.23.4", "is supported by NCCL from 2.24 on, but the image has 2.23.4"),
        ("NCCL_SOCKET_RETRY_CNT", "2.24.3", None),
        ("NCCL_SOCKET_NTHREADS", "2.4.7", "is supported by NCCL from 2.4.8 on, but the image has 2.4.7"),
        ("NCCL_MNNVL_ENABLE", "2.20.5", "is supported by NCCL from 2.21 on, but the image has 2.20.5"),
        ("NCCL_MNNVL_ENABLE", "", None),
    ],
)
def test_a_release_that_does_not_know_a_setting(name: str, release: str, text: str | None) -> None:
    assert complaint(name, 2, parse_release(release)) == text


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NCCL_IB_TIMOUT", "NCCL_IB_TIMEOUT"),
        ("NCCL_SOCKET_IF_NAME", "NCCL_SOCKET_IFNAME"),
        ("NCCL_SOCKET_IFNAM", "NCCL_SOCKET_IFNAME"),
        ("NCCL_TIMEOUT", None),  # it would resemble NCCL_IB_TIMEOUT, and is another thing
        ("NCCL_IBEXT_DISABLE", None),
        ("NCCL_IB_MERGE_VFS", None),
        ("NCCL_IB_TIMEOUT", None),
        ("NCCL_ALGO", None),
        ("NCCL_OFI_PROTOCOL", None),
        ("nccl_ib_timeout", None),
    ],
)
def test_misspelt(name: str, meant: str | None) -> None:
    assert misspelt(name) == meant


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(sorted(RANGES)), st.one_of(st.text(max_size=20), st.integers(), st.booleans(), st.floats()))
def test_any_value_passes_or_gets_words(name: str, value: Any) -> None:
    reported = complaint(name, value)
    assert reported is None or (reported and "\n" not in reported and not reported.endswith("."))


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(sorted(name for name, known in RANGES.items() if known.high and not known.words)), st.integers())
def test_a_number_passes_exactly_inside_its_range(name: str, number: int) -> None:
    known = RANGES[name]
    assert (complaint(name, number) is None) is (known.low <= number <= known.high)
    for edge in (known.low, known.high):
        assert complaint(name, edge) is None
    assert complaint(name, known.low - 1) is not None
    if known.high < ANY:
        assert complaint(name, known.high + 1) is not None


def test_the_tables() -> None:
    assert sorted(set(RANGES) & set(TEXTS)) == []
    assert all(known.words or known.form or known.high > known.low for known in RANGES.values())
    assert all(shown(known.since).startswith("2.") for known in RANGES.values())
