# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The checks of files on the controller that variables name."""

from __future__ import annotations

from collections.abc import Iterator

from ansible.module_utils.parsing.convert_bool import boolean

from ..core.problems import Problem
from ..core.values import texts
from ..deepspeed_launch.gathered import LAUNCH_JSON
from .inventory import Inventory, shown
from .proxy import CERTIFICATE, check_certificate

SCRIPT = "deepspeed_launch_script"
SOURCE = "workspace_source"
"""The launch script lies below the workspace's source: where that is missing, the script is not checked."""
DIRECTORIES = (
    SOURCE,
    "cluster_bundle",
    "training_image_context",
    "training_image_wheelhouse",
    "workspace_python_wheelhouse",
)
"""Variables that name a directory on the controller; every other one named in ``files`` is a regular file."""


def check_files(inventory: Inventory) -> Iterator[Problem]:
    """Files and directories on the controller that variables name exist, and repositories could be fetched."""
    for one in inventory.found:
        yield Problem(str(one.get("subject")), str(one.get("text")), str(one.get("remedy")))
    source = inventory.files.get(SOURCE)
    for name in inventory.files:
        path = inventory.files[name]
        if path is None or path == "":
            continue
        if not isinstance(path, str) or "\0" in path:
            yield Problem(name, f"{shown(path)} is not a path", "give the path of a file on the controller")
            continue
        wanted = "directory" if name in DIRECTORIES else "file"
        if name == SCRIPT and isinstance(source, str) and source and inventory.kind(source) != "directory":
            continue  # already reported for the source
        kind = inventory.kind(path)
        if kind is None:
            yield Problem(name, f"there is no {wanted} {path} on the controller", "create it or correct the path")
        elif kind != wanted:
            yield Problem(name, f"{path} on the controller is a {kind}, not a {wanted}", "correct the path")


def check_vscode(inventory: Inventory) -> Iterator[Problem]:
    """The workspace's source has no file of its own where ``deepspeed_launch_vscode`` writes one."""
    source, excluded = inventory.files.get(SOURCE), inventory.values("workspace_exclude")
    if not isinstance(source, str) or not source or inventory.kind(f"{source}/{LAUNCH_JSON}") != "file":
        return
    scripts = inventory.values(SCRIPT)
    hosts = [
        host
        for host, value in inventory.values("deepspeed_launch_vscode").items()
        if boolean(value, strict=False) and scripts.get(host)
        if not {*LAUNCH_JSON.split("/")} & {*texts(excluded.get(host))}
    ]
    if hosts:
        yield Problem(
            SOURCE,
            f"contains {LAUNCH_JSON}, which would replace the one that deepspeed_launch_vscode writes on every "
            f"run{inventory.where(hosts)}",
            "add .vscode to workspace_exclude, or set deepspeed_launch_vscode: false",
        )


def check_ca_certificate(inventory: Inventory) -> Iterator[Problem]:
    """The file of a certificate authority holds what it should; that it is there is another check."""
    path = inventory.files.get(CERTIFICATE)
    if isinstance(path, str) and path and inventory.kind(path) == "file":
        yield from check_certificate(path, inventory.text(path))
