# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads a training script and the modules of its source that it imports, on the controller.

The source may be anybody's repository: only plain files inside it are read, of a limited size, and none is executed.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from .script_text import Script, UnreadableScriptError, read

BETWEEN = "::"
"""Stands between the folder of the source and the script in the name under which a plan asks for them."""
MAX_BYTES = 512 * 1024
MAX_MODULES = 32


def script_files(name: str) -> str:
    """Return, as JSON, the texts of a script and of the modules that it imports, by path below the source.

    ``problem`` says why the script itself cannot be read; ``more``: there are modules that were not.
    """
    folder, dummy, script = name.rpartition(BETWEEN)
    root = Path(folder).resolve()
    try:
        text = _text(root, root / script)
        shown = read(text)
    except (OSError, ValueError) as error:
        return json.dumps({"problem": _reason(error)})
    texts, more = {script: text}, False
    here = (root / script).parent
    paths = _modules(root, here, shown)
    for path in paths[:MAX_MODULES]:
        try:
            text = _text(root, path)
            inner = read(text)
        except (OSError, ValueError):
            more = True
            continue
        texts[str(path.relative_to(root))] = text
        known = {*paths, root / script}
        more = more or not known.issuperset(
            [*_modules(root, here, inner), *_modules(root, path.parent, inner, own=True)]
        )
    return json.dumps({"texts": texts, "more": more or len(paths) > MAX_MODULES})


def nearest_file(name: str) -> str:
    """Return, as JSON, ``path`` and ``text`` of a file of a source: in the folder that is named, or the next above it.

    ``problem`` instead of ``text`` says why it cannot be read. An empty mapping where there is none.
    """
    folder, dummy, file = name.rpartition(BETWEEN)
    root = Path(folder).resolve()
    for path in (parent / Path(file).name for parent in (root / file).parents if parent.is_relative_to(root)):
        if not os.path.lexists(path):
            continue
        shown = str(path.relative_to(root))
        try:
            return json.dumps({"path": shown, "text": _text(root, path)})
        except (OSError, ValueError) as error:
            return json.dumps({"path": shown, "problem": _reason(error)})
    return "{}"


def _text(root: Path, path: Path) -> str:
    """Return the text of a plain file inside the source."""
    real = path.resolve(strict=True)
    if not real.is_relative_to(root):
        raise UnreadableScriptError("it leads out of workspace_source")
    # A named pipe would never answer.
    with os.fdopen(os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UnreadableScriptError("it is not a plain file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UnreadableScriptError(f"it has more than {MAX_BYTES // 1024} KiB")
    return data.decode("utf-8")


def _modules(root: Path, folder: Path, shown: Script, own: bool = False) -> list[Path]:
    """Return the files of the source that are imported, as far as they lie beside the script."""
    names: Iterable[str] = shown.relative if own else {*shown.modules, *shown.relative}
    found: set[Path] = set()
    for name in names:
        parts = [part for part in name.split(".") if part.isidentifier()]
        for count in range(1, len(parts) + 1):
            base = folder.joinpath(*parts[:count])
            found.update(path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file())
    return sorted(path for path in found if path.is_relative_to(root))


def _reason(error: Exception) -> str:
    if isinstance(error, UnreadableScriptError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, FileNotFoundError):
        return "it is not in workspace_source"
    return (
        f"it cannot be read ({error.strerror})"
        if isinstance(error, OSError) and error.strerror
        else "it cannot be read"
    )
