# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What two seconds of all-reduce over all nodes have shown: the interface that Gloo or NCCL took, and why it failed.

Gloo's is that of the sockets it had (Gloo itself logs none). NCCL's is what it says with NCCL_DEBUG=INFO, as for a job
(``supervisor/nccl_log``). Whether data goes from HCA to GPU without a copy (GPUDirect RDMA) NCCL says in lines such as
``NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'`` (NVIDIA/nccl#1939).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...module_utils.job.supervisor.nccl_log import NcclLog
from ..core.problems import listing
from ..core.values import mapping
from ..launch.node import SITE
from ..nccl_env.fallback import REMEDY as FALLBACK_REMEDY
from ..nccl_env.fallback import SOCKETS, cause, fell_back, listed
from ..nccl_env.gpudirect import NEEDS

_INDIRECT = re.compile(r"NET/IB ?: GPU Direct RDMA Disabled for HCA \d+ '([\w.:+-]{1,64})'", re.ASCII)
_INTERFACE = re.compile(
    r"Unable to find address for|unsupported gloo device|ifa != nullptr|no socket interface found|No usable listening"
    r"|no interface found",
    re.IGNORECASE,
)
_LATE = re.compile(r"time[d]?[ -]?out|timeout|no answer", re.IGNORECASE)
NOT_TRIED = "not tried, as not all nodes reach one another"


def nccl_devices(log: Sequence[str]) -> tuple[str, list[str]]:
    """The network that NCCL took (``Socket``, ``IB`` or a plug-in's) and its interfaces or HCAs with port."""
    reader = NcclLog(1)
    for line in log:
        reader.feed(line)
    return reader.transport()


def chosen(answer: Mapping[str, Any], backend: str) -> tuple[str, list[str]]:
    """The kind of network and the interfaces that one node took."""
    if backend == "nccl":
        return nccl_devices(answer.get("log") or [])
    return SOCKETS, list(answer.get("interfaces") or [])


def judge_collective(
    answers: Mapping[str, Mapping[str, Any]],
    expected: Mapping[str, str],
    backend: str,
    hcas: Mapping[str, str] | None = None,
) -> tuple[dict[str, Any], list[str], list[str]]:
    """The report's section, problems and notes.

    By node: ``expected`` is the interface in the training network, ``hcas`` those that nccl_env chose for NCCL (as
    NCCL_IB_HCA has them), empty where NCCL is to use sockets.
    """
    there = {name: mapping(answer) for name, answer in answers.items() if answer}
    section: dict[str, Any] = {"backend": backend, "interfaces": {}, "seconds": 0.0, "ok": False, "said": NOT_TRIED}
    if not there:
        return section, [], []
    section["seconds"] = max(float(answer.get("seconds") or 0.0) for answer in there.values())
    for name, answer in there.items():
        section["interfaces"][name] = ", ".join(chosen(answer, backend)[1])
    refused = {name: answer["said"] for name, answer in there.items() if answer.get("tried") is False}
    if refused:
        name, words = next(iter(refused.items()))
        section["said"] = f"not tried beside what runs there: {name}: {words}"
        return section, [], [f"The collective was not tried: {listing(refused)}: {words}."]
    failed = {name: answer for name, answer in there.items() if not answer.get("ok")}
    if failed:
        # Who says what is wrong comes before those that only waited for it.
        first = {name: answer for name, answer in failed.items() if not _LATE.search(str(answer.get("said")))} or failed
        telling = {name: one for name, one in first.items() if _INTERFACE.search(str(one.get("said")))} or first
        return _failed(section, telling, backend)
    wrong = {
        name: found
        for name, answer in there.items()
        for kind, found in [chosen(answer, backend)]
        if kind == SOCKETS and found and expected.get(name) and found != [expected[name]]
    }
    if wrong:
        name, found = next(iter(wrong.items()))
        words = (
            f"{listing(wrong)}: {backend} used {', '.join(found)}, but the training network is on {expected[name]}. "
            f"Most likely: wrong interface. Remedy: {_remedy(backend)}."
        )
        section["said"] = words
        return section, [words], []
    logs = {name: list(answer.get("log") or []) for name, answer in there.items()}
    on_sockets = without_hcas(logs, hcas or {}) if backend == "nccl" else ()
    without = [f"{words}. {remedy}." for words, remedy in on_sockets]
    if without:
        section["said"] = without[0]
        return section, without, []
    section["ok"] = True
    section["said"] = str(next(iter(there.values())).get("said"))
    return section, [], _indirect(there) if backend == "nccl" else []


def without_hcas(logs: Mapping[str, Sequence[str]], hcas: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what happened and, as sentences, cause and remedy of nodes on which NCCL took sockets, not its chosen HCAs.

    That is slower by far, and no error. By node: ``logs``, and ``hcas`` as NCCL_IB_HCA has them.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for name, log in logs.items():
        kind, devices = nccl_devices(log)
        if kind == SOCKETS and hcas.get(name):
            found.setdefault((fell_back(devices, hcas[name]), cause(log)), []).append(name)
    for (words, why), names in found.items():
        yield f"{listing(names)}: {words}", f"{f'Most likely: {why}. ' if why else ''}Remedy: {FALLBACK_REMEDY}"


def _indirect(there: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A note where data passes through the hosts' memory on its way between GPU and HCA."""
    found: dict[str, list[str]] = {}
    for name, answer in there.items():
        devices = [one[1] for line in answer.get("log") or [] for one in [_INDIRECT.search(line)] if one]
        if devices:
            found.setdefault(listed(list(dict.fromkeys(devices))), []).append(name)
    return [
        f"{listing(names)}: NCCL uses {devices} without GPUDirect RDMA, so data passes through the host's memory. It "
        f"needs {NEEDS}; NCCL deliberately does without it on GPUs that are far from the HCA."
        for devices, names in found.items()
    ]


def _remedy(backend: str) -> str:
    place = (
        "NCCL_SOCKET_IFNAME from nccl_env_settings"
        if backend == "nccl"
        else "GLOO_SOCKET_IFNAME from nccl_env_environment"
    )
    return f"remove {place}, and {SITE} nccl_env: it finds the interface by its subnet on each node"


def _failed(
    section: dict[str, Any], failed: Mapping[str, Mapping[str, Any]], backend: str
) -> tuple[dict[str, Any], list[str], list[str]]:
    by_words: dict[str, list[str]] = {}
    for name, answer in failed.items():
        warnings = answer.get("warnings") or []
        words = str(answer.get("said")).strip().rstrip(".")
        if warnings and backend == "nccl":
            words = f"{words}; {str(warnings[0]).split('NCCL WARN', 1)[-1].strip()}"
        by_words.setdefault(words, []).append(name)
    problems = []
    for words, names in by_words.items():
        if _INTERFACE.search(words):
            reason, remedy = "wrong interface: there is no interface of that name", _remedy(backend)
        elif re.search(r"refused|connectFullMesh|reset|unreachable", words):
            reason, remedy = "wrong interface: the others cannot reach its address", _remedy(backend)
        elif re.search(r"No module named|cannot import", words):
            reason, remedy = "torch is missing where the ranks run", f"{SITE} training_image,training_container"
        else:
            reason = "a node did not take part, or its ports are closed (Gloo and NCCL use any port)"
            remedy = "check the pairs above; with the hosts' network open TCP between the nodes"
        problems.append(
            f"{listing(names)}: a collective of two seconds over all nodes ({backend}): {words}. "
            f"Most likely: {reason}. Remedy: {remedy}."
        )
    section["said"] = problems[0]
    return section, problems, []
