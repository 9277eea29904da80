# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The module container_swap: which of its words does what, and that a refusal of the engine is a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.swap import LABEL, SwapError
from ansible_collections.swarmspeed.cluster.plugins.modules.container_swap import run_module


class FakeEngine:
    """Has every container, and takes everything but what is in ``refused``."""

    def __init__(self, refused: str = "never") -> None:
        self.calls: list[str] = []
        self.refused = refused

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        if method == "GET":
            return {"Config": {"Labels": {LABEL: "hash"}}}
        self.calls.append(f"{method} {path}")
        if self.refused in path:
            raise EngineError("no\nsuch thing.", 500)
        return None


@pytest.mark.parametrize(
    ("state", "first", "last"),
    [
        ("swapped", "DELETE /containers/lab.old?force=true", "POST /containers/lab/start"),
        ("settled", "DELETE /containers/lab.new?force=true", "DELETE /containers/lab.old?force=true"),
        ("restored", "DELETE /containers/lab.new?force=true", "POST /containers/lab/start"),
    ],
)
def test_each_word(state: str, first: str, last: str) -> None:
    engine = FakeEngine()
    assert run_module({"name": "lab", "state": state, "others": []}, engine) == {"changed": True}
    assert (engine.calls[0], engine.calls[-1]) == (first, last)


def test_a_refusal_of_the_engine_is_one_sentence() -> None:
    with pytest.raises(SwapError, match=r"^Container lab: the engine refuses: no such thing\.$"):
        run_module({"name": "lab", "state": "swapped", "others": []}, FakeEngine("stop"))
