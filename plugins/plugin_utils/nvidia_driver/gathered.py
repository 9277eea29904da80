# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role nvidia_driver needs gathered, and its files. Constants alone: every worker that gathers reads them."""

from __future__ import annotations

from ..plan.gathered import Gathered

ROLE = "nvidia_driver"
PREFIX = f"{ROLE}_"

EXCLUSION_FILE = "/etc/apt/apt.conf.d/52swarmspeed-nvidia"
PREFERENCES_FILE = "/etc/apt/preferences.d/swarmspeed-nvidia.pref"
SOURCES_FILE = "/etc/apt/sources.list.d/swarmspeed-nvidia.sources"
NOUVEAU_FILE = "/etc/modprobe.d/swarmspeed-nvidia.conf"
"""Stays with the driver when the rest is torn down."""
PERSISTENCE_FILE = "/etc/systemd/system/nvidia-persistenced.service.d/swarmspeed.conf"
FILES = (PREFERENCES_FILE, EXCLUSION_FILE, SOURCES_FILE, NOUVEAU_FILE, PERSISTENCE_FILE)
FABRIC_PACKAGES = ("nvlsm", "infiniband-diags")
"""What the fabric manager needs beside it from B200 on (its start script, and its user guide, "NVLink 5")."""

# Packages, modules and GPUs are part of the facts anyway.
GATHERED = Gathered(packages=FABRIC_PACKAGES, files=tuple({"path": path, "content": True} for path in FILES))
