# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What ``engine.compile`` refuses, the call that gives the block ``compile`` its effect.

Source: DeepSpeed 0.16.9 to 0.19.8, runtime/engine.py (``compile``, ``get_deepspeed_compile_backend``) and
compile/init_z3.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..common.problems import Problem
from .facts import Version
from .view import OFFLOADED, ZERO, View

# First known releases with what the name says.
STAGE_2 = Version(0, 17, 6)
_STATES_AND_PARAMETERS = Version(0, 19, 4)
_ACTIVATION = Version(0, 19, 6)
_PASSES = Version(0, 19, 6)


def compile_conflicts(view: View) -> Iterator[Problem]:
    """Combinations that no graph is compiled with."""
    if view.on("compile.deepcompile"):
        yield from _deepcompile(view)
    if view.on("compile.autoep_non_moe"):
        yield from _around_experts(view)


def _deepcompile(view: View) -> Iterator[Problem]:
    if view.version < STAGE_2 and view.stage in (0, 2):
        yield Problem("compile.deepcompile", f"works with {ZERO}.stage 1 and 3 only in DeepSpeed {view.version}")
    passes = view.get("compile.passes")
    chosen = passes if isinstance(passes, list) else []
    if "autotp" in chosen and view.version >= _PASSES and any(name in chosen for name in ("autosp", "z1", "z3")):
        yield Problem("compile.passes", "autotp cannot be combined with other passes yet")
    # With these passes ZeRO's part is not compiled, and nothing of it is offloaded.
    if "autotp" in chosen or "autosp" in chosen:
        return
    if view.bf16_optimizer:
        # init_z1_and_2 looks for what this optimizer has not, and ends in an AttributeError
        yield Problem(
            "compile.deepcompile", "does not work with stage 1, bf16 and data_types.grad_accum_dtype fp32 together"
        )
    if view.stage == 3:
        yield from _offloading(view)


def _offloading(view: View) -> Iterator[Problem]:
    offloaded = view.optimizer_device in OFFLOADED
    states, activation = view.on("compile.offload_opt_states"), view.on("compile.offload_activation")
    # The engine turns offload_parameters on where ZeRO offloads both to the CPU.
    implied = view.optimizer_device == view.param_device == "cpu"
    parameters = view.on("compile.offload_parameters") or implied
    if states and offloaded and view.version >= _STATES_AND_PARAMETERS:
        yield Problem("compile.offload_opt_states", f"cannot be combined with {ZERO}.offload_optimizer; keep one")
    elif states and parameters and view.version >= _STATES_AND_PARAMETERS:
        yield Problem("compile.offload_opt_states", "cannot be combined with compile.offload_parameters; keep one")
    if activation and view.version >= _ACTIVATION and (states or parameters):
        other = "compile.offload_opt_states" if states else "compile.offload_parameters"
        reason = " (on because ZeRO offloads both to the CPU)" if implied and not states else ""
        yield Problem("compile.offload_activation", f"cannot be combined with {other}{reason}; keep one")


def _around_experts(view: View) -> Iterator[Problem]:
    for hindrance, present in (
        ("compile.deepcompile", view.on("compile.deepcompile")),
        (
            "expert_parallel.comm_backend other than comm",
            view.get("expert_parallel.comm_backend") not in (None, "comm"),
        ),
        ("tensor_parallel.autotp_size above 1", (view.number("tensor_parallel.autotp_size", 0) or 0) > 1),
        ("sequence_parallel_size above 1", (view.number("sequence_parallel_size", 1) or 1) > 1),
        ("pipeline", view.pipeline),
        (f"{ZERO}.stage 3", view.stage == 3),
        (f"{ZERO}.offload_optimizer", view.optimizer_device in OFFLOADED),
        (f"{ZERO}.offload_param", view.param_device in OFFLOADED),
    ):
        if present:
            yield Problem("compile.autoep_non_moe", f"cannot be combined with {hindrance}")
