# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is wrong with the settings of the image, before any connection: preflight's check ``image_settings``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .inputs import SOURCE, Trouble, apt_sources_troubles, argument_troubles, read_source, requirements_troubles
from .repositories import VARIABLE, repository_troubles
from .requirements import AUTO

OWN = "training_image_dockerfile"
OURS_ALONE = (
    "training_image_requirements",
    SOURCE,
    "training_image_python_packages",
    "training_image_apt_packages",
    "training_image_wheelhouse",
    "training_image_deepspeed_ops",
    "training_image_torch",
)
"""What only the Dockerfile of this collection takes."""
OF_OWN_ALONE = ("training_image_context", "training_image_build_args")
NAMED = ("pull", "archive", "present")


@dataclass(frozen=True)
class Settings:
    """``value`` returns a variable of the role; ``paths`` are those of files by the variable that names them."""

    value: Callable[[str], Any]
    paths: Mapping[str, Any] = field(default_factory=dict)
    kind: Callable[[str], str | None] = lambda _path: None
    text: Callable[[str], str] = lambda _path: ""


def image_troubles(settings: Settings) -> Iterator[Trouble]:
    """Yield what is wrong; that files are there is another check."""
    value = settings.value
    if value("deepspeed_launch_runtime") == "host" or value("cluster_bundle"):
        return
    source = value("training_image_source")
    if source in NAMED and not value("training_image_name"):
        yield Trouble(
            "training_image_name",
            f"is empty, and training_image_source is {source}",
            "set it to the name and tag of the image",
        )
    if source != "build":
        return
    if value(OWN):
        for name in (name for name in OURS_ALONE if value(name) not in (None, "", [], {}, AUTO)):
            yield Trouble(
                name,
                f"is set, and so is {OWN}, into which it does not go",
                "write it into your Dockerfile, or leave one of the two empty",
            )
    else:
        for name in (name for name in OF_OWN_ALONE if value(name)):
            yield Trouble(name, f"is set without {OWN}", f"set {OWN}, or leave it empty")
        found = read_source(str(value(SOURCE) or ""))
        if isinstance(found, Trouble):
            yield found
        yield from _requirements(settings)
    yield from argument_troubles(value("training_image_build_args"))
    yield from apt_sources_troubles(value("training_image_apt_sources"))
    yield from repository_troubles(value(VARIABLE), settings.kind, settings.text)


def _requirements(settings: Settings) -> Iterator[Trouble]:
    path = settings.paths.get("training_image_requirements")
    if isinstance(path, str) and path and settings.kind(path) == "file":
        yield from requirements_troubles(path, settings.text(path))
