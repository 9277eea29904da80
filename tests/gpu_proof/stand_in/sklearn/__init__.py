# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A stand-in for scikit-learn where a machine has none: the real digits, and a split of them. Nothing else."""
