# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Archives for an engine of each kind of store."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.load import (
    GROUP,
    LABEL,
    Archive,
    for_containerd,
    for_graph_driver,
    groups,
    partial_config,
    plain_blob,
)
from hypothesis import given
from hypothesis import strategies as st


def hexed(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def written(archive: Archive) -> dict[str, bytes]:
    out = io.BytesIO()
    archive.write(out)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        return {name: tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]


def test_for_a_graph_driver_all_layers_are_named_and_those_held_of_which_there_are_files(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"layer b")
    archive = for_graph_driver(b"{}", ["sha256:a", "sha256:b"], {"sha256:b": tmp_path / "b"})
    assert archive.identity == f"sha256:{hexed(b'{}')}"
    files = written(archive)
    assert json.loads(files.pop("manifest.json")) == [
        {"Config": f"{hexed(b'{}')}.json", "RepoTags": None, "Layers": ["a.tar", "b.tar"]}
    ]
    assert files == {"b.tar": b"layer b", f"{hexed(b'{}')}.json": b"{}"}


def test_for_containerd_the_manifest_names_blobs_that_the_store_has_already(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"layer b")
    there = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": "sha256:zipped", "size": 5}
    new = plain_blob("sha256:b", tmp_path / "b")
    assert new == {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": "sha256:b", "size": 7}
    archive = for_containerd(b"{}", [there, new], {"sha256:b": tmp_path / "b"})
    files = written(archive)

    def blob(described: dict[str, Any]) -> bytes:
        text = files[f"blobs/sha256/{described['digest'].removeprefix('sha256:')}"]
        assert (described["digest"], described["size"]) == (f"sha256:{hexed(text)}", len(text))
        return text

    (target,) = json.loads(files["index.json"])["manifests"]
    assert (target["digest"], "annotations" in target) == (archive.identity, False)
    manifest = json.loads(blob(target))
    assert manifest["layers"] == [there, new]
    assert blob(manifest["config"]) == b"{}"
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    assert files["blobs/sha256/b"] == b"layer b"
    assert "blobs/sha256/zipped" not in files


def test_a_partial_image_has_a_label_to_be_found_by() -> None:
    config = json.loads(partial_config(["sha256:a"], "linux", "amd64", "/spool"))
    assert config["config"] == {"Labels": {LABEL: "/spool"}}
    assert config["rootfs"] == {"type": "layers", "diff_ids": ["sha256:a"]}


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [
        ([], []),
        ([1], [1]),
        ([1, 2, 3], [3]),
        ([GROUP, 1, 1], [1, 2]),
        ([1, GROUP, 1], [1, 1, 1]),
        ([3 * GROUP, 3 * GROUP], [1, 1]),
    ],
)
def test_small_layers_are_loaded_together(sizes: list[int], counts: list[int]) -> None:
    assert groups(sizes) == counts


@given(st.lists(st.integers(0, 2 * GROUP)))
def test_every_layer_is_in_one_group(sizes: list[int]) -> None:
    found = groups(sizes)
    assert sum(found) == len(sizes)
    place = 0
    for count in found:
        assert count == 1 or sum(sizes[place : place + count]) <= GROUP
        place += count
