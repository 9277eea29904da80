# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What job_precheck returned: numbers are numbers before anything is multiplied, addresses are addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.common.reported import accept, address, flag, lines, network, number, short_text, whole
from .shape import by_name, count, data, listing, mapping, optional, or_empty

_TEXT = lines(1 << 16)

_REQUESTED = mapping(
    {},
    {
        "runtime": short_text,
        "subnet": optional(or_empty(network)),
        "transport": short_text,
        "accelerator": short_text,
        "slots": listing(whole(0, 1 << 20), 4096),
        "checkpoint_gib": optional(number),
        "chdir": optional(_TEXT),
    },
)
_FILE = optional(mapping({}, {"path": optional(_TEXT), "sha256": optional(short_text), "error": optional(_TEXT)}))

_ANSWER = mapping(
    {},
    {
        "python": short_text,
        "versions": by_name(short_text, optional(_TEXT)),
        "programs": by_name(_TEXT, optional(_TEXT)),
        "modules": by_name(_TEXT, optional(_TEXT)),
        "addresses": listing(address, 10_000),
        "names": by_name(short_text, mapping({}, {"addresses": listing(address, 1000), "error": optional(_TEXT)})),
        "ssh": by_name(short_text, optional(_TEXT)),
        "shm": optional(mapping({}, {"size": count, "free": count, "error": optional(_TEXT)})),
        "memlock": optional(mapping({}, {"limit": optional(number), "exempt": flag})),
        "infiniband": optional(flag),
        "chdir": optional(_TEXT),
        "exports": by_name(_TEXT, listing(short_text, 16)),
        "script": _FILE,
        "ds_config": _FILE,
        "hostfile": _FILE,
        "paths": by_name(_TEXT, optional(_TEXT)),
        "checkpoints": optional(
            mapping({}, {"path": optional(_TEXT), "at": optional(_TEXT), "free": count, "error": optional(_TEXT)})
        ),
        "locks": optional(listing(data, 10_000)),
    },
)


def _answer(value: Any) -> Any:
    """The answer, empty where the node could not look."""
    return value if isinstance(value, Mapping) and not value else _ANSWER(value)


_PROBE = optional(mapping({}, {"asked": _REQUESTED, "answer": _answer, "trouble": data, "image": data}))


def probes(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every node returned; raises ``ReportedError`` that names node and field."""
    return {
        str(name): accept(str(name), "job_precheck", accept(str(name), "job_precheck", value, data), _PROBE)
        for name, value in results.items()
    }
