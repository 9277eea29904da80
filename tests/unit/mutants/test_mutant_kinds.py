# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The kinds of mutant on small sources, and names that unrelated edits do not change."""

from __future__ import annotations

import textwrap

import pytest

from tests.mutants.choice import choose, shares
from tests.mutants.kinds import all_mutants
from tests.mutants.mutant import BOUND, CONDITION, FLAG, MOVED, RAISE, Mutant

READ = """\
def read(path, most):
    data = open(path).read(most)
    if len(data) > most:
        raise ValueError(
            "too long")
    return data
"""


def sources(text: str, kind: str) -> list[str]:
    return [mutant.source.decode() for mutant in all_mutants("m.py", text.encode()) if mutant.kind == kind]


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        (CONDITION, "if a:\n    raise E", "if not (a):\n    raise E"),
        (CONDITION, "x = a if b else None", "x = a if not (b) else None"),
        (CONDITION, "x = [a for a in b if c(a)]", "x = [a for a in b if not (c(a))]"),
        (RAISE, "if a:\n    raise E from e", "if a:\n    pass"),
        (FLAG, "x = os.O_RDONLY | os.O_NOFOLLOW", "x = os.O_RDONLY"),
        (FLAG, "x = _FOLDER | os.O_NOFOLLOW", "x = _FOLDER"),
        (FLAG, "os.stat(a, follow_symlinks=False)", "os.stat(a)"),
        (FLAG, "run([*a, '-c', 'b=c', d])", "run([*a, d])"),
        (FLAG, "x = {'BatchMode': 'yes'}", "x = {}"),
        (BOUND, "if len(a) > MOST:\n    raise E", "if False:\n    raise E"),
        (BOUND, "if not 0 < a < 65536:\n    raise E", "if not False:\n    raise E"),
        (BOUND, "while len(a) < MOST:\n    b()", "while True:\n    b()"),
        (BOUND, "x = len(a) <= MOST", "x = True"),
        (BOUND, "x = len(a) >= SHORTEST", "x = True"),
        (BOUND, "x = a[:MOST]", "x = a"),
        (BOUND, "x = file.read(most + 1)", "x = file.read()"),
        (BOUND, "x = islice(a, MOST)", "x = islice(a, None)"),
        (BOUND, "x = min(a, MOST)", "x = a"),
        (BOUND, "x = text(255)", "x = text(1 << 60)"),
        (BOUND, "run(a, timeout=5)", "run(a)"),
        (MOVED, "if a:\n    return\nuse(a)\nrest()", "use(a)\nif a:\n    return\nrest()"),
        (MOVED, "if a:\n    return\nif b:\n    return\nuse(a, b)", "if b:\n    return\nuse(a, b)\nif a:\n    return\n"),
    ],
)
def test_a_guard_is_broken(kind: str, before: str, after: str) -> None:
    found = sources(_function(before), kind)
    assert _function(after).rstrip("\n") in [text.rstrip("\n") for text in found]


def _function(body: str) -> str:
    return f"def f():\n{textwrap.indent(body, '    ')}\n"


@pytest.mark.parametrize(
    "text",
    [
        "if a:\n    b()\n",  # ends nothing
        "x = os.O_RDONLY | os.O_CLOEXEC\n",  # how it is opened, and what Python does by itself
        "x = a[:8]\n",  # takes a text apart
        "if a > 0:\n    b()\n",
        "x = 'one' if a else 'two'\n",  # wording
    ],
)
def test_what_is_no_guard_is_left_alone(text: str) -> None:
    assert all_mutants("m.py", text.encode()) == []


@pytest.mark.parametrize("use", ["return use(a)", "other = a.split()", "use(b)", "def inner(a):\n    use(a)"])
def test_a_check_that_nothing_uses_next_is_not_moved(use: str) -> None:
    assert sources(_function(f"if a:\n    return\n{use}\nrest()"), MOVED) == []


def test_each_part_of_a_compound_condition_is_left_out() -> None:
    found = sources("if a or b(c) or d:\n    raise E\n", CONDITION)
    assert [text.splitlines()[0] for text in found] == [
        "if ((a) or (b(c))):",
        "if ((a) or (d)):",
        "if ((b(c)) or (d)):",
    ]


def test_what_stands_below_keeps_its_line() -> None:
    (found,) = sources(READ, RAISE)
    assert found.split("\n").index("    return data") == READ.split("\n").index("    return data")


def test_characters_of_several_bytes_shift_nothing() -> None:
    assert sources("x = '…→', f(a, strict=True)\n", FLAG) == ["x = '…→', f(a)\n"]


def test_two_mutants_that_are_the_same_program_are_one() -> None:
    found = all_mutants("m.py", READ.encode())
    assert len({mutant.source for mutant in found}) == len({mutant.name for mutant in found}) == len(found) == 4


def names(text: str) -> set[str]:
    return {mutant.name for mutant in all_mutants("m.py", text.encode())}


def test_names_know_no_lines() -> None:
    elsewhere = f"# A comment.\nX = 1\n\n\ndef other(a):\n    return a\n\n\n{READ}"
    assert names(elsewhere) == names(READ) != set()


def test_the_same_guard_twice_has_two_names() -> None:
    twice = "def f(a):\n    if a:\n        raise E\n    if a:\n        raise E\n"
    found = names(twice)
    assert {"m.py::f::raise removed: raise E", "m.py::f::raise removed: raise E #2"} <= found


def test_cells_share_evenly_and_leave_nothing() -> None:
    assert shares({"a": 3, "b": 50, "c": 50}, 43) == {"a": 3, "b": 20, "c": 20}
    assert shares({"a": 3, "b": 4}, 400) == {"a": 3, "b": 4}
    assert sum(shares({"a": 10, "b": 10, "c": 10}, 20).values()) == 20


def test_the_choice_is_the_same_again_and_hardly_another_after_an_edit() -> None:
    def mutants(*numbers: int) -> list[Mutant]:
        return [Mutant("m.py", "f", RAISE, f"raise {number}", 1, b"") for number in numbers]

    before = choose({"a": mutants(*range(100))}, 40)["a"]
    assert choose({"a": mutants(*reversed(range(100)))}, 40)["a"] == before
    after = choose({"a": mutants(*range(101))}, 40)["a"]
    assert len(set(before) - set(after)) <= 1
