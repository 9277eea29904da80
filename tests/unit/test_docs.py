# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the documents name exists: targets, playbooks, tags, variables, paths, links, checks and their messages.

Every shell command in a document stands in a fenced ``sh`` block.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.role_specs import RENAMED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.variables import role_specs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.facts import FACT_CHECKS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import INVENTORY_CHECKS
from ansible_collections.swarmspeed.cluster.tests.role_readme import default_of, refreshed, stale, table, type_of

from tests.documents import DOCUMENTS, MINE, ROOT, blocks, cells, coded, commands, reported, spans, targets, text
from tests.release.prepare import TARBALL

ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
HEADINGS = ["Variables", "What verify asserts", "What teardown undoes", "Alone"]
PLAYBOOKS = (
    *("site", "verify", "launch", "status", "stop", "teardown"),
    *("bench_network", "report", "bundle", "plan", "tensorboard", "doctor", "init"),
)
PAGES = {"bundle": "offline"}
"""Playbooks whose page has another name, because it covers more than the playbook."""

every_document = pytest.mark.parametrize("document", DOCUMENTS)
every_role = pytest.mark.parametrize("role", ROLES)


def option(name: str) -> dict[str, Any]:
    return dict(role_specs().options[name])


def tags() -> set[str]:
    """Return the tags that a user may ask for: those of site.yml, and those inside its roles."""
    found: set[str] = {"preflight"}
    for path in [*(ROOT / "playbooks").glob("**/*.yml"), *sorted((ROOT / "roles").glob("*/tasks/*.yml"))]:
        for listed in re.findall(r"tags: \[([^]]*)\]", path.read_text(encoding="utf-8")):
            found.update(word.strip() for word in listed.split(","))
    return found - {"always", "never"}


def other_names() -> set[str]:
    """Return names that begin like a role's variables and are something else: modules, roles, tags, scenarios …"""
    folders = ("plugins/modules", "plugins/action", "plugins/filter", "plugins/module_utils", "molecule")
    files = {path.stem for folder in folders for path in (ROOT / folder).iterdir()}
    return (
        files
        | set(ROLES)
        | tags()
        | set(RENAMED)
        | {*INVENTORY_CHECKS, *FACT_CHECKS, "docker_container", "docker_gwbridge"}
    )


def test_the_documents_are_all_there() -> None:
    expected = {"README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/troubleshooting.md"}
    expected |= {f"docs/{PAGES.get(name, name)}.md" for name in PLAYBOOKS}
    expected |= {f"roles/{role}/README.md" for role in ROLES}
    assert sorted(expected - set(DOCUMENTS)) == []


FOR_NEW_USERS = ("README.md", "docs/demo.md", "docs/installation.md", "docs/first_hour.md", "docs/huggingface.md")


@pytest.mark.parametrize("document", FOR_NEW_USERS)
def test_pages_for_new_users_have_no_shell_command_outside_sh_blocks(document: str) -> None:
    fences = re.findall(r"^ *```(\w*)$", text(document), re.MULTILINE)[::2]
    assert set(fences) <= {"sh", "text", *(("python", "yaml") if document == "docs/huggingface.md" else ())}
    outputs = "\n".join(blocks(document, "text"))
    assert re.findall(r"^(?:\$ )?(?:make|ansible-playbook|pip|cp) .*", outputs, re.MULTILINE) == []


def outputs(document: str) -> dict[str, str]:
    return dict(re.findall(r"<!-- OUTPUT: ([a-z ]+) -->\n```text\n(.*?)```", text(document), re.S))


def test_the_demo_shows_the_outputs_it_announces() -> None:
    shown = outputs("docs/demo.md")
    assert list(shown) == ["demo", "second run"]
    assert "accuracy on held-out digits" in shown["demo"] and "failed=0" in shown["demo"]
    assert "not started again" in shown["second run"]
    assert set(re.findall(r"changed=(\d+)", shown["second run"])) == {"0"}


def test_the_readme_shows_lines_of_the_demo_and_of_the_console() -> None:
    """The roles as the console shows them, which the folder that init writes chooses, and the job's own lines."""
    shown = outputs("README.md")
    assert list(shown) == ["demo"]
    console = text("docs/console.md").split("<!-- run: first_run -->\n```text\n")[1].split("```")[0]
    recorded = {*outputs("docs/demo.md")["demo"].splitlines(), *console.splitlines()}
    assert [line for line in shown["demo"].splitlines() if line not in recorded] == []


