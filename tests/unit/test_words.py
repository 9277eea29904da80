# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Plain technical English: phrases and identifiers that no tracked file may hold, each with what to write instead.

To check some files only: ``python tests/unit/test_words.py docs README.md``.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PHRASES = {
    "anew": 'again; or "re-create", "rebuild", "reinstall"',
    "nobody": "no one, or the passive voice",
    "can not": "cannot",
    "mend": "fix, repair, correct",
    "mends": "fixes, repairs, corrects",
    "mended": "fixed, repaired, corrected",
    "mending": "fixing, repairing, correcting",
    "told": "reported, printed, passed, configured",
    "journey": "playbook, or playbook run",
    "journeys": "playbooks, or playbook runs",
    "looked": "gathered, checked, read, searched",
    "look again": "gather again, refresh facts",
    "look at": "check, read, inspect",
    "looks at": "checks, reads, inspects",
    "look whether": "check whether",
    "a look": "a check, gathering",
    "the look": "the check, gathering",
    "rendezvous tree": "node state directory",
    "bare host": "host without Docker, or machine with nothing installed",
    "bare hosts": "hosts without Docker, or machines with nothing installed",
    "ghost": "stale node, stale entry",
    "ghosts": "stale nodes, stale entries",
    "see to": "handle, take care of",
    "speak against": "forbid, prevent",
    "speaks against": "forbids, prevents",
    "as promised": "as configured",
    "hear": "receive, read",
    "unheard": "silent, no message received",
    "voices": "ranks' output",
    "of ours": "this collection's",
    "obstacle": "conflict",
    "obstacles": "conflicts",
}
"""Whole words, in any case; an identifier counts as one word."""

IDENTIFIERS = {
    "rendezvous_tree": "node_state_directory",
    "_launch_between": "cross_node_checks",
    "_launch_within": "per_node_checks",
    "_obstacles": "subnet_conflicts",
    "_handed_source": "source_runner",
    "_fabric_words": "failure_messages",
    "Comeback": "RestartRecovery",
    "Voices": "RankLogFilter",
    "last_words": "final_lines",
}
"""Names that were replaced, in exactly this spelling."""

NAMES = {
    "asked": "requested",
    "said": "reported, printed",
    "told": "reported, passed",
    "look": "gather, gathered, check",
    "looks": "gathered, checks",
    "looked": "gathered, checked",
    "heard": "received",
}
"""Parts of the names that Python code binds and of roles' private variables. Names of tests are sentences and may
have them."""

ALLOWED = (
    ("*", "su nobody", "the account"),
    ("*", "nobody@", "the account"),
    ("*", "Maintainer: nobody", "the account"),
    ("*", '"account": "nobody"', "the account"),
    ("examples/lightning_ddp/*", "hear", "speech"),
    ("examples/lightning_ddp/*", "voices", "speech"),
    ("molecule/examples/*", "held-out voices", "what the example prints"),
    ("roles/training_image/files/cuda_home.py", "said", "a change of this file would have images built again"),
)
"""Pattern of files, text in which a refused phrase stands or refused name, why it may."""

EXCEPTED = (
    "tests/unit/test_words.py",
    "*/fixtures/*",
    "docs/bench/*",
    "docs/chaos/*.jsonl",
    "docs/gpu_proof/*",
    "changelogs/changelog.yaml",
    "CHANGELOG.*",
    "LICENSE",
)
"""Recorded texts, texts of others, and this table."""

BREAK = r"""(?:[ \t]*["']?[ \t]*\n[ \t]*(?:\#[ \t]*|f?["'])?|[ \t]+)"""
"""Between two words: spaces, or a line break with what begins the next line of a comment or of a string."""


def pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    words = (BREAK.join(map(re.escape, phrase.split())) for phrase in sorted(phrases, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE)


ANY_PHRASE = pattern(PHRASES)
ANY_IDENTIFIER = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, IDENTIFIERS))})(?!\w)")

A_PART_OF_A_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
A_PRIVATE_VARIABLE = re.compile(rf"(?<!\w)_\w+_({'|'.join(NAMES)})(?!\w)")


