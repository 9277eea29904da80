# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The five kinds of mutant of a guard. Pure: each kind takes a module's source and proposes edits."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from tests.mutants.mutant import (
    BOUND,
    CONDITION,
    FLAG,
    MOVED,
    RAISE,
    Edit,
    Mutant,
    Source,
    mutants,
    normalised,
    shortened,
)

Edits = Iterator[tuple[ast.AST, Edit]]

_EXITS = (ast.Raise, ast.Return, ast.Continue, ast.Break)
_AT_FOLDER = ("follow_symlinks", "dir_fd", "src_dir_fd", "dst_dir_fd")
_FLAG_WORDS = frozenset([*_AT_FOLDER, "mode", "exact", "exist_ok", "strict", "check", "start_new_session"])
"""Keywords of a call that are a guard, or without which the call means another thing."""
_HARMLESS_FLAGS = frozenset(["O_RDONLY", "O_WRONLY", "O_RDWR", "O_CLOEXEC"])
"""The first three are how a file is opened, not a guard; the last Python sets on every file by itself (PEP 446)."""
_WITH_VALUE = re.compile(r"-[cCoFilptNf]")
"""Options of git, ssh and ssh-keygen that are dropped with the word behind them."""
_TERSE = frozenset(["-q", "--quiet"])
_OPTION_NAME = re.compile(r"[A-Z][A-Za-z0-9_]{3,}")
_LIMIT = re.compile(r"_?[A-Z][A-Z0-9_]{2,}|most|limit|longest|size|deepest|total|allowed|expected")
_LOWEST = re.compile(r"SHORTEST|LEAST|LOWEST|MIN|least|shortest|low")
_SHORT = 32
_PARSERS = frozenset(["text", "lines", "listing", "by_name", "whole"])
"""Makers of parsers in plugin_utils/validate, of which the bounds are arguments."""
_TEXT_CALLS = ("partition", "rpartition", "split", "rsplit", "splitlines", "strip", "rstrip", "startswith", "endswith")
_HARMLESS_CALLS = frozenset(
    [
        *_TEXT_CALLS,
        "get",
        "items",
        "values",
        "keys",
        "len",
        "str",
        "bool",
        "list",
        "dict",
        "set",
        "sorted",
        "range",
        "sha256",
    ]
)
"""Calls that change nothing and take little."""
_ENDLESS = "1 << 60"


def all_mutants(module: str, data: bytes) -> list[Mutant]:
    """Every mutant of a module, in the order of its source."""
    source = Source(data)
    kinds: tuple[Callable[[Source], Edits], ...] = (_conditions, _raises, _flags, _bounds, _moves)
    return list(mutants(module, source, (edit for kind in kinds for edit in kind(source))))


def is_guard(statement: ast.stmt) -> bool:
    """Whether a statement lets something go on, or not: a condition under which the function or the turn ends."""
    return isinstance(statement, ast.If) and isinstance(statement.body[-1], _EXITS)


def _replaced(source: Source, kind: str, node: ast.expr, text: str | bytes, after: str) -> Edit:
    data = text.encode() if isinstance(text, str) else text
    what = f"{shortened(normalised(node))} → {shortened(after)}"
    return Edit(kind, source.start(node), source.end(node), data, what)


# -- condition negated


def _conditions(source: Source) -> Edits:
    """The condition of a guard, of an expression or of a filter. Of a compound one each part is left out instead.

    Negated as a whole, a compound condition stops what is allowed as well, and any test would notice.
    """
    for node in ast.walk(source.tree):
        tests: list[ast.expr] = []
        if (isinstance(node, ast.If) and is_guard(node)) or (isinstance(node, ast.IfExp) and _may_be_nothing(node)):
            tests = [node.test]
        elif isinstance(node, ast.comprehension):
            tests = node.ifs
        for test in tests:
            yield from _negated(source, test)


def _may_be_nothing(node: ast.IfExp) -> bool:
    """Whether one of two values is nothing, or a constant: most others choose between two wordings."""
    return any(normalised(value) in ("None", "[]", "{}", "()", "''", "b''", "0") for value in (node.body, node.orelse))


