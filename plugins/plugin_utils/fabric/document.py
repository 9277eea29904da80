# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What verify.yml leaves for the report: roles, pairs, collective and versions, as one document; and its last line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from statistics import median
from typing import Any

from ..core.roles import ROLES
from ..core.values import mapping
from .checks import CONTAINER, Finding

VERSION = 1


def roles_section(requested: Iterable[str], failed_role: str, failed_reported: str) -> dict[str, dict[str, Any]]:
    """The roles that were verified, those before the failed one being right; after it nothing was verified."""
    section: dict[str, dict[str, Any]] = {}
    wanted = set(requested)
    for role in ROLES:
        if role.name == failed_role:
            section[role.name] = {"ok": False, "sentence": failed_reported}
            break
        if role.name in wanted:
            section[role.name] = {"ok": True, "sentence": f"{role.promise[0].upper()}{role.promise[1:]}."}
    return section


def versions_of(facts: Mapping[str, Any], ready: Mapping[str, Any], nccl: str) -> dict[str, Any]:
    """Versions of one node; null where there is none, or it is not known."""
    system, docker = mapping(facts.get("system")), mapping(facts.get("docker"))
    gpu = mapping(facts.get("gpu"))
    inner = mapping(mapping(ready.get("inner")).get("versions"))
    release = [system.get("distribution"), system.get("release")]
    found = {
        "system": " ".join(str(part) for part in release if part) or None,
        "kernel": system.get("kernel"),
        "docker": docker.get("version"),
        "driver": gpu.get("driver_version"),
        **{name: inner.get(name) for name in ("python", "torch", "deepspeed", "transformers", "accelerate")},
        "nccl": nccl or _nccl_of(inner),
    }
    return {name: value or None for name, value in found.items()}


def _nccl_of(packages: Mapping[str, Any]) -> Any:
    """The NCCL that PyTorch loads: that of its own CUDA, where its version states it, else the newer one."""
    older, newer = packages.get("nvidia-nccl-cu12"), packages.get("nvidia-nccl-cu13")
    return older if "+cu12" in str(packages.get("torch")) else newer or older


def document(
    *,
    cluster: str,
    began: float,
    ended: float,
    nodes: Sequence[str],
    roles: Mapping[str, Any],
    findings: Sequence[Finding],
    collective: Mapping[str, Any] | None,
    versions: Mapping[str, Any],
) -> dict[str, Any]:
    """The whole of verify.json. ``began`` and ``ended`` are seconds since 1970."""
    return {
        "version": VERSION,
        "cluster": cluster,
        "time": datetime.fromtimestamp(ended, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "seconds": round(ended - began, 1),
        "nodes": list(nodes),
        "roles": dict(roles),
        "pairs": [one.entry() for one in findings],
        "collective": dict(collective) if collective else None,
        "versions": dict(versions),
    }


def _values(findings: Sequence[Finding], check: str, network: str = "") -> list[float]:
    return [
        abs(float(one.value))
        for one in findings
        if one.check == check and one.ok and one.value is not None and network in ("", one.network)
    ]


def summary(
    findings: Sequence[Finding], collective: Mapping[str, Any] | None, nodes: Sequence[str], seconds: float
) -> str:
    """One paragraph of figures, where all is well."""
    count = len(nodes)
    pairs = count * (count - 1) // 2
    parts = [f"Fabric: {pairs} pair{'s' if pairs != 1 else ''} of {count} nodes in {seconds:.1f} s"]
    network = next((one.network for one in findings if one.check == "mtu" and one.network == CONTAINER), "")
    for check, words in (
        ("tcp", "TCP {low:.2f} to {high:.2f} ms"),
        ("mtu", "packets of {low:.0f} bytes whole"),
        ("ssh", "ssh in {mid:.0f} ms"),
        ("clock", "clocks within {high:.3f} s"),
    ):
        found = _values(findings, check, network)
        if found:
            parts.append(words.format(low=min(found), high=max(found), mid=median(found)))
    ports = sorted({one.check for one in findings if one.check.startswith("udp")})
    if ports:
        parts.append(", ".join(port.upper() for port in ports))
    if collective and collective["ok"]:
        used: dict[str, list[str]] = {}
        for name, interface in collective["interfaces"].items():
            used.setdefault(interface or "none", []).append(name)
        where = ", ".join(
            f"{interface}{'' if len(used) == 1 else ' (' + ' '.join(names) + ')'}" for interface, names in used.items()
        )
        parts.append(f"{collective['backend']} over {where}: {collective['said']} in {collective['seconds']:.1f} s")
    return "; ".join(parts) + "."
