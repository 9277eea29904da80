# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What one key of ds_config.json may hold: the vocabulary in which the blocks are written down."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_facts import Version


@dataclass(frozen=True)
class Field:
    """What a key may hold.

    ``kind``: ``flag`` (boolean), ``whole``, ``number``, ``text``, ``texts`` (list of text), ``list``, ``choice``,
    ``block`` (a mapping described by the block of that name), ``params`` (a mapping whose keys belong to the optimizer
    or scheduler class), ``free`` (a mapping that is not looked into).
    """

    kind: str
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    choices: tuple[str, ...] = ()
    block: str = ""
    own_auto: bool = False
    """"auto" is a value that DeepSpeed itself knows here."""
    since: Version | None = None
    """First release that reads the key; ``None``: before any known one."""
    gone: Version | None = None
    """First release that refuses or ignores the key."""
    instead: str = ""
    """What to do where the key is gone."""

    def known_to(self, version: Version) -> bool:
        return (self.since is None or version >= self.since) and (self.gone is None or version < self.gone)


def since(text: str, field: Field) -> Field:
    return replace(field, since=_v(text))


def gone(text: str, field: Field, instead: str) -> Field:
    return replace(field, gone=_v(text), instead=instead)


def _v(text: str) -> Version:
    return Version(*map(int, text.split(".")))


def choice(*choices: str, own_auto: bool = False) -> Field:
    return Field("choice", choices=choices, own_auto=own_auto)


def block(name: str) -> Field:
    return Field("block", block=name)


FLAG = Field("flag")
WHOLE = Field("whole")
COUNT = Field("whole", gt=0)
SIZE = Field("whole", ge=0)
NUMBER = Field("number")
SHARE = Field("number", ge=0, le=1)
TEXT = Field("text")
TEXTS = Field("texts")
LIST = Field("list")
FREE = Field("free")
DEVICE = choice("none", "cpu", "nvme")
COMM_DTYPE = choice("fp16", "bf16", "fp32")
DTYPE = choice("fp16", "float16", "half", "bf16", "bfloat16", "fp32", "float32", "float")
"""The names that DeepSpeed's ``DtypeEnum`` knows, less those that make no sense for training (int8)."""
