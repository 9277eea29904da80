# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Why a task failed, from its result. The results are those that ansible-core 2.19 gave, shortened."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.console.results import (
    HIDDEN,
    diff_for_people,
    failure,
)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"msg": "Task failed: Action failed: no such package"}, "no such package"),
        ({"msg": ["one", "two"]}, "one\ntwo"),
        ({"msg": "non-zero return code", "rc": 2, "stderr": "a\n\nb\n", "stdout": "c"}, "exit status 2\na\nb"),
        ({"msg": "non-zero return code", "rc": 2, "stderr": "", "stdout": "c\n"}, "exit status 2\nc"),
        ({"msg": "non-zero return code", "rc": 1, "stderr": "\n".join("abcdefg")}, "exit status 1\nc\nd\ne\nf\ng"),
        (
            {
                "msg": "MODULE FAILURE: No start of json char found",
                "rc": 1,
                "module_stderr": "Traceback (most recent call last):\n  x\nKeyError: 'y'\n",
                "module_stdout": "",
            },
            "exit status 1\nKeyError: 'y'",
        ),
        ({}, "it says nothing more"),
        ({"censored": "the output has been hidden", "msg": "token 1234"}, HIDDEN),
        ({"msg": "title\x1b]0;x\x07"}, "title\\x1b]0;x\\x07"),
    ],
)
def test_why_a_task_failed(result: dict[str, Any], expected: str) -> None:
    assert failure("gpu1", "Install", {**result, "failed": True}) == expected


@pytest.mark.parametrize(
    ("result", "begin"),
    [
        ({"timedout": {"period": 30}, "msg": "timed out"}, "gpu1: 'Install' did not finish within 30 s"),
        ({"module_stdout": "", "module_stderr": "", "rc": 137, "msg": "x"}, "gpu1: 'Install' was cut off"),
    ],
)
def test_a_host_that_hangs_or_was_cut_off_has_its_sentence(result: dict[str, Any], begin: str) -> None:
    assert failure("gpu1", "Install", {**result, "failed": True}).startswith(begin)


def test_control_characters_of_a_diff_are_spelt_out() -> None:
    diff = [{"before": "a\n", "after": "b\x1b[2J\n", "after_header": "/etc/x"}]
    assert diff_for_people(diff) == [{"before": "a\n", "after": "b\\x1b[2J\n", "after_header": "/etc/x"}]
