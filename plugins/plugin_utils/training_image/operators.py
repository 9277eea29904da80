# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which of DeepSpeed's operators a job needs: those are compiled into the image, and no others. Pure.

An operator that is not in the image is compiled at the first step, which takes minutes and needs a compiler. Source:
``runtime/engine.py`` (``_configure_basic_optimizer``, ``get_optimizer_configuration``), ``runtime/swap_tensor``,
``runtime/zenflow``, ``runtime/comm/coalesced_collectives.py``, ``comm/torch.py`` and ``ops/op_builder`` of DeepSpeed
0.15.4 to 0.19.8; each operator has a build variable ``DS_BUILD_<name>``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_OFFLOADING = ("offload", "infinity", "zenflow", "superoffload")
"""Parts of the names of presets whose optimizer runs on the CPU."""
_ADAM = ("adam", "adamw", "muon")
"""Muon updates with Adam what is not a matrix."""


def operator_names(given: Iterable[Any] | None) -> list[str]:
    """Return names of operators as a user wrote them, as their build variables have them."""
    return [str(name).upper().replace("ASYNC_IO", "AIO") for name in given or ()]


def needed_operators(
    accelerator: str, preset: str | None, config: Mapping[str, Any], *, named_only: bool = False
) -> list[str]:
    """Return the names, sorted, of the operators that a job needs whose ds_config is this preset with these overrides.

    Without an optimizer in the configuration the script brings one of its own: DeepSpeed's Adam counts as needed then,
    unless ``named_only``: the script may as well use torch's.
    """
    name = preset or ""
    zero = _mapping(config.get("zero_optimization"))
    devices = [str(_mapping(zero.get(key)).get("device") or "") for key in ("offload_optimizer", "offload_param")]
    optimizer = _mapping(config.get("optimizer"))
    if devices[0]:
        places = [devices[0] in ("cpu", "nvme")]
    else:
        # Which of its presets auto takes is known only when the nodes' memory is.
        places = [False, True] if name == "auto" else [any(part in name for part in _OFFLOADING)]
    needed: set[str] = set()
    if optimizer or not named_only:
        needed.update(*(_of_the_optimizer(optimizer, accelerator, on_cpu=place) for place in places))
    if "nvme" in devices or (name == "zero3_infinity" and not all(devices)):
        # Since 0.19 its loader first loads the allocator of pinned memory.
        needed |= {"AIO", "PIN_MEMORY"}
    if zero.get("zero_quantized_weights") or zero.get("zero_quantized_gradients"):
        needed.add("QUANTIZER")
    if name == "zenflow" or "zenflow" in zero:
        needed.add("CPU_ADAM")
    if accelerator == "cpu":
        # Every start on CPUs loads it, whatever the configuration says.
        needed.add("SHM_COMM")
    return sorted(needed)


def _of_the_optimizer(optimizer: Mapping[str, Any], accelerator: str, *, on_cpu: bool) -> set[str]:
    kind = str(optimizer.get("type") or "adam").lower()
    if kind in _ADAM:
        if _mapping(optimizer.get("params")).get("torch_adam") is True:
            return set()
        if not optimizer and on_cpu:
            # The script chooses, by its own options.
            return {"CPU_ADAM", "FUSED_ADAM"}
        return {"CPU_ADAM"} if on_cpu else {"FUSED_ADAM"}
    if kind == "lion":
        return {"CPU_LION"} if on_cpu else {"FUSED_LION"}
    if kind == "adagrad":
        return {"CPU_ADAGRAD"} if on_cpu else set()
    # DeepSpeed has it for GPUs only.
    return {"FUSED_LAMB"} if kind == "lamb" and accelerator != "cpu" else set()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
