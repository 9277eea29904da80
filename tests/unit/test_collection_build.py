# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The tarball holds what git tracks for users, and nothing of what lies about in a checkout that is worked with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from tests.release.stand_in import small
from tests.release.tarball import build, digest, repack

ROOT = Path(__file__).parents[2]
OF_THE_CHECKOUT = (
    ".ansible-lint",
    ".ci",
    ".config/molecule",
    ".github",
    ".gitignore",
    ".yamllint",
    "changelogs/fragments/.gitkeep",
    "collections",
    "execution-environment.yml",
    "galaxy.yml",
    "inventories/lab",
    "molecule",
    "tests",
    # Each imports the playbook of its name, which is called by its full name where the collection is installed.
    *sorted(path.name for path in ROOT.glob("*.yml") if (ROOT / "playbooks" / path.name).exists()),
)
"""What is tracked and only a checkout needs."""
LITTER = (
    ".vault_pass",
    ".vault_pass.txt",
    "vault_password",
    "prod.vault_pass",
    ".env",
    ".env.yml",
    "prod.env",
    "id_ed25519",
    "id_rsa.pub",
    "server.pem",
    "tls.key",
    "vault.yml",
    "my-vault.yaml",
    "plan.json",
    ".netrc",
)
"""Names of what is to stay at home; a copy of each lies in every folder."""
UNUSUAL = ("no extension", "Schlüssel", "notes.txt~", "dump.sql", "core.1234", "-rf", "a\nb.yml.bak")
OWN = (
    "inventories/mine/hosts.yml",
    "inventories/mine/group_vars/cluster.yml",
    "inventories/mine/group_vars/all/vault.yml",
    "inventories/mine/group_vars/all/main.yml",
    "inventories/example/group_vars/all/main.yml",
    "inventories/example/host_vars/gpu1.yml",
    "inventories/other.ini",
    "examples/mine/train.py",
    "examples/digits/vars.mine.yml",
    "playbooks/mine.yml",
    "mine.yml",
    "host_vars/gpu1.yml",
    "group_vars/all.yml",
    "roles/mine/vars/main.yml",
    "roles/docker/vars/secrets.yml",
    "jobs/digits/launcher.log",
    "reports/cluster.html",
    "docs/notes.txt",
    "backup/inventories/mine/hosts.yml",
)
"""What somebody who works in a checkout makes there."""


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-c", "safe.directory=*", *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def tracked() -> list[str]:
    return [name for name in git(ROOT, "ls-files", "-z").split("\0") if name and (ROOT / name).exists()]


def below(name: str, folders: Sequence[str]) -> bool:
    return any(name == folder or name.startswith(f"{folder}/") for folder in folders)


@pytest.fixture(scope="module")
def littered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tracked files in which secrets lie in every folder."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    folders = {copy, *((copy / name).parent for name in tracked() if not name.startswith("tests/"))}
    for folder in sorted(folders):
        for name in (*LITTER, *UNUSUAL):
            (folder / name).write_text("a secret\n", encoding="utf-8")
        (folder / ".ssh").mkdir()
        (folder / ".ssh" / "main.yml").write_text("a secret\n", encoding="utf-8")
        (folder / "link.yml").symlink_to(".env")
    for name in OWN:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("a secret\n", encoding="utf-8")
    return copy


def test_the_tarball_holds_the_tracked_files_for_users_and_no_other(littered: Path, tmp_path: Path) -> None:
    path = build(littered, tmp_path, 1_700_000_000)
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    held = {member.name for member in members if not member.isdir()}
    expected = {name for name in tracked() if not below(name, OF_THE_CHECKOUT)}
    assert sorted(held - expected - {"MANIFEST.json", "FILES.json"}) == []
    assert sorted(expected - held) == [] and len(expected) > 900
    assert {(member.mtime, member.uid, member.gid, member.uname, member.gname) for member in members} == {
        (1_700_000_000, 0, 0, "", "")
    }


def test_files_of_another_time_and_umask_give_the_same_bytes(tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    small(first)
    shutil.copytree(first, again)
    for file in [path for path in again.rglob("*") if path.is_file()]:
        file.chmod(0o700 if file.stat().st_mode & 0o100 else 0o600)
        os.utime(file, (1_500_000_000, 1_500_000_000))
    built = build(first, tmp_path / "built", 1_700_000_000)
    assert digest(build(again, tmp_path / "again_built", 1_700_000_000)) == digest(built)
    repack(built, tmp_path / "later.tar.gz", 1_800_000_000)
    assert digest(tmp_path / "later.tar.gz") != digest(built)


def test_git_takes_nothing_of_them_either(littered: Path) -> None:
    git(littered, "init", "--quiet")
    offered = git(littered, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
    secrets = {name for name in offered if name.rpartition("/")[2] in LITTER}
    assert sorted(secrets) == []
    inventories = [name for name in offered if name.startswith("inventories/")]
    assert [name for name in inventories if not below(name, ("inventories/example", "inventories/lab"))] == []


def test_git_ignores_no_tracked_file() -> None:
    assert git(ROOT, "ls-files", "--cached", "--ignored", "--exclude-standard") == ""


def test_the_importer_of_galaxy_knows_the_modules_of_other_collections() -> None:
    files = [path for folder in ("roles", "playbooks") for path in (ROOT / folder).glob("**/*.yml")]
    tasks = "\n".join(path.read_text(encoding="utf-8") for path in files)
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    others = "|".join(re.escape(name) for name in galaxy["dependencies"])
    used = set(re.findall(rf"^[ -]*((?:{others})\.\w+):", tasks, re.MULTILINE))
    lint = yaml.safe_load((ROOT / ".config/ansible-lint.yml").read_text(encoding="utf-8"))
    assert sorted(used) == lint["mock_modules"] and len(used) > 5
