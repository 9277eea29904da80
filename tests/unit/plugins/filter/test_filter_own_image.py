# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filters of one's own image: what they take and return. What is behind them has tests of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter import own_image
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.needs import END

FILTERS = own_image.FilterModule().filters()
FOLDER = Path(own_image.__file__).parent


def test_every_filter_is_documented() -> None:
    assert [name for name in FILTERS if not (FOLDER / f"{name}.yml").is_file()] == []


def test_what_they_return() -> None:
    image = f"sha256:{'0' * 64}"
    assert FILTERS["loaded_image"]([image], "a:1", "x", "y") == {"untagged": image, "problem": ""}
    assert FILTERS["image_check_problem"]({"stdout": END}, {}, "a:1", "n") == ""


def test_results_that_are_none() -> None:
    with pytest.raises(AnsibleFilterError, match=r"^image_check_problem: expected the result of a command, not str"):
        FILTERS["image_check_problem"]("x", {}, "a:1", "n")
    with pytest.raises(AnsibleFilterError, match=r"^image_check_problem: expected a dictionary that describes the job"):
        FILTERS["image_check_problem"]({"stdout": END}, "x", "a:1", "n")
    with pytest.raises(AnsibleFilterError, match=r"^loaded_image: expected a list of names, not str"):
        FILTERS["loaded_image"]("x", "a:1", "x", "y")
