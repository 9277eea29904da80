"""The tarball holds what the checkout holds; by full names alone it finds the cluster as the checkout left it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.installed import Installed
from tests.playbook_run import ROOT

RELEASED = ("playbooks", "roles", "plugins", "meta", "docs", "examples", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed() -> Installed:
    made = Installed(Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "galaxy")
    made.install()
    return made


def test_modules_come_from_the_installed_collection(installed: Installed) -> None:
    name = "swarmspeed.cluster.training_job"
    described = json.loads(installed.run("ansible-doc", "--json", name).output)
    assert described[name]["doc"]["filename"].startswith(str(installed.root))


def test_every_file_is_that_of_the_checkout(installed: Installed) -> None:
    # With what is new and not yet committed, as somebody who works on it has.
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", *RELEASED]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    expected = {name for name in names if (ROOT / name).is_file()}
    inside = {str(path.relative_to(installed.root)) for path in installed.root.rglob("*") if path.is_file()}
    assert sorted(expected - inside) == [] and len(expected) > 500
    here = {name: (ROOT / name).read_bytes() for name in expected}
    assert {name: (installed.root / name).read_bytes() for name in expected} == here


def test_nothing_of_the_workshop_is_inside(installed: Installed) -> None:
    top = {path.name for path in installed.root.iterdir()}
    assert not top & {".lab", ".git", ".venv", ".cache", ".ci", "collections", "molecule", "tests"}
    assert not [path for path in installed.root.rglob("*") if path.name.startswith("id_ed25519")]


def test_site_by_name_has_nothing_to_do(installed: Installed) -> None:
    again = installed.play("site").done(change=False)
    assert "not started again" in again.text
