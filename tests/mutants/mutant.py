# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A mutant: one edit of one module, with a name that unrelated edits of the module do not change."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

CONDITION, RAISE, FLAG, BOUND, MOVED = KINDS = (
    "condition negated",
    "raise removed",
    "flag dropped",
    "bound removed",
    "check moved after use",
)
_LONGEST = 100


@dataclass(frozen=True)
class Edit:
    """What a kind of mutant proposes: bytes from ``start`` to ``end`` become ``text``.

    ``what`` says in the source's words, normalised, what becomes what.
    """

    kind: str
    start: int
    end: int
    text: bytes
    what: str


@dataclass(frozen=True)
class Mutant:
    """``name`` is made of module, function, kind, normalised source and, where that is not unique, a number.

    ``line`` is that of the statement that a test must execute to notice, 0 where it is executed by the import.
    """

    module: str
    function: str
    kind: str
    name: str
    line: int
    source: bytes

    @property
    def order(self) -> str:
        """What sorts mutants in an order that has nothing to do with where they stand."""
        return hashlib.sha256(self.name.encode()).hexdigest()


def normalised(node: ast.AST | None) -> str:
    return "nothing" if node is None else " ".join(ast.unparse(node).split())


def shortened(text: str) -> str:
    """A text that is not too long to be read, and still differs from others."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… [{hashlib.sha256(text.encode()).hexdigest()[:8]}]"


class Source:
    """A module's bytes, its tree, and where its nodes stand in them."""

    def __init__(self, data: bytes) -> None:
        self.data, self.tree = data, ast.parse(data)
        starts = [0]
        for line in data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self._names: dict[ast.AST, str] = {}
        self._lines: dict[ast.AST, int] = {}
        self._name(self.tree, "", 0)

    def _name(self, node: ast.AST, name: str, line: int) -> None:
        for child in ast.iter_child_nodes(node):
            within = line or (isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and child in node.body)
            inner, at = name, child.lineno if within and isinstance(child, ast.stmt) else line
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = f"{name}.{child.name}" if name else child.name
            elif isinstance(child, (ast.Assign, ast.AnnAssign)) and not name:
                targets = child.targets if isinstance(child, ast.Assign) else [child.target]
                inner = ", ".join(map(normalised, targets))
            self._names[child], self._lines[child] = inner, at
            self._name(child, inner, at)

    def function(self, node: ast.AST) -> str:
        """The function that a node stands in, or the constant that it is part of."""
        return self._names.get(node, "")

    def line(self, node: ast.AST) -> int:
        """The line at which the statement of a function begins that a node is part of; 0 outside of functions."""
        return self._lines.get(node, 0)

    def start(self, node: ast.stmt | ast.expr) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.stmt | ast.expr) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.stmt | ast.expr) -> bytes:
        return self.data[self.start(node) : self.end(node)]

    def line_start(self, line: int) -> int:
        return self._starts[line - 1]


def mutants(module: str, source: Source, edits: Iterable[tuple[ast.AST, Edit]]) -> Iterator[Mutant]:
    """Name the edits. One that is no program, or that changes nothing, or that is there already, is none."""
    seen: set[bytes] = set()
    counts: dict[str, int] = {}
    for node, edit in sorted(edits, key=lambda found: (found[1].start, found[1].end, found[1].text)):
        changed = source.data[: edit.start] + edit.text + source.data[edit.end :]
        if changed in seen or changed == source.data or not _compiles(changed):
            continue
        seen.add(changed)
        function = source.function(node)
        name = f"{module}::{function}::{edit.kind}: {edit.what}"
        counts[name] = counts.get(name, 0) + 1
        unique = name if counts[name] == 1 else f"{name} #{counts[name]}"
        yield Mutant(module, function, edit.kind, unique, source.line(node), changed)


def _compiles(data: bytes) -> bool:
    try:
        compile(data, "a mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True
