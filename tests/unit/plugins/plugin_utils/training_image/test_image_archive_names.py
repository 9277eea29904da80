# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which image of an archive is meant. The answer of an engine to an image without a name was recorded on 20.10.24."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.archive import Loaded, choose_loaded
from hypothesis import given
from hypothesis import strategies as st

ID = "sha256:c832029907f257944fb355876594d86d93d2630199a08db6b6422bc7acf89939"
OTHER = f"sha256:{'0' * 64}"
WANTED = "team/train:1"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([WANTED], Loaded()),
        (["debian:12-slim", WANTED, ID], Loaded()),
        ([ID], Loaded(untagged=ID)),
        ([ID, ID], Loaded(untagged=ID)),
        ([], Loaded(problem="/x.tar holds no image. Remedy: create it with docker save team/train:1.")),
        (
            ["a:1", "b:2"],
            Loaded(
                problem="/x.tar holds a:1, b:2, not team/train:1. "
                "Remedy: set training_image_name to the name in the archive."
            ),
        ),
        (
            ["a:1", ID],
            Loaded(
                problem="/x.tar holds a:1, not team/train:1. "
                "Remedy: set training_image_name to the name in the archive."
            ),
        ),
        # What is no id is never tagged, whatever an engine answers.
        (
            ["sha256:--help"],
            Loaded(
                problem="/x.tar holds sha256:--help, not team/train:1. "
                "Remedy: set training_image_name to the name in the archive."
            ),
        ),
        (
            [ID, OTHER],
            Loaded(
                problem="/x.tar holds 2 images without a name, so which of them is team/train:1 is unknown. Remedy: "
                "create it from one image, docker save team/train:1."
            ),
        ),
    ],
)
def test_which_image_is_meant(names: list[str], expected: Loaded) -> None:
    assert choose_loaded(names, WANTED, "/x.tar", "training_image_name") == expected


@given(st.lists(st.sampled_from([WANTED, "a:1", ID, OTHER])))
def test_no_image_is_given_the_name_by_chance(names: list[str]) -> None:
    found = choose_loaded(names, WANTED, "/x.tar", "training_image_name")
    assert bool(found.problem) is not (WANTED in names or set(names) == {found.untagged})
