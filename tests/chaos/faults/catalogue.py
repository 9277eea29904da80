# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""All faults, by name, in the order in which the page lists them."""

from __future__ import annotations

from tests.chaos.faults.base import Fault
from tests.chaos.faults.engine import ENGINE
from tests.chaos.faults.kills import KILLS
from tests.chaos.faults.node import NODE
from tests.chaos.faults.power import POWER
from tests.chaos.faults.swarm import SWARM

FAULTS: dict[str, Fault] = {fault.name: fault for fault in (*KILLS, *POWER, *ENGINE, *NODE, *SWARM)}
ENTRIES = tuple(fault.entry for fault in FAULTS.values())
