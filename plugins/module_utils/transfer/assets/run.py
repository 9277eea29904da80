# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One node's part of a transfer of models and data sets, over the same chain of spools as images.

The parts are files, named by their SHA-256. The first node of the chain gets those that it lacks from the controller,
piece by piece, and every other one from the node before it, while that one is still receiving. What a node has already
it offers as it lies there, by a link into the spool. New files are put in place when all have come and are verified.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from ...common.digests import CHUNK, Hashed
from ..receive import TransferError, Words, receiver_of
from ..room import free_bytes
from ..spool import SpoolTransfer, spooled
from ..spool_io import SpoolIO, read_json, write_json
from .files import differs, incoming, install, lacking, offer, prepare, remove_received
from .pieces import append_piece

SILENCE = 900.0
"""Seconds after which the first node gives up a controller that sends nothing more."""
WANTED = "wanted"
"""File of the spool: of each asset its list of files, and which of them are lacking."""


class AssetTransfer(SpoolTransfer):
    """The transfer ``run`` on this node, to folders below ``root``."""

    remedy = "check assets_path and sshd there"
    request_limit = 1500.0  # another node may read a model that is there, 750 GB of it in this time at 500 MB/s

    def __init__(self, place: str, run: str, node: str, account: str, root: str) -> None:
        super().__init__(place, run, node, account)
        self.root = Path(root)
        self.system = SpoolIO(self.place, run)

    def start(self, params: Mapping[str, Any]) -> dict[str, Any]:
        assets = read_listed(params["listed"])
        return self.begin(params["started_from"], lambda: self.gather(assets))

    def prepare(self) -> None:
        # Beside the assets, so that files move into place without being copied; the keys stay with the spool.
        prepare(self.root)
        if self.system.folder.is_symlink():
            self.system.folder.unlink()
        self.system.folder.symlink_to(incoming(self.root))

    def gather(self, assets: Mapping[str, Any]) -> dict[str, Any]:
        """Return how much this node lacks of the assets, and what there is room for."""
        wanted, sizes = {}, {}
        for name, manifest in assets.items():
            missing = lacking(self.root, name, manifest["files"], lambda: None)
            wanted[name] = {**manifest, "missing": missing}
            sizes.update({sha256: size for dummy, size, sha256 in missing})
        self.keep_only(sizes)
        came = self._came_of()
        kept = sum(min(size, came.get(sha256, 0)) for sha256, size in sizes.items())
        write_json(self.place / WANTED, {"assets": wanted, "resumed": kept})
        return {
            "lacking_bytes": sum(sizes.values()),
            "lacking_files": len(sizes),
            "spooled_bytes": kept,
            "free_bytes": free_bytes(self.root),
            "root": str(self.root),
        }

    def work(self, part: dict[str, Any]) -> None:
        listed = read_json(self.place / WANTED)
        wanted: dict[str, Any] = listed["assets"]
        missing = {name: {file[2] for file in asset["missing"]} for name, asset in wanted.items()}
        needed = {sha256: size for asset in wanted.values() for dummy, size, sha256 in asset["missing"]}
        for name, asset in wanted.items():
            there = [file for file in asset["files"] if file[2] not in missing[name] and file[2] not in needed]
            offer(self.root, name, there, self.system.folder)
        names = {file[2]: f"{name}/{file[0]}" for name, asset in wanted.items() for file in asset["missing"]}
        words = Words("the files", "and run again", lambda sha256: names.get(sha256, sha256[:12]))
        with closing(receiver_of(part, self.system, words)) as receiver:
            self.system.say(state="receiving", resumed=listed["resumed"], changed=False, **receiver.report())
            for sha256, size in needed.items():
                if part["sources"]:
                    receiver.fetch(sha256, most=size)
                else:
                    self._await(sha256, size, names[sha256])
                self.system.say(**receiver.report())
        self.system.say(state="installing")
        for name, asset in wanted.items():
            if differs(self.root, name, asset):
                self.system.say(changed=True)
            try:
                install(self.root, name, asset, asset["missing"])
            except OSError as error:
                raise TransferError(
                    f"{self.root / name} cannot be put in place ({error}). "
                    "Remedy: move what is in the way, and run again; the transfer resumes."
                ) from error
            self.system.alive()
        self.system.say(state="done", **receiver.report())

    def _await(self, sha256: str, size: int, name: str) -> None:
        """Wait until the controller has sent a file, and read it as it grows; it counts when it has its digest."""
        whole, part = self.system.folder / sha256, self.system.folder / f"{sha256}.part"
        if whole.exists():
            # From an earlier transfer: what the disk made of it is not known.
            whole.replace(part)
        received_at = time.monotonic()
        with part.open("ab+", buffering=0) as file:
            file.seek(0)
            hashed = Hashed(file, self.system.alive)
            while hashed.size < size:
                if hashed.read(CHUNK):
                    received_at = time.monotonic()
                elif time.monotonic() - received_at > SILENCE:
                    raise TransferError(
                        f"nothing has come from the controller for {SILENCE:.0f} s. "
                        "Remedy: run again; the transfer resumes."
                    )
                else:
                    time.sleep(0.05)
        if hashed.sha256 != sha256:
            part.unlink()
            raise TransferError(
                f"{name} does not have the digest that was planned. Remedy: run again; where its source is a folder "
                "of the controller, let no one write there meanwhile."
            )
        part.rename(whole)

    def feed(self, archive: str) -> dict[str, Any]:
        """Take a piece from the controller, if there is one, and return what this node still needs of which file."""
        self.check_mine()
        state = read_json(self.place / "state")
        if state.get("run") == self.run and state.get("state") == "failed":
            raise TransferError(str(state.get("trouble")))
        needed = {
            file[2]: file[1] for asset in read_json(self.place / WANTED)["assets"].values() for file in asset["missing"]
        }
        if archive:
            append_piece(Path(archive), self.system.folder, needed)
            return {}
        came = self._came_of()
        return {sha256: came.get(sha256, 0) for sha256 in needed}

    def _came_of(self) -> dict[str, int]:
        """Return how many bytes have come of each file."""
        return {name.partition(".")[0]: size for name, size in spooled(self.system.folder).items()}

    def clear(self, keep: bool) -> None:
        super().clear(keep)
        if not keep and not self.place.exists():
            remove_received(self.root)


def read_listed(text: str) -> dict[str, Any]:
    """Return assets as the controller wrote them to a file. Raises ``TransferError``."""
    try:
        found = json.loads(Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TransferError(f"the list of files did not arrive ({error}). Remedy: run again.") from error
    return {str(name): dict(manifest) for name, manifest in found.items()}
