# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Links of our own in a folder that a container can write: they are read, made and removed, and never followed.

Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import Callable

from .untrusted_folder import UntrustedFolder


class LinkingFolder(UntrustedFolder):
    """A folder in which we keep links as well. Others may change it meanwhile: what is gone by then is not an error."""

    def link_text(self, name: str) -> str | None:
        """Where a link leads; ``None`` where there is none."""
        if self.kind(name) == "a link":
            with self._at(name, needed=True) as (folder, last), contextlib.suppress(OSError):
                return os.readlink(last, dir_fd=folder)
        return None

    def make_link(self, name: str, text: str) -> bool:
        """Say whether the link was made: not where something has the name already."""
        with self._at(name, needed=True) as (folder, last), contextlib.suppress(FileExistsError):
            os.symlink(text, last, dir_fd=folder)
            return True
        return False

    def replace_by_link(self, name: str, text: str, leads: Callable[[], bool]) -> None:
        """Put a link in the place of a file, unless it ``leads`` nowhere by then.

        The file is kept aside until then: another host may just have moved it here from where the link was to lead.
        """
        with self._aside(name) as (folder, last, aside):
            self.make_link(name, text)
            if not leads() and self.kind(name) in (None, "a link"):
                os.rename(aside, last, src_dir_fd=folder, dst_dir_fd=folder)

    def remove_link(self, name: str, text: str) -> None:
        """Remove this very link; what else has the name stays, what has got it just now, too."""
        if self.link_text(name) != text:
            return
        with self._aside(name) as (folder, last, aside):
            if self.link_text(f"{name[: -len(last)]}{aside}") != text:
                os.rename(aside, last, src_dir_fd=folder, dst_dir_fd=folder)

    @contextlib.contextmanager
    def _aside(self, name: str) -> Iterator[tuple[int, str, str]]:
        """What has a name gets another that no one can foresee, and is removed at the end. Nothing, if it has gone."""
        aside = f".{secrets.token_hex(16)}.old"
        with self._at(name, needed=True) as (folder, last):
            with contextlib.suppress(FileNotFoundError):
                os.rename(last, aside, src_dir_fd=folder, dst_dir_fd=folder)
            with contextlib.suppress(FileNotFoundError):
                yield folder, last, aside
                os.unlink(aside, dir_fd=folder)

    def unlink(self, name: str) -> None:
        """Remove a file or a link. A folder stays, one that has got the name meanwhile, too."""
        gone = contextlib.suppress(FileNotFoundError)
        with gone, self._at(name) as (folder, last), contextlib.suppress(IsADirectoryError):
            os.unlink(last, dir_fd=folder)

    def remove_empty(self, name: str) -> bool:
        """Remove a folder in which nothing lies; say whether it is gone."""
        if self.kind(name) == "a folder":
            self.remove_if_empty(name)
        return self.kind(name) is None
