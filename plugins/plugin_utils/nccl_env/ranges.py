# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What NCCL takes for its settings, by release: kind, range, first and last release. Pure.

Sources: NCCL's user guide, "Environment Variables" (of 2.30.7), for values; its source at each release's tag for the
first release that reads a name. Numbers go through ``strtoll(…, 0)`` (src/misc/param.cc): what is not a number is
read as 0 in silence, so ``true`` switches off. Names that are in no table here are left to NCCL and to its plugins, of
which ``readers`` knows some.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .readers import reader

Release = tuple[int, int, int]

NAME = re.compile(r"NCCL_[A-Z0-9_]+", re.ASCII)
LONGEST = 1023
"""Bytes of a value that NCCL keeps from its file; the rest is cut off in silence (src/misc/param.cc)."""

ANY = 2**63 - 1
_NUMBER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|[0-9]+)", re.ASCII)
_NO_NAME = "is not a valid name of an NCCL setting: these begin with NCCL_ and are written in capitals"
_SWITCHES = {"true": "1", "yes": "1", "on": "1", "false": "0", "no": "0", "off": "0"}
_LIKE = 0.85
"""``difflib`` ratio from which an unknown name is taken for a misspelling."""


class NcclError(Exception):
    """A setting that NCCL would not take, or would not take as it is meant."""

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(f"{text}. Remedy: {remedy}")
        self.text, self.remedy = text, remedy


@dataclass(frozen=True)
class Range:
    """A whole number from ``low`` to ``high``, in ``unit``; or one of ``words``; or text of the form ``form``."""

    low: int = 0
    high: int = 0
    unit: str = ""
    words: tuple[str, ...] = ()
    form: str = ""
    example: str = ""
    since: Release = (2, 0, 0)

    def reported(self) -> str:
        """Return the range in words."""
        if self.words:
            numbers = f", or {self.low} to {self.high}" if self.high else ""
            return f"one of {', '.join(self.words)}{numbers}"
        if self.form:
            return self.example
        if self.high == ANY:
            return f"a whole number of at least {self.low}{self.unit}"
        return f"a whole number from {self.low} to {self.high}{self.unit}"


_IFNAME = r"\^?=?[^\s,^=]{2,15}(,[^\s,^=]{2,15})*"
_HCA = r"\^?=?[^\s,^=:]+(:\d*){0,3}(,[^\s,^=:]+(:\d*){0,3})*"
_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")
_SUBSYSTEMS = "INIT|COLL|P2P|SHM|NET|GRAPH|TUNING|ENV|ALLOC|CALL|PROXY|NVLS|BOOTSTRAP|REG|PROFILE|RAS|DESTROY|ALL"
_FLAG = Range(0, 1)


def _flag(*since: int) -> Range:
    return Range(0, 1, since=(since[0], since[1], 0))


