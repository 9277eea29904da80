# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What two seconds of all-reduce over all nodes have shown: the interface that Gloo or NCCL took, and why it failed.

Gloo's is that of the sockets it had (Gloo itself logs none). NCCL's is what it says, with NCCL_DEBUG=INFO:
``NCCL INFO NET/Socket : Using [0]eth0:10.0.0.4<0>``, ``NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB; OOB …``.
Source of these: NCCL's src/transport/net_socket.cc and net_ib.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.node import SITE
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.problems import listing, mapping

_NET = re.compile(r"NET/(\w+)\s*:\s*Using (.*)")
_DEVICE = re.compile(r"\[\d+\]([^\s:\[\]]+):(\d*)")
_INTERFACE = re.compile(
    r"Unable to find address for|unsupported gloo device|ifa != nullptr|no socket interface found|No usable listening"
    r"|no interface found",
    re.IGNORECASE,
)
_LATE = re.compile(r"time[d]?[ -]?out|timeout|no answer", re.IGNORECASE)
NOT_TRIED = "not tried, as not all nodes reach one another"


def nccl_devices(log: Sequence[str]) -> tuple[str, list[str]]:
    """The network that NCCL took (``Socket``, ``IB`` or a plug-in's) and its interfaces or HCAs with port."""
    for line in log:
        found = _NET.search(line)
        if found:
            devices = _DEVICE.findall(found[2].split(";")[0])
            plain = [name if found[1] == "Socket" else f"{name}:{port}" for name, port in devices]
            return found[1], list(dict.fromkeys(plain))
    return "", []


def chosen(answer: Mapping[str, Any], backend: str) -> tuple[str, list[str]]:
    """The kind of network and the interfaces that one node took."""
    if backend == "nccl":
        return nccl_devices(answer.get("log") or [])
    return "Socket", list(answer.get("interfaces") or [])


def judge_collective(
    answers: Mapping[str, Mapping[str, Any]], expected: Mapping[str, str], backend: str
) -> tuple[dict[str, Any], list[str], list[str]]:
    """The report's section, problems and notes. ``expected`` is the interface in the training network, by node."""
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
        if kind == "Socket" and found and expected.get(name) and found != [expected[name]]
    }
    if wrong:
        name, found = next(iter(wrong.items()))
        words = (
            f"{listing(wrong)}: {backend} took {', '.join(found)}, and the training network is on {expected[name]}. "
            f"Most likely: wrong interface. Remedy: {_remedy(backend)}."
        )
        section["said"] = words
        return section, [words], []
    section["ok"] = True
    section["said"] = str(next(iter(there.values())).get("said"))
    return section, [], []


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
            reason, remedy = "wrong interface: there is none of that name", _remedy(backend)
        elif re.search(r"refused|connectFullMesh|reset|unreachable", words):
            reason, remedy = "wrong interface: its address is not one that the others reach", _remedy(backend)
        elif re.search(r"No module named|cannot import", words):
            reason, remedy = "torch is not in what the ranks run in", f"{SITE} training_image,training_container"
        else:
            reason = "a node did not come, or its ports are closed to what Gloo and NCCL choose (any port)"
            remedy = "check the pairs above; with the hosts' network open TCP between the nodes"
        problems.append(
            f"{listing(names)}: a collective of two seconds over all nodes ({backend}): {words}. "
            f"Most likely: {reason}. Remedy: {remedy}."
        )
    section["said"] = problems[0]
    return section, problems, []
