# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the work of a transfer of an image does to its host beside the spool: the engine."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Callable
from urllib.parse import quote

from ...common.command_io import find_program
from ...engine.api_io import Engine, EngineError
from ..receive import TransferError
from ..spool_io import PIPE, SpoolIO, widen
from .content import content_of_image
from .load import LABEL


class SystemTransferIO(SpoolIO):
    """This host, with the spool ``place`` and an engine."""

    def __init__(self, place: Path, run: str, engine: Engine) -> None:
        super().__init__(place, run)
        self._engine = engine

    @contextlib.contextmanager
    def saved(self, image: str) -> Iterator[BinaryIO]:
        with tempfile.TemporaryFile() as words:
            process = subprocess.Popen(_docker("save", image), stdout=subprocess.PIPE, stderr=words)
            try:
                widen(process.stdout)
                try:
                    yield process.stdout  # type: ignore[misc]  # a PIPE above
                    while process.stdout.read(PIPE):  # type: ignore[union-attr]  # a PIPE above
                        pass
                except tarfile.TarError as error:
                    raise TransferError(self._failed("docker save", process, words) or str(error)) from error
                failed = self._failed("docker save", process, words)
                if failed:
                    raise TransferError(failed)
            finally:
                process.kill()
                process.wait()

    def load(self, write: Callable[[BinaryIO], Any]) -> None:
        with tempfile.TemporaryFile() as words:
            process = subprocess.Popen(_docker("load", "--quiet"), stdin=subprocess.PIPE, stdout=words, stderr=words)
            widen(process.stdin)
            try:
                with contextlib.suppress(BrokenPipeError):
                    write(process.stdin)  # type: ignore[arg-type]  # a PIPE above
                    process.stdin.close()  # type: ignore[union-attr]  # a PIPE above
                failed = self._failed("docker load", process, words)
            finally:
                process.kill()
                process.wait()
                with contextlib.suppress(OSError):
                    process.stdin.close()  # type: ignore[union-attr]  # a PIPE above
        if failed:
            raise TransferError(failed)

    def _failed(self, what: str, process: subprocess.Popen[bytes], words: Any) -> str:
        """Wait for the end; return what went wrong, in words."""
        try:
            process.wait(600)
        except subprocess.TimeoutExpired:
            return f"{what} did not end within 10 minutes. Remedy: systemctl restart docker there, and run again."
        words.seek(0)
        lines = words.read().decode("utf-8", "replace").strip().splitlines() or [f"exit code {process.returncode}"]
        # Seen on 28.5, which ends well then; likewise daemon/containerd/image_exporter.go in moby at b985e231.
        if process.returncode == 0 and not lines[-1].startswith("Error unpacking image"):
            return ""
        reported = lines[-1].strip()
        # What containerd went through stands first, the cause last.
        reported = reported if len(reported) <= 300 else f"{reported[:100]} … {reported[-200:]}"
        if "no space left on device" in reported.lower():
            return (
                f"the disk of the engine is full ({what}: {reported}). Remedy: make room there (docker image prune), "
                "and run again; the transfer resumes."
            )
        return f"{what} failed: {reported}. Remedy: see journalctl -u docker there."

    def remove(self, identity: str) -> None:
        with contextlib.suppress(EngineError):
            self._engine.call("DELETE", f"/images/{identity}")

    def remove_partial(self) -> None:
        """Remove images that hold lower layers only, of a transfer that was killed too."""
        with contextlib.suppress(EngineError):
            requested = quote(json.dumps({"label": [f"{LABEL}={self._place}"]}))
            for image in self._engine.call("GET", f"/images/json?filters={requested}"):
                self.remove(image["Id"])

    def content(self, image: str) -> str:
        try:
            return content_of_image(self._engine.call("GET", f"/images/{image}/json"))
        except EngineError:
            return ""

    def tag(self, identity: str, image: str) -> None:
        repository, dummy, tag = image.rpartition(":")
        try:
            self._engine.call("POST", f"/images/{identity}/tag?repo={quote(repository, safe='')}&tag={quote(tag)}")
        except EngineError as error:
            raise TransferError(f"{image}: {error}. Remedy: journalctl -u docker there.") from error


def _docker(*words: str) -> list[str]:
    return [find_program("docker") or "docker", *words]
