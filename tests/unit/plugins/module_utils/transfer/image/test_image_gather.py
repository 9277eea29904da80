# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a node tells before a transfer: its store, and where that keeps images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image import gather as image_gather
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.gather import (
    engine_root,
    gather,
    image_store,
)

# DriverStatus as recorded of Docker 20.10 and 26.1; the addresses are from docs.docker.com/reference/api/engine.
OVERLAY2 = {"DriverStatus": [["Backing Filesystem", "extfs"], ["Supports d_type", "true"]]}
CONTAINERD = {"DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]}


def test_stores_are_distinguished() -> None:
    assert [image_store(info) for info in (OVERLAY2, CONTAINERD, {})] == ["graph", "containerd", "graph"]


@pytest.mark.parametrize(
    ("info", "store", "root"),
    [
        ({}, "graph", "/var/lib/docker"),
        ({"DockerRootDir": "/data"}, "graph", "/data"),
        ({"DockerRootDir": "/data"}, "containerd", "/var/lib/containerd"),
        ({"Containerd": {"Address": "/run/containerd/containerd.sock"}}, "containerd", "/var/lib/containerd"),
        (
            {"DockerRootDir": "/data", "Containerd": {"Address": "/var/run/docker/containerd/containerd.sock"}},
            "containerd",
            "/data/containerd",
        ),
    ],
)
def test_where_images_are_kept(
    info: dict[str, Any], store: str, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_gather, "CONTAINERD", str(tmp_path / "config.toml"))
    assert engine_root(info, store) == root
    (tmp_path / "config.toml").write_text('version = 3\n# root = "/no"\nroot = "/big"\n[plugins]\n  root_path = "/x"\n')
    assert engine_root(info, store) == root.replace("/var/lib/containerd", "/big")


def test_an_image_without_one_for_this_machine_is_none(tmp_path: Path) -> None:
    class Engine:
        def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
            if path == "/images/gone:1/json":
                raise EngineError("No such image", 404)
            return {"/info": {}, "/images/json": []}.get(path, {"Id": "sha256:i", "Os": "", "Architecture": ""})

    assert gather(Engine(), "t/index:1", tmp_path)["image"] == {}
    assert gather(Engine(), "gone:1", tmp_path)["image"] == {}
