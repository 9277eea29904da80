# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Shell and YAML blocks of all documents can be run and read: syntax, options, extra variables, variables of make."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from ansible.cli import CLI
from ansible.cli.adhoc import AdHocCLI
from ansible.cli.doc import DocCLI
from ansible.cli.galaxy import GalaxyCLI
from ansible.cli.playbook import PlaybookCLI
from ansible.cli.vault import VaultCLI
from ansible.parsing.splitter import parse_kv
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.variables import role_specs

from tests.documents import DOCUMENTS, ROOT, blocks, commands, text

CLIS: dict[str, type[CLI]] = {
    "ansible": AdHocCLI,
    "ansible-doc": DocCLI,
    "ansible-galaxy": GalaxyCLI,
    "ansible-playbook": PlaybookCLI,
    "ansible-vault": VaultCLI,
}
every_document = pytest.mark.parametrize("document", [document for document in DOCUMENTS if blocks(document, "sh")])
COMMANDS = [(document, command) for document in DOCUMENTS for command in commands(document)]


def parsed(command: str) -> Any:
    """Return the options of a command of Ansible's, as it reads them itself; a wrong one ends the process."""
    words = shlex.split(command)
    cli = CLIS[words[0]](words)
    cli.init_parser()
    try:
        return cli.parser.parse_args(words[1:])
    except SystemExit:
        pytest.fail(command)


def names_of(extra: str) -> set[str]:
    """Return the variables that one -e sets."""
    if extra.startswith("@"):
        assert (ROOT / extra[1:]).is_file(), extra
        return set(yaml.safe_load((ROOT / extra[1:]).read_text(encoding="utf-8")))
    return set(json.loads(extra) if extra.startswith("{") else parse_kv(extra))


def known_to(playbook: str) -> set[str]:
    """Return the variables of all roles, and those that the playbook itself reads."""
    name = playbook.removesuffix(".yml").removeprefix("swarmspeed.cluster.")
    own = ROOT / f"playbooks/{name}.yml"
    read = re.findall(r"[a-z]+_\w+", own.read_text(encoding="utf-8")) if own.is_file() else []
    return {*role_specs().options, *read}


@every_document
def test_blocks_are_shell(document: str) -> None:
    script = "\n".join(blocks(document, "sh"))
    answer = subprocess.run(["bash", "-n"], input=script, check=False, capture_output=True, text=True)
    assert answer.stderr == "" and answer.returncode == 0


@pytest.mark.parametrize(
    ("document", "command"), [(document, command) for document, command in COMMANDS if command.split()[0] in CLIS]
)
def test_options_and_extra_variables_exist(document: str, command: str) -> None:
    given = parsed(command)
    for extra in getattr(given, "extra_vars", None) or []:
        unknown = names_of(extra) - known_to(given.args[0])
        assert sorted(unknown) == [], f"{document}: {command}"


@pytest.mark.parametrize(
    ("document", "command"), [(document, command) for document, command in COMMANDS if command.startswith("make ")]
)
def test_variables_of_make_exist(document: str, command: str) -> None:
    makefile = text("Makefile")
    for name in re.findall(r"(?<=\s)([A-Z_]+)=", command):
        assert re.search(rf"\$\((?:value )?{name}\)|\b{name}\b *\?=|\$\((?:if|or) \$\({name}\)", makefile), command


def test_modules_of_python_exist() -> None:
    named = {found[1] for _document, command in COMMANDS if (found := re.match(r"python3? -m ([\w.]+)", command))}
    assert named
    assert [name for name in named if importlib.util.find_spec(name) is None] == []


def keys_of(value: Any) -> Iterator[str]:
    """Yield the keys of a block, but for those within a variable's value or a module's options."""
    for part in value if isinstance(value, list) else [value]:
        for key, inner in part.items() if isinstance(part, dict) else ():
            yield str(key)
            if not role_specs().prefix(str(key)) and not re.fullmatch(r"\w+\.\w+\.\w+", str(key)):
                yield from keys_of(inner)


@pytest.mark.parametrize("document", [document for document in DOCUMENTS if blocks(document, "yaml")])
def test_blocks_are_yaml_with_variables_that_exist(document: str) -> None:
    for block in blocks(document, "yaml"):
        for part in yaml.safe_load_all(textwrap.dedent(block)):
            named = {key for key in keys_of(part) if role_specs().prefix(key)}
            assert sorted(named - set(role_specs().options)) == []


@pytest.mark.parametrize(
    "command",
    [
        "ansible-playbook site.yml -e cluster_nam=x",
        "ansible-playbook site.yml -e '{\"cluster_nam\": 1}'",
        "ansible-playbook site.yml -e init_servers=10.0.0.1",
        "ansible-playbook site.yml -e @examples/none.yml",
        "ansible-playbook site.yml --chek",
    ],
)
def test_a_wrong_command_is_noticed(command: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_options_and_extra_variables_exist("a page", command)
