# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What rules out a combination: GPUs without code, drivers that do not run it, wheels that do not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .candidate import Candidate
from .hosts import Host
from .numbers import in_order, is_release, key, major, minor, runs
from .problem import Problem
from .requested import RequestedVersions
from .table import Pair, Table

Way = Callable[[], str]
"""Says which row works instead, empty where none does; called only where something rules out a combination."""


def without_code(found: Candidate, capability: str, *, arm: bool = False) -> bool:
    """Return whether PyTorch has no code for a GPU, or nvcc makes none. What the table does not know is let through."""
    if found.row is None:
        return False
    plain = capability.removesuffix("+PTX").rstrip("af")
    return plain not in found.row.compiles or not any(runs(code, plain) for code in found.kernels(arm=arm))


def gpu_problems(found: Candidate, hosts: Sequence[Host], requested: RequestedVersions, way: Way) -> Iterator[Problem]:
    """Yield what keeps GPUs of the cluster from running it."""
    for host in hosts:
        if host.unknown and not requested.compute_capabilities:
            yield Problem(
                "compute_capability",
                (host.name,),
                f"the compute capability of {', '.join(host.unknown)} is unknown, and no driver reports it",
                "set training_image_compute_capabilities to those of all GPUs of the cluster, such as "
                '["9.0"] (developer.nvidia.com/cuda-gpus)',
            )
        wanted = requested.compute_capabilities
        left_out = [has for has in host.capabilities if wanted and not any(runs(code, has) for code in wanted)]
        if left_out:
            yield Problem(
                "compute_capability",
                (host.name,),
                f"the GPUs have compute capability {', '.join(left_out)}, but an image for {', '.join(wanted)} has no "
                f"operators for them",
                "add it to training_image_compute_capabilities, or leave that empty to have it read from the GPUs",
            )
        lacking = [has for has in host.capabilities if without_code(found, has, arm=host.is_arm)]
        if lacking and found.row:
            yield _no_code(found, (host.name,), lacking, way, arm=host.is_arm)
    lacking = [text for text in requested.compute_capabilities if without_code(found, text)]
    if lacking and found.row and not any(without_code(found, has) for host in hosts for has in host.capabilities):
        yield _no_code(found, ("training_image_compute_capabilities",), lacking, way)


def _no_code(
    found: Candidate, subjects: tuple[str, ...], lacking: Sequence[str], way: Way, *, arm: bool = False
) -> Problem:
    oldest = min((key(code) for code in found.kernels(arm=arm)), default=())
    dropped = any(key(has) < oldest for has in lacking) and not arm
    reported = "no longer has code for" if dropped else "has no code for"
    where = " on aarch64" if arm else ""
    return Problem(
        "gpu_dropped_by_cuda" if dropped else "gpu_newer_than_cuda",
        subjects,
        f"PyTorch for CUDA {found.cuda}{where} {reported} compute capability {', '.join(in_order(lacking))}",
        way()
        or "no row of docs/versions.md has code for all GPUs of this cluster: take the host out of the inventory, or "
        "set gpu_slots: 0 for it",
    )


def driver_problems(found: Candidate, hosts: Sequence[Host], way: Way) -> Iterator[Problem]:
    """Yield the hosts whose driver does not run it."""
    needed = found.row.driver if found.row else 0
    for host in hosts:
        if host.driver and major(host.driver) < needed:
            other = way()
            branch = host.usual if host.usual and host.usual >= needed else needed
            yield Problem(
                "driver_too_old_for_cuda",
                (host.name,),
                f"driver {host.driver} does not run CUDA {found.cuda}, which needs {needed} or later",
                f"set nvidia_driver_branch: {branch} to have a newer driver installed"
                + (f"; or {other}" if other else ""),
            )


def bad_pair(found: Candidate, deepspeed: str, table: Table) -> Pair | None:
    """Return the row that says that this DeepSpeed does not compile with this PyTorch and CUDA."""
    if not is_release(deepspeed) or not found.release:
        return None
    for pair in table.deepspeed_pairs:
        old = key(deepspeed) < key(pair.before)
        if old and minor(found.release) >= key(pair.torch) and (not pair.cuda or key(found.cuda) >= key(pair.cuda)):
            return pair
    return None


