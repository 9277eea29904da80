# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What meta/ says of the collection is true: action groups, and what a controller needs."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RUNTIME = yaml.safe_load((ROOT / "meta/runtime.yml").read_text(encoding="utf-8"))
ON_CONTROLLERS = [f"plugins/{kind}" for kind in ("action", "callback", "filter", "inventory", "plugin_utils")]
PACKAGES = {"yaml": "pyyaml"}
"""Names of packages that differ from those of their modules."""


def documentation(module: str) -> dict[str, Any]:
    found = re.search(
        r'DOCUMENTATION = r"""\n(.*?)"""', (ROOT / f"plugins/modules/{module}.py").read_text("utf-8"), re.DOTALL
    )
    assert found is not None
    return dict(yaml.safe_load(found[1]))


@pytest.mark.parametrize("group", sorted(RUNTIME["action_groups"]))
def test_an_action_group_has_options_in_common_and_its_modules_say_so(group: str) -> None:
    members = RUNTIME["action_groups"][group]
    assert len(members) > 1
    pages = [documentation(name) for name in members]
    fragment = f"swarmspeed.cluster.attributes.{group}"
    assert [page["module"] for page in pages if fragment not in page["extends_documentation_fragment"]] == []
    assert {"jobs_dir", "name"} <= set.intersection(*(set(page["options"]) for page in pages))
    modules = {path.stem: documentation(path.stem) for path in (ROOT / "plugins/modules").glob("*.py")}
    assert {name for name, page in modules.items() if {"jobs_dir", "name"} <= set(page.get("options") or ())} == set(
        members
    )


def imported(path: Path) -> set[str]:
    """Return the names that a file imports absolutely."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def test_the_requirements_of_a_controller_are_what_its_plugins_import() -> None:
    folders = [*ON_CONTROLLERS, "playbooks/callback_plugins"]
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    others = {"doc_fragments", "module_utils", "modules"}
    assert {path.name for path in (ROOT / "plugins").iterdir() if path.is_dir()} - others == {
        Path(folder).name for folder in ON_CONTROLLERS
    }
    own = {"ansible", "ansible_collections", "__future__"} | sys.stdlib_module_names
    needed = {PACKAGES.get(name, name) for path in files for name in imported(path) - own}
    listed = (ROOT / "meta/ee-requirements.txt").read_text(encoding="utf-8")
    assert needed == set(re.findall(r"^[a-z0-9-]+", listed, re.MULTILINE)) and "jinja2" in needed
