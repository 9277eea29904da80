# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What whoever supplies a bundle could do, or whoever can write into it on its way. One attack a test.

All of them go through what preflight asks before any host is contacted, and through the actions that use the files.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleError
from ansible_collections.swarmspeed.cluster.plugins.action import bundle_collect, bundle_manifest, bundle_send
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bundle.files import problems

NAME = "debian-12-amd64"
SYSTEM = {"distribution": "debian", "release": "12", "architecture": "x86_64"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def entry(path: str, data: bytes, kind: str) -> dict[str, Any]:
    return {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "kind": kind}


def stanza(name: str, data: bytes) -> str:
    digest = hashlib.sha256(data).hexdigest()
    known = f"Package: {name}\nVersion: 1\nArchitecture: amd64\nFilename: ./{name}.deb"
    return f"{known}\nSize: {len(data)}\nSHA256: {digest}\n\n"


FILES: dict[str, tuple[bytes, str]] = {
    f"apt/{NAME}/one.deb": (b"one", "deb"),
    f"apt/{NAME}/Packages": (stanza("one", b"one").encode(), "index"),
    "image/ab.tar": (b"image", "image"),
    "wheels/torch-1-py3-none-any.whl": (b"wheel", "wheel"),
}


def made(folder: Path, **changed: Any) -> Path:
    """A bundle as bundle.yml makes one."""
    for name, (data, dummy) in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    document = {
        "format": 1,
        "made_at": "2026-11-23T10:00:00Z",
        "made_by": "swarmspeed.cluster",
        "made_for": {"systems": [NAME], "accelerator": "cpu", "variables": {}},
        "image": {"name": "team:1", "id": "", "path": "image/ab.tar"},
        "files": [entry(name, data, kind) for name, (data, kind) in FILES.items()],
    }
    (folder / "manifest.json").write_text(json.dumps({**document, **changed}), encoding="utf-8")
    return folder


def reported(folder: Path) -> list[str]:
    found = [problem.text for problem in problems(str(folder), {})]
    assert all(text.isprintable() and len(text) < 2000 for text in found)
    return found


def test_an_honest_bundle_passes(tmp_path: Path) -> None:
    assert reported(made(tmp_path / "b")) == []
    assert reported(tmp_path / "b") == []  # and so the second time, from memory


def test_the_bundle_says_itself_that_it_was_verified(tmp_path: Path) -> None:
    """Its own .verified was believed: size, times and inode can be foretold by whoever writes the folder last."""
    bundle = made(tmp_path / "b")
    path = bundle / "wheels/torch-1-py3-none-any.whl"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(b"evil!")
    status = path.stat()
    mark = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    seen = {"wheels/torch-1-py3-none-any.whl": [*mark, digest]}
    (bundle / ".verified").write_text(json.dumps(seen), encoding="utf-8")
    assert reported(bundle) == ["wheels/torch-1-py3-none-any.whl is damaged (its SHA-256 differs)"]


def test_a_memory_that_somebody_else_could_write_is_not_believed(tmp_path: Path) -> None:
    bundle = made(tmp_path / "b")
    assert reported(bundle) == []
    memory = next((tmp_path / "cache").rglob("*.json"))
    assert oct(memory.stat().st_mode & 0o777) == "0o600"
    path = bundle / "image/ab.tar"
    path.write_bytes(b"evil!")
    known = json.loads(memory.read_text(encoding="utf-8"))
    status = path.stat()
    known["image/ab.tar"][:5] = [
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_dev,
    ]
    memory.write_text(json.dumps(known), encoding="utf-8")
    memory.chmod(0o666)
    assert reported(bundle) == ["image/ab.tar is damaged (its SHA-256 differs)"]


@pytest.mark.parametrize(
    "name",
    [
        "wheels/torch-99-py3-none-any.whl",  # pip takes the newest
        f"apt/{NAME}/two.deb",
        "wheels/.hidden",
        "run.sh",
        "wheels/a\nb.whl",
    ],
)
def test_a_planted_file_that_the_manifest_does_not_list(tmp_path: Path, name: str) -> None:
    bundle = made(tmp_path / "b")
    (bundle / name).write_bytes(b"evil")
    shown = name.replace("\n", "\\n")
    assert reported(bundle) == [f"{bundle} holds what manifest.json does not list: {shown} is not in its list"]


def test_a_file_of_the_manifest_is_a_link(tmp_path: Path) -> None:
    bundle = made(tmp_path / "b")
    (tmp_path / "elsewhere").write_bytes(b"wheel")
    path = bundle / "wheels/torch-1-py3-none-any.whl"
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    assert reported(bundle) == [
        f"{bundle} holds what manifest.json does not list: wheels/torch-1-py3-none-any.whl is a link"
    ]


def test_a_folder_of_the_bundle_is_a_link(tmp_path: Path) -> None:
    bundle = made(tmp_path / "b")
    shutil.move(bundle / "wheels", tmp_path / "wheels")
    (bundle / "wheels").symlink_to(tmp_path / "wheels")
    assert reported(bundle) == [f"{bundle} holds what manifest.json does not list: wheels is a link"]


def test_a_pipe_in_the_bundle_is_not_waited_for(tmp_path: Path) -> None:
    bundle = made(tmp_path / "b")
    os.mkfifo(bundle / "wheels/wait.whl")
    assert reported(bundle) == [
        f"{bundle} holds what manifest.json does not list: wheels/wait.whl is not a regular file"
    ]


@pytest.mark.parametrize(
    "path", ["../outside.tar", "/etc/shadow", "wheels/torch-1-py3-none-any.whl", "image/none.tar", 7, "image/a\nb"]
)
def test_the_images_path_leads_out(tmp_path: Path, path: Any) -> None:
    """The archive at this path is sent to a node and loaded."""
    bundle = made(tmp_path / "b", image={"name": "team:1", "id": "", "path": path})
    (found,) = reported(bundle)
    assert "image.path is " in found


@pytest.mark.parametrize("name", ["--privileged", "a b", "a\nb", "", "$(id)", "x" * 5000])
def test_the_images_name_is_an_option(tmp_path: Path, name: str) -> None:
    bundle = made(tmp_path / "b", image={"name": name, "id": "", "path": "image/ab.tar"})
    (found,) = reported(bundle)
    assert "image.name is " in found


@pytest.mark.parametrize(
    "path", ["../x", "/x", "a/../../x", "a//b", "./a", "a/", "-rf", "wheels/-e", "a\nb", "a\\b", "\x1b[2J", "x" * 5000]
)
def test_a_path_of_the_manifest_leads_out(tmp_path: Path, path: str) -> None:
    bundle = made(tmp_path / "b", files=[entry(path, b"", "wheel")])
    (found,) = reported(bundle)
    assert "is not a path below the bundle" in found


def test_a_manifest_without_an_end(tmp_path: Path) -> None:
    bundle = made(tmp_path / "b")
    (bundle / "manifest.json").write_text("[" * 200_000, encoding="utf-8")
    (found,) = reported(bundle)
    assert "is not a manifest" in found


def test_a_manifest_that_is_a_link(tmp_path: Path) -> None:
    bundle = made(tmp_path / "b")
    shutil.move(bundle / "manifest.json", tmp_path / "manifest.json")
    (bundle / "manifest.json").symlink_to(tmp_path / "manifest.json")
    (found,) = reported(bundle)
    assert "manifest.json cannot be read" in found


def action(plugin: Any, answers: list[Any], folder: Path, **args: Any) -> Any:
    shell = SimpleNamespace(tmpdir=str(folder), join_path=lambda *parts: "/".join(parts))
    built = plugin.ActionModule(
        task=SimpleNamespace(args=args, check_mode=False, async_val=0, diff=False, action="attack"),
        connection=SimpleNamespace(_shell=shell, fetch_file=shutil.copyfile),
        play_context=None,
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )
    built._execute_module = lambda **requested: answers.pop(0)
    built._transfer_file = shutil.copyfile
    return built


@pytest.mark.parametrize("name", ["one.deb", "Packages"])
def test_a_file_that_is_changed_after_it_was_verified_is_not_sent(tmp_path: Path, name: str) -> None:
    """The bytes that go to a node are the ones whose digest is compared."""
    bundle, node = made(tmp_path / "b"), tmp_path / "node"
    node.mkdir()
    path = bundle / "apt" / NAME / name
    path.write_bytes(path.read_bytes().replace(b"one", b"0ne"))
    built = action(bundle_send, [{"installed": {}}, {}], node, bundle=str(bundle), system=SYSTEM)
    with pytest.raises(AnsibleError, match="has changed since it was verified"):
        built.run(task_vars={})


def test_a_link_in_a_bundle_that_is_re_created_is_not_written_through(tmp_path: Path) -> None:
    """A bundle that somebody supplied is brought up to date with bundle.yml, by the controller's user."""
    bundle, node = made(tmp_path / "b"), tmp_path / "node"
    node.mkdir()
    victim = tmp_path / "victim"
    victim.mkdir()
    shutil.rmtree(bundle / "apt")
    (bundle / "apt").symlink_to(victim)
    (node / "one.deb").write_bytes(b"one")
    with tarfile.open(node / "packages.tar", "w") as tar:
        tar.add(node / "one.deb", arcname="one.deb")
    deb = {"name": "one", "version": "1", "source": "one 1", "file": "one.deb", "size": 3}
    deb |= {"sha256": hashlib.sha256(b"one").hexdigest(), "stanza": stanza("one", b"one").strip()}
    answers = [{"debs": [deb]}, {"archive": str(node / "packages.tar")}, {}]
    built = action(bundle_collect, answers, node, bundle=str(bundle), system=SYSTEM, groups=[])
    with pytest.raises(AnsibleError, match="is a link, which is not followed"):
        built.run(task_vars={})
    assert list(victim.iterdir()) == []


def test_a_link_where_a_part_of_a_file_is_written(tmp_path: Path) -> None:
    """The name of what is not yet whole could be foretold, and a link of that name was written through."""
    bundle, victim = tmp_path / "b", tmp_path / "victim"
    made(bundle)
    victim.write_text("precious", encoding="utf-8")
    (bundle / "manifest.json.part").symlink_to(victim)
    (bundle / "manifest.json").unlink()
    deb = {"name": "one", "version": "1", "source": "one 1", "file": "one.deb", "size": 3}
    deb["sha256"] = hashlib.sha256(b"one").hexdigest()
    collected = [{"system": NAME, "packages": [deb]}]
    args = {"bundle": str(bundle), "collected": collected, "accelerator": "cpu", "variables": {}}
    action(bundle_manifest, [], tmp_path, **args).run(task_vars={})
    assert victim.read_text(encoding="utf-8") == "precious"


def test_a_manifest_is_not_made_of_files_outside(tmp_path: Path) -> None:
    bundle = made(tmp_path / "b")
    (tmp_path / "secret").write_bytes(b"key")
    deb = {"name": "one", "version": "1", "source": "one 1", "file": "../../../secret", "size": 3}
    deb["sha256"] = hashlib.sha256(b"key").hexdigest()
    collected = [{"system": NAME, "packages": [deb]}]
    args = {"bundle": str(bundle), "collected": collected, "accelerator": "cpu", "variables": {}}
    with pytest.raises(AnsibleError, match="cannot be the name of a file or folder in it"):
        action(bundle_manifest, [], tmp_path, **args).run(task_vars={})