def test_the_readme_fits_on_one_screen_and_says_first_what_is_proven() -> None:
    readme = text("README.md")
    assert len(readme.split()) <= 500 and len(readme.splitlines()) <= 80
    untested = ("Ubuntu", "several GPUs", "several GPU servers", "InfiniBand", "RoCE")
    before = readme.split("## Six steps")[0]
    assert [what for what in untested if what not in before.partition("Not run yet")[2]] == []
    tested = {row[0]: row[1] for row in cells("docs/tested.md", "What is tested where", level=1)}
    assert tested["Ubuntu hosts"].startswith("not run") and tested["InfiniBand, RoCE"] == "not tested"
    assert "Not yet: several GPUs, several GPU servers" in tested["training on GPUs"]


@every_document
def test_make_targets_exist(document: str) -> None:
    named = {match[1] for line in reported(document) for match in [re.match(r"make ([a-z][a-z-]*)", line)] if match}
    assert sorted(named - set(targets())) == []


@every_document
def test_playbooks_and_inventories_exist(document: str) -> None:
    for command in commands(document):
        words = shlex.split(command)
        # A playbook of the reader's own, which the page itself shows.
        own = f"```yaml\n# {words[1]}\n" in text(document) if len(words) > 1 else False
        if words[0] == "ansible-playbook" and not own:
            playbook = words[1].removesuffix(".yml").removeprefix("swarmspeed.cluster.")
            assert playbook in PLAYBOOKS, command
            assert (ROOT / f"{playbook}.yml").is_file() and (ROOT / f"playbooks/{playbook}.yml").is_file(), command
        if "-i" in words:
            inventory = words[words.index("-i") + 1]
            assert inventory == MINE or (ROOT / inventory).is_dir(), command


@every_document
def test_tags_exist(document: str) -> None:
    named = {
        tag for line in reported(document) for tags_ in re.findall(r"--tags ([\w,]+)", line) for tag in tags_.split(",")
    }
    assert sorted(named - tags()) == []


@every_document
def test_variables_exist(document: str) -> None:
    known, others = role_specs(), other_names()
    named = {
        name
        for line in reported(document)
        for name in re.findall(r"(?<![\w./<-])([a-z][a-z0-9]*_[a-z0-9_]*[a-z0-9])(?![\w./(-])", line)
        if known.prefix(name) and name not in others
    }
    assert sorted(named - set(known.options)) == []


@every_document
def test_paths_exist(document: str) -> None:
    folders = ("collections", "docs", "examples", "inventories", "molecule", "playbooks", "plugins", "roles", "tests")
    spelt = {span.partition("::")[0] for span in spans(document)}  # without the function of a test
    named = {span for span in spelt if span.startswith(tuple(f"{folder}/" for folder in folders))}
    named = {span for span in named if not re.search(r"[<*…{ ]", span) and not span.startswith(MINE)}
    assert sorted(span for span in named if not (ROOT / span).exists()) == []


@every_document
def test_links_lead_somewhere(document: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text(document))
    folder = (ROOT / document).parent
    assert [link for link in links if not (folder / link).exists()] == []


def test_the_page_of_tags_lists_every_tag() -> None:
    listed = [coded(row[0])[0] for row in cells("docs/tags.md", "Tags", level=1)]
    assert sorted(listed) == sorted(tags())


def test_the_page_of_variables_gives_the_defaults_of_the_role_specs() -> None:
    rows = list(cells("docs/variables.md", "Variables that matter", level=1))
    assert len(rows) >= 20
    given = {coded(row[0])[0]: row[1] for row in rows}
    assert given == {name: default_of(option(name)) for name in given}


def test_the_documents_name_the_tarball_of_this_version() -> None:
    galaxy = yaml.safe_load(text("galaxy.yml"))
    named = {document: set(TARBALL.findall(text(document))) for document in DOCUMENTS}
    assert {name for names in named.values() for name in names} == {f"swarmspeed-cluster-{galaxy['version']}.tar.gz"}
    assert named["README.md"] and TARBALL.findall(text("execution-environment.yml")) == [max(named["README.md"])] * 2


