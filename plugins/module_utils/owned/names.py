# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Names that this collection gives to what it puts into the node state directory. Anything else there is a user's."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection

ETC = "etc"
JOBS = ("jobs", "host_jobs")
WORKSPACE = "workspace"
PASSING = frozenset(
    {*("image", "image.build", "image.archive", "transfer"), *("assets_transfer", "bench", "workspace.tar.gz")}
)
"""What lies in the node state directory while a playbook runs."""
OF_ROOT = frozenset({ETC, *JOBS, WORKSPACE, "assets", "vscode", *PASSING})
OF_SSH = frozenset(
    {
        *("id_ed25519", "id_ed25519.pub", "ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"),
        *("authorized_keys", "known_hosts", "ssh_config", "sshd_config"),
    }
)
OF_ETC = frozenset(
    {
        *("entrypoint.sh", "env", "nccl.conf", "nccl.conf.host", "nccl.release"),
        *("hostfile", "ds_config.json", "job_key"),
        *(f"ssh/{name}" for name in OF_SSH),
    }
)
_SIGNS = ("entrypoint.sh", "nccl.conf.host", "job_key", "ssh/ssh_host_ed25519_key")
"""Files of names that others do not give."""
_CERTAIN = frozenset(_SIGNS) - {"entrypoint.sh"}
"""Those that no image's build has either."""
_LEFT = ".ansible_tmp*"
"""What a copy that was cut off leaves beside its file."""
_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
JOB_FILES = ("spec.json", "state.json")
"""One of them is in the folder of each job."""


def is_of_etc(name: str) -> bool:
    """Whether a file of ``etc``, by its path below it, is this collection's."""
    return name in OF_ETC or fnmatch.fnmatchcase(name.rpartition("/")[2], _LEFT)


def is_of_root(name: str) -> bool:
    return name in OF_ROOT or fnmatch.fnmatchcase(name, _LEFT)


def is_job(name: str, holds: Collection[str]) -> bool:
    """Whether a folder of ``jobs``, with what lies in it, is a job's."""
    return _JOB.fullmatch(name) is not None and any(file in holds for file in JOB_FILES)


def etc_is_ours(names: Collection[str]) -> bool:
    """Whether ``etc`` holds files of this collection and nothing else."""
    return any(sign in names for sign in _SIGNS) and all(is_of_etc(name) for name in names)


def replaced(names: Collection[str]) -> list[str]:
    """Return which files of an ``etc`` that was never used by this collection would be replaced by its own.

    Where one of them has a name that only this collection gives, ``etc`` was used by it, and they are its own.
    """
    return [] if any(sign in names for sign in _CERTAIN) else sorted(name for name in names if name in OF_ETC)


def root_is_ours(names: Collection[str], etc_ours: bool) -> bool:
    """Whether the node state directory holds nothing but what this collection puts there, and is known by its ``etc``,
    or is still without one and has only what an image or code was sent through."""
    return all(map(is_of_root, names)) and (etc_ours or not set(names) & {ETC, *JOBS, WORKSPACE})


def files_of(folder: str, root: str) -> list[str]:
    """Return the files that this collection puts into the node state directory or its ``etc``, as patterns."""
    if folder == f"{root}/{ETC}":
        return [*sorted(OF_ETC), _LEFT, f"ssh/{_LEFT}"]
    return [_LEFT, "workspace.tar.gz"] if folder == root else []
