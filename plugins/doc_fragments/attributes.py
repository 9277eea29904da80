# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Attributes that several modules share in their documentation."""

from __future__ import annotations


class ModuleDocFragment:
    """Documentation fragments are found by this name."""

    READ_ONLY = r"""
options: {}
attributes:
  check_mode:
    support: full
    description: Runs the same in check mode, as it changes nothing.
  diff_mode:
    support: N/A
    description: Nothing is changed.
  idempotent:
    support: full
    description: Nothing is changed.
"""

    JOBS = r"""
options: {}
attributes:
  action_group:
    support: full
    description: >-
      Use C(group/swarmspeed.cluster.jobs) in C(module_defaults) to set O(jobs_dir) and O(name) for all modules of jobs.
    membership: [swarmspeed.cluster.jobs]
"""
