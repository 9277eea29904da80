# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The choice: from the GPUs and drivers of the cluster and what the user set to CUDA, PyTorch and the compiler.

Pure. What a user sets is never replaced: where it does not fit, that is a problem, with the nearest row that works.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .candidate import Candidate, candidate, candidates
from .hosts import Host
from .notes import notes_on
from .numbers import in_order
from .problem import Problem
from .refuse import driver_problems, gpu_problems, pair_problems, wheel_problems
from .requested import RequestedVersions
from .table import Table


@dataclass(frozen=True)
class Choice:
    """What was chosen. ``compiler`` are requirements of the build stage, ``cuda_home`` how nvcc is provided.

    ``cuda_home``: ``cu13`` is one tree below ``site-packages/nvidia``; ``base`` the toolkit of the base image, as no
    wheel has nvcc, such as that of ``build_base``; empty on CPUs.
    """

    stack: str
    cuda: str
    torch: str
    torch_index: str
    compiler: tuple[str, ...] = ()
    cuda_home: str = ""
    build_base: str = ""
    nccl: str = ""
    driver_min: str = ""
    capabilities: tuple[str, ...] = ()
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The form that ``swarmspeed_cluster.versions`` has: plain lists and mappings."""
        lists = {name: list(value) for name, value in vars(self).items() if isinstance(value, tuple)}
        return {**asdict(self), **lists, "problems": [problem.as_dict() for problem in self.problems]}


def choose(hosts: Sequence[Host], requested: RequestedVersions, table: Table, accelerator: str = "cuda") -> Choice:
    """Return the versions for the hosts that take part in the job."""
    if accelerator != "cuda":
        return _on_cpus(requested, table)
    wrong = list(requested.problems(table))
    if wrong:
        # What makes no sense is left out of the choice, so that the rest can be judged too.
        requested = replace(requested, cuda="", compute_capabilities=())
    offered = list(candidates(requested, table, arm=any(host.is_arm for host in hosts)))
    chosen = next((one for one in offered if not _problems(one, hosts, requested, table)), None)
    if chosen is None:
        # The one with the fewest conflicts; of those the first.
        chosen = min(offered, key=lambda one: len(_problems(one, hosts, requested, table)))
    problems = [*wrong, *_problems(chosen, hosts, requested, table)]
    capabilities = requested.compute_capabilities or [has for host in hosts for has in host.capabilities]
    return Choice(
        stack=chosen.stack,
        cuda=chosen.cuda,
        torch=chosen.torch,
        torch_index=chosen.index,
        compiler=chosen.compiler,
        cuda_home="cu13" if chosen.toolkit else "base",
        build_base=chosen.row.base if chosen.row and not chosen.toolkit else "",
        nccl=chosen.nccl,
        driver_min=str(chosen.row.driver) if chosen.row else "",
        capabilities=in_order(capabilities),
        hosts={
            host.name: {
                "driver_branch": host.branch,
                "driver_source": host.source,
                "capabilities": list(host.capabilities),
            }
            for host in hosts
        },
        problems=tuple(dict.fromkeys(problems)),
        notes=tuple(notes_on(chosen, hosts, requested, table)),
    )


def _problems(found: Candidate, hosts: Sequence[Host], requested: RequestedVersions, table: Table) -> list[Problem]:
    def way() -> str:
        return _nearest(hosts, requested, table)

    return [
        *gpu_problems(found, hosts, requested, way),
        *driver_problems(found, hosts, way),
        *pair_problems(found, requested, table),
        *wheel_problems(found, requested, table, arm=[host.name for host in hosts if host.is_arm]),
    ]


def _nearest(hosts: Sequence[Host], requested: RequestedVersions, table: Table) -> str:
    """Say how to have the first row that works when the user sets nothing of it, empty where none does."""
    free = replace(requested, torch="", torch_index="", cuda="")

    def nothing() -> str:
        return ""

    for stack in table.gpu_stacks():
        one = candidate(free, table, stack, arm=any(host.is_arm for host in hosts))
        against = [*gpu_problems(one, hosts, free, nothing), *driver_problems(one, hosts, nothing)]
        if not against and not list(pair_problems(one, free, table)):
            return (
                f'set training_image_cuda: "{stack.cuda}" and leave training_image_torch and '
                f"training_image_torch_index empty, the nearest row that works ({stack.name} of docs/versions.md)"
            )
    return ""


def _on_cpus(requested: RequestedVersions, table: Table) -> Choice:
    stack = table.stack("cpu")
    torch = requested.torch or f"torch=={stack.torch}"
    found = Candidate(
        stack.name, "", torch, requested.release or stack.torch, requested.torch_index or stack.index, "", "", None
    )
    return Choice(
        stack=stack.name,
        cuda="",
        torch=torch,
        torch_index=found.index,
        problems=tuple(wheel_problems(found, requested, table)),
    )
