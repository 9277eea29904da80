# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""docs/versions.md is written from the table, and is as fresh as the table."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.pci import _RANGES, GENERATIONS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.table import load_table

from tests import write_versions


def test_the_page_is_written_from_the_table() -> None:
    assert write_versions.PAGE.read_text(encoding="utf-8") == write_versions.page(load_table()), (
        "run: python -m tests.write_versions"
    )


def test_the_page_names_every_capability_of_every_generation() -> None:
    for generation, capabilities in write_versions.GENERATION_CAPABILITIES.items():
        found = {text for _first, _last, name, text in _RANGES if name == generation and text}
        assert found == set(capabilities.split(", "))
    # Kepler ended with CUDA 11, Grace Hopper's chip is Hopper's, and no list has Rubin's capability yet.
    assert set(GENERATIONS) - set(write_versions.GENERATION_CAPABILITIES) == {"Kepler", "Grace Hopper", "Rubin"}


def test_check_writes_nothing_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert write_versions.main(["--check"]) == 0
    monkeypatch.setattr(write_versions, "PAGE", write_versions.ROOT / "docs" / "no-such-page.md")
    assert write_versions.main(["--check"]) == 1
    assert "Remedy: python -m tests.write_versions" in capsys.readouterr().err
    assert not write_versions.PAGE.exists()