RANGES: Mapping[str, Range] = {
    "NCCL_SOCKET_IFNAME": Range(
        form=_IFNAME,
        example="names of interfaces such as =eth0 (that very one), eth (all that begin so) or ^docker,lo (none of "
        "them), with = and ^ before the whole list only",
    ),
    "NCCL_SOCKET_FAMILY": Range(words=("AF_INET", "AF_INET6")),
    "NCCL_SOCKET_NTHREADS": Range(1, 16, since=(2, 4, 8)),
    "NCCL_NSOCKS_PERTHREAD": Range(1, 64, since=(2, 4, 8)),
    "NCCL_SOCKET_RETRY_CNT": Range(1, 2**31 - 1, since=(2, 24, 0)),
    "NCCL_SOCKET_RETRY_SLEEP_MSEC": Range(1, 2**31 - 1, " ms", since=(2, 24, 0)),
    "NCCL_SOCKET_POLL_TIMEOUT_MSEC": Range(0, 2**31 - 1, " ms", since=(2, 28, 0)),
    "NCCL_CROSS_NIC": Range(0, 2),
    "NCCL_IB_DISABLE": _FLAG,
    "NCCL_IB_HCA": Range(
        form=_HCA,
        example="RDMA devices such as =mlx5_0:1,mlx5_1:1 (those very ports), mlx5 (all that begin so) or ^=mlx5_4 (not "
        "that one), with = and ^ before the whole list only",
    ),
    "NCCL_IB_TIMEOUT": Range(0, 31, " (4.096 us * 2^n; 0 waits for ever)"),
    "NCCL_IB_RETRY_CNT": Range(0, 7, since=(2, 1, 15)),
    "NCCL_IB_GID_INDEX": Range(-1, 255),
    "NCCL_IB_ADDR_FAMILY": Range(words=("AF_INET", "AF_INET6"), since=(2, 21, 0)),
    "NCCL_IB_ROCE_VERSION_NUM": Range(1, 2, since=(2, 21, 0)),
    "NCCL_IB_SL": Range(-1, 15),
    "NCCL_IB_TC": Range(-1, 255, since=(2, 1, 15)),
    "NCCL_IB_FIFO_TC": Range(-1, 255, since=(2, 22, 0)),
    "NCCL_IB_AR_THRESHOLD": Range(0, ANY, " bytes"),
    "NCCL_IB_QPS_PER_CONNECTION": Range(1, 128, since=(2, 10, 0)),
    "NCCL_IB_SPLIT_DATA_ON_QPS": _flag(2, 18),
    "NCCL_IB_PCI_RELAXED_ORDERING": Range(0, 2, since=(2, 12, 0)),
    "NCCL_IB_ADAPTIVE_ROUTING": _flag(2, 16),
    "NCCL_IB_ECE_ENABLE": _flag(2, 23),
    "NCCL_IB_MERGE_NICS": _flag(2, 20),
    "NCCL_IB_RETURN_ASYNC_EVENTS": _flag(2, 23),
    "NCCL_IB_DATA_DIRECT": _flag(2, 27),
    "NCCL_OOB_NET_ENABLE": _flag(2, 23),
    "NCCL_NET_GDR_LEVEL": Range(0, 4, words=_LEVELS),
    "NCCL_NET_GDR_READ": _FLAG,
    "NCCL_NET_GDR_C2C": _flag(2, 26),
    "NCCL_NET_SHARED_BUFFERS": _FLAG,
    "NCCL_P2P_LEVEL": Range(0, 4, words=("LOC", "NVL", *_LEVELS[1:])),
    "NCCL_P2P_DISABLE": _FLAG,
    "NCCL_P2P_PXN_LEVEL": Range(0, 2, since=(2, 12, 0)),
    "NCCL_PXN_DISABLE": _flag(2, 12),
    "NCCL_NVB_DISABLE": _flag(2, 11),
    "NCCL_SHM_DISABLE": _FLAG,
    "NCCL_NVLS_ENABLE": Range(0, 2, since=(2, 17, 0)),
    "NCCL_MNNVL_ENABLE": Range(0, 2, since=(2, 21, 0)),
    "NCCL_DMABUF_ENABLE": _flag(2, 13),
    "NCCL_CUMEM_ENABLE": _flag(2, 18),
    "NCCL_CUMEM_HOST_ENABLE": _flag(2, 23),
    "NCCL_COLLNET_ENABLE": _FLAG,
    "NCCL_RUNTIME_CONNECT": _flag(2, 22),
    "NCCL_RAS_ENABLE": _flag(2, 24),
    "NCCL_IGNORE_CPU_AFFINITY": _FLAG,
    "NCCL_BUFFSIZE": Range(1024, ANY, " bytes"),
    "NCCL_NTHREADS": Range(words=("64", "128", "256", "512")),
    "NCCL_MIN_NCHANNELS": Range(1, 64),
    "NCCL_MAX_NCHANNELS": Range(1, 64),
    "NCCL_MIN_CTAS": Range(1, 64, since=(2, 17, 0)),
    "NCCL_MAX_CTAS": Range(1, 64, since=(2, 17, 0)),
    "NCCL_DEBUG": Range(words=("VERSION", "WARN", "INFO", "ABORT", "TRACE")),
    "NCCL_DEBUG_SUBSYS": Range(
        form=rf"\^?({_SUBSYSTEMS}|ALLOC_HOST)(,({_SUBSYSTEMS}|ALLOC_HOST))*",
        example="a list such as INIT,NET, or ^NET for all but NET",
    ),
}