def _negated(source: Source, test: ast.expr) -> Edits:
    if not isinstance(test, ast.BoolOp):
        inverted = f"not ({source.text(test).decode()})"
        yield test, _replaced(source, CONDITION, test, inverted, f"not {normalised(test)}")
        return
    word = " or " if isinstance(test.op, ast.Or) else " and "
    for left_out in test.values:
        kept = [value for value in test.values if value is not left_out]
        texts = word.join(f"({source.text(value).decode()})" for value in kept)
        rest = word.join(normalised(value) for value in kept)
        yield test, _replaced(source, CONDITION, test, f"({texts})", f"{rest}, without {normalised(left_out)}")


# -- raise removed


def _raises(source: Source) -> Edits:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Raise):
            # As many lines as before, so that what stands below keeps its place.
            text = b"pass" + b"\n" * source.text(node).count(b"\n")
            what = shortened(normalised(node))
            yield node, Edit(RAISE, source.start(node), source.end(node), text, what)


# -- flag dropped


def _flags(source: Source) -> Edits:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            yield from _joined_flags(source, node)
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in _FLAG_WORDS:
                    yield node, _without(source, node, keyword, FLAG)
        elif isinstance(node, (ast.List, ast.Tuple)):
            yield from _options(source, node)
        elif isinstance(node, ast.Dict):
            yield from _entries(source, node)


def _joined_flags(source: Source, node: ast.BinOp) -> Edits:
    for one, other in ((node.left, node.right), (node.right, node.left)):
        flag = one.attr if isinstance(one, ast.Attribute) and normalised(one.value) == "os" else ""
        if flag.startswith("O_") and flag not in _HARMLESS_FLAGS:
            text, after = source.text(other), f"without os.{flag}"
            yield node, _replaced(source, FLAG, node, text, after)


def _without(source: Source, node: ast.Call, dropped: ast.keyword, kind: str) -> Edit:
    """The call without one keyword."""
    changed = ast.Call(node.func, node.args, [keyword for keyword in node.keywords if keyword is not dropped])
    return _replaced(source, kind, node, ast.unparse(changed), f"without {normalised(dropped)}")


def _options(source: Source, node: ast.List | ast.Tuple) -> Edits:
    """Options of a command: words that begin with a hyphen, with their value."""
    words = [element.value if isinstance(element, ast.Constant) else None for element in node.elts]
    for index, word in enumerate(words):
        if not isinstance(word, str) or not word.startswith("-") or word in _TERSE:
            continue
        count = 2 if _WITH_VALUE.fullmatch(word) and index + 1 < len(words) else 1
        rest = [*node.elts[:index], *node.elts[index + count :]]
        changed: ast.expr = ast.List(rest, node.ctx) if isinstance(node, ast.List) else ast.Tuple(rest, node.ctx)
        dropped = " ".join(normalised(element) for element in node.elts[index : index + count])
        yield node, _replaced(source, FLAG, node, ast.unparse(changed), f"without {dropped}")


def _entries(source: Source, node: ast.Dict) -> Edits:
    """Options in a mapping, such as ``"StrictHostKeyChecking": "yes"`` or the variables of a program."""
    names = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
    if not all(isinstance(name, str) and _OPTION_NAME.fullmatch(name) for name in names):
        return
    for index, key in enumerate(node.keys):
        rest = ast.Dict(
            [one for one in node.keys if one is not key],
            [value for number, value in enumerate(node.values) if number != index],
        )
        yield node, _replaced(source, FLAG, node, ast.unparse(rest), f"without {names[index]!s}")


# -- bound removed


