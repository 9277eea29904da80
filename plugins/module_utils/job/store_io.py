# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The folder of a training job on the host: what is read of it, by all that query a job."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from ..common.untrusted_folder import UntrustedFolder
from .environment import ranks_environment
from .log_files import line_begin
from .private import host_jobs_dir
from .record import RecordError, check_environment, check_place, check_state, check_summary
from .resource import JobError, whole_lines


def remedy(name: str, path: str | Path) -> str:
    """What a person does about files of a job that cannot be used."""
    return (
        f"Remedy: ansible-playbook stop.yml -e deepspeed_launch_name={name}, which ends any process of it that still "
        f"runs and puts its files aside; if {path} is not a folder, remove it on this host."
    )


_Kind = TypeVar("_Kind", bound="Store")


class Store:
    """``JOBS_DIR/NAME`` on the host, which the container can write; of a job that runs on the host, a private folder.

    What a job of the host runs, and what is known of it, lies in ``host_jobs`` beside ``JOBS_DIR``. No container mounts
    that, and so nothing in a container's folder makes the host run anything, or says that it should.
    """

    def __init__(self, jobs_dir: str, name: str, *, on_host: bool = False) -> None:
        self._jobs, self.name, self.on_host = Path(jobs_dir), name, on_host
        self.path = Path(host_jobs_dir(jobs_dir) if on_host else jobs_dir) / name
        self.remedy = remedy(name, self.path)
        self._folder = UntrustedFolder(self.path.parent, JobError, self.remedy)

    @classmethod
    def of(cls: type[_Kind], jobs_dir: str, name: str, *, else_on_host: bool = False) -> _Kind:
        """Where the job of this name is recorded. On the host, when a record is there: only root can have made it."""
        for on_host in (True, False):
            store = cls(jobs_dir, name, on_host=on_host)
            if store.recorded():
                return store
        return cls(jobs_dir, name, on_host=else_on_host)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Two playbooks at once must not start a job twice. Free when its holder dies.

        Held on the folder above, as a process in a container could hold JOBS_DIR itself for ever.
        """
        try:
            os.close(os.open(self._jobs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            handle = os.open(self._jobs.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise JobError(
                f"jobs_dir: {self._jobs} cannot be used: {error.strerror}. It is made together with the container "
                "(--tags training_container)."
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _read(self, name: str) -> dict[str, Any]:
        return self._folder.read_json(f"{self.name}/{name}") or {}

    def read_state(self) -> dict[str, Any]:
        """What the supervisor wrote last, every field checked; empty where there is none."""
        found = self._folder.read_json(f"{self.name}/state.json")
        if found is None:
            return {}
        try:
            return check_state(found, on_host=self.on_host)
        except RecordError as error:
            raise JobError(f"{self.path}/state.json is damaged: {error}. {self.remedy}") from error

    def read_place(self) -> dict[str, Any]:
        """The same, with what is needed to find a job that runs."""
        found = self.read_state()
        try:
            check_place(found)
        except RecordError as error:
            raise JobError(f"{self.path}/state.json is damaged: {error}. {self.remedy}") from error
        return found

    def check(self) -> None:
        """Raise ``JobError`` where a file is damaged without which the job is neither known nor shown."""
        self.read_place()
        self.read_request()
        log = self._folder.open(f"{self.name}/launcher.log")
        if log is not None:
            log.close()

    def read_request(self) -> dict[str, Any]:
        return self._read("spec.json")

    def read_spec(self) -> dict[str, Any]:
        spec = self.read_request().get("spec", {})
        return spec if isinstance(spec, dict) else {}

    def read_summary(self) -> dict[str, Any] | None:
        """The leader's, where there is one that can be used."""
        with contextlib.suppress(JobError):
            return check_summary(self._read("summary.json"))
        return None

    def read_examination(self, path: str) -> dict[str, Any] | None:
        """What an examination found, below the folder of the job."""
        return self._folder.read_json(f"{self.name}/{path}")

    def read_environment(self) -> dict[str, str]:
        """Variables of the cluster's ranks, and of the job as it was started: what must be hidden in its log."""
        found: dict[str, str] = ranks_environment(self._jobs)
        with contextlib.suppress(JobError):
            found.update(check_environment(self.read_spec().get("environment")))
        return found

    def write_state(self, state: dict[str, Any]) -> None:
        self._write("state.json", json.dumps(state))

    def _write(self, name: str, text: str) -> None:
        self._folder.write(f"{self.name}/{name}", text.encode())

    def read_log(self, offset: int, limit: int, ended: bool) -> tuple[bytes, int, int]:
        """Bytes from ``offset`` to a line end, the offset after them, and the log's size.

        A negative ``offset`` counts from the end, and what is returned then begins with a whole line.
        """
        log = self._folder.open(f"{self.name}/launcher.log")
        if log is None:
            return b"", 0, 0
        with log:
            size = os.fstat(log.fileno()).st_size
            start = max(0, size + offset) if offset < 0 else min(offset, size)
            log.seek(start)
            data = log.read(limit)
        if offset < 0 < start:  # begin with a whole line
            skipped = line_begin(data) or len(data)  # what is cut in two could be a secret
            start, data = start + skipped, data[skipped:]
        data = whole_lines(data, ended, limit)
        return data, start + len(data), size

    def exists(self) -> bool:
        return self._folder.kind(self.name) is not None

    def recorded(self) -> bool:
        return self._folder.kind(f"{self.name}/state.json") is not None

    def remove(self) -> None:
        self._folder.remove(self.name)

    def ask_to_stop(self) -> None:
        self._write("stop", "")
