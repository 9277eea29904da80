# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a module that is run again and again sends to a node, beside what Ansible itself sends with every module."""

from __future__ import annotations

from tests.payloads import payload


def test_following_a_job_sends_less_than_half_of_what_starting_it_does() -> None:
    nothing = payload()
    start, follow = payload("training_job") - nothing, payload("training_job_follow") - nothing
    assert 0 < follow < start / 2, (start, follow)
