# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Links of our own in a folder that a container can write: they are read, made and removed, and never followed.

Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import os
import secrets

from .untrusted_folder import UntrustedFolder


class LinkingFolder(UntrustedFolder):
    """A folder in which we keep links as well. Others may change it meanwhile: what is gone by then is no error."""

    def link_text(self, name: str) -> str | None:
        """Where a link leads; ``None`` where there is none."""
        parents, last = self._below(name)
        if self.kind(name) != "a link":
            return None
        folder = self._parent(name, parents)
        try:
            return os.readlink(last, dir_fd=folder)
        except OSError:
            return None
        finally:
            os.close(folder)

    def make_link(self, name: str, text: str) -> bool:
        """Say whether the link was made: not where something has the name already."""
        parents, last = self._below(name)
        folder = self._parent(name, parents)
        try:
            os.symlink(text, last, dir_fd=folder)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._failed(name, error) from error
        finally:
            os.close(folder)
        return True

    def replace_by_link(self, name: str, text: str) -> None:
        """Put a link in the place of a file, at once."""
        parents, last = self._below(name)
        folder = self._parent(name, parents)
        new = f".{secrets.token_hex(16)}.new"
        try:
            os.symlink(text, new, dir_fd=folder)
            os.rename(new, last, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            raise self._failed(name, error) from error
        finally:
            with contextlib.suppress(OSError):
                os.unlink(new, dir_fd=folder)
            os.close(folder)

    def remove_link(self, name: str, text: str) -> None:
        """Remove this very link; what else has the name stays."""
        if self.link_text(name) == text:
            self.remove(name)

    def remove_empty(self, name: str) -> bool:
        """Remove a folder in which nothing lies; say whether it is gone."""
        parents, last = self._below(name)
        if self.kind(name) != "a folder":
            return self.kind(name) is None
        folder = self._parent(name, parents)
        try:
            os.rmdir(last, dir_fd=folder)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        finally:
            os.close(folder)
        return True
