# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of asset_transfer: reads the lists of files, and sends the first node what it lacks."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils.transfer.assets.pieces import pieces, write_piece
from ..plugin_utils.assets.cache_io import path_of
from ..plugin_utils.assets.manifest import Manifest, from_text, size_text
from ..plugin_utils.connection.following import say
from ..plugin_utils.plan.controller import here
from ..plugin_utils.transfer.action import TransferAction
from ..plugin_utils.validate.assets import REPLIES

EVERY = 10.0
"""Seconds between two lines that say how far it is."""
AGAIN = "Remedy: run again."


class ActionModule(TransferAction):
    """Steps start and feed need files of the controller; all others but queue are the module's alone."""

    TRANSFERS_FILES = True
    replies = REPLIES

    def _step(self, step: str, arguments: dict[str, Any]) -> dict[str, Any]:
        given, cache = arguments.pop("manifests", None) or {}, arguments.pop("cache", None)
        bundled = boolean(arguments.pop("bundled", None) or False)
        if step == "start":
            arguments["listed"] = self._sent(_listed(given))
        if step != "feed":
            return super()._step(step, arguments)
        if not cache:
            raise AnsibleActionFail("asset_transfer: cache is needed with step feed.")
        manifests, folder = _listed(given), here(str(cache))
        paths = {
            sha256: path_of(one, sha256, folder, bundled=bundled)
            for one in manifests.values()
            for dummy, size, sha256 in one.files
        }
        return self._feed(arguments, manifests, paths)

    def _sent(self, manifests: Mapping[str, Manifest]) -> str:
        """Send the lists of files, which can be longer than arguments may be, and return where they are."""
        remote: str = self._connection._shell.join_path(self._connection._shell.tmpdir, "listed.json")
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump({name: manifest.for_node() for name, manifest in manifests.items()}, file)
            file.flush()
            self._transfer_file(file.name, remote)
        return remote

    def _feed(
        self,
        arguments: dict[str, Any],
        manifests: Mapping[str, Manifest],
        paths: Mapping[str, Path],
    ) -> dict[str, Any]:
        requested = self._ask(arguments)
        if requested.get("failed"):
            return requested
        sizes = {sha256: size for one in manifests.values() for dummy, size, sha256 in one.files}
        needed = [(sha256, sizes[sha256], came) for sha256, came in requested["needed"].items() if sha256 in sizes]
        total, sent, begun = sum(size - came for dummy, size, came in needed), 0, time.monotonic()
        shown = begun
        for piece in pieces(needed):
            remote = self._connection._shell.join_path(self._connection._shell.tmpdir, "piece.tar")
            try:
                with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
                    write_piece(archive, piece, paths)
                    archive.flush()
                    self._transfer_file(archive.name, remote)
            except OSError as error:
                raise AnsibleActionFail(f"{error.filename or 'the controller'}: {error}. {AGAIN}") from None
            taken = self._ask({**arguments, "archive": remote})
            if taken.get("failed"):
                return taken
            sent += sum(count for dummy, offset, count in piece)
            if time.monotonic() - shown >= EVERY:
                shown = time.monotonic()
                rate = size_text(round(sent / (shown - begun)))
                say(f"{self._node()}: {size_text(sent)} of {size_text(total)} sent, {rate}/s")
        return {"changed": False, "bytes": sent}


def _listed(given: Mapping[str, Any]) -> dict[str, Manifest]:
    found = {}
    for name, path in given.items():
        try:
            manifest = from_text(here(str(path)).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            manifest = None
        if manifest is None:
            raise AnsibleActionFail(f"{path}: the list of files of {name} cannot be read. {AGAIN}")
        found[str(name)] = manifest
    return found
