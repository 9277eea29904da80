# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The variables of a host get the types that the argument specs say, before any planner reads them."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.variables import VariableError, typed


def test_arguments_of_the_script_are_a_list_however_they_are_written() -> None:
    text = typed("gpu1", {"deepspeed_launch_args": '--lr 1e-4 --name "a, b"'}, {})
    assert text["deepspeed_launch_args"] == ["--lr", "1e-4", "--name", "a, b"]
    given = typed("gpu1", {"deepspeed_launch_args": ["--lr", 0.1, "a b"]}, {})
    assert given["deepspeed_launch_args"] == ["--lr", "0.1", "a b"]


def test_a_quote_that_is_not_closed_names_host_and_variable() -> None:
    with pytest.raises(VariableError, match=r"^gpu1: deepspeed_launch_args has a quote that is not closed$"):
        typed("gpu1", {"deepspeed_launch_args": "--name 'a"}, {})