def is_limit(node: ast.expr) -> bool:
    """Whether an expression is a bound: a constant by its name, a parameter that is called so, or a number."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool) and node.value > 1
    if isinstance(node, ast.BinOp):
        return is_limit(node.left) or is_limit(node.right)
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return bool(_LIMIT.fullmatch(name) or _LOWEST.search(name)) and name not in ("O_NOFOLLOW",)


def _bounds(source: Source) -> Edits:
    whiles = {id(node.test) for node in ast.walk(source.tree) if isinstance(node, ast.While)}
    guards = {
        id(part)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.If) and is_guard(node)
        for part in ast.walk(node.test)
    }
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Compare):
            changed = _unlimited(node, id(node) in guards, id(node) in whiles)
            if changed:
                yield node, _replaced(source, BOUND, node, changed, changed)
        elif isinstance(node, ast.Call):
            yield from _calls(source, node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            part = node.slice
            if isinstance(part, ast.Slice) and part.lower is None and part.upper is not None and _is_long(part.upper):
                yield node, _replaced(source, BOUND, node, source.text(node.value), normalised(node.value))


def _is_number(node: ast.expr) -> bool:
    """Whether a bound is written as one: among the arguments of parsers, constants in capitals are parsers too."""
    return is_limit(node) and (isinstance(node, (ast.Constant, ast.BinOp)) or "MOST" in normalised(node))


def _is_long(node: ast.expr) -> bool:
    """Whether a bound is one of length: a small number takes a text apart."""
    return is_limit(node) and not (
        isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value < _SHORT
    )


def _unlimited(node: ast.Compare, guard: bool, loop: bool) -> str:
    """What a comparison with a bound becomes without it; empty where it has none."""
    ordered = [isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops]
    if not all(ordered) or not any(map(is_limit, (node.left, *node.comparators))):
        return ""
    if guard or loop:
        return str(loop)
    if len(node.ops) > 1:
        return "True"
    within = isinstance(node.ops[0], (ast.Lt, ast.LtE))
    if is_limit(node.left):
        within = not within
    bound = node.left if is_limit(node.left) else node.comparators[0]
    if _LOWEST.search(normalised(bound)):
        within = not within
    return str(within)


def _calls(source: Source, node: ast.Call) -> Edits:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")

    def changed(arguments: list[ast.expr], after: str) -> tuple[ast.AST, Edit]:
        call = ast.Call(node.func, arguments, node.keywords)
        return node, _replaced(source, BOUND, node, ast.unparse(call), after)

    if name in ("read", "readline") and len(node.args) == 1 and isinstance(node.func, ast.Attribute):
        yield changed([], f"{name}()")
    elif name == "islice" and len(node.args) == 2:
        yield changed([node.args[0], ast.Constant(None)], "without an end")
    elif name == "min" and len(node.args) == 2:
        for bound, other in (node.args, node.args[::-1]):
            if is_limit(bound):
                yield node, _replaced(source, BOUND, node, source.text(other), normalised(other))
    elif name in _PARSERS:
        for index, argument in enumerate(node.args):
            if _is_number(argument):
                huge = ast.parse(_ENDLESS, mode="eval").body
                yield changed([*node.args[:index], huge, *node.args[index + 1 :]], f"without {normalised(argument)}")
    for keyword in node.keywords:
        if keyword.arg == "timeout":
            yield node, _without(source, node, keyword, BOUND)


# -- check moved after use


def _moves(source: Source) -> Edits:
    """A guard, behind the next statement that is no guard itself: among themselves their order rarely matters."""
    for node in ast.walk(source.tree):
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list):
                yield from _moved(source, statements)


def _moved(source: Source, statements: list[ast.stmt]) -> Edits:
    for index, guard in enumerate(statements):
        if not (is_guard(guard) and isinstance(guard, ast.If) and not guard.orelse):
            continue
        following = (statement for statement in statements[index + 1 :] if not is_guard(statement))
        use = next(following, None)
        # Behind the end of the function a check is not made at all, and that is another kind.
        if use is None or isinstance(use, _EXITS) or not _uses(use, guard.test):
            continue
        first, between = source.line_start(guard.lineno), source.line_start((guard.end_lineno or guard.lineno) + 1)
        last = source.line_start((use.end_lineno or use.lineno) + 1)
        text = source.data[between:last] + source.data[first:between]
        what = f"if {shortened(normalised(guard.test))} ⇄ {shortened(normalised(use))}"
        yield guard, Edit(MOVED, first, last, text, what)


def _uses(statement: ast.stmt, test: ast.expr) -> bool:
    """Whether a statement does something with what is checked: it has a name in common, and calls something.

    What only takes a text apart may be done before the check as well.
    """
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return False
    checked = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)} - {"isinstance", "len", "str"}
    used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    called = {
        getattr(node.func, "attr", "") or getattr(node.func, "id", "")
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
    }
    return bool(checked & used and called - _HARMLESS_CALLS)
