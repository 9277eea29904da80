# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One text file that a module owns: read it, replace it atomically, remove it, with one source for changed and diff."""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

MAX_BYTES = 64 * 1024 * 1024
"""No managed file is larger: a path that names a checkpoint by mistake must not fill the host's memory."""


class TextFileError(Exception):
    """The file cannot be read or replaced; the text says which file, why and what to do."""


class FileModule(Protocol):
    """What is used of AnsibleModule; tests hand in a fake."""

    params: dict[str, Any]
    check_mode: bool
    tmpdir: str

    def atomic_move(self, src: str, dest: str, unsafe_writes: bool = False) -> None: ...

    def backup_local(self, fn: str) -> str: ...

    def load_file_common_arguments(self, params: dict[str, Any], path: str | None = None) -> dict[str, Any]: ...

    def set_fs_attributes_if_different(
        self, file_args: dict[str, Any], changed: bool, diff: dict[str, Any] | None = None
    ) -> bool: ...

    def warn(self, warning: str) -> None: ...


@dataclass(frozen=True)
class Found:
    """What is at ``path``: ``content`` is ``None`` where there is nothing."""

    path: str
    content: bytes | None = None

    @property
    def exists(self) -> bool:
        return self.content is not None

    @property
    def text(self) -> str | None:
        """The text, or ``None`` where there is no file or it is not UTF-8."""
        if self.content is None:
            return None
        try:
            return self.content.decode("utf-8")
        except UnicodeDecodeError:
            return None


def read(path: str) -> Found:
    """Read ``path`` without following it into devices or pipes, which would hang."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return Found(path)
    except OSError as error:
        raise TextFileError(f"{path}: cannot be accessed: {error.strerror or error}") from error
    except ValueError as error:  # an embedded null byte
        raise TextFileError(f"{path!r} is not a path: {error}") from error
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise TextFileError(f"{path} is {kind}; name the file itself")
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise TextFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_BYTES:
        raise TextFileError(f"{path} is larger than {MAX_BYTES} bytes, so it is not a file of this module's kind")
    return Found(path, content)


def left_alone(path: str, kind: str, reason: str) -> TextFileError:
    """The refusal to touch a file that holds something else: perhaps a mistake in the path, perhaps work by hand."""
    return TextFileError(
        f"{path} is not a {kind}: {reason}. It was left as it is; fix or remove it, name another path, or set"
        " force: true to replace it, which keeps a copy beside it"
    )


def apply(module: FileModule, found: Found, wanted: str | None, *, backup: bool = False) -> dict[str, Any]:
    """Make the file hold ``wanted`` (``None``: no file), with the file attributes of the module's parameters.

    Returns ``changed`` and ``diff`` for ``exit_json``, and ``backup_file`` where ``backup`` requested one and content
    was replaced or removed. In check mode nothing is touched. A symbolic link stays one: its target is written.
    """
    differs = found.exists if wanted is None else (not found.exists or found.text != wanted)
    result: dict[str, Any] = {"changed": differs, "diff": []}
    if differs:
        result["diff"].append(
            {
                "before_header": found.path,
                "after_header": found.path,
                "before": _shown(found),
                "after": wanted if wanted is not None else "",
            }
        )
        if backup and found.exists and not module.check_mode:
            result["backup_file"] = module.backup_local(found.path)
    if wanted is None:
        if differs and not module.check_mode:
            _remove(found.path)
        return result
    target = os.path.realpath(found.path)
    if differs:
        _write(module, target, wanted)
    arguments = module.load_file_common_arguments(module.params, path=target)
    attributes: dict[str, Any] = {}
    if module.set_fs_attributes_if_different(arguments, False, attributes):
        result["changed"] = True
        if attributes:
            header = f"{found.path} (file attributes)"
            result["diff"].append({"before_header": header, "after_header": header, **attributes})
    return result


def _shown(found: Found) -> str:
    if found.content is None:
        return ""
    return found.text if found.text is not None else f"({len(found.content)} bytes that are not UTF-8 text)\n"


def _write(module: FileModule, target: str, text: str) -> None:
    folder = Path(target).parent
    if not folder.is_dir():
        if module.check_mode:
            module.warn(f"{folder} does not exist yet; the run itself fails unless something creates it before")
            return
        raise TextFileError(f"{folder} does not exist; create it before writing {target}")
    if module.check_mode:
        return
    # Ansible's own text names temporary files, and nothing that a reader could do.
    room = os.statvfs(folder)
    if len(text.encode()) > room.f_bavail * room.f_frsize:
        raise TextFileError(f"{target}: cannot be written: {folder} is full. Free space there")
    try:
        descriptor, temporary = tempfile.mkstemp(dir=module.tmpdir)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
    except OSError as error:
        raise TextFileError(f"{target}: cannot be written: {error.strerror or error}") from error
    module.atomic_move(temporary, target, unsafe_writes=bool(module.params.get("unsafe_writes")))


def _remove(path: str) -> None:
    try:
        Path(path).unlink()
    except OSError as error:
        raise TextFileError(f"{path}: cannot be removed: {error.strerror or error}") from error
