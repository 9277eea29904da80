# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What an image of this collection's Dockerfile holds that no variable names, and what lacks it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

FABRIC = ("libibverbs1", "ibverbs-providers")
"""Packages that NCCL opens at run time where nodes have InfiniBand or RoCE (its src/misc/ibvsymbols.cc); without them
it takes sockets, and reports no error. They are in every image, so that its tag does not depend on the fabric."""
TOOLS = ("py-spy==0.4.3",)
"""What examines ranks, as wheels: py-spy prints the stack of a Python process that hangs."""
HOLDS = (*FABRIC, *TOOLS)


def missing(held: str) -> list[str]:
    """Return what an image lacks that holds these names, divided by blanks; of which release does not count."""
    names = {_name(one) for one in held.split()}
    return [_name(one) for one in HOLDS if _name(one) not in names]


def without_wheel(files: Iterable[str]) -> list[str]:
    """Return the requirements of which a folder with these files has no wheel."""
    there = list(files)
    return [one for one in TOOLS if not any(name.startswith(_stem(one)) and name.endswith(".whl") for name in there)]


def _name(requirement: str) -> str:
    return requirement.partition("==")[0]


def _stem(requirement: str) -> str:
    """Return how the file name of a requirement's wheel begins (PEP 427)."""
    name, dummy, release = requirement.partition("==")
    return f"{re.sub(r'[-_.]+', '_', name)}-{release}-"
