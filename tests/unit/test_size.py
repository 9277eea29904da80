# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the size of the code counts."""

from __future__ import annotations

from tests.size import count, lines, tokens

ONE_LINE = "f(a, b)  # why\n"
WRAPPED = "f(\n    a,\n    b\n)\n\n"


def test_tokens_do_not_depend_on_layout_and_comments() -> None:
    assert tokens(ONE_LINE) == tokens(WRAPPED) == 6


def test_blank_lines_do_not_count() -> None:
    assert lines("a\n\n  \nb\n") == 2


def test_files_count_for_their_folder_and_the_whole() -> None:
    found = count(
        {"plugins/filter/a.py": ONE_LINE, "plugins/modules/b.py": WRAPPED, "roles/host/tasks/main.yml": "a:\n"}
    )
    assert found == {
        "plugins": (12, 5),
        "plugins/filter": (6, 1),
        "plugins/modules": (6, 4),
        "roles": (0, 1),
    }
