# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The actions that make a bundle and send from it. Modules and connection are fakes, files are real."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.swarmspeed.cluster.plugins.action import (
    bundle_collect,
    bundle_image,
    bundle_manifest,
    bundle_send,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bundle.manifest import (
    MANIFEST,
    Entry,
    Manifest,
    render,
)

SYSTEM = {"distribution": "debian", "release": "12", "architecture": "x86_64"}
NAME = "debian-12-amd64"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def deb(name: str, data: bytes) -> dict[str, Any]:
    stanza = (
        f"Package: {name}\nVersion: 2\nArchitecture: amd64\nFilename: ./{name}.deb\n"
        f"Size: {len(data)}\nSHA256: {sha256(data)}"
    )
    entry = {"name": name, "version": "2", "source": f"{name} 2", "file": f"{name}.deb", "size": len(data)}
    return {**entry, "sha256": sha256(data), "stanza": stanza}


class Node:
    """A host whose modules answer by a function; what is fetched from it and sent to it lies in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.requested: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []

    def action(self, plugin: Any, *, check: bool = False, **args: Any) -> dict[str, Any]:
        shell = SimpleNamespace(tmpdir=str(self.folder), join_path=lambda *parts: "/".join(parts))
        action = plugin.ActionModule(
            task=SimpleNamespace(args=args, check_mode=check, async_val=0, diff=False, action="bundle"),
            connection=SimpleNamespace(_shell=shell, fetch_file=shutil.copyfile),
            play_context=None,
            loader=None,
            templar=None,
            shared_loader_obj=None,
        )
        action._execute_module = self.execute
        action._transfer_file = shutil.copyfile
        result: dict[str, Any] = action.run(task_vars={})
        return result

    def execute(self, **requested: Any) -> dict[str, Any]:
        self.requested.append(requested["module_args"])
        return self.answers.pop(0)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "node")


def archive(node: Node, **files: bytes) -> str:
    for name, data in files.items():
        (node.folder / f"{name}.deb").write_bytes(data)
    with tarfile.open(node.folder / "packages.tar", "w") as tar:
        for name in files:
            tar.add(node.folder / f"{name}.deb", arcname=f"{name}.deb")
    return str(node.folder / "packages.tar")


def test_only_what_is_lacking_or_damaged_is_fetched(tmp_path: Path, node: Node) -> None:
    bundle = tmp_path / "bundle"
    debs = [deb("one", b"one"), deb("two", b"two")]
    requested: dict[str, Any] = {"bundle": str(bundle), "system": SYSTEM, "groups": []}
    node.answers = [{"debs": debs}, {"archive": archive(node, one=b"one", two=b"two")}, {}]
    result = node.action(bundle_collect, **requested)
    assert (result["changed"], result["system"], result["fetched"]) == (True, NAME, ["one.deb", "two.deb"])
    assert "stanza" not in result["packages"][0]
    folder = bundle / "apt" / NAME
    assert sorted(path.name for path in folder.iterdir()) == ["Packages", "one.deb", "two.deb"]

    node.answers = [{"debs": debs}]
    assert node.action(bundle_collect, **requested)["changed"] is False

    (folder / "one.deb").write_bytes(b"0ne")
    node.answers = [{"debs": debs}, {"archive": archive(node, one=b"one")}, {}]
    assert node.action(bundle_collect, **requested)["fetched"] == ["one.deb"]
    assert node.requested[-2]["lacking"] == ["one.deb"]
    assert (folder / "one.deb").read_bytes() == b"one"


def test_what_roles_would_install_on_an_empty_host_is_resolved(tmp_path: Path, node: Node) -> None:
    node.answers = [{"debs": []}]
    groups = [
        {"prefix": "host", "packages": ["chrony"]},
        {"prefix": "docker", "request": {"source": "distribution", "version": ""}},
        {
            "prefix": "nvidia_container_toolkit",
            "request": {"version": "1.18.2", "repository_url": "https://x.example.com/deb", "repository_key": "key"},
        },
        {"prefix": "workspace", "packages": []},
    ]
    system = {**SYSTEM, "codename": "bookworm"}
    node.action(bundle_collect, check=True, bundle=str(tmp_path / "bundle"), system=system, groups=groups)
    (sent,) = node.requested
    host, docker, toolkit = sent["groups"]
    assert host == {"prefix": "host", "packages": ["chrony"]}
    assert docker["prefix"] == "docker" and "docker.io" in docker["packages"] and not docker["locked"]
    assert toolkit["locked"] == toolkit["packages"] and toolkit["version"] == "1.18.2"
    assert "request" not in {**docker, **toolkit}
    assert "URIs: https://x.example.com/deb/amd64\n" in sent["sources"] and sent["without"]


def test_check_mode_says_what_would_be_fetched(tmp_path: Path, node: Node) -> None:
    node.answers = [{"debs": [deb("one", b"one")]}]
    result = node.action(bundle_collect, check=True, bundle=str(tmp_path / "bundle"), system=SYSTEM, groups=[])
    assert (result["changed"], result["fetched"]) == (True, ["one.deb"])
    assert not (tmp_path / "bundle").exists()


def test_what_arrives_otherwise_is_not_taken(tmp_path: Path, node: Node) -> None:
    node.answers = [{"debs": [deb("one", b"one")]}, {"archive": archive(node, one=b"0ne")}, {}]
    with pytest.raises(AnsibleActionFail, match=r"one\.deb did not arrive as it was sent"):
        node.action(bundle_collect, bundle=str(tmp_path / "bundle"), system=SYSTEM, groups=[])
    assert list((tmp_path / "bundle" / "apt" / NAME).iterdir()) == []


def test_what_apt_says_is_passed_on(tmp_path: Path, node: Node) -> None:
    node.answers = [{"failed": True, "msg": "apt has no package motor."}]
    result = node.action(bundle_collect, bundle=str(tmp_path), system=SYSTEM, groups=[])
    assert (result["failed"], result["msg"]) == (True, "apt has no package motor.")


def made(tmp_path: Path) -> Path:
    bundle = tmp_path / "bundle"
    folder = bundle / "apt" / NAME
    folder.mkdir(parents=True)
    debs = [deb("one", b"one"), deb("two", b"two")]
    for entry in debs:
        (folder / entry["file"]).write_bytes(entry["name"].encode())
    (folder / "Packages").write_text("".join(f"{entry['stanza']}\n\n" for entry in debs), encoding="utf-8")
    return bundle


def listed(tmp_path: Path) -> Path:
    """A bundle with its manifest."""
    bundle = made(tmp_path)
    packages = (bundle / "apt" / NAME / "Packages").read_bytes()
    one = Entry(f"apt/{NAME}/Packages", len(packages), sha256(packages), "index")
    text = render(Manifest("now", "swarmspeed.cluster", (NAME,), "cpu", {}, (one,)))
    (bundle / MANIFEST).write_text(text, encoding="utf-8")
    return bundle


def test_a_node_gets_what_it_lacks_and_a_list_of_that(tmp_path: Path, node: Node) -> None:
    node.answers = [{"installed": {"one:amd64": "3"}}, {"changed": True}]
    result = node.action(bundle_send, bundle=str(listed(tmp_path)), system=SYSTEM, packages=["two"])
    assert (result["changed"], result["sent"], result["bytes"]) == (True, ["two.deb"], 3)
    with tarfile.open(node.folder / "packages.tar") as tar:
        found = {member.name: tar.extractfile(member) for member in tar}
        texts = {name: content.read() for name, content in found.items() if content}
    assert sorted(texts) == ["Packages", "Release", "two.deb"]
    assert b"Package: two\n" in texts["Packages"] and b"Package: one\n" not in texts["Packages"]
    assert sha256(texts["Packages"]) in texts["Release"].decode()
    assert node.requested[1]["files"] == {name: sha256(data) for name, data in texts.items()}


def test_check_mode_sends_nothing(tmp_path: Path, node: Node) -> None:
    node.answers = [{"installed": {}}]
    result = node.action(bundle_send, check=True, bundle=str(listed(tmp_path)), system=SYSTEM)
    assert (result["changed"], result["sent"]) == (True, ["one.deb", "two.deb"])
    assert list(node.folder.iterdir()) == []


def test_what_does_not_fit_is_passed_on(tmp_path: Path, node: Node) -> None:
    node.answers = [{"installed": {}}, {"failed": True, "msg": "apt cannot install two from the bundle: no."}]
    result = node.action(bundle_send, bundle=str(listed(tmp_path)), system=SYSTEM)
    assert (result["failed"], result["msg"]) == (True, "apt cannot install two from the bundle: no.")


def test_an_image_is_saved_once(tmp_path: Path, node: Node) -> None:
    bundle, image = tmp_path / "bundle", node.folder / "image.tar"
    image.write_bytes(b"image")
    found = {"stdout": f"sha256:{'ab' * 32}\n"}
    node.answers = [found, {}, {}, {"stdout": f"{sha256(b'image')}  image.tar\n"}]
    result = node.action(bundle_image, bundle=str(bundle), name="team:1")
    assert (result["changed"], result["path"]) == (True, f"image/{'ab' * 12}.tar")
    assert node.requested[1]["argv"] == ["docker", "save", "--output", str(image), "--", "team:1"]
    node.answers = [found]
    assert node.action(bundle_image, bundle=str(bundle), name="team:1")["changed"] is False
    # The same image by another name is another archive: the name is in it.
    node.answers = [found, {}, {}, {"stdout": f"{sha256(b'other')}  image.tar\n"}]
    with pytest.raises(AnsibleActionFail, match="the image did not arrive as it was sent"):
        node.action(bundle_image, bundle=str(bundle), name="team:2")


def test_an_engine_that_refuses_is_quoted(tmp_path: Path, node: Node) -> None:
    node.answers = [{"failed": True, "rc": 1, "stderr": "No such image: team:1"}]
    with pytest.raises(AnsibleActionFail, match="docker image inspect failed on this host: No such image: team:1"):
        node.action(bundle_image, bundle=str(tmp_path), name="team:1")


def finish(node: Node, bundle: Path, names: list[str], **more: Any) -> dict[str, Any]:
    packages = [deb(name, name.encode()) for name in names]
    collected = [{"system": NAME, "packages": packages}]
    return node.action(
        bundle_manifest, bundle=str(bundle), collected=collected, accelerator="cpu", variables={"a": ["b"]}, **more
    )


def test_the_manifest_is_written_last_and_only_when_something_is_new(tmp_path: Path, node: Node) -> None:
    bundle = made(tmp_path)
    (bundle / "apt" / NAME / "old.deb").write_bytes(b"old")
    archive_file, wheels = tmp_path / "image.tar", tmp_path / "wheels"
    archive_file.write_bytes(b"image")
    wheels.mkdir()
    (wheels / "tool-1.0.tar.gz").write_bytes(b"wheel")
    more: dict[str, Any] = {"image": {"name": "team:1"}, "archive": str(archive_file), "wheelhouse": str(wheels)}
    result = finish(node, bundle, names=["one", "two"], **more)
    assert (result["changed"], result["files"]) == (True, 6)
    assert result["removed"] == [f"apt/{NAME}/old.deb"]
    document = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    assert document["image"] == {"name": "team:1", "id": "", "path": f"image/{sha256(b'image')[:24]}.tar"}
    assert document["made_for"] == {"systems": [NAME], "accelerator": "cpu", "variables": {"a": ["b"]}}
    assert {entry["path"] for entry in document["files"]} == {
        path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()
    } - {"manifest.json"}

    before = document
    assert finish(node, bundle, names=["one", "two"], **more)["changed"] is False
    assert finish(node, bundle, names=["one", "two"], **more, built=True)["changed"] is True
    document = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    assert document["image"]["holds"] == "libibverbs1 ibverbs-providers py-spy==0.4.3"
    assert finish(node, bundle, names=["one", "two"], **more)["changed"] is True
    document = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    assert {**document, "made_at": before["made_at"]} == before


def test_a_bundle_that_is_not_whole_gets_no_manifest(tmp_path: Path, node: Node) -> None:
    bundle = made(tmp_path)
    (bundle / "apt" / NAME / "two.deb").unlink()
    with pytest.raises(AnsibleActionFail, match=rf"apt/{NAME}/two\.deb is missing\. Remedy: run bundle\.yml again"):
        finish(node, bundle, names=["one", "two"])
    assert not (bundle / "manifest.json").exists()
