# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Versions and compute capabilities as numbers, so that 12.0 comes after 9.0 and 2.10 after 2.9."""

from __future__ import annotations

import re
from collections.abc import Iterable

_RELEASE = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){0,5}", re.ASCII)
_CAPABILITY = re.compile(r"([0-9]{1,2}\.[0-9])[af]?(\+PTX)?", re.ASCII)


def is_release(text: str) -> bool:
    """Return whether a text is a release such as ``2.12.1``."""
    return _RELEASE.fullmatch(text) is not None


def key(text: str) -> tuple[int, ...]:
    """Return a release as numbers; letters after them (``9.0a``, ``8.6+PTX``) do not count."""
    found = _RELEASE.match(text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def minor(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a release: a patch release has the same wheels, kernels and headers."""
    return key(text)[:2]


def major(text: str) -> int:
    """Return the first number of a release, 0 where there is none."""
    return next(iter(key(text)), 0)


def is_capability(text: str) -> bool:
    """Whether a text is a compute capability as TORCH_CUDA_ARCH_LIST takes it: ``9.0``, ``9.0a``, ``8.6+PTX``."""
    return _CAPABILITY.fullmatch(text) is not None


def without_letter(capability: str) -> str:
    """Return a compute capability as DeepSpeed reads it: ``9.0`` for ``9.0a``, ``9.0+PTX`` for ``9.0a+PTX``."""
    return capability.replace("a", "").replace("f", "")


def in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each text once, the lowest number first."""
    return tuple(sorted(dict.fromkeys(texts), key=lambda text: (key(text), text)))


def runs(code: str, capability: str) -> bool:
    """Return whether a GPU of this capability runs code made for another one.

    Machine code runs on the same major version from its own minor version on, PTX on everything newer (CUDA programming
    guide, "Binary Compatibility" and "PTX Compatibility"). Code for 9.0a or 10.0f runs on its very capability only, or
    on its family; the latter is not relied on here.
    """
    made, has = key(code), key(capability)
    if code.endswith("+PTX") and made <= has:
        return True
    if code.rstrip("+PTX")[-1:] in ("a", "f"):
        return made == has
    return made[:1] == has[:1] and made <= has
