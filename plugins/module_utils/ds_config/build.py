# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A ds_config.json from a preset, overrides and what is known of the job: built, and checked as one release reads it.

Everything here is pure; ``plugins/modules/ds_config.py`` is the glue. Facts and checks: the other ``_ds_*`` files. The
way of the data: request → overrides in canonical form → preset (chosen for ``auto``) → merged → checked → batch →
memory plan. Every step adds its problems, and all of them are reported at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..common.problems import Problem, shown
from . import auto as ds_auto
from . import batch as ds_batch
from . import rules, schema
from .facts import AUTO, INTEGRATIONS, NEWEST, Version, nearest_known, parse_version
from .gpus import Gpus, human, read_bytes, read_gpus
from .memory import Memory
from .memory import plan as plan_memory
from .model import Model
from .model import read as read_model
from .presets import PRESETS, preset, refusal
from .rules_releases import release_hints

PRECISIONS = (AUTO, "fp32", "fp16", "bf16")


@dataclass(frozen=True)
class Request:
    """What a user asks for; the fields are the module's parameters, of any type that JSON has."""

    preset: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    precision: str = AUTO
    integration: str = "deepspeed"
    deepspeed_version: str = str(NEWEST)
    world_size: int | None = None
    script_keys: Sequence[str] | None = None
    model: dict[str, Any] | None = None
    gpus: dict[str, Any] | None = None
    host_memory: int | str | None = None
    memlock: int | None = None
    """Bytes that the job's processes may lock, -1 for no limit; ``None``: not known."""


@dataclass(frozen=True)
class Plan:
    """What is to be written, what to say about it, and, where ``errors`` is not empty, why it must not be."""

    config: dict[str, Any]
    batch: dict[str, int] | None = None
    warnings: list[Problem] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    preset: str | None = None
    precision: str = AUTO
    memory: Memory | None = None
    reasons: list[str] = field(default_factory=list)
    """Why this precision and this preset were chosen, where that was left to us."""


def build(request: Request) -> Plan:
    """The configuration for a request, with all errors at once. Never raises."""
    errors = _misfits(request)
    overrides, found = schema.plain(request.config if isinstance(request.config, dict) else {})
    if errors or found:
        return Plan({}, errors=errors + found)  # nothing further can be checked in a value that JSON cannot hold
    overrides, errors, warnings = schema.canonical_names(overrides)
    version = _version(request.deepspeed_version, errors, warnings)
    if request.preset is None and not overrides:
        errors.append(Problem("", f"nothing to write: give a preset ({', '.join(PRESETS)}), config, or both"))
        return Plan({}, errors=errors)
    build_up = _Build(request, overrides, version, errors, warnings)
    return build_up.plan()


