# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What ``deepspeed.initialize`` refuses because of the optimizer that the configuration names, or of its place.

Where the configuration names none, the script brings one, and only what holds for every optimizer is refused.
Source: DeepSpeed 0.15.4 to 0.19.8, runtime/engine.py (``_configure_basic_optimizer``, ``_do_optimizer_sanity_check``),
runtime/base_optimizer.py (``_configure_master_weights``), runtime/zero/utils.py (``ZERO_SUPPORTED_OPTIMIZERS``),
runtime/zero/stage_1_and_2.py, runtime/zero/stage3.py, runtime/bf16_optimizer.py, runtime/zenflow, runtime/superoffload.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..common.problems import Problem, shown
from .facts import Version
from .rules_reading import BF16_MASTER, BF16_STATES, FP16_MASTER, MASTER_ANY_STAGE, PRECISION_MODELS, fp16_master
from .view import OFFLOADED, ZERO, View

_ONE_BIT = ("onebitadam", "onebitlamb", "zerooneadam")
_TESTED = ("adagrad", "adam", "adamw", "lion")
# First known releases with what the name says.
_MUON_TESTED = Version(0, 18, 9)
_STATES_OFFLOADED = Version(0, 19, 1)
_OWN_PARAMS_STAY = Version(0, 19, 1)
_ZENFLOW_TESTED = Version(0, 19, 3)
_MUON_OFFLOAD = (Version(0, 19, 3), Version(0, 19, 8))
"""From the first to before the last: refused."""
_MUON_BF16 = (Version(0, 19, 7), Version(0, 19, 8))
_NO_ONE_BIT = Version(0, 19, 7)

_ZENFLOW = f"{ZERO}.zenflow"
# ZenFlow hands the optimizer's parameters, all of them, to a class derived from torch's AdamW.
_TORCH_ADAMW = frozenset(
    ("amsgrad", "betas", "capturable", "differentiable", "eps", "foreach", "fused", "lr", "maximize", "weight_decay")
)
_TAKEN_OUT = frozenset({"torch_adam", "adam_w_mode"})


def optimizer_conflicts(view: View) -> Iterator[Problem]:
    """Combinations of an optimizer, where it works, and the precision of its states."""
    yield from _first_step(view)
    yield from _untested(view)
    yield from _lamb(view)
    yield from _muon(view)
    yield from _master_weights(view)
    yield from _hybrid(view)
    yield from _zenflow(view)


def _first_step(view: View) -> Iterator[Problem]:
    """Refused by the first step: the optimizer for 16 bit without ZeRO takes it when it is made, the others later."""
    if view.optimizer == "LBFGS":
        yield Problem("optimizer.type", "LBFGS needs a closure at each step, and DeepSpeed gives none; take AdamW")
    elif view.optimizer == "SparseAdam" and view.wrapped_by:
        yield Problem(
            "optimizer.type",
            f"SparseAdam takes sparse gradients only, and with {view.wrapped_by} DeepSpeed makes dense ones; take Adam",
        )


def _untested(view: View) -> Iterator[Problem]:
    name = view.optimizer
    if name is None or view.stage == 0:
        return
    if name in _ONE_BIT:
        if view.version < _NO_ONE_BIT:
            yield Problem("optimizer.type", f"{shown(view.get('optimizer.type'))} works without ZeRO only; set stage 0")
        return
    if view.flag("zero_allow_untested_optimizer", False) is not False:
        return
    zenflow_adam = view.adam and view.zenflow and view.optimizer_device in OFFLOADED and not view.torch_adam
    tested = name in _TESTED or (name == "muon" and view.version >= _MUON_TESTED)
    if tested and not (zenflow_adam and view.version < _ZENFLOW_TESTED):
        return
    subject = shown(view.get("optimizer.type")) + (" with zenflow" if tested else "")
    yield Problem(
        "zero_allow_untested_optimizer",
        f"must be true: {subject} is not among the optimizers that DeepSpeed {view.version} has tested with ZeRO",
    )


