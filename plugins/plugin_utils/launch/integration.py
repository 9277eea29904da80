# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How a training script gets ds_config.json, and which library fills in what it leaves to it. Pure.

How each of them is given the file, read in DeepSpeed 0.19.8 (``deepspeed/__init__.py``, ``add_config_arguments``),
transformers 5.23 (``training_args.py``, ``deepspeed``: "the path to the DeepSpeed config file"; ``hf_argparser.py``),
accelerate 1.15 (``utils/dataclasses.py``, ``DeepSpeedPlugin``: ``ACCELERATE_DEEPSPEED_CONFIG_FILE``) and
lightning 2.6 (``strategies/deepspeed.py``: ``config``, an argument of ``DeepSpeedStrategy``).
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from .script_text import Script, UnreadableScriptError, Use, read

AUTO = "auto"
VARIABLE = "deepspeed_launch_integration"
ARGUMENT_VARIABLE = "deepspeed_launch_config_argument"
KEYS_VARIABLE = "deepspeed_launch_ds_config_integration"
CONFIG = "--deepspeed_config"
_CONFIG_OPTIONS = (CONFIG, "--deepspeed-config")
_PATH_OPTION = "--deepspeed"
"""DeepSpeed's own parser has it as a flag; the Trainer's takes the path of ds_config.json."""


@dataclass(frozen=True)
class Integration:
    """``argument`` passes the path of ds_config.json; ``keys`` is what fills in "auto", as the module ds_config has it.

    ``environment``: the path is passed in the environment instead.
    """

    name: str
    argument: str
    keys: str
    environment: bool = False
    reason: str = ""

    @property
    def configured(self) -> bool:
        """Whether the script gets ds_config.json at all."""
        return bool(self.argument) or self.environment

    @property
    def sentence(self) -> str:
        """What the plan says of it."""
        if self.environment:
            how = "The script gets ds_config.json through ACCELERATE_DEEPSPEED_CONFIG_FILE."
        elif self.argument:
            how = f"The script gets ds_config.json through {self.argument}."
        else:
            how = "The script gets no ds_config.json."
        return f"Integration: {self.name or 'not determined'}{self.reason}. {how}"


INTEGRATIONS: Mapping[str, Integration] = {
    one.name: one
    for one in (
        Integration("deepspeed", CONFIG, "deepspeed"),
        Integration("huggingface", _PATH_OPTION, "huggingface"),
        Integration("accelerate", "", "accelerate", environment=True),
        Integration("lightning", "", "deepspeed"),
        Integration("none", "", "deepspeed"),
    )
}
_TRAINER = ("Trainer", "TrainingArguments", "HfArgumentParser")


def _huggingface(name: str) -> bool:
    package, dummy, rest = name.partition(".")
    last = rest.rpartition(".")[2]
    if package == "transformers":
        return last.endswith(_TRAINER)
    return (package == "trl" and last.endswith(("Trainer", "Config", "Parser"))) or name.endswith(".run_exp")


_OF_LIBRARIES: Mapping[str, Callable[[str], bool]] = {
    "deepspeed": lambda name: name in ("deepspeed.initialize", "deepspeed.add_config_arguments"),
    "huggingface": _huggingface,
    "accelerate": lambda name: name.startswith("accelerate.") and name.endswith(".Accelerator"),
    "lightning": lambda name: (
        name.partition(".")[0] in ("lightning", "pytorch_lightning", "lightning_fabric")
        and name.endswith((".Trainer", ".LightningCLI", ".Fabric", ".LightningModule"))
    ),
}
_WITHOUT_DEEPSPEED = frozenset(
    {
        *("torch", "torchvision", "torchaudio", "numpy", "scipy", "sklearn", "pandas", "PIL", "matplotlib", "tqdm"),
        *("tensorboard", "tensorboardX", "yaml", "requests", "psutil", "click", "rich", "absl", "fire", "wandb"),
    }
)
"""Libraries that start no DeepSpeed by themselves; a script that imports no others uses none."""


@dataclass(frozen=True)
class Requested:
    """The variables as configured: ``deepspeed_launch_integration``, and the two that go before what it decides."""

    integration: str = AUTO
    argument: str = AUTO
    keys: str = AUTO


def integration_of(requested: Requested, read_in_script: Integration) -> Integration:
    """Return how the script gets ds_config.json, of what is configured and what the script itself shows."""
    found = read_in_script
    if requested.integration in INTEGRATIONS:
        found = replace(INTEGRATIONS[requested.integration], reason=f", as {VARIABLE} says")
    if requested.argument != AUTO:
        reason = f"{found.reason}; {ARGUMENT_VARIABLE} is set and takes precedence"
        found = replace(found, argument=requested.argument, environment=False, reason=reason)
    if requested.keys != AUTO:
        reason = f"{found.reason}; {KEYS_VARIABLE}: {requested.keys} is set and takes precedence"
        found = replace(found, keys=requested.keys, reason=reason)
    return found


