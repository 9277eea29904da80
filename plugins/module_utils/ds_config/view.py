# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A ds_config.json as DeepSpeed's engine reads it: values by path, with the release's defaults where they matter.

Nothing here raises, whatever the configuration holds: wrong types are a matter of ``schema``, and a value that is
"auto" or of the wrong type is unknown, from which no rule concludes anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .facts import AUTO, Version

ZERO = "zero_optimization"
PARAM_DEVICE = f"{ZERO}.offload_param.device"
OFFLOADED = ("cpu", "nvme")

_LARGEST = 2**63
"""The largest number that DeepSpeed uses; beyond, texts and arithmetic fail."""
# DeepSpeedEngine compares these without regard to case, and every other name as it is (runtime/config.py).
_OWN_OPTIMIZERS = (
    *("adagrad", "adam", "adamw", "lamb", "lion", "muadam", "muadamw", "muon", "musgd"),
    *("onebitadam", "onebitlamb", "zerooneadam"),
)
_DTYPES = {
    **dict.fromkeys(("fp16", "float16", "half", "torch.float16"), "fp16"),
    **dict.fromkeys(("bf16", "bfloat16", "torch.bfloat16"), "bf16"),
    **dict.fromkeys(("fp32", "float32", "float", "torch.float32"), "fp32"),
}


def get(config: dict[str, Any], path: str) -> Any:
    """The value at a dotted path, or ``None``."""
    value: Any = config
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def stage(config: dict[str, Any]) -> int:
    """The ZeRO stage, 0 where none is named that there is."""
    value = get(config, f"{ZERO}.stage")
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 3 else 0


@dataclass(frozen=True)
class View:
    """One configuration and the release that is to read it."""

    config: dict[str, Any]
    version: Version

    def get(self, path: str) -> Any:
        """The value at a dotted path, or ``None``."""
        return get(self.config, path)

    def on(self, path: str) -> bool:
        """Whether the value is ``true``; neither "auto" nor an absent key is."""
        return self.get(path) is True

    def flag(self, path: str, default: bool) -> bool | None:
        """A switch with DeepSpeed's default, or ``None`` where it is unknown."""
        value = self.get(path)
        if value is None:
            return default
        return value if isinstance(value, bool) else None

    def number(self, path: str, default: float) -> float | None:
        """A number with DeepSpeed's default, or ``None`` where it is unknown."""
        value = self.get(path)
        if value is None:
            return default
        usable = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LARGEST
        return value if usable else None

    def has(self, path: str) -> bool:
        """Whether the key is there at all."""
        parent, dummy, key = path.rpartition(".")
        block = self.get(parent) if parent else self.config
        return isinstance(block, dict) and key in block

    @property
    def stage(self) -> int:
        """The ZeRO stage, 0 where none is named."""
        return stage(self.config)

    @property
    def pipeline(self) -> bool:
        """Whether the configuration has the block of the pipeline engine, which the model class decides on."""
        return "pipeline" in self.config

    @property
    def optimizer_device(self) -> str:
        """Where the optimizer works: ``none`` (the GPU), ``cpu`` or ``nvme``."""
        return self._device("offload_optimizer", "cpu_offload")

    @property
    def param_device(self) -> str:
        """Where parameters lie: ``none`` (the GPU), ``cpu`` or ``nvme``."""
        return self._device("offload_param", "cpu_offload_param")

    @property
    def precision(self) -> str | None:
        """``fp32``, ``fp16`` or ``bf16``, or ``None`` where an integration decides."""
        if self.on("fp16.enabled"):
            return "fp16"
        if self.get("fp16.enabled") == AUTO or self.get("bf16.enabled") == AUTO:
            return None
        return "bf16" if self.on("bf16.enabled") else "fp32"

    def dtype(self, path: str) -> str | None:
        """One name for each of DeepSpeed's names of a type, ``None`` where none is given."""
        value = self.get(path)
        return _DTYPES.get(value) if isinstance(value, str) else None

    @property
    def optimizer(self) -> str | None:
        """The optimizer's name as DeepSpeed compares it, or ``None`` where the script brings its own."""
        name = self.get("optimizer.type")
        if not isinstance(name, str):
            return None
        return name.lower() if name.lower() in _OWN_OPTIMIZERS else name

    @property
    def adam(self) -> bool:
        """Whether the configuration names Adam or AdamW."""
        return self.optimizer in ("adam", "adamw")

    @property
    def torch_adam(self) -> bool:
        """Whether that Adam is torch's, which needs no compiled operator."""
        return self.adam and self.on("optimizer.params.torch_adam")

    @property
    def zenflow(self) -> bool:
        """Whether ZenFlow is configured, by an empty mapping too."""
        return isinstance(self.get(f"{ZERO}.zenflow"), dict)

    @property
    def bf16_optimizer(self) -> bool:
        """Whether the engine takes ``BF16_Optimizer`` for ZeRO stage 1, which knows none of ZeRO's options.

        ``_do_optimizer_sanity_check`` of runtime/engine.py: offload to a disk is not checked there.
        """
        return (
            self.stage == 1
            and self.precision == "bf16"
            and self.dtype("data_types.grad_accum_dtype") == "fp32"
            and self.optimizer_device != "cpu"
        )

    @property
    def wrapped_by(self) -> str:
        """What makes the engine wrap the optimizer in a class of its own, which is none of torch's; or an empty text.

        ``_do_optimizer_sanity_check`` and ``_configure_optimizer`` of runtime/engine.py.
        """
        if self.stage > 0:
            return f"{ZERO}.stage {self.stage}"
        return f"{self.precision}.enabled" if self.precision in ("fp16", "bf16") else ""

    def _device(self, block: str, old: str) -> str:
        value = self.get(f"{ZERO}.{block}.device")
        if isinstance(value, str):
            return value if value in OFFLOADED else "none"
        return "cpu" if self.on(f"{ZERO}.{old}") and not self.has(f"{ZERO}.{block}") else "none"
