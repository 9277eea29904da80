# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes the table of variables in each role's README from its specs and constraints; nothing outside the two marks.

Usage: ``python -m tests.role_readme [--check]``. With --check nothing is written, and the exit status is 1 when a table
is stale. The unit test tests/unit/test_docs.py asks the same.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "collections")]

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.constraints import Rule
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.variables import constraints

ROLES = ROOT / "roles"
BEGIN = "<!-- variables: begin (written by tests/role_readme.py from meta/) -->"
END = "<!-- variables: end -->"

_MARKUP = re.compile(r"\b(?:RV|[BCEIMOPUV])\(([^()]*)\)")
"""Ansible's semantic markup, https://docs.ansible.com/ansible/latest/dev_guide/ansible_markup.html"""


class ReadmeError(ValueError):
    """A README cannot be kept; the text names the file and what to do."""


def plain(text: str) -> str:
    """Return a description as Markdown in one line that a table can hold."""
    return " ".join(_MARKUP.sub(r"`\1`", text).split()).replace("|", "\\|")


def default_of(option: dict[str, Any]) -> str:
    """Return the table's cell for a default: JSON, which is YAML too; a dash where there is none."""
    if option.get("default") is None:
        return "-"
    return f"`{json.dumps(option['default'], ensure_ascii=False)}`"


def type_of(option: dict[str, Any], rule: Rule | None = None) -> str:
    """Return ``list of str`` and the like, and what its constraint allows beyond that."""
    kind = str(option.get("type", "str"))
    is_list = kind == "list"
    found = f"{kind} of {option['elements']}" if option.get("elements") else kind
    found += ", or a text that is split as a shell does" if rule is not None and rule.shell else ""
    if rule is None or rule.free_text or "choices" in option or kind == "bool" or rule.allowed == "a mapping":
        return found
    allowed = f"{'each ' if is_list else ''}{rule.allowed}{', or empty' if rule.empty else ''}"
    return f"{found}: {allowed}".replace("|", "\\|")


def row(name: str, option: dict[str, Any]) -> str:
    """Return one line of the table."""
    reported = option["description"]
    text = plain(" ".join(reported) if isinstance(reported, list) else reported)
    if option.get("choices"):
        text += f" One of {', '.join(f'`{json.dumps(choice)}`' for choice in option['choices'])}."
    if option.get("required"):
        text += " Must be given."
    return f"| `{name}` | {type_of(option, constraints().get(name))} | {default_of(option)} | {text} |"


def table(spec: dict[str, Any]) -> str:
    """Return the table of a role's variables, or a sentence where it has none."""
    options = spec["argument_specs"]["main"].get("options") or {}
    if not options:
        return "None."
    head = "| variable | value | default | description |\n|---|---|---|---|\n"
    return head + "\n".join(row(name, option) for name, option in options.items())


def refreshed(readme: str, spec: dict[str, Any], where: str) -> str:
    """Return the README with a fresh table between its marks. Raises ``ReadmeError`` without exactly one pair."""
    before, begin, rest = readme.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in after:
        raise ReadmeError(f"{where}: needs one line '{BEGIN}' and after it one line '{END}'.")
    return f"{before}{BEGIN}\n{table(spec)}\n{END}{after}"


def stale(role: Path) -> str | None:
    """Return the fresh text of a role's README when it differs from the file, else None."""
    readme = role / "README.md"
    if not readme.is_file():
        raise ReadmeError(f"{readme}: is missing. Copy another role's and change its words.")
    found = readme.read_text(encoding="utf-8")
    spec = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    fresh = refreshed(found, spec, str(readme))
    return fresh if fresh != found else None


def main(arguments: list[str]) -> int:
    """Refresh every role's README; the exit status is 1 when --check finds one stale, or one cannot be kept."""
    check = arguments == ["--check"]
    if arguments and not check:
        print("usage: python -m tests.role_readme [--check]", file=sys.stderr)
        return 2
    left = 0
    for role in sorted(path for path in ROLES.iterdir() if path.is_dir()):
        try:
            fresh = stale(role)
        except ReadmeError as error:
            print(error, file=sys.stderr)
            left = 1
            continue
        if fresh is None:
            continue
        if check:
            left = 1
        else:
            (role / "README.md").write_text(fresh, encoding="utf-8")
        print(f"{role.name}/README.md {'is stale: run python -m tests.role_readme' if check else 'written'}")
    return left


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
