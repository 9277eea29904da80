# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The supervisor of a job as one archive that Python runs: its package, with what that imports from beside it.

The same sources make the same bytes, whoever builds them, when and where: names in order, no time stamps, and not
compressed, as the releases of zlib differ.
"""

from __future__ import annotations

import ast
import functools
import inspect
import io
import sys
import zipfile
from collections.abc import Iterator

from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import main

ROOT = "swarmspeed"
"""The package in the archive that stands for module_utils, so that relative imports lead to the same files."""
START = f"""\
import sys

from {ROOT}.job.supervisor.main import main

sys.exit(main(sys.argv[1:]))
"""
_OUTSIDE = __name__.rpartition(".job.")[0] + "."


@functools.lru_cache(maxsize=1)
def supervisor_archive() -> bytes:
    files = {"__main__.py": START}
    for name, source in _sources(main.__name__).items():
        path = [ROOT, *name[len(_OUTSIDE) :].split(".")]
        files["/".join(path) + ".py"] = source
        # An importer of archives may not take a folder alone for a package.
        files.update({"/".join([*path[:depth], "__init__.py"]): "" for depth in range(1, len(path))})
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name])
    return made.getvalue()


def _sources(name: str) -> dict[str, str]:
    """The source of a module, and of all that it and those import by relative imports."""
    found: dict[str, str] = {}
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            # The source, not the file: on a node this module runs out of a zip archive itself.
            found[name] = inspect.getsource(sys.modules[name])
            waiting += _imported(name, found[name])
    return found


def _imported(name: str, source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            parent = ".".join([*name.split(".")[: -node.level], *([node.module] if node.module else [])])
            if hasattr(sys.modules[parent], "__path__"):
                yield from (f"{parent}.{entry.name}" for entry in node.names)
            else:
                yield parent
