# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""`make release`: which versions the changelog allows, and what is written."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.release.prepare import ROOT, NotReady, check_version, sections, set_version, take_back

RELEASED = ("1.0.0", "1.9.3", "1.10.0")


@pytest.mark.parametrize(
    ("version", "released", "given"),
    [
        ("1.0.0", (), {"major_changes", "breaking_changes"}),
        ("1.10.1", RELEASED, {"bugfixes"}),
        ("1.10.1", RELEASED, {"security_fixes", "release_summary", "trivial"}),
        ("1.11.0", RELEASED, {"bugfixes"}),
        ("1.11.0", RELEASED, {"minor_changes", "deprecated_features"}),
        ("2.0.0", RELEASED, {"removed_features", "minor_changes"}),
        ("2.0.0", RELEASED, {"bugfixes"}),
    ],
)
def test_versions_that_are_allowed(version: str, released: tuple[str, ...], given: set[str]) -> None:
    check_version(version, released, given)


@pytest.mark.parametrize(
    ("version", "released", "given", "reason"),
    [
        ("0.2.0", (), {"bugfixes"}, "The first release is 1.0.0."),
        ("1.0.0", (), set(), "There is no fragment in changelogs/fragments."),
        ("1.0", (), {"bugfixes"}, "'1.0' is not a version such as 1.2.3."),
        ("1.0.0-rc.1", (), {"bugfixes"}, "'1.0.0-rc.1' is not a version such as 1.2.3."),
        (
            *("1.10.1", RELEASED, {"bugfixes", "minor_changes", "deprecated_features"}),
            "The next version is 1.11.0 or 2.0.0, because of deprecated_features, minor_changes.",
        ),
        (
            *("1.11.0", RELEASED, {"minor_changes", "breaking_changes"}),
            "The next version is 2.0.0, because of breaking_changes.",
        ),
        (
            *("1.10.0", RELEASED, {"bugfixes"}),
            "The next version is 1.10.1 or 1.11.0 or 2.0.0, because of fixes alone.",
        ),
        (
            *("1.10.2", RELEASED, {"bugfixes"}),
            "The next version is 1.10.1 or 1.11.0 or 2.0.0, because of fixes alone.",
        ),
    ],
)
def test_versions_that_are_refused(version: str, released: tuple[str, ...], given: set[str], reason: str) -> None:
    with pytest.raises(NotReady) as refused:
        check_version(version, released, given)
    assert str(refused.value) == reason


def test_the_sections_are_those_of_the_fragments_which_the_changelog_knows() -> None:
    config = yaml.safe_load((ROOT / "changelogs/config.yaml").read_text(encoding="utf-8"))
    known = {name for name, dummy in config["sections"]} | {config["prelude_section_name"], "trivial"}
    assert sections(ROOT) <= known


def test_the_version_is_written_into_galaxy_yml_and_the_names_of_the_tarball(tmp_path: Path) -> None:
    files = {
        "galaxy.yml": "name: cluster\nversion: 0.1.0\ndependencies:\n  x.y: '>=2.0.0'\n",
        "README.md": "install swarmspeed-cluster-0.1.0.tar.gz\nversion: 0.1.0\n",
        "docs/own/page.md": "swarmspeed-cluster-0.1.0.tar.gz, swarmspeed-cluster-0.1.0.asc and other-0.1.0.tar.gz\n",
        "docs/other.md": "nothing of it\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    changed = {str(path.relative_to(tmp_path)) for path in set_version(tmp_path, "1.0.0")}
    assert changed == {"galaxy.yml", "README.md", "docs/own/page.md"}
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in files} == {
        "galaxy.yml": "name: cluster\nversion: 1.0.0\ndependencies:\n  x.y: '>=2.0.0'\n",
        "README.md": "install swarmspeed-cluster-1.0.0.tar.gz\nversion: 0.1.0\n",
        "docs/own/page.md": "swarmspeed-cluster-1.0.0.tar.gz, swarmspeed-cluster-1.0.0.asc and other-0.1.0.tar.gz\n",
        "docs/other.md": "nothing of it\n",
    }


def test_a_release_that_was_prepared_becomes_a_fragment_again(tmp_path: Path) -> None:
    changes = {"release_summary": "The first: “all” of it.\n", "bugfixes": ["swarm - a fix."]}
    other = {"changes": {"release_summary": "Before."}, "release_date": "2026-10-01"}
    releases = {"1.0.0": other, "1.0.1": {"changes": changes, "fragments": ["a.yml"], "release_date": "2026-11-28"}}
    (tmp_path / "changelogs/fragments").mkdir(parents=True)
    changelog = tmp_path / "changelogs/changelog.yaml"
    changelog.write_text(yaml.safe_dump({"ancestor": None, "releases": releases}), encoding="utf-8")
    take_back(tmp_path, "1.0.1")
    fragment = (tmp_path / "changelogs/fragments/1.0.1.yml").read_text(encoding="utf-8")
    assert fragment.startswith("---\n") and yaml.safe_load(fragment) == changes
    assert yaml.safe_load(changelog.read_text(encoding="utf-8")) == {"ancestor": None, "releases": {"1.0.0": other}}
