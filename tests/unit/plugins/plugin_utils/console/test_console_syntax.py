# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files of an inventory that are not YAML: one sentence, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.console.files_io import inventory_problems
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.console.syntax import syntax_problem

QUOTES = "a value that begins with {{ must be in quotes. Remedy: write "


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        (
            "cluster:\n\thosts:\n\t\tgpu1:\n",
            2,
            "is indented with a tab, which YAML does not allow. Remedy: write spaces.",
        ),
        ("a:\n  b: 1\n \tc: 2\n", 3, "is indented with a tab, which YAML does not allow. Remedy: write spaces."),
        ("a: 1\nb: {{ x }}\nc: 2\n", 2, f'{QUOTES}b: "{{{{ x }}}}"'),
        ("a: 1\nb: {{ x }}/data\nc: 2\n", 2, f'{QUOTES}b: "{{{{ x }}}}/data"'),
        ('b: {{ x["y"] }}\n', 1, f"{QUOTES}b: \"{{{{ x['y'] }}}}\""),
        ("a:\n  - {{ x }}\n", 2, f'{QUOTES}"{{{{ x }}}}"'),
        ("a:\n  - b: {{ x }}/y\n", 2, f'{QUOTES}b: "{{{{ x }}}}/y"'),
        ("a: 1\nb: c: 2\n", 2, "is not valid YAML (mapping values are not allowed in this context)."),
        ("a: [1, 2\nb: 3\n", 2, "is not valid YAML (did not find expected ',' or ']')."),
        ("a: 'x\n", 2, "is not valid YAML (found unexpected end of stream)."),
        ("---\na: 1\n---\nb: 2\n", 3, "is not valid YAML (but found another document)."),
    ],
)
def test_what_is_wrong(text: str, line: int, expected: str) -> None:
    assert syntax_problem("hosts.yml", text).startswith(f"hosts.yml, line {line}: {expected}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\n# nothing yet\n",
        'a: "{{ x }}"\nb: "a\tb"\nc: a\t# tab behind a value\n',
        "a: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\nb: !unsafe '{{ x }}'\n",
        "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
        "a: &one {b: 1}\nc: *one\nd: {<<: *one}\n",
        "a: &loop [*loop]\n",
        "a: |\n  {{ x }}\n",
    ],
)
def test_what_ansible_reads_is_not_refused(text: str) -> None:
    assert syntax_problem("hosts.yml", text) == ""


def test_a_character_that_yaml_does_not_have() -> None:
    assert syntax_problem("hosts.yml", "a: \x01\n").startswith("hosts.yml: is not YAML (")


def test_which_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = "a:\n\tb: 1\n"
    read = ["hosts.yml", "group_vars/all.yaml", "group_vars/cluster/main", "host_vars/gpu1.yml"]
    others = [
        "hosts.ini",
        "notes.txt",
        "group_vars/.swp.yml",
        "group_vars/README.md",
        "files/x.yml",
        "group_vars/.git/a.yml",
    ]
    for name in [*read, *others]:
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(bad, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    expected = {f"mine/{name}" for name in read}
    for sources in (["mine"], ["mine/hosts.yml"], ["mine", "mine/hosts.yml"]):
        found = inventory_problems(sources)
        assert {problem.partition(",")[0] for problem in found} == expected
        assert len(found) == len(read)
    assert inventory_problems(["gpu1,gpu2,", "missing"]) == []


def test_the_example_is_right() -> None:
    assert inventory_problems([str(Path(__file__).parents[5] / "inventories" / "example")]) == []
