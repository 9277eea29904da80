# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The requirements file of the image: the one that a variable names, or the one beside the script. Pure.

Beside the script is the nearest one on the way from the script's folder up to that of the source.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.values import mapping
from ..launch.program import FILE, ProgramError, in_workspace, program
from ..launch.script_files import BETWEEN
from ..plan.controller import BESIDE, TEXT, source_of
from .inputs import Trouble, requirements_troubles

if TYPE_CHECKING:
    from packaging.requirements import Requirement

AUTO, NAME, VARIABLE = "auto", "requirements.txt", "training_image_requirements"


@dataclass(frozen=True)
class Requirements:
    """``path`` is what messages call it; empty where there is none. ``problem`` says why it cannot be read."""

    path: str = ""
    text: str = ""
    problem: str = ""
    auto: bool = False


def read_by_plan(role_vars: Mapping[str, Any]) -> list[str]:
    """Return under which name the plan reads the file; empty where it reads none."""
    given = str(role_vars[VARIABLE] or "")
    if given != AUTO:
        return [f"{TEXT}{given}"] if given else []
    fetched = isinstance(role_vars.get("swarmspeed_source"), Mapping)
    folder = source_of(role_vars)[0] if fetched or not role_vars["workspace_source_ref"] else ""
    return [f"{BESIDE}{folder}{BETWEEN}{posixpath.join(_folder(role_vars), NAME)}"] if folder else []


def requirements(role_vars: Mapping[str, Any], files: Mapping[str, str]) -> Requirements:
    """Return what the file says."""
    for name in read_by_plan(role_vars):
        if name.startswith(TEXT):
            return Requirements(name[len(TEXT) :], files[name])
        found = mapping(json.loads(files[name]))
        if found:
            path, text, problem = (str(found.get(key) or "") for key in ("path", "text", "problem"))
            return Requirements(path, text, problem, auto=True)
    return Requirements()


def troubles(found: Requirements, pins: Mapping[str, str]) -> Iterator[Trouble]:
    """Yield what the image cannot have. ``pins`` are releases that other variables choose, by package."""
    otherwise = f", or set {VARIABLE}: ''" if found.auto else ""
    if found.problem:
        yield Trouble(VARIABLE, f"{found.path} beside the script: {found.problem}", f"correct it{otherwise}")
    # What a variable names was checked before any connection.
    for one in requirements_troubles(found.path, found.text) if found.auto else ():
        yield Trouble(one.subject, one.text, f"{one.remedy}{otherwise}")
    for line in found.text.splitlines():
        name, wanted = _requirement(line)
        release = pins.get(name, "")
        if release and wanted is not None and not wanted.specifier.contains(release, prereleases=True):
            variable = "training_image_torch" if name == "torch" else f"training_image_{name}_version"
            yield Trouble(
                VARIABLE,
                f"{found.path} requires {wanted.name}{wanted.specifier}, and the image has {name} {release}, for which "
                "DeepSpeed's operators are compiled",
                f"take the line out of the file, or set {variable} to a release that it allows{otherwise}",
            )


def pins_of(torch: str, deepspeed: str) -> dict[str, str]:
    """Return the releases that go into the image whatever a file says, as far as they are known."""
    exact = {}
    for word in torch.split():
        name, found = _requirement(word)
        for one in found.specifier if found else ():
            if one.operator == "==" and "*" not in one.version:
                exact[name] = one.version.partition("+")[0]
    return {**exact, **({"deepspeed": deepspeed} if deepspeed else {})}


def _requirement(line: str) -> tuple[str, Requirement | None]:
    # ansible-core needs packaging, but the sanity test of imports has neither.
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415

    try:
        found = Requirement(line.partition(" #")[0].strip().rstrip("\\"))
    except InvalidRequirement:
        return "", None  # an option, a comment, or a line that pip names in the build
    return re.sub(r"[-_.]+", "-", found.name).lower(), found


def _folder(role_vars: Mapping[str, Any]) -> str:
    """Return the script's folder below the source; that of the source itself where no file is named."""
    # What it names is decided with its ./, without which "train" would be a command.
    script = str(role_vars["deepspeed_launch_script"] or "")
    try:
        kind = program(script, [str(word) for word in role_vars["deepspeed_launch_launcher_args"] or []]).kind
    except ProgramError:
        return ""
    folder = posixpath.normpath(posixpath.dirname(in_workspace(script))) if kind == FILE else "."
    return "" if folder == "." or folder.startswith(("/", "..")) else folder
