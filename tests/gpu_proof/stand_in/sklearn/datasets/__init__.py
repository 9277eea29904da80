# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A stand-in for sklearn.datasets: the file is scikit-learn's own, digits.csv.gz of its release."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy

_SIDE = 8


def load_digits() -> SimpleNamespace:
    """Return images and target as scikit-learn does."""
    rows = numpy.loadtxt(Path(__file__).parent / "digits.csv.gz", delimiter=",")
    return SimpleNamespace(images=rows[:, :-1].reshape(-1, _SIDE, _SIDE), target=rows[:, -1].astype(int))
