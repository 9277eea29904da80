# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Models and data sets in an offline bundle: all of them, each file once, and nothing of the controller's own files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action import asset_sources, bundle_manifest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.cache_io import Cache
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.gathered import manifest_path
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.http_io import Http
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import Manifest, from_text, to_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.sources import AssetError, sources
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bundle.files import problems, read_manifest

from tests.hub_stand_in import Hub

FILES = {"config.json": b"{}", "net.bin": bytes(range(256))}


def run(action: Any, **args: Any) -> dict[str, Any]:
    """Run an action of the controller; defaults as in its argument spec."""

    class Action(action):  # type: ignore[misc]  # a class that is given
        def __init__(self) -> None:
            self._task = SimpleNamespace(args=args, check_mode=False, async_val=0)

        def validate_argument_spec(self, argument_spec: Any = None, **more: Any) -> Any:
            return None, {**{name: option.get("default") for name, option in argument_spec.items()}, **args}

    made: dict[str, Any] = Action().run(task_vars={})
    return made


@pytest.fixture
def requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A model of the stand-in and a folder with one of its files; the hub is gone when the test begins."""
    monkeypatch.setattr(ActionBase, "run", lambda *dummy: {})
    (tmp_path / "data").mkdir()
    (tmp_path / "data/same.json").write_bytes(b"{}")
    hub = Hub().begin()
    hub.repositories = {"team/net": {"main": FILES}}
    found: dict[str, Any] = {
        "sources": [
            {"name": "net", "huggingface": {"repository": "team/net"}},
            {"name": "mine", "folder": str(tmp_path / "data")},
        ],
        "endpoint": hub.address,
    }
    bundle = tmp_path / "bundle"
    made = run(asset_sources.ActionModule, **found, cache=str(tmp_path / "cache"), bundle=str(bundle))
    hub.close()
    arguments = {"bundle": str(bundle), "collected": [], "accelerator": "cpu", "variables": {}, "image": {}}
    run(bundle_manifest.ActionModule, **arguments, assets=made["collected"])
    return found


def bundled(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "bundle/assets", Http(sleep=lambda seconds: None), token=False, bundled=True)


def test_a_bundle_has_every_file_once_and_lists_them(requested: dict[str, Any], tmp_path: Path) -> None:
    entries = {entry.path: entry.kind for entry in read_manifest(tmp_path / "bundle").files}
    blobs = {f"assets/blobs/{hashlib.sha256(data).hexdigest()}" for data in FILES.values()}
    assert {path for path, kind in entries.items() if kind == "asset"} == blobs
    assert len(entries) == 4
    assert list(problems(str(tmp_path / "bundle"), {})) == []


def test_from_a_bundle_nothing_is_asked_and_no_other_file_of_the_controller_is_named(
    requested: dict[str, Any], tmp_path: Path
) -> None:
    cache, listed = bundled(tmp_path), sources(requested["sources"], requested["endpoint"])
    before = sorted(path for path in (tmp_path / "bundle").rglob("*"))
    for source in listed:
        found = cache.resolve(source, refresh=True)
        assert cache.lacking(found, [file[2] for file in found.files]) == []
        assert not found.origins
    assert sorted(path for path in (tmp_path / "bundle").rglob("*")) == before
    # Whoever can write in a bundle writes a list that names a file of the controller.
    digest = hashlib.sha256(b"secret").hexdigest()
    path = manifest_path(tmp_path / "bundle/assets", listed[1])
    path.write_text(to_text(Manifest("x", "", (("x", 6, digest),), {digest: "/etc/shadow"})))
    assert cache.path(cache.resolve(listed[1]), digest) == tmp_path / f"bundle/assets/blobs/{digest}"
    path.write_text(to_text(Manifest("x", "", (("../x", 6, digest),))))
    assert from_text(path.read_text()) is None


def test_what_is_not_in_a_bundle_is_one_sentence(requested: dict[str, Any], tmp_path: Path) -> None:
    (source,) = sources(
        [{"name": "net", "huggingface": {"repository": "team/net", "revision": "v2"}}], requested["endpoint"]
    )
    with pytest.raises(AssetError) as caught:
        bundled(tmp_path).resolve(source)
    assert str(caught.value) == (
        "assets_sources: net: it is not in the bundle as it is requested. Remedy: run bundle.yml again where there is "
        "internet access (it fetches only what is missing or damaged), and copy the folder again"
    )
    listed = run(asset_sources.ActionModule, **requested, cache=str(tmp_path / "bundle/assets"), bundled=True)
    assert set(listed["assets"]) == {"net", "mine"} and listed["fetched"] == []


def test_a_folder_that_changed_while_it_was_copied_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ActionBase, "run", lambda *dummy: {})
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x").write_bytes(b"1")
    requested: dict[str, Any] = {"sources": [{"name": "mine", "folder": str(tmp_path / "data")}]}
    original = Cache.lacking

    def changing(self: Cache, *args: Any) -> Any:
        (tmp_path / "data/x").write_bytes(b"2")
        return original(self, *args)

    monkeypatch.setattr(Cache, "lacking", changing)
    with pytest.raises(
        Exception,
        match=r"^assets_sources: mine: x has changed on the controller during the transfer\. Remedy: run again\.$",
    ):
        run(asset_sources.ActionModule, **requested, cache=str(tmp_path / "cache"), bundle=str(tmp_path / "bundle"))
    assert not [path for path in (tmp_path / "bundle/assets/blobs").iterdir() if path.is_file()]
