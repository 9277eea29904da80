# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is wrong with a YAML file of an inventory, in one sentence with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from ...module_utils.common.reported import escaped

_TAB = re.compile(r" *\t")
_TEMPLATE = re.compile(r"""^\s*(?:-\s+)*(?:([^\s'"#{][^'"#{]*?)\s*:\s+)?(\{\{.*\S)\s*$""")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
VAULT = "$ANSIBLE_VAULT;"


def syntax_problem(path: str, text: str) -> str:
    """Return what keeps a file from being read as YAML, or nothing. Its values are not checked."""
    if text.startswith(VAULT):
        return ""
    lines = text.splitlines()
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return _sentence(path, lines, mark.line if mark else 0, str(error.problem or error.context or "").strip())
    except yaml.YAMLError as error:  # a character that YAML does not have
        return f"{path}: is not YAML ({escaped(' '.join(str(error).split()))}). Remedy: save it as UTF-8 text."
    for node in _nodes(root):
        for key, _value in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key, yaml.ScalarNode):  # what {{ … }} without quotes is
                return _sentence(path, lines, key.start_mark.line, "a mapping or a list is used as a key")
    return ""


def _nodes(root: yaml.Node | None) -> Iterator[yaml.Node]:
    waiting, known = [root] if root is not None else [], set()
    while waiting:
        node = waiting.pop()
        if id(node) in known or isinstance(node, yaml.ScalarNode):  # an alias may lead in a circle
            continue
        known.add(id(node))
        yield node
        parts = node.value
        waiting += [part for pair in parts for part in pair] if isinstance(node, yaml.MappingNode) else list(parts)


def _sentence(path: str, lines: list[str], line: int, problem: str) -> str:
    # A parser notices some errors only on the line after.
    for number in (line, line - 1):
        text = lines[number] if 0 <= number < len(lines) else ""
        template = _TEMPLATE.match(text)
        where = f"{path}, line {number + 1}"
        if _TAB.match(text):
            return f"{where}: is indented with a tab, which YAML does not allow. Remedy: write spaces."
        if template:
            name, value = template.groups()
            quoted = value.replace("\\", "\\\\").replace('"', "'")
            quoted = escaped(f'{name}: "{quoted}"' if name else f'"{quoted}"')
            return f"{where}: a value that begins with {{{{ must be in quotes. Remedy: write {quoted}"
    return (
        f"{path}, line {line + 1}: is not valid YAML ({escaped(problem)}). Remedy: correct this line or the one before."
    )