def _lamb(view: View) -> Iterator[Problem]:
    if view.optimizer not in ("lamb", "onebitlamb"):
        return
    old = view.version < PRECISION_MODELS
    scale = view.number("fp16.loss_scale", 0)
    if scale and (not old or view.on("fp16.enabled")):
        yield Problem("fp16.loss_scale", "must be 0 (dynamic loss scaling) with the optimizer Lamb")
    elif old and view.precision == "bf16":
        yield Problem("optimizer.type", f"Lamb cannot be combined with bf16 in DeepSpeed {view.version}")


def _muon(view: View) -> Iterator[Problem]:
    if view.optimizer != "muon" or view.version < PRECISION_MODELS:
        return
    at, path = view.stage, "optimizer.type"
    scatters = view.flag(f"{ZERO}.reduce_scatter", True)
    if at == 3 and view.version < _MUON_TESTED:
        yield Problem(path, f"Muon cannot be combined with {ZERO}.stage 3 in DeepSpeed {view.version}")
        return
    if at == 3 and scatters:
        yield Problem(path, f"Muon needs {ZERO}.reduce_scatter: false with stage 3")
    if at == 3 and view.on(f"{ZERO}.zero_quantized_gradients"):
        yield Problem(path, f"Muon cannot be combined with {ZERO}.zero_quantized_gradients")
    first, gone = _MUON_OFFLOAD
    offloaded = view.optimizer_device in OFFLOADED
    if first <= view.version < gone and at in (1, 2) and scatters and offloaded and not view.bf16_optimizer:
        yield Problem(
            path, f"Muon with {ZERO}.offload_optimizer needs {ZERO}.reduce_scatter: false in DeepSpeed {view.version}"
        )
    first, gone = _MUON_BF16
    piped = at == 0 and view.pipeline and view.precision == "bf16"
    if view.version >= first and (piped or (view.bf16_optimizer and (view.pipeline or view.version < gone))):
        remedy = "remove pipeline, or bf16" if view.pipeline else "remove data_types.grad_accum_dtype"
        yield Problem(path, f"Muon does not work with the separate optimizer for bf16 that this leads to; {remedy}")


def _cpu_adam(view: View) -> bool:
    """Whether the optimizer is, or may be, DeepSpeedCPUAdam and no class derived from it."""
    return view.optimizer is None or (view.adam and not view.torch_adam and not view.zenflow)


def _master_weights(view: View) -> Iterator[Problem]:
    at, low, brain = view.stage, fp16_master(view), view.on(BF16_MASTER)
    if at == 0 or view.bf16_optimizer or (view.version < MASTER_ANY_STAGE and at != 2):
        return
    if low and brain:
        yield Problem(BF16_MASTER, f"cannot be true together with {FP16_MASTER}; keep one of them")
    offloaded = view.optimizer_device in OFFLOADED
    for path, needed in (
        (FP16_MASTER, low),
        # States in bf16 too may stay on the GPU; offloaded they need the CPU's Adam again.
        (BF16_MASTER, brain and not (view.on(BF16_STATES) and not (offloaded and view.version >= _STATES_OFFLOADED))),
    ):
        if needed and not offloaded:
            or_states = f", or {BF16_STATES}: true" if path == BF16_MASTER else ""
            yield Problem(path, f"needs {ZERO}.offload_optimizer with device cpu{or_states}")
        elif needed and not _cpu_adam(view):
            yield Problem(path, "needs DeepSpeed's own Adam on the CPU: Adam or AdamW without torch_adam, no zenflow")


def _hybrid(view: View) -> Iterator[Problem]:
    """Parts of one optimizer on the GPU and on the CPU."""
    if view.stage != 3:
        return
    ratio = view.number(f"{ZERO}.offload_optimizer.ratio", 1)
    offloaded = view.optimizer_device in OFFLOADED
    if ratio is not None and ratio != 1 and offloaded and not _cpu_adam(view):
        yield Problem(
            f"{ZERO}.offload_optimizer.ratio",
            "below 1 needs DeepSpeed's own Adam on the CPU: Adam or AdamW without torch_adam, no zenflow",
        )
    if not view.on(f"{ZERO}.offload_optimizer.super_offload") or view.optimizer is None:
        return
    if not view.adam:
        yield Problem(f"{ZERO}.offload_optimizer.super_offload", "works with the optimizers Adam and AdamW only")
    elif not offloaded and not view.torch_adam:
        yield Problem(f"{ZERO}.offload_optimizer.super_offload", f"needs {ZERO}.offload_optimizer.device: cpu")


