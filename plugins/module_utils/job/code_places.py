# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Where the code of jobs is in the workspace, by relative path. Pure; also part of the supervisor's archive.

``.swarmspeed/code/<digest>/`` holds a source as it is on the controller, for every run that is to start from it.
``.swarmspeed/runs/<job>@<first node>/`` is where a run starts: its own copy of that, with links to the rest of the
workspace. The nodes of a run may share the workspace, and pdsh starts ranks in the folder where its launcher runs: so
the name is the same on all of them, and differs between jobs that run at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

OWN = ".swarmspeed"
CODE = f"{OWN}/code"
RUNS = f"{OWN}/runs"
COPIED = f"{OWN}/copied.json"
"""Files of the source in the workspace itself, with their SHA-256: tells which of them the source has lost."""
DIGEST = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.(?:new|old)")
CACHE = "__pycache__"


def start_folder(job: str, first_node: str = "") -> str:
    return f"{RUNS}/{job}@{first_node}" if first_node else f"{RUNS}/{job}"


def joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def parent(name: str) -> str:
    return name.rpartition("/")[0]


def folders_of(names: Iterable[str]) -> set[str]:
    """Return all folders that hold one of these files, the topmost one, which is empty, among them."""
    found = {""}
    for name in names:
        above = parent(name)
        while above not in found:
            found.add(above)
            above = parent(above)
    return found


def is_ours(name: str) -> bool:
    """Whether an entry is never an output: our own folder, a file that is being written, what Python has compiled."""
    return name in (OWN, CACHE) or bool(_UNFINISHED.fullmatch(name))


def link_to_workspace(name: str) -> str:
    """Return the text of a link in a start folder to what has the same name in the workspace."""
    return "../" * (name.count("/") + 3) + name


def link_to_run(folder: str, name: str) -> str:
    """Return the text of a link in the workspace to what a run has made in its start folder."""
    return "../" * name.count("/") + joined(folder, name)


def run_of(text: str, name: str) -> str:
    """Return the start folder to which a link of this name in the workspace leads; empty where it leads elsewhere."""
    folder = text[3 * name.count("/") : -len(name) - 1]
    return folder if re.fullmatch(rf"{RUNS}/[^/]+", folder) and text == link_to_run(folder, name) else ""