@pytest.mark.parametrize("document", ["docs/verify.md", "docs/teardown.md", "docs/site.md"])
def test_pages_of_playbooks_mention_every_role(document: str) -> None:
    named = {name for line in text(document).splitlines() if line.startswith("|") for name in coded(line)}
    assert sorted(set(ROLES) - named - ({"preflight"} if document == "docs/site.md" else set())) == []


@pytest.mark.parametrize(
    ("heading", "checks"),
    [
        ("Checks before any connection", list(INVENTORY_CHECKS)),
        ("Checks on what was found", list(FACT_CHECKS)),
    ],
)
def test_every_check_is_explained_with_the_words_it_says(heading: str, checks: list[str]) -> None:
    packages = ("preflight", "versions", "bundle", "swarm", "overlay_network")
    sources = [path for package in packages for path in ROOT.glob(f"plugins/plugin_utils/{package}/*.py")]
    sources += ROOT.glob("plugins/plugin_utils/training_image/*.py")
    sources += [ROOT / "plugins/plugin_utils/plan/play_hosts.py"]
    sources += [ROOT / "plugins/plugin_utils/plan/places.py", ROOT / "plugins/plugin_utils/core/constraints.py"]
    sources += ROOT.glob("plugins/plugin_utils/training_container/*.py")
    source = "".join(text(str(path.relative_to(ROOT))) for path in sources)
    source = re.sub(r'"\s*\n\s*f?"', "", source)
    source = re.sub(r"\{[^{}\n]*\}", "…", source)
    rows = list(cells("docs/troubleshooting.md", heading))
    assert [coded(row[0])[0] for row in rows] == checks
    for row in rows:
        assert coded(row[1]) != []
        assert [message for message in coded(row[1]) if message not in source] == []


@every_role
def test_role_readmes_are_alike(role: str) -> None:
    document = f"roles/{role}/README.md"
    assert re.findall(r"^# (.*)$", text(document), re.MULTILINE) == [role]
    assert re.findall(r"^## (.*)$", text(document), re.MULTILINE) == HEADINGS
    assert commands(document) == [f"ansible-playbook site.yml -i {MINE} --tags {role}"]


@every_role
def test_role_readmes_say_whether_teardown_undoes_anything(role: str) -> None:
    section = text(f"roles/{role}/README.md").split("## What teardown undoes\n\n")[1]
    assert section.startswith("Nothing;") != (ROOT / "roles" / role / "tasks" / "teardown.yml").is_file()


@every_role
def test_tables_of_variables_are_fresh(role: str) -> None:
    assert stale(ROOT / "roles" / role) is None, "run: python -m tests.role_readme"


SPEC = {
    "argument_specs": {
        "main": {
            "options": {
                "swarm_a": {
                    "description": ["See M(a.b.c), O(swarm_b)", "and C(x|y)."],
                    "type": "list",
                    "elements": "str",
                    "default": ["é"],
                },
                "swarm_b": {"description": "V(1) or DNS(2).", "type": "str", "choices": ["", "on"]},
            }
        }
    }
}


def test_the_table_is_written_from_the_spec() -> None:
    assert table(SPEC).splitlines()[2:] == [
        '| `swarm_a` | list of str | `["é"]` | See `a.b.c`, `swarm_b` and `x\\|y`. |',
        '| `swarm_b` | str | - | `1` or DNS(2). One of `""`, `"on"`. |',
    ]
    assert default_of({"default": False}) == "`false`"
    assert type_of({}) == "str"


def test_only_the_table_is_written() -> None:
    readme = text("roles/host/README.md")
    fresh = refreshed(readme, SPEC, "README.md")
    begin, end = readme.index("<!-- variables: begin"), readme.index("<!-- variables: end -->")
    assert fresh.startswith(readme[:begin])
    assert fresh.endswith(readme[end:])
    assert "`swarm_a`" in fresh
    assert "host_packages" not in fresh
    assert refreshed(fresh, SPEC, "README.md") == fresh


@pytest.mark.parametrize("broken", ["no marks", "<!-- variables: end -->\n", "{both}{both}"])
def test_a_readme_without_one_pair_of_marks_is_refused(broken: str) -> None:
    readme = text("roles/host/README.md")
    with pytest.raises(ValueError, match=r"x/README\.md: needs one line '<!-- variables: begin"):
        refreshed(broken.replace("{both}", readme), SPEC, "x/README.md")
