# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes schemas/cluster.schema.json, by which editors complete and check variables, from specs and constraints.

Usage: ``python -m tests.write_schema``. The unit test tests/unit/test_schema.py fails while the file is stale. A schema
says less than the constraints do (a template is taken everywhere, and programs judge some kinds), and never more.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "collections")]

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.constraints import Rule
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.variables import constraints, role_specs

FILE = ROOT / "schemas" / "cluster.schema.json"
TEMPLATE = {"$ref": "#/definitions/template"}
BOOLEAN = {"$ref": "#/definitions/boolean"}
_WORDS = ("yes", "no", "on", "off", "true", "false", "y", "n", "t", "f", "1", "0")
_YES_OR_NO = f"^({'|'.join([*_WORDS, *(word.capitalize() for word in _WORDS[:6])])})$"
_TYPES: dict[str, dict[str, Any]] = {
    "bool": BOOLEAN,
    "dict": {"type": "object"},
    "float": {"type": ["number", "string"]},
    "int": {"type": ["integer", "string"]},
    "path": {"type": ["string", "number"]},
    "raw": {},
    "str": {"type": ["string", "number"]},
}


def plain(description: Any) -> str:
    """Return a description without Ansible's markup."""
    text = " ".join(description) if isinstance(description, list) else str(description)
    text = re.sub(r"\b[OVCIBMF]\(([^()]*(?:\([^()]*\))?[^()]*)\)", r"\1", text)
    return re.sub(r"\b[LU]\(([^(),]*)(?:,\s*[^()]*)?\)", r"\1", text)


def scalar(rule: Rule, option: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a value that is no collection may be."""
    if option.get("choices"):
        return {"enum": list(option["choices"])}
    found = dict(_TYPES.get(str(option.get("type", "str")), {}))
    if rule.free_text or option.get("type") == "bool":
        return found
    if rule.least is not None:
        found["minimum"] = rule.least
    if rule.most is not None:
        found["maximum"] = rule.most
    if rule.barred:
        found["not"] = {"enum": list(rule.barred)}
    patterns = [kind.pattern for kind in rule.kinds]
    if all(patterns):
        found["pattern"] = "|".join(f"^(?:{pattern})$" for pattern in patterns)
    words = [*rule.words, *([""] if rule.empty else [])]
    return {"anyOf": [{"enum": words}, found]} if words and found else found


def below(rule: Rule) -> dict[str, Any]:
    """Return what a mapping may hold, whose keys are in no argument spec."""
    found: dict[str, Any] = {"type": "object"}
    if rule.keys:
        found["properties"] = {key: part(inner) for key, inner in rule.keys.items()}
        if not rule.names:
            found["additionalProperties"] = False
    if rule.names and all(kind.pattern for kind in rule.names.kinds):
        found["propertyNames"] = {"pattern": "|".join(f"^(?:{kind.pattern})$" for kind in rule.names.kinds)}
    if rule.needs:
        found["required"] = list(rule.needs)
    return found


def part(rule: Rule) -> dict[str, Any]:
    """Return what stands below a key of a mapping: a value or a list of them."""
    if rule.keys or rule.names or rule.values:
        return taken(below(rule))
    one = scalar(rule, {"type": "raw"})
    return taken(one, {"type": "array", "items": taken(one)})


def taken(*schemas: dict[str, Any]) -> dict[str, Any]:
    """Return these, a template, or nothing."""
    return {"anyOf": [*schemas, TEMPLATE]} if all(schemas) else {}


def variable(rule: Rule, option: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of one variable."""
    kind = str(option.get("type", "str"))
    mapping = bool(rule.keys or rule.names or rule.values)
    if kind == "list":
        element = {**option, "type": option.get("elements", "raw")}
        item = below(rule) if mapping else scalar(rule, element)
        # Ansible splits a text at its commas; where the constraint says so, it is split as a shell does.
        value = taken({"type": "array", "items": taken(item)}, {"type": ["string", "number"]})
    else:
        value = taken(below(rule) if mapping else scalar(rule, option))
    return {"description": plain(option.get("description", "")), **value}


def schema() -> dict[str, Any]:
    """Return the whole."""
    options, rules = role_specs().options, constraints()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Variables of swarmspeed.cluster",
        "description": "For group_vars, host_vars and files of variables. Made by tests/write_schema.py.",
        "type": ["object", "null"],
        "definitions": {
            "template": {"anyOf": [{"type": "string", "pattern": r"\{[{%]"}, {"type": "null"}]},
            "boolean": {"anyOf": [{"type": "boolean"}, {"enum": [0, 1]}, {"type": "string", "pattern": _YES_OR_NO}]},
        },
        "properties": {name: variable(rules[name], options[name]) for name in sorted(options)},
    }


def text() -> str:
    """Return the file's text."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text(), encoding="utf-8")
