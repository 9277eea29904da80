# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A text is split into the words that a shell makes of it; the shell itself is asked."""

from __future__ import annotations

import re
import subprocess

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.shell_words import WordsError, words_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.effort import examples

PARTS = st.sampled_from(["a", "--lr", "1e-4", " ", "  ", "'", '"', "\\", "\\\n", "é"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--lr 1e-4 --epochs 3", ["--lr", "1e-4", "--epochs", "3"]),
        (
            """--name "my run" --prompt 'say "hi"' --empty ''""",
            ["--name", "my run", "--prompt", 'say "hi"', "--empty", ""],
        ),
        ("--lr 1e-4 \\\n  --epochs 3\n", ["--lr", "1e-4", "--epochs", "3"]),
        (
            "--home $HOME --all *.json --hash # no comment",
            ["--home", "$HOME", "--all", "*.json", "--hash", "#", "no", "comment"],
        ),
        ("--list 1,2,3", ["--list", "1,2,3"]),
        ("", []),
    ],
)
def test_a_text_is_split_and_nothing_in_it_is_expanded(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize("value", [["--lr 1e-4", 'a"'], 3, None, True])
def test_what_is_no_text_stays_as_it_is(value: object) -> None:
    assert words_of(value) is value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('--name "my run', "has a quote that is not closed"),
        ("--name my run's", "has a quote that is not closed"),
        ("--lr 1e-4 \\", "ends in a backslash with nothing behind it"),
    ],
)
def test_a_text_that_cannot_be_split_says_why(text: str, why: str) -> None:
    with pytest.raises(WordsError) as error:
        words_of(text)
    assert str(error.value) == why


@given(parts=st.lists(PARTS, max_size=8))
@settings(max_examples=examples(300), deadline=None)
def test_the_words_are_those_of_the_shell(parts: list[str]) -> None:
    text = "".join(parts)
    try:
        words = words_of(text)
    except WordsError:
        assume(not text.endswith("\\"))  # which a shell takes as it is
        words = None
    done = subprocess.run(
        ["sh", "-c", f"for word in {text}\ndo printf '%s\\0' \"$word\"\ndone"], capture_output=True, check=False
    )
    if done.returncode:
        # A line that ends behind an escaped backslash ends the list of for, too.
        assume(not re.search(r"(?<!\\)(?:\\\\)+\n", text))
    assert (done.stdout.decode().split("\0")[:-1] if done.returncode == 0 else None) == words
