# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a user should know of a choice although nothing is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .candidate import Candidate, candidates
from .hosts import Host
from .numbers import in_order, major
from .refuse import without_code
from .requested import RequestedVersions
from .table import Table

SHOWN_HOSTS = 5


def notes_on(chosen: Candidate, hosts: Sequence[Host], requested: RequestedVersions, table: Table) -> Iterator[str]:
    """Yield sentences."""
    where = chosen.index or "the ordinary package index"
    cuda = f"CUDA {chosen.cuda}" if chosen.cuda else "CUDA unknown"
    yield f"The training image gets {chosen.torch} from {where}, {cuda}{_because(chosen, hosts, requested, table)}."
    by_capability: dict[str, list[str]] = {}
    for host in hosts:
        for capability in host.capabilities:
            by_capability.setdefault(capability, []).append(host.name)
    if len(by_capability) > 1:
        ordered = in_order(by_capability)
        reported = " and ".join(f"{one} ({_names(by_capability[one])})" for one in ordered)
        yield (
            f"The GPUs have compute capability {reported}: the image is built for all of them, and what a job may use "
            f"is planned for the oldest, {ordered[0]}."
        )
    if requested.torch and table.torch_row(chosen.release) is None:
        yield (
            f"{requested.torch} is not in the table of versions, so it is unknown whether it works with "
            f"{f'CUDA {chosen.cuda}' if chosen.cuda else 'these GPUs'}; training_image_cuda says which CUDA it has."
        )
    if chosen.row and not chosen.toolkit and not requested.base:
        yield (
            f"No Python package contains nvcc for CUDA {chosen.cuda}: the image is built in {chosen.row.base}, "
            "and begins with the -base- image of the same name."
        )
    ended: dict[tuple[str, str, int | None], list[str]] = {}
    for host in hosts:
        if host.ended:
            ended.setdefault((host.driver, host.ended, host.usual), []).append(host.name)
    for (driver, month, branch), names in ended.items():
        way = f": nvidia_driver_branch: {branch} replaces it" if branch else ""
        yield f"Driver {driver} ({_names(names)}) has had no security updates since {month}{way}."
    for part in table.parts:
        for bad in part.bad:
            if part.name == "nccl" and chosen.nccl == bad.versions:
                reported = f"{bad.why} ({table.source_of(bad.source)})"
                yield f"NCCL {bad.versions} of this PyTorch is known to be bad: {reported}."


def _because(chosen: Candidate, hosts: Sequence[Host], requested: RequestedVersions, table: Table) -> str:
    """Say why an earlier row was passed over."""
    first = next(candidates(requested, table, arm=any(host.is_arm for host in hosts)))
    if first.stack == chosen.stack or first.row is None:
        return ""
    without = [
        host.name for host in hosts if any(without_code(first, has, arm=host.is_arm) for has in host.capabilities)
    ]
    old = [host.name for host in hosts if host.driver and major(host.driver) < first.row.driver]
    if without:
        return f", as CUDA {first.cuda} has no code for the GPUs of {_names(without)}"
    if old:
        return (
            f", as the driver of {_names(old)} is older than {first.row.driver}, which CUDA {first.cuda} needs "
            f"(nvidia_driver_branch: {first.row.driver} changes that)"
        )
    return (
        f", as DeepSpeed {requested.deepspeed_version} does not go with {first.torch}"
        if requested.deepspeed_version
        else ""
    )


def _names(names: Sequence[str]) -> str:
    shown = list(dict.fromkeys(names))
    more = f" and {len(shown) - SHOWN_HOSTS} more" if len(shown) > SHOWN_HOSTS else ""
    return ", ".join(shown[:SHOWN_HOSTS]) + more
