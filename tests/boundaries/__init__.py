# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Accepted values at the boundary of each variable's constraint, and the real programs that take them.

``molecule/boundaries/vars`` has two sets for whole runs of site.yml; ``kinds.yml`` has values by kind, each of which
``programs`` gives to the program that reads such values; ``elsewhere.yml`` has the reasons for what is not tried.
"""

import sys
from pathlib import Path

# Scenarios and their playbooks are not started by the settings of pyproject.toml.
sys.path.append(str(Path(__file__).parents[2] / "collections"))
