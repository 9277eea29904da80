"""After all faults: nothing is left to repair."""

from __future__ import annotations

from tests.fault_runs import NO_JOB
from tests.playbook_run import playbook, site


def test_the_cluster_is_whole_afterwards() -> None:
    site(*NO_JOB).done()
    site(*NO_JOB).done(change=False)
    playbook("verify", *NO_JOB).done(change=False)
