# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Digests that only who has the key can compare."""

from __future__ import annotations

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.digests import keyed_digest


def test_a_known_value() -> None:
    # RFC 4231, test case 2
    expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert keyed_digest(b"what do ya want for nothing?", "Jefe") == expected


def test_another_key_is_another_digest() -> None:
    assert len({keyed_digest(b"x", key) for key in ("", "a", "b")}) == 3
