# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""docker save, docker load and the engine's answers, with a stand-in for the docker command on PATH."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image import worker_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.archive import members
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.content import content_of_image
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.worker_io import SystemTransferIO
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.receive import TransferError

# As 28.5.2 wrote it when it could not unpack an image, with status 0 (2026-11-23, the digests shortened).
NOT_UNPACKED = (
    "Loaded image ID: sha256:238b\n"
    'Error unpacking image sha256:238b: apply layer error for "moby-dangling@sha256:238b": failed to extract layer '
    "sha256:1bd9: NotFound: failed to get reader from content store: content digest sha256:1bd9: not found\n"
)
FULL = f"Error unpacking image sha256:238b: write /{'x' * 300}: no space left on device\n"


class FakeEngine:
    def __init__(self, error: EngineError | None = None) -> None:
        self.calls: list[tuple[str, str]] = []
        self.error = error

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        self.calls.append((method, path))
        if self.error:
            raise self.error
        return {"Os": "linux", "Architecture": "amd64"}


def docker(folder: Path, monkeypatch: pytest.MonkeyPatch, reported: str = "", status: int = 0) -> SystemTransferIO:
    (folder / "said").write_text(reported)
    program = folder / "docker"
    program.write_text(
        f"#!/bin/sh\n[ $1 = save ] || cat >{folder}/loaded\n"
        f"cat {folder}/said {'>&2' if status else ''}\nexit {status}\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(worker_io, "find_program", lambda name: str(folder / name))
    return SystemTransferIO(folder, "run", FakeEngine())


def write(out: BinaryIO) -> None:
    out.write(b"archive")


def test_what_is_written_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker(tmp_path, monkeypatch, "Loaded image ID: sha256:238b\n").load(write)
    assert (tmp_path / "loaded").read_bytes() == b"archive"


@pytest.mark.parametrize(
    ("reported", "status", "message"),
    [
        (
            NOT_UNPACKED,
            0,
            f"docker load failed: {NOT_UNPACKED.splitlines()[1]}. Remedy: see journalctl -u docker there.",
        ),
        (
            FULL,
            0,
            f"the disk of the engine is full (docker load: {FULL[:100]} … {FULL.strip()[-200:]}). "
            "Remedy: make room there (docker image prune), and run again; the transfer resumes.",
        ),
        ("", 3, "docker load failed: exit code 3. Remedy: see journalctl -u docker there."),
    ],
)
def test_an_image_that_is_not_loaded_is_an_error(
    reported: str, status: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TransferError) as caught:
        docker(tmp_path, monkeypatch, reported, status).load(write)
    assert str(caught.value) == message


def test_an_archive_that_breaks_off_is_an_error_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        pytest.raises(TransferError, match=r"^docker save failed: No such image: x"),
        docker(tmp_path, monkeypatch, "No such image: x", 1).saved("x") as archive,
    ):
        list(members(archive))


def test_a_fault_of_this_collection_does_not_wait_for_docker_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = docker(tmp_path, monkeypatch, "x" * (4 << 20))
    with pytest.raises(TransferError, match=r"^raised inside$"), system.saved("x"):
        raise TransferError("raised inside")


def test_an_image_is_named_and_known_by_its_content(tmp_path: Path) -> None:
    engine = FakeEngine()
    system = SystemTransferIO(tmp_path, "run", engine)
    system.tag("sha256:i", "r.example:5000/team/train:v1")
    assert engine.calls == [("POST", "/images/sha256:i/tag?repo=r.example%3A5000%2Fteam%2Ftrain&tag=v1")]
    assert system.content("sha256:i") == content_of_image({"Os": "linux", "Architecture": "amd64"})
    system = SystemTransferIO(tmp_path, "run", FakeEngine(EngineError("no", 500)))
    assert system.content("sha256:i") == ""
    with pytest.raises(TransferError) as caught:
        system.tag("sha256:i", "t:1")
    assert str(caught.value) == "t:1: no. Remedy: journalctl -u docker there."
