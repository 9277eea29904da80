# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The supervisor of a job as one archive that Python runs: its package, with what that imports from beside it.

The same sources make the same bytes, whoever builds them, when and where: names in order, no time stamps, and not
compressed, as the releases of zlib differ.
"""

from __future__ import annotations

import functools
import io
import zipfile

from ..common.own_sources import sent_name, sources
from .supervisor import main

START = f"""\
import sys

from {sent_name(main)} import main

sys.exit(main(sys.argv[1:]))
"""


@functools.lru_cache(maxsize=1)
def supervisor_archive() -> bytes:
    files = {"__main__.py": START}
    for name, source in sources(main).items():
        path = name.split(".")
        files["/".join(path) + ".py"] = source
        # An importer of archives may not take a folder alone for a package.
        files.update({"/".join([*path[:depth], "__init__.py"]): "" for depth in range(1, len(path))})
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name])
    return made.getvalue()
