# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the text of a training script shows: imports, uses of libraries, parsers. Never executed. Pure."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

_PARSERS = frozenset({"add_argument", "add_option", "option"})
"""argparse's ``add_argument``, optparse's ``add_option``, click's ``option``."""
_OWN_WAYS = frozenset(
    {"parse_known_args", "parse_known_intermixed_args", "REMAINDER", "argv", "import_module", "__import__"}
)
"""Who names one of these takes arguments, or code, that reading does not show."""
_WORDS = ("deepspeed", "ds_config")
_DEPTH = 300
"""How deep a script may be nested: Python 3.14 parses what earlier releases refuse; reading names takes its square."""


class UnreadableScriptError(ValueError):
    """The text is not Python that this controller can read; the text of the error says why, in a few words."""


@dataclass(frozen=True)
class Use:
    """A name of a library, with where it stands and whether it is imported or used there."""

    name: str
    line: int
    verb: str = "uses"


@dataclass(frozen=True)
class Option:
    """An option of a parser; ``flag``: it takes no value."""

    name: str
    line: int
    flag: bool = False


@dataclass
class Script:
    """What one file shows. ``uses`` and ``options`` are in the order of its lines.

    ``relative`` are imports by path from the file's own folder. ``own_ways``: arguments or code may reach it unseen.
    ``mentions``: DeepSpeed or its configuration is named in a string.
    """

    uses: list[Use] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    modules: set[str] = field(default_factory=set)
    relative: set[str] = field(default_factory=set)
    own_ways: bool = False
    mentions: bool = False


def read(text: str) -> Script:
    """Return what a file shows. Raises ``UnreadableScriptError``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the script's own, such as invalid escapes
            tree = ast.parse(text)
    except SyntaxError as error:
        raise UnreadableScriptError(
            f"line {error.lineno or 1} is not valid Python {sys.version_info[0]}.{sys.version_info[1]}"
        ) from None
    except (ValueError, RecursionError, MemoryError):
        raise UnreadableScriptError("it is nested too deeply, or holds null bytes") from None
    found = Script()
    aliases: dict[str, str] = {}
    nodes = sorted((node for node in _nodes(tree) if hasattr(node, "lineno")), key=lambda node: node.lineno)
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            _import(node, found, aliases)
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if id(node) not in prose or not isinstance(node, ast.Constant):  # docstrings say nothing of what is done
            _note(node, found, aliases)
    found.uses.sort(key=lambda use: use.line)
    return found


def _nodes(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes, as ``ast.walk``. Raises ``UnreadableScriptError`` where they are nested too deeply."""
    nodes: list[ast.AST] = []
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > _DEPTH:
            raise UnreadableScriptError(f"it is nested more than {_DEPTH} deep")
        nodes += level
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return nodes


def _import(node: ast.Import | ast.ImportFrom, found: Script, aliases: dict[str, str]) -> None:
    if isinstance(node, ast.Import):
        for name in node.names:
            found.modules.add(name.name)
            aliases[name.asname or name.name.partition(".")[0]] = (
                name.name if name.asname else name.name.partition(".")[0]
            )
            found.uses.append(Use(name.name, node.lineno, "imports"))
        return
    module = node.module or ""
    for name in node.names:
        whole = f"{module}.{name.name}" if module else name.name
        if node.level == 1:
            found.relative.update({module, whole} - {""})
        elif node.level == 0:
            found.modules.update({module, whole})
            aliases[name.asname or name.name] = whole
            found.uses.append(Use(whole, node.lineno, "imports"))
        else:
            found.own_ways = True  # from a folder above the script's


def _note(node: ast.AST, found: Script, aliases: dict[str, str]) -> None:
    if isinstance(node, ast.Attribute):
        name = _dotted(node, aliases)
        if name:
            found.uses.append(Use(name, node.lineno))
        found.own_ways = found.own_ways or node.attr in _OWN_WAYS
    elif isinstance(node, ast.Name):
        found.own_ways = found.own_ways or node.id in _OWN_WAYS
        if isinstance(node.ctx, ast.Load) and "." in aliases.get(node.id, ""):
            found.uses.append(Use(aliases[node.id], node.lineno))
    elif isinstance(node, ast.Call):
        found.options += _options(node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        found.mentions = found.mentions or any(word in node.value.lower() for word in _WORDS)


def _dotted(node: ast.Attribute, aliases: dict[str, str]) -> str:
    """Return the full name of ``module.attribute``; empty where it begins with something else than an import."""
    parts: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name) or inner.id not in aliases:
        return ""
    return ".".join([aliases[inner.id], *reversed(parts)])


def _options(node: ast.Call) -> Iterator[Option]:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called not in _PARSERS:
        return
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    action = given.get("action")
    flag = (isinstance(action, ast.Constant) and action.value != "store") or _true(given.get("is_flag"))
    for word in node.args:
        if isinstance(word, ast.Constant) and isinstance(word.value, str) and word.value.startswith("--"):
            yield Option(word.value, node.lineno, flag)


def _true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True
