# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Where the collection is installed, what is copied from it, and files that are written whole."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init import folder_io
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.folder_io import (
    collections,
    installed,
    part,
    read_folder,
    release,
    short,
    write_folder,
)

from tests.init_servers import ROOT


def copy_at(place: Path) -> Path:
    (place / "ansible_collections/swarmspeed/cluster/plugins").mkdir(parents=True)
    return place


def test_a_second_place_is_found_and_links_to_one_place_count_once(tmp_path: Path) -> None:
    other = copy_at(tmp_path / "other")
    (tmp_path / "link").symlink_to(other)
    (tmp_path / "empty").mkdir()
    search = [str(ROOT / "collections"), *(str(tmp_path / name) for name in ("empty", "other", "link"))]
    assert installed(search) == [str(folder_io.ROOT), str(other / "ansible_collections/swarmspeed/cluster")]


def test_a_collection_where_ansible_searches_needs_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert collections() == str(folder_io.COLLECTIONS)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(folder_io, "COLLECTIONS", tmp_path / ".ansible/collections")
    assert collections() == ""
    monkeypatch.setattr(folder_io, "COLLECTIONS", tmp_path / "lib/site-packages")
    assert collections() == ""


def test_the_release_is_that_of_a_checkout_or_a_tarball(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert release() == yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    monkeypatch.setattr(folder_io, "ROOT", tmp_path)
    (tmp_path / "MANIFEST.json").write_text('{"collection_info": {"version": "3.2.1"}}', encoding="utf-8")
    assert release() == "3.2.1"


@pytest.mark.parametrize(
    "path", ["schemas/cluster.schema.json", "examples/digits/vars.yml", "examples/digits/train.py"]
)
def test_what_is_copied_is_there(path: str) -> None:
    assert part(path)


def test_paths_below_the_home_folder_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert short("/home/ada/.ssh/key") == "~/.ssh/key"
    assert short("/home/adam/.ssh/key") == "/home/adam/.ssh/key"


def test_what_is_written_is_read_again_and_the_vault_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "a/b"
    texts = {"hosts.yml": "x\n", "group_vars/all/vault.yml": "$ANSIBLE_VAULT;\n", "code/train.py": ""}
    write_folder(folder, texts)
    assert read_folder(folder) == texts
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert modes == {"hosts.yml": 0o644, "vault.yml": 0o600, "train.py": 0o644}
    assert read_folder(tmp_path / "none") == {}