def undetermined(reason: str) -> Integration:
    """What was so before scripts were read."""
    return Integration("", CONFIG, "deepspeed", reason=f" ({reason}), so it is treated as deepspeed")


@functools.lru_cache(maxsize=16)
def determined(sources: str, script: str) -> Integration:
    """Return what the texts of a script and of the modules that it imports show, as ``script_files`` read them."""
    given = json.loads(sources)
    if "problem" in given:
        return undetermined(f"{script}: {given['problem']}")
    scripts: dict[str, Script] = {}
    for path, text in given["texts"].items():
        try:
            scripts[path] = read(text)
        except UnreadableScriptError as error:
            return undetermined(f"{path}: {error}")
    used = {name: use for name, fits in _OF_LIBRARIES.items() if (use := _first(scripts, fits))}
    name = _decided(used)
    if name is None:
        return undetermined(f"it uses both {' and '.join(_at(*use) for use in used.values())}")
    option = _option(scripts)
    if name:
        return _by_library(name, used[name], option, scripts)
    if option:
        return replace(INTEGRATIONS["deepspeed"], argument=option[0], reason=f", because {option[1]} takes {option[0]}")
    return _by_nothing(scripts, given["more"], script)


def _by_nothing(scripts: Mapping[str, Script], more: bool, script: str) -> Integration:
    """Return the decision on a script in which nothing of DeepSpeed was found."""
    unclear = "not everything that it imports was read" if more else _unclear(scripts)
    if unclear:
        return undetermined(unclear)
    files = "neither it nor the modules of its source that it imports use" if len(scripts) > 1 else "it does not use"
    return replace(INTEGRATIONS["none"], reason=f", because {script} was read and {files} DeepSpeed")


def _first(scripts: Mapping[str, Script], fits: Callable[[str], bool]) -> tuple[str, Use] | None:
    """Return the file and the place of the first use that fits, the script itself first."""
    return next(((path, use) for path, one in scripts.items() for use in one.uses if fits(use.name)), None)


def _option(scripts: Mapping[str, Script]) -> tuple[str, str] | None:
    """Return the parser's argument for ds_config.json, and where that is."""
    for names in (_CONFIG_OPTIONS, (_PATH_OPTION,)):
        for path, one in scripts.items():
            for option in one.options:
                if option.name in names and not option.flag:
                    return option.name, f"{path} line {option.line}"
        if names == _CONFIG_OPTIONS:
            own = _first(scripts, lambda name: name == "deepspeed.add_config_arguments")
            if own:
                return CONFIG, f"{own[0]} line {own[1].line}"
    return None


def _decided(used: Mapping[str, tuple[str, Use]]) -> str | None:
    """Return the library that calls DeepSpeed; empty where there is none, None where it may be either of two."""
    left = set(used)
    if {"huggingface", "accelerate"} <= left:
        left.discard("accelerate")  # the Trainer has one of its own
    return None if len(left) > 1 else next(iter(left), "")


def _by_library(
    name: str, use: tuple[str, Use], option: tuple[str, str] | None, scripts: Mapping[str, Script]
) -> Integration:
    found = replace(INTEGRATIONS[name], reason=f", because {_at(*use)}")
    if option:
        return replace(found, argument=option[0], environment=False)
    parses = any(one.options for one in scripts.values())
    hf_parser = _first(scripts, lambda full: _huggingface(full) and full.endswith(("Parser", ".run_exp")))
    if name == "huggingface" and parses and not hf_parser:
        return replace(
            found, reason=f"{found.reason}; its own parser has no {_PATH_OPTION} to pass to TrainingArguments"
        )
    return found


def _at(path: str, use: Use) -> str:
    return f"{path} line {use.line} {use.verb} {use.name}"


def _unclear(scripts: Mapping[str, Script]) -> str:
    """Return why a script that shows no use of DeepSpeed may use it all the same; empty where nothing says so."""
    local = {path.rpartition("/")[2].removesuffix(".py") for path in scripts} | {
        part for path in scripts for part in path.split("/")[:-1]
    }
    for path, one in scripts.items():
        if one.own_ways or one.mentions:
            return f"{path} may read ds_config.json in its own way"
        packages = {module.partition(".")[0] for module in one.modules}
        other = sorted(packages - sys.stdlib_module_names - _WITHOUT_DEEPSPEED - local)
        if "deepspeed" in other:
            return f"{path} imports deepspeed, but how it gets its configuration is unknown"
        if other:
            return f"whether {' or '.join(other[:3])} uses DeepSpeed is not known"
    return ""


def conflict(argument: str, configured: bool, args: Sequence[str]) -> str:
    """Return why the user's own arguments and ours cannot both stand, as a clause; empty where they can."""
    for index, word in enumerate(args if configured else ()):
        following = args[index + 1] if index + 1 < len(args) else "-"
        name, equals, dummy = word.partition("=")
        with_path = bool(equals) or not following.startswith("-")
        if name in {*_CONFIG_OPTIONS, argument} or (name == _PATH_OPTION and with_path):
            return f"deepspeed_launch_args has {name}, but the script also gets the cluster's ds_config.json"
    return ""