def merge(base: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """``base`` with ``overrides`` laid over it, mapping by mapping; ``None`` removes a key, a list replaces a list."""
    result = dict(base)
    for key, value in overrides.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            below = result.get(key)
            result[key] = merge(below if isinstance(below, dict) else {}, value)
        else:
            result[key] = value
    return result


class _Build:
    """One request on its way to a plan; ``errors`` and ``warnings`` collect what each step finds."""

    def __init__(
        self,
        request: Request,
        overrides: dict[str, Any],
        version: Version,
        errors: list[Problem],
        warnings: list[Problem],
    ) -> None:
        self.request, self.overrides, self.version = request, overrides, version
        self.errors, self.warnings = errors, warnings
        self.reasons: list[str] = []
        self.precision = request.precision
        self.model: Model | None = None
        self.gpus: Gpus | None = None
        self.host_memory: int | None = None

    def plan(self) -> Plan:
        self._read_hardware()
        self._choose_precision()
        name = self._choose_preset()
        config, errors, warnings = self._checked(name)
        self.errors += errors
        self.warnings += warnings
        self.errors += self._precision_errors(config)
        self.errors += rules.conflicts(config, self.version, world_size=self.request.world_size)
        self.warnings += rules.warnings(config, self.version, self.request.memlock)
        self.warnings += release_hints(config, parse_version(str(self.request.deepspeed_version)) or self.version)
        batch, errors = ds_batch.solve(config, self.request.world_size)
        self.errors += errors
        if batch is not None:
            config.update({key: batch[key] for key in (ds_batch.TOTAL, ds_batch.MICRO, ds_batch.STEPS)})
        memory = None if self.errors else self._memory(config)
        return Plan(config, batch, self.warnings, self.errors, name, self.precision, memory, self.reasons)

    def _read_hardware(self) -> None:
        request = self.request
        if request.model is not None:
            self.model, errors = read_model(request.model)
            self.errors += errors
        self.gpus, errors = read_gpus(request.gpus)
        self.errors += errors
        self.host_memory, error = read_bytes(request.host_memory, "host_memory")
        self.errors += [error] if error else []

    def _choose_precision(self) -> None:
        """``auto``, with a preset: what the GPUs can do, unless the overrides or the trainer's arguments decide."""
        request = self.request
        decided = {"fp16", "bf16", "torch_autocast"} & set(self.overrides)
        if request.precision != AUTO or not request.preset or request.integration != "deepspeed" or decided:
            return
        found = ds_auto.precision_for(self.gpus.compute_capability if self.gpus else None)
        if found is not None:
            self.precision = found.name
            self.reasons.append(f"precision {found.name}: {found.reason}")

    def _choose_preset(self) -> str | None:
        """The preset's name; ``None`` without one, and where none can be had, which is then among the errors."""
        name = self.request.preset
        if name is None or name != AUTO:
            problem = refusal(name, self.version) if name else None
            if name == "pipeline" and self.request.integration != "deepspeed":
                text = f"pipeline is not driven by integration {self.request.integration}; use deepspeed"
                self.errors.append(Problem("preset", text))
            self.errors += [problem] if problem else []
            return None if problem else name
        if self.errors or self._checked(None)[1]:
            return None  # the plan would be made for a configuration that is not meant
        choice, errors = ds_auto.choose(
            self._configuration,
            self.model,
            self.gpus,
            self.request.world_size,
            self.host_memory,
            version=self.version,
        )
        self.errors += errors
        if choice is None:
            return None
        self.reasons += choice.reasons
        return choice.preset

    def _configuration(self, name: str) -> dict[str, Any]:
        """The final configuration with this preset, as far as the memory plan reads it."""
        config = self._checked(name)[0]
        batch, dummy = ds_batch.solve(config, self.request.world_size)
        return {**config, **batch} if batch else config

    def _checked(self, name: str | None) -> tuple[dict[str, Any], list[Problem], list[Problem]]:
        """The configuration with this preset, errors and warnings."""
        checker = schema.Checker(self.version, self.request.integration, self.request.script_keys or ())
        config = checker.mapping(merge(self._base(name), self.overrides))
        return config, checker.errors, checker.warnings

    def _base(self, name: str | None) -> dict[str, Any]:
        integration = self.request.integration
        base = preset(name, integration, self.version) if name else {}
        if self.precision in ("fp16", "bf16"):
            base[self.precision] = {"enabled": True}
        elif (
            self.precision == AUTO and name and integration != "deepspeed" and not {"fp16", "bf16"} & {*self.overrides}
        ):
            # the trainer's own fp16 and bf16 arguments decide
            base.update(fp16={"enabled": AUTO}, bf16={"enabled": AUTO})
        return base

    def _precision_errors(self, config: dict[str, Any]) -> list[Problem]:
        """Where the configuration says otherwise than ``precision``; both fp16 and bf16 true is reported elsewhere."""
        precision, found = self.precision, []
        for name in ("fp16", "bf16"):
            enabled = rules.get(config, f"{name}.enabled")
            wrong = (precision == name and enabled is not True) or (precision == "fp32" and enabled in (True, AUTO))
            if wrong:
                text = f"is {shown(enabled)}, but precision is {precision}; remove one of the two"
                found.append(Problem(f"{name}.enabled", text))
        return found

    def _memory(self, config: dict[str, Any]) -> Memory | None:
        """The plan of what is written, where model, GPUs and ranks are known; a warning where it does not fit."""
        if self.model is None or self.gpus is None or self.request.world_size is None:
            return None
        memory = plan_memory(
            config, self.model, self.gpus, self.request.world_size, self.host_memory, version=self.version
        )
        for place, fits, needs, available in (
            ("GPU", memory.fits_gpu, memory.gpu, memory.gpu_available),
            ("host", memory.fits_host, memory.host, memory.host_available),
        ):
            if fits is False:
                text = f"a {place} has {human(available or 0)}, the plan needs {human(needs)}"
                text += "; preset auto looks for one that fits"
                self.warnings.append(Problem("memory", text))
        if memory.tight:
            text = f"a GPU has {human(memory.gpu_available or 0)}, the plan needs {human(memory.gpu)}, and fragments"
            text += " can take more than is left. If the job ends with 'CUDA out of memory', set"
            text += " PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True in deepspeed_launch_environment"
            self.warnings.append(Problem("memory", text))
        return memory


def _misfits(request: Request) -> list[Problem]:
    """Parameters of a wrong type or choice: a module's own are checked by Ansible, but others ask here too."""
    found = []
    choices = [
        ("preset", request.preset, (None, AUTO, *PRESETS)),
        ("precision", request.precision, PRECISIONS),
        ("integration", request.integration, INTEGRATIONS),
    ]
    for name, value, known in choices:
        if not isinstance(value, (str, type(None))) or value not in known:
            found.append(Problem(name, f"{shown(value)} is not one of {', '.join(item for item in known if item)}"))
    if not isinstance(request.config, dict):
        found.append(Problem("config", f"must be a mapping of DeepSpeed's keys, not {shown(request.config)}"))
    if not isinstance(request.script_keys, (list, tuple, type(None))):
        found.append(Problem("script_keys", f"must be a list of keys, not {shown(request.script_keys)}"))
    for name, number, least in (("world_size", request.world_size, 1), ("memlock", request.memlock, -1)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < least):
            found.append(Problem(name, f"must be a whole number of at least {least}, not {shown(number)}"))
    return found


def _version(text: str, errors: list[Problem], warnings: list[Problem]) -> Version:
    wanted = parse_version(text) if isinstance(text, str) else None
    if wanted is None:
        errors.append(
            Problem(
                "deepspeed_version", f"{shown(text)} is not a release; give all three numbers in quotes, as '{NEWEST}'"
            )
        )
        return NEWEST
    known = nearest_known(wanted)
    if known != wanted:
        warnings.append(Problem("deepspeed_version", f"{wanted} is unknown here; checked as for {known}"))
    return known