TEXTS = (
    *("NCCL_DEBUG_FILE", "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN", "NCCL_ENV_PLUGIN"),
    *("NCCL_ALGO", "NCCL_PROTO", "NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_FILE", "NCCL_GRAPH_DUMP_FILE"),
    *("NCCL_IB_ADDR_RANGE", "NCCL_OOB_NET_IFNAME", "NCCL_RAS_ADDR", "NCCL_COMM_ID", "NCCL_HOSTID", "NCCL_CONF_FILE"),
    *("NCCL_CTA_POLICY", "NCCL_NETDEVS_POLICY", "NCCL_NET_MERGE_LEVEL", "NCCL_NET_MERGE_POLICY", "NCCL_LAUNCH_MODE"),
    *("NCCL_DEBUG_TIMESTAMP_FORMAT", "NCCL_DEBUG_TIMESTAMP_LEVELS", "NCCL_CHECK_MODE", "NCCL_SOCKET_MAGIC"),
    # what NCCL reads and documents nowhere, as far as it resembles something above
    *("NCCL_GIN_PLUGIN", "NCCL_IB_MERGE_VFS", "NCCL_IB_MQP_RETRY_CNT", "NCCL_LL_BUFFSIZE", "NCCL_NVLS_NCHANNELS"),
    *("NCCL_MAX_P2P_NCHANNELS", "NCCL_MIN_P2P_NCHANNELS", "NCCL_NVTX_DISABLE", "NCCL_PAT_ENABLE", "NCCL_RMA_DISABLE"),
    *("NCCL_GRAPH_DUMP_FILE_RANK", "NCCL_TOPO_DUMP_FILE_RANK"),
)
"""Names whose values are left to NCCL; known so that what resembles them is distinguished from what does not."""

OF_THE_CLUSTER = {
    "NCCL_COMM_ID": "it names one address for one job, and torch makes it itself",
    "NCCL_CONF_FILE": "it names the very file that these settings are written to",
}
"""Names that do harm in a file for all jobs, and why."""


def parse_release(text: str) -> Release | None:
    """Return ``2.21.5`` (or ``2.21.5+cuda12.4``, ``2.21``) as numbers, or None where it is not a release."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?(?![\d.])", text.strip(), re.ASCII)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def shown(release: Release) -> str:
    """Return a release as NCCL writes it; the first of a series without its last part."""
    return ".".join(map(str, release[: 3 if release[2] else 2]))


def as_text(value: Any) -> str:
    """Return a value as it is written into a file: YAML's true and false as the words they are."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def complaint(name: str, value: Any, release: Release | None = None) -> str | None:
    """Return what is wrong with a setting for this release of NCCL (None: for any), in words, or None.

    An empty value is right: it takes the setting out.
    """
    text = as_text(value)
    if text == "" and NAME.fullmatch(name):
        return None
    wrong = _malformed(name, value, text)
    known = RANGES.get(name)
    if wrong or known is None:
        return wrong
    if release is not None and release < known.since:
        return f"is supported by NCCL from {shown(known.since)} on, but the image has {shown(release)}"
    return _outside(known, text)


def _malformed(name: str, value: Any, text: str) -> str | None:
    """Return why a line of NCCL's file cannot hold this, or None."""
    if isinstance(value, (dict, list, tuple)) or value is None:
        return "is neither text nor a number"
    if NAME.fullmatch(name) is None:
        other = reader(name)
        return other.text if other else _NO_NAME
    if name in OF_THE_CLUSTER:
        return f"cannot be set for a whole cluster: {OF_THE_CLUSTER[name]}"
    if text != text.strip() or not text.isprintable():
        return f"{text!r} begins or ends with a blank or contains a line break, and NCCL uses lines verbatim"
    if len(text.encode()) > LONGEST:
        return f"has {len(text.encode())} bytes, but NCCL truncates values after {LONGEST}"
    return None


def _outside(known: Range, text: str) -> str | None:
    if known.words and text.upper() in known.words:
        return None
    if known.form:
        return None if re.fullmatch(known.form, text, re.ASCII) else f"'{text}' is not {known.reported()}"
    number = _number(text)
    if number is not None and known.low <= number <= known.high and (not known.words or known.high):
        return None
    meant = _SWITCHES.get(text.lower())
    if number is None and meant and not known.words:
        return f"'{text}' is not a number, and NCCL would read it as 0; it must be {known.reported()}: write {meant}"
    return f"'{text}' is not {known.reported()}"


def _number(text: str) -> int | None:
    if _NUMBER.fullmatch(text) is None:
        return None
    digits = text.lstrip("+-")
    # As strtoll with base 0 does it: a leading zero is octal, and a 9 in it ends the number.
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
    try:
        number = int(digits, 8) if octal else int(digits, 0)
    except ValueError:
        return None
    return -number if text.startswith("-") else number


def misspelt(name: str) -> str | None:
    """Return the known name that an unknown one resembles, or None. Unknown ones that do not are a plugin's."""
    known = [*RANGES, *TEXTS]
    if name in known or reader(name) or NAME.fullmatch(name) is None:
        return None
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_LIKE)), None)
