# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A file that is fetched from a node may not fill the controller's disk: the node decides how much it sends."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError

MEMBER = 16 << 10
"""Bytes of an archive that a member may take beside its content."""
LEFT_FREE = 1 << 30
"""Bytes that what has no known size leaves free."""


class TooLargeError(AnsibleError):  # type: ignore[misc]  # ansible-core has no types
    """More came than was announced."""


def archive_bytes(sizes: Iterable[int]) -> int:
    """Most bytes of a tar archive that holds files of these sizes."""
    listed = list(sizes)
    return sum(listed) + MEMBER * (len(listed) + 1)


def what_fits(folder: Path) -> int:
    """Bytes of a file that leaves some of the disk free."""
    return max(1, shutil.disk_usage(folder).free - LEFT_FREE)


def fetch_at_most(connection: Any, remote: str, local: str, most: int) -> None:
    """``fetch_file``, which writes no more than ``most`` bytes; raises ``TooLargeError`` where more would come.

    The limit is the kernel's, as who writes depends on the connection: this process, or sftp that it starts.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        connection.fetch_file(remote, local)
    except (AnsibleError, OSError) as error:
        if Path(local).stat().st_size < limit:
            raise
        raise TooLargeError(
            f"the node sent more than the {most} bytes that {remote} can have, and nothing of it was kept. Remedy: run "
            "it again; if that happens once more, find out what sends on that node."
        ) from error
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
