# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the CDI description of a host's GPUs names: devices that containers can ask for, and device files.

``nvidia-ctk cdi generate`` writes it as YAML or JSON (container-device-interface's SPEC.md). Nodes need no YAML
library, so the two kinds of values that are compared with the host are searched for by their keys, ``name`` and
``path``, which hold nothing else that begins like a device file. Pure, but for ``gather_cdi``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DESCRIPTION = "/var/run/cdi/nvidia.yaml"
"""Where the toolkit's own service writes it from 1.18 on, too: one file, whoever wrote it last."""

_LARGEST = 1 << 22
_MOST = 4096
_BEFORE, _AFTER = r"(?:^|[\s{,])[\"']?", r"[\"']?\s*:\s*[\"']?"
_NAME = re.compile(rf"{_BEFORE}name{_AFTER}([A-Za-z0-9][A-Za-z0-9_.:-]{{0,127}})", re.ASCII)
_NODE = re.compile(rf"{_BEFORE}path{_AFTER}(/dev/[A-Za-z0-9_./-]{{1,127}})", re.ASCII)


def parse_cdi(text: str) -> dict[str, list[str]]:
    """Return the ``names`` of the devices and the device files (``nodes``), each once and sorted."""
    return {"names": sorted(set(_NAME.findall(text)))[:_MOST], "nodes": sorted(set(_NODE.findall(text)))[:_MOST]}


def gather_cdi(path: str = DESCRIPTION) -> dict[str, Any] | None:
    """Return what the file names, None where there is none. One that is far too large names nothing."""
    file = Path(path)
    if not file.is_file():
        return None
    return parse_cdi(file.read_text(encoding="utf-8", errors="replace") if file.stat().st_size <= _LARGEST else "")
