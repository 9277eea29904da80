# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the work of a transfer does to its host: the engine, ssh, files of the spool."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Callable
from urllib.parse import quote

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import find_program
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import Engine, EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.image_transfer.content import content_of_image
from ansible_collections.swarmspeed.cluster.plugins.module_utils.image_transfer.keys import ssh_command
from ansible_collections.swarmspeed.cluster.plugins.module_utils.image_transfer.load import LABEL
from ansible_collections.swarmspeed.cluster.plugins.module_utils.image_transfer.receive import LinkLost, TransferError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.image_transfer.serve import HEADER, STILL

PIPE = 1 << 20
_SET_PIPE_SIZE = 1031
"""F_SETPIPE_SZ, which Python has a name for since 3.10."""


class SshLink:
    """A connection to the spool of another node."""

    def __init__(self, command: list[str]) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  # closed in close()
        program = find_program(command[0]) or command[0]
        self._process = subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            bufsize=0,
            env={**os.environ, "LC_ALL": "C"},
        )
        widen(self._process.stdout)

    def frames(self, name: str, offset: int) -> Iterator[tuple[bytes, bytes]]:
        try:
            os.write(self._process.stdin.fileno(), f"{name} {offset}\n".encode())  # type: ignore[union-attr]  # a PIPE above
        except OSError as error:
            raise LinkLost(self._last_words()) from error
        kind = b""
        while kind not in (b"E", b"X"):
            kind, length = HEADER.unpack(self._read(HEADER.size))
            yield kind, self._read(length)

    def _read(self, size: int) -> bytes:
        out = self._process.stdout.fileno()  # type: ignore[union-attr]  # a PIPE above
        data = bytearray()
        while len(data) < size:
            if not select.select([out], [], [], STILL)[0]:
                raise LinkLost(f"nothing came for {STILL:.0f} s")
            piece = os.read(out, size - len(data))
            if not piece:
                raise LinkLost(self._last_words())
            data += piece
        return bytes(data)

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._words.seek(0)
        lines = self._words.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip()[:200] if lines else "the connection broke"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._words):
            if file is not None:
                file.close()


def widen(pipe: Any) -> None:
    """Make a pipe larger where that may be done."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe.fileno(), _SET_PIPE_SIZE, PIPE)


class SystemTransferIO:
    """This host, with the spool ``place``."""

    def __init__(self, place: Path, run: str, engine: Engine) -> None:
        self.folder = place / "blobs"
        self._place, self._run, self._engine = place, run, engine
        self._beaten = 0.0
        self.state: dict[str, Any] = {}

    def connect(self, source: Mapping[str, Any]) -> SshLink:
        return SshLink(ssh_command(source, f"{self._place}/key", f"{self._place}/hosts"))

    def alive(self) -> None:
        if time.monotonic() - self._beaten >= 1.0:
            self._beaten = time.monotonic()
            (self._place / "pulse").touch()

    def say(self, **state: Any) -> None:
        self.state.update(state)
        write_json(self._place / "state", {**self.state, "run": self._run})

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
        said = lines[-1].strip()
        # What containerd went through stands first, the cause last.
        said = said if len(said) <= 300 else f"{said[:100]} … {said[-200:]}"
        if "no space left on device" in said.lower():
            return (
                f"the disk of the engine is full ({what}: {said}). Remedy: make room there (docker image prune), "
                "and run again; the transfer resumes."
            )
        return f"{what} failed: {said}. Remedy: see journalctl -u docker there."

    def remove(self, identity: str) -> None:
        with contextlib.suppress(EngineError):
            self._engine.call("DELETE", f"/images/{identity}")

    def remove_partial(self) -> None:
        """Remove images that hold lower layers only, of a transfer that was killed too."""
        with contextlib.suppress(EngineError):
            asked = quote(json.dumps({"label": [f"{LABEL}={self._place}"]}))
            for image in self._engine.call("GET", f"/images/json?filters={asked}"):
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


def write_json(path: Path, value: Any) -> None:
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(json.dumps(value), encoding="utf-8")
    beside.replace(path)


def read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
