# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role nvidia_container_toolkit needs gathered, and its files. Constants alone: every worker reads them."""

from __future__ import annotations

from typing import Any

from ...module_utils.gpu.cdi import DESCRIPTION
from ..plan.gathered import Gathered

ROLE = "nvidia_container_toolkit"
PREFIX = f"{ROLE}_"

PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
SOURCES_PATH = "/etc/apt/sources.list.d/swarmspeed-nvidia-container-toolkit.sources"
RECORD_PATH = "/etc/apt/apt.conf.d/52swarmspeed-nvidia-container-toolkit"
UNIT = "swarmspeed-nvidia-devices.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
STAMP_FOLDER = "/var/lib/swarmspeed"
STAMP_PATH = f"{STAMP_FOLDER}/nvidia-container-toolkit.tested"
SPEC_PATH = DESCRIPTION
STALE_SOURCES = tuple(
    f"/etc/apt/sources.list.d/{name}.list"
    for name in ("nvidia-container-toolkit", "libnvidia-container", "nvidia-container-runtime", "nvidia-docker")
)
"""Where NVIDIA's instructions of the last years put it: two sources with different keys make every apt-get fail."""

# The engine and its packages: what shows its version before it runs.
_ENGINE = ("docker.io", "docker-ce")
_FILES: tuple[dict[str, Any], ...] = (
    {"path": SOURCES_PATH},
    *({"path": path} for path in STALE_SOURCES),
    {"path": UNIT_PATH, "content": True},
    {"path": RECORD_PATH, "content": True},
    {"path": STAMP_PATH, "content": True},
    {"path": SPEC_PATH},
)
GATHERED = Gathered((*PACKAGES, *_ENGINE), _FILES)
