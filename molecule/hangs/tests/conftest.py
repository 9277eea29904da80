"""What the files of this scenario share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.fault_runs import forget


@pytest.fixture(autouse=True)
def no_job_of_an_earlier_test() -> None:
    forget()
