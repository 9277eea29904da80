"""What the files of this scenario share. They run in the order of their numbers, on one cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.playbook_run import ROOT


@pytest.fixture(scope="session")
def given() -> tuple[str, ...]:
    """Return the arguments with the variables that this cluster was made with."""
    return ("--extra-vars", f"@{ROOT / 'molecule' / 'drifts' / 'vars' / 'variables.yml'}")
