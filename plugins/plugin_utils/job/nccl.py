# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What NCCL has connected for a job, in sentences: ranks, network, and what is not as the role nccl_env chose it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from ..nccl_env.fallback import REMEDY, SOCKETS, fell_back, listed

_OVERRIDES = "the script, deepspeed_launch_environment and nccl_env_environment"


def statement(nccl: Mapping[str, Any] | None, world: int | None) -> str:
    """Return ``NCCL has connected 8 of 8 ranks: IB on mlx5_0:1 (gpu1, gpu2)``; empty where nothing is known."""
    if not nccl:
        return ""
    groups: dict[str, list[str]] = {}
    for node, found in _nodes(nccl).items():
        groups.setdefault(_network(found), []).append(node)
    where = "; ".join(
        f"{network} ({_names(names)})" if any(names) else network for network, names in groups.items() if network
    )
    connected, of_all = nccl.get("connected") or 0, f" of {world}" if world else ""
    rings = ", all rings" if nccl.get("rings") else ""
    return f"NCCL has connected {connected}{of_all} ranks{rings}" + (f": {where}" if where else "")


def warnings(nccl: Mapping[str, Any] | None, world: int | None, log_path: str) -> Iterator[str]:
    """Yield a sentence for each thing that is not as it should be. ``log_path`` is that of the job's log."""
    if not nccl:
        return
    ranks = PurePosixPath(log_path).parent / "ranks"
    size, connected = nccl.get("size") or 0, nccl.get("connected") or 0
    if world and size < world:
        yield (
            f"the largest communicator of NCCL has {size} ranks, but the job has {world}. If the script creates no "
            "groups of its own, its parts train separately. Remedy: have it call init_process_group with the "
            "WORLD_SIZE"
            " and RANK that its launcher sets"
        )
    elif world and connected < world:
        yield (
            f"NCCL has connected {connected} of {world} ranks so far. If this does not change, the others did not "
            f"start or cannot reach it. Remedy: see the last lines of each rank below {ranks} on its node, and run "
            "verify.yml"
        )
    for node, found in _nodes(nccl).items():
        network, devices = found.get("network"), [str(device) for device in found.get("devices") or []]
        interface, hcas = str(found.get("interface") or ""), str(found.get("hcas") or "")
        on = f"on {node} " if node else ""
        if network == SOCKETS and hcas:
            yield (f"{on}{fell_back(devices, hcas)}. Remedy: see the lines NET/IB in {node}:{ranks}; {REMEDY}")
        elif network == SOCKETS:
            wrong = [device for device in devices if not _matches(device, interface)]
            if wrong:
                yield (
                    f"{on}NCCL uses {listed(wrong)}, but nccl_env chose {interface.lstrip('=')}. Remedy: take"
                    f" NCCL_SOCKET_IFNAME out of {_OVERRIDES}, and launch again"
                )
        elif network == "IB":
            wrong = [device for device in devices if not _matches(device, hcas)]
            if wrong:
                yield (
                    f"{on}NCCL uses the HCAs {listed(wrong)}, but nccl_env chose {hcas.lstrip('=')}. Remedy: take"
                    f" NCCL_IB_HCA out of {_OVERRIDES}, and launch again"
                )


def sentences(name: str, job: Mapping[str, Any]) -> list[str]:
    """Return all of it for a job, as lines that begin with its name."""
    nccl, world = job.get("nccl"), job.get("world_size_expected")
    reported = statement(nccl, world)
    found = [reported, *warnings(nccl, world, str(job.get("log_path") or ""))] if reported else []
    return [f"{name}: {text}." for text in found]


def _nodes(nccl: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(node): found for node, found in (nccl.get("nodes") or {}).items()}


def _network(found: Mapping[str, Any]) -> str:
    kind, devices = str(found.get("network") or ""), [str(device) for device in found.get("devices") or []]
    named = "sockets" if kind == SOCKETS else kind
    return f"{named} on {listed(devices)}" if named and devices else named


def _matches(device: str, requested: str) -> bool:
    """Whether NCCL would take ``device`` where it is asked for ``requested``: beginnings of names, after ``=`` whole.

    An HCA without a port stands for all of its ports. What excludes (``^``) names nothing that was chosen.
    """
    wanted = [part for part in requested.lstrip("=").split(",") if part]
    if not wanted or requested.startswith("^"):
        return True
    name = device.partition(":")[0]
    if requested.startswith("="):
        return any(part in (device, name) for part in wanted)
    return any(device.startswith(part) for part in wanted)


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} to {names[-1]}, {len(names)} nodes"
