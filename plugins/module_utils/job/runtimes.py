# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Where the supervisor of a job runs: in a container, by the engine's calls, or on the host itself."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from ..engine.api_io import Engine, EngineError
from .resource import Container


class Runtime(Protocol):
    """What a job needs of the engine; tests hand in a fake."""

    def container(self, name: str) -> Container | None:
        """The container, or ``None`` where there is none of that name or id."""

    def launch(self, container: str, command: list[str]) -> str:
        """Start a command detached in a running container and return a handle."""

    def exited(self, handle: str) -> int | None:
        """Exit code of a launched command, or ``None`` while it runs."""


class DockerRuntime:
    """The engine's exec calls: POST /containers/ID/exec, POST /exec/ID/start, GET /exec/ID/json."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def container(self, name: str) -> Container | None:
        try:
            return Container.parse(self._engine.call("GET", f"/containers/{quote(name, safe='')}/json"))
        except EngineError as error:
            if error.status == 404:
                return None
            raise

    def launch(self, container: str, command: list[str]) -> str:
        made = self._engine.call("POST", f"/containers/{container}/exec", {"Cmd": command})
        self._engine.call("POST", f"/exec/{made['Id']}/start", {"Detach": True})
        return str(made["Id"])

    def exited(self, handle: str) -> int | None:
        answer = self._engine.call("GET", f"/exec/{handle}/json")
        return None if answer["Running"] else int(answer.get("ExitCode") or 0)


class HostRuntime:
    """The host itself, for servers without Docker: a session of its own instead of a container's."""

    def __init__(self) -> None:
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    @staticmethod
    def here() -> Container:
        """The host as if it were a container that has run since the last boot."""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return Container(id="host", started_at=boot, running=True, mounts={"/": "/"})

    def container(self, name: str) -> Container | None:
        return self.here()

    def launch(self, container: str, command: list[str]) -> str:
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(
            command, cwd="/", stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
        )
        self._started[str(process.pid)] = process
        return str(process.pid)

    def exited(self, handle: str) -> int | None:
        return self._started[handle].poll()
