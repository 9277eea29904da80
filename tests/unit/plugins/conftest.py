# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What tests of several modules and actions share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.parameters import PASS_VARS


@pytest.fixture
def invocation_requested() -> dict[str, Any]:
    """Arguments with which a module returns its own as ``invocation``, for tests that look for secrets in there.

    ansible-core 2.21 does so only where its configuration says so; older releases always do, and know no such argument.
    """
    return {"_ansible_inject_invocation": True} if "inject_invocation" in PASS_VARS else {}


@pytest.fixture(autouse=True)
def _cache_of_the_test(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of bundles goes to no cache of the user's."""
    folder: Path = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