def _zenflow(view: View) -> Iterator[Problem]:
    if not view.zenflow:
        return
    strategy = view.get(f"{_ZENFLOW}.select_strategy") or "auto"
    chosen = view.number(f"{_ZENFLOW}.select_interval", 0) if view.has(f"{_ZENFLOW}.select_interval") else None
    updated = view.number(f"{_ZENFLOW}.update_interval", 0)
    numbered = chosen is not None
    if strategy == "auto" and numbered:
        yield Problem(f"{_ZENFLOW}.select_interval", "needs select_strategy: step or epoch; with auto leave it out")
    elif strategy in ("step", "epoch") and not numbered:
        yield Problem(f"{_ZENFLOW}.select_interval", f"must be a number with select_strategy {strategy}")
    elif strategy == "step" and chosen is not None and updated is not None and 0 < chosen < updated:
        yield Problem(
            f"{_ZENFLOW}.select_interval",
            f"{shown(chosen)} is below update_interval {shown(updated)}; it must be at least that",
        )
    steps = _accumulation_steps(view)
    if view.pipeline and steps is not None and updated != steps:
        # configure_zenflow overwrites the steps, and PipelineEngine asserts the batch equation without a word.
        yield Problem(
            _ZENFLOW, f"works with pipeline only if update_interval is gradient_accumulation_steps, {shown(steps)}"
        )
    if view.stage == 0 or view.bf16_optimizer:
        if _zenflow_left_alone(view):
            yield Problem(_ZENFLOW, f"does not work with {view.precision} and stage {view.stage}; set stage 2")
        return
    overlaps = view.flag(f"{ZERO}.overlap_comm", view.stage == 3)
    if view.on(f"{_ZENFLOW}.offload") and overlaps is False:
        yield Problem(f"{_ZENFLOW}.offload", f"needs {ZERO}.overlap_comm: true")
    if view.stage == 3:
        return
    if view.optimizer_device not in OFFLOADED:
        yield Problem(_ZENFLOW, f"needs {ZERO}.offload_optimizer with device cpu")
    params = view.get("optimizer.params")
    if view.optimizer is None or not isinstance(params, dict):
        yield Problem(
            _ZENFLOW,
            f"needs optimizer.type and optimizer.params in this file with stage {view.stage}, at least params: {{}}",
        )
        return
    read = _TORCH_ADAMW if view.version >= _OWN_PARAMS_STAY or not view.adam else _TORCH_ADAMW | _TAKEN_OUT
    for key in sorted(key for key in params if isinstance(key, str) and key not in read):
        yield Problem(
            f"optimizer.params.{key[:80]}",
            f"cannot be combined with {_ZENFLOW} and stage {view.stage}, whose own AdamW does not know it",
        )


def _zenflow_left_alone(view: View) -> bool:
    """Whether ZenFlow's CPU Adam gets into an optimizer for 16 bit that is not ZeRO's, whose first step is a TypeError.

    The optimizer for fp16 takes that step when it is made, the one for bf16 from 0.18.9 on no more.
    """
    if view.torch_adam or not view.adam or view.optimizer_device not in OFFLOADED:
        return False
    if view.precision not in ("fp16", "bf16") or (
        view.on(f"{_ZENFLOW}.overlap_step") and view.version >= _ZENFLOW_TESTED
    ):
        return False
    own_bf16 = view.bf16_optimizer or (view.pipeline and view.precision == "bf16")
    return view.version < MASTER_ANY_STAGE or not own_bf16


def _accumulation_steps(view: View) -> float | None:
    """``gradient_accumulation_steps``, or ``None`` where the number of ranks or an integration decides."""
    path = "gradient_accumulation_steps"
    if not view.has(path) and view.has("train_batch_size") and view.has("train_micro_batch_size_per_gpu"):
        return None
    return view.number(path, 1)
