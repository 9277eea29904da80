# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One node's part of a transfer of an image: what the spool's process does, and what the node has of the image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.api_io import Engine, EngineError
from ..spool import SpoolTransfer, spooled
from .archive import CONFIG, bare
from .gather import gather
from .worker import give, take
from .worker_io import SystemTransferIO


class Transfer(SpoolTransfer):
    """The transfer ``run`` of an image on this node."""

    system: SystemTransferIO
    remedy = "ansible-playbook site.yml --tags docker"

    def __init__(self, place: str, run: str, node: str, account: str, engine: Engine) -> None:
        super().__init__(place, run, node, account)
        self._engine = engine
        self.system = SystemTransferIO(self.place, run, engine)

    def gather(self, image: str) -> dict[str, Any]:
        """Return what this node has, and what there is room for."""
        try:
            found = gather(self._engine, image, self.place)
        except EngineError as error:
            raise OSError(str(error)) from error
        return {**found, "spooled": spooled(self.system.folder)}

    def start(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return self.begin(params["started_from"], lambda: self.gather(params["image"]))

    def prepare(self) -> None:
        super().prepare()
        # What a killed writer left of a saved image is worth nothing.
        for left in ("incoming", CONFIG, f"{CONFIG}.part"):
            (self.system.folder / left).unlink(missing_ok=True)

    def work(self, part: dict[str, Any]) -> None:
        self.keep_only({bare(name) for name in part["layers"]})
        if part["sources"]:
            take(part, self.system, str(self.place))
        else:
            give(part, self.system)
            self.system.say(state="done")

    def remove_partial(self) -> None:
        self.system.remove_partial()
