# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Links of our own in a folder that a container can write: they are read, made and removed, and never followed.

Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import os

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

    def replace_by_link(self, name: str, text: str) -> None:
        """Put a link in the place of a file, at once."""
        with self._replaced(name) as (folder, new):
            os.symlink(text, new, dir_fd=folder)

    def remove_link(self, name: str, text: str) -> None:
        """Remove this very link; what else has the name stays."""
        if self.link_text(name) == text:
            self.remove(name)

    def remove_empty(self, name: str) -> bool:
        """Remove a folder in which nothing lies; say whether it is gone."""
        if self.kind(name) == "a folder":
            self.remove_if_empty(name)
        return self.kind(name) is None
