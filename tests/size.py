# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The size of the code: `python -m tests.size [commit …]` counts what git tracks there (or what is staged), by folder.

Tokens are Python's own, without comments and layout, so that neither the length of lines nor formatting changes them.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter
from pathlib import Path

FOLDERS = ("plugins", "roles", "playbooks", "molecule", "tests")
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
ROOT = Path(__file__).resolve().parent.parent


def tokens(source: str) -> int:
    """Return how many tokens Python source has."""
    return sum(token.type not in _LAYOUT for token in tokenize.generate_tokens(io.StringIO(source).readline))


def lines(text: str) -> int:
    """Return how many lines are not blank."""
    return sum(bool(line.strip()) for line in text.splitlines())


def folder(path: str) -> str:
    """Return under which name a file is counted."""
    parts = path.split("/")
    return "/".join(parts[: 2 if parts[0] in ("plugins", "tests") and len(parts) > 2 else 1])


def count(files: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Return tokens and lines by folder; the folders of ``FOLDERS`` also as a whole."""
    of_tokens: Counter[str] = Counter()
    of_lines: Counter[str] = Counter()
    for path, text in files.items():
        for name in {folder(path), path.split("/")[0]}:
            of_lines[name] += lines(text)
            if path.endswith(".py"):
                of_tokens[name] += tokens(text)
    return {name: (of_tokens[name], of_lines[name]) for name in sorted(of_lines)}


def tracked(commit: str) -> dict[str, str]:
    """Return the texts that a commit (or a tree) tracks below ``FOLDERS``; what is not text counts nothing."""
    archive = subprocess.run(["git", "archive", commit, "--", *FOLDERS], cwd=ROOT, capture_output=True, check=True)
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isfile() else None
            if file:
                try:
                    found[member.name] = file.read().decode()
                except UnicodeDecodeError:
                    continue
    return found


def main(commits: list[str]) -> None:
    """Print a table: a column of tokens and one of lines for each commit."""
    if not commits:
        tree = subprocess.run(["git", "write-tree"], cwd=ROOT, capture_output=True, text=True, check=True)
        commits = [tree.stdout.strip()]
    sizes = [count(tracked(commit)) for commit in commits]
    print("| folder | " + " | ".join(f"{commit[:8]}: tokens | lines" for commit in commits) + " |")
    print("|---|" + "--:|--:|" * len(commits))
    for name in sorted({name for size in sizes for name in size}):
        cells = (f"{figure:,}" for size in sizes for figure in size.get(name, (0, 0)))
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