def found(path: str, text: str) -> Iterator[str]:
    """Yield what is refused in the text of a file: where, which phrase, what to write."""
    spans = [
        match.span()
        for files, phrase, dummy in ALLOWED
        if fnmatchcase(path, files)
        for match in re.finditer(re.escape(phrase), text, re.IGNORECASE)
    ]
    for match in ANY_PHRASE.finditer(text):
        if not any(begin <= match.start() and match.end() <= end for begin, end in spans):
            phrase = re.sub(BREAK, " ", match[0]).lower()
            yield f"{path}:{line_of(text, match)}: {phrase}: write {PHRASES[phrase]}"
    for match in ANY_IDENTIFIER.finditer(text):
        yield f"{path}:{line_of(text, match)}: {match[0]}: write {IDENTIFIERS[match[0]]}"
    if path.endswith((".yml", ".j2")):
        for match in A_PRIVATE_VARIABLE.finditer(text):
            yield f"{path}:{line_of(text, match)}: {match[0]}: write {NAMES[match[1]]}"
    if path.endswith(".py"):
        for line, name in bound(text):
            if any(fnmatchcase(path, files) and name == allowed for files, allowed, dummy in ALLOWED):
                continue
            parts = [part.lower() for part in A_PART_OF_A_NAME.findall(name.replace("look_up", ""))]
            if refused_part := next((part for part in parts if part in NAMES and parts[0] != "test"), None):
                yield f"{path}:{line}: {name}: write {NAMES[refused_part]}"


def bound(text: str) -> Iterator[tuple[int, str]]:
    """Yield the names that a program binds: variables, attributes, parameters, functions, classes; with their lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def line_of(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


def tracked(*below: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *below], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [path for path in listed.stdout.split("\0") if path and not excepted(path)]


def excepted(path: str) -> bool:
    return any(fnmatchcase(path, files) for files in EXCEPTED)


def texts(*below: str) -> Iterator[tuple[str, str]]:
    """Yield the tracked text files; links, files that were removed and pictures are none."""
    for path in tracked(*below):
        file = ROOT / path
        if file.is_file() and not file.is_symlink() and b"\0" not in (content := file.read_bytes()):
            yield path, content.decode("utf-8")


def refused(*below: str) -> list[str]:
    return [line for path, text in texts(*below) for line in found(path, text)]


@pytest.mark.parametrize("area", ["docs", "plugins", "roles", "playbooks", "tests", "molecule", "examples", "."])
def test_words_are_plain(area: str) -> None:
    others = ["docs", "plugins", "roles", "playbooks", "tests", "molecule", "examples"]
    below = [area] if area != "." else [".", *(f":(exclude){name}" for name in others)]
    assert tracked(*below)
    lines = refused(*below)
    assert lines == [], "\n" + "\n".join(lines)


def test_every_allowance_is_needed() -> None:
    files = list(texts())
    needless = [
        (pattern_, phrase)
        for pattern_, phrase, dummy in ALLOWED
        if not any(fnmatchcase(path, pattern_) and phrase.lower() in text.lower() for path, text in files)
    ]
    assert needless == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is made Anew.", "x:1: anew: write again"),
        ("a\nIt can not\n", "x:2: can not: write cannot"),
        ("# it can\n    # not", "x:1: can not: write cannot"),
        ('"it can "\n    f"not"', "x:1: can not: write cannot"),
        ("looks at it", "x:1: looks at: write checks"),
        ("from .filter import Voices", "x:1: Voices: write RankLogFilter"),
        ("return last_words(lines)", "x:1: last_words: write final_lines"),
    ],
)
def test_a_refused_phrase_is_named_with_its_line_and_what_to_write(text: str, expected: str) -> None:
    assert any(line.startswith(expected) for line in found("x", text)), list(found("x", text))


@pytest.mark.parametrize("text", ["It cannot.", "a renewal", "su nobody -s /bin/sh", "amendment", "handle.tell()"])
def test_what_only_resembles_a_refused_phrase_passes(text: str) -> None:
    assert list(found("x", text)) == []


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("x.py", "def f(said): ...", "x.py:1: said: write reported"),
        ("x.py", "a = 1\n_asked_roles = a", "x.py:2: _asked_roles: write requested"),
        ("x.py", "self.looks = LOOK = 1", "x.py:1: looks: write gathered"),
        ("x.py", "import a as heard", "x.py:1: heard: write received"),
        ("x.py", "class OverlayAsked: ...", "x.py:1: OverlayAsked: write requested"),
        ("x.yml", "a: 1\nb: '{{ _role_told }}'", "x.yml:2: _role_told: write reported"),
    ],
)
def test_a_refused_name_is_found_where_it_is_bound(path: str, text: str, expected: str) -> None:
    assert any(line.startswith(expected) for line in found(path, text)), list(found(path, text))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("x.py", "def test_what_is_asked(): ...\nlookup = look_up = masked = unasked = 1\nf(said=answer['said'])"),
        ("x.yml", "asked: 1\n_role_lookup: 1\nmsg: '{{ found.said }}'"),
    ],
)
def test_a_name_of_others_and_one_that_only_resembles_a_refused_one_passes(path: str, text: str) -> None:
    assert list(found(path, text)) == []


def test_an_allowance_holds_for_its_files_only() -> None:
    assert list(found("examples/lightning_ddp/voice.py", "voices")) == []
    assert len(list(found("examples/torchrun_single/train.py", "voices"))) == 1


if __name__ == "__main__":
    print(*refused(*sys.argv[1:]), sep="\n")