def pair_problems(found: Candidate, requested: RequestedVersions, table: Table) -> Iterator[Problem]:
    """Yield what is known to be bad about DeepSpeed with this PyTorch."""
    pair = bad_pair(found, requested.deepspeed_version, table)
    if pair:
        works = [row.release for row in table.torch if minor(row.release) < key(pair.torch)]
        yield Problem(
            "deepspeed_torch",
            ("training_image_deepspeed_version",),
            f"DeepSpeed {requested.deepspeed_version} does not compile its operators with PyTorch {found.release}, as "
            f"{pair.why} ({table.source_of(pair.source)})",
            f"set training_image_deepspeed_version: {pair.before} or later, or training_image_torch: "
            f"torch=={max(works, key=key)} or older",
        )


def wheel_problems(
    found: Candidate, requested: RequestedVersions, table: Table, *, arm: Sequence[str] = ()
) -> Iterator[Problem]:
    """Yield why pip would find no wheel: the index has none of this release, or none for this Python or processor.

    ``arm`` are the hosts with aarch64.
    """
    yield from _base_problems(found, requested, table)
    if requested.wheelhouse:
        return
    yield from _index_problems(found, requested, table)
    yield from _arm_problems(found, table, arm)
    row, python = table.torch_row(found.release), requested.python_of(table)
    if row and python and not key(row.python[0]) <= key(python) <= key(row.python[1]):
        fits = [one for one in table.torch if key(one.python[0]) <= key(python) <= key(one.python[1])]
        nearest = max(fits, key=lambda one: key(one.release), default=None)
        yield Problem(
            "torch_python",
            ("training_image_python",),
            f"PyTorch {row.release} has wheels for Python {row.python[0]} to {row.python[1]}, but the image has Python "
            f"{python}",
            "choose another training_image_base"
            + (f", or set training_image_torch: torch=={nearest.release}, the newest for it" if nearest else ""),
        )


def _arm_problems(found: Candidate, table: Table, arm: Sequence[str]) -> Iterator[Problem]:
    row = table.torch_row(found.release)
    if arm and found.cuda and not found.index and row and row.aarch64 == "cpu":
        works = [one for one in table.torch if one.aarch64 == "cuda"][-1]
        yield Problem(
            "torch_index",
            tuple(arm),
            f"PyTorch {row.release} of the ordinary package index has no CUDA for aarch64",
            f"leave training_image_torch empty, or set torch=={works.release} or later, or set "
            "training_image_torch_index to an index that has it",
        )


def _base_problems(found: Candidate, requested: RequestedVersions, table: Table) -> Iterator[Problem]:
    """Yield that nvcc, which comes as a wheel, does not compile with the C library of the base."""
    base = requested.base_of(table)
    if base and base.cuda and found.toolkit and key(found.cuda) < key(base.cuda):
        yield Problem(
            "base_compiler",
            ("training_image_base",),
            f"nvcc of CUDA {found.cuda} does not compile with the C library of {base.image}, which needs CUDA "
            f"{base.cuda} or later ({table.source_of(base.source)})",
            f'set training_image_cuda: "{base.cuda}", or another training_image_base',
        )


def _index_problems(found: Candidate, requested: RequestedVersions, table: Table) -> Iterator[Problem]:
    name = found.index.rstrip("/").rpartition("/")[2]
    index = next((row for row in table.indices if row.name == name), None)
    stack = next((row for row in table.gpu_stacks() if row.cuda == found.cuda), None)
    working = f"set training_image_torch: torch=={stack.torch}" if stack else "set another training_image_torch"
    if found.cuda and name == "cpu":
        yield Problem(
            "torch_index",
            ("training_image_torch_index",),
            f"{found.index} has PyTorch without CUDA, but this cluster computes on GPUs",
            "leave training_image_torch_index empty, or set cluster_accelerator: cpu",
        )
    elif requested.local and not requested.torch_index and requested.local != name:
        yield Problem(
            "torch_index",
            ("training_image_torch",),
            f"the ordinary package index has no builds such as +{requested.local}",
            f"leave +{requested.local} out, or set training_image_torch_index to the index that has them",
        )
    elif index and found.release and not _has(index.first, index.last, found.release):
        span = f"{index.first} to {index.last}" if index.last else f"{index.first} and later"
        yield Problem(
            "torch_index",
            ("training_image_torch_index" if requested.torch_index else "training_image_torch",),
            f"{found.index} has PyTorch {span}, but {found.release} is requested ({table.source_of(index.source)})",
            f"{working}, which it has"
            if requested.torch_index and stack and _has(index.first, index.last, stack.torch)
            else "leave training_image_torch and training_image_torch_index empty to have both chosen",
        )


def _has(first: str, last: str, release: str) -> bool:
    return key(first) <= minor(release) and (not last or minor(release) <= key(last))
