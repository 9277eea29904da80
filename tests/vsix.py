# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Makes stand-ins for extensions of VS Code: zips of their form, with nothing in them that VS Code could run."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

IDENTITY: dict[str, Any] = {"publisher": "Stand-In", "name": "debugger", "version": "1.2.3"}
FOLDER = "stand-in.debugger-1.2.3"
"""What it is unpacked to."""


def vsix(path: Path, members: Mapping[str, bytes] | None = None, platform: str = "", **identity: Any) -> Path:
    """Write a stand-in with these members beside its own; a member of no name is none."""
    attribute = f' TargetPlatform="{platform}"' if platform else ""
    manifest = f'<PackageManifest><Metadata><Identity Language="en-US" Id="x"{attribute}/></Metadata></PackageManifest>'
    content: dict[str, bytes] = {
        "extension.vsixmanifest": manifest.encode(),
        "[Content_Types].xml": b"<Types/>",
        "extension/package.json": json.dumps({**IDENTITY, **identity}).encode(),
        "extension/out/main.js": b"// a stand-in\n",
        **(members or {}),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path
