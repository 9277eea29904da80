"""What the files of this scenario share. They run in the order of their numbers, on one cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.fault_runs import TABLE, forget


@pytest.fixture(scope="session", autouse=True)
def a_new_table() -> None:
    """The times of one run, not of several."""
    TABLE.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def no_job_of_an_earlier_test() -> None:
    forget()
