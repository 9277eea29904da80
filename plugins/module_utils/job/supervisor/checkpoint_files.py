# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The files of checkpoints: listed on each node, and grouped by checkpoint as all nodes have them.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..code_places import RUNS

MOST_FILES = 100000
"""Entries of a folder that are listed."""
MOST_OPENED = 2000
"""Files, the newest, whose end is checked."""
BROKEN = -1
"""The size that stands for a file that was not written to its end."""

_SHARD = re.compile(r"(?:bf16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_?(optim|model)_states\.pt")
_MODEL = re.compile(r"mp_rank_(\d+)_model_states\.pt")
EXPERT = re.compile(
    r"layer_(\d+)_expert_(\d+)_mp_rank_(\d+)_model_states\.pt|expp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt"
)
LAYER = re.compile(r"layer_(\d+)(?:-model_(\d+))?-model_states\.pt")
_TRAINER = re.compile(r"(?:^|.*/)checkpoint-(\d+)")
_STEP = re.compile(r"(?:step|iter|iteration|checkpoint)[_=-]?0*(\d+)", re.IGNORECASE)


def join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def parent_of(path: str) -> str:
    return path.rpartition("/")[0]


def base_of(path: str) -> str:
    return path.rpartition("/")[2]


def list_files(folder: str) -> dict[str, Any]:
    """What lies below a folder: {"files": [[path, size], …], "latest": {path: text}, "truncated": bool}.

    Empty where there is no such folder. A .pt file whose end was not written has the size BROKEN.
    """
    found: list[tuple[float, str, int]] = []
    latest: dict[str, str] = {}
    truncated = False
    for parent, names in _walk(folder):
        for name in sorted(names):
            if len(found) >= MOST_FILES:
                truncated = True
                break
            whole = Path(parent, name)
            path = whole.relative_to(folder).as_posix()
            try:
                status = whole.stat()
                found.append((status.st_mtime, path, status.st_size))
                if name in ("latest", "latest_universal") and status.st_size < 4096:
                    with whole.open(encoding="utf-8", errors="replace") as file:
                        latest[path] = file.read().strip()
            except OSError:  # removed meanwhile: trainers keep only some checkpoints
                continue
        if truncated:
            break
    states = sorted((item for item in found if item[1].endswith(".pt")), reverse=True)[:MOST_OPENED]
    broken = {path for _when, path, size in states if size and not _ends_well(Path(folder, path), size)}
    files = [
        [path, BROKEN if path in broken else size] for _when, path, size in sorted(found, key=lambda item: item[1])
    ]
    return {"files": files, "latest": latest, "truncated": truncated}


def _walk(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Folders in order, with the names of their files. Of links to folders only those are followed by which a run shows
    what it makes in a folder of its source (start_folder.py)."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        yield parent, names
        for name in folders:
            link = Path(parent, name)
            if link.is_symlink() and f"{RUNS}/" in os.readlink(link):  # noqa: PTH115 Path.readlink is of Python 3.9
                for inner, deeper, files in os.walk(link):
                    deeper.sort()
                    yield inner, files


def _ends_well(path: Path, size: int) -> bool:
    """False when a zip archive, which torch.save writes, has no end. Another format cannot be judged."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"PK\x03\x04":
                return True
            file.seek(max(0, size - 1024))
            return b"PK\x05\x06" in file.read()
    except OSError:
        return False


class Tag:
    """One checkpoint as all nodes see it. ``path``: the folder with the states, relative to the checkpoint folder."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.sizes: dict[str, dict[str, int]] = {}  # node: file name: size

    @property
    def name(self) -> str:
        """What a script is given: the Trainer's and Lightning's own folder, else DeepSpeed's."""
        parent = parent_of(self.path)
        return parent if _TRAINER.fullmatch(parent) or parent.endswith(".ckpt") else self.path

    @property
    def latest(self) -> str:
        return join(parent_of(self.path), "latest")

    @property
    def trainer(self) -> str:
        """The Trainer's checkpoint folder; empty where it is none of its."""
        return next((path for path in (self.path, parent_of(self.path)) if _TRAINER.fullmatch(path)), "")

    @property
    def step(self) -> int | None:
        for text in (base_of(self.path), base_of(self.name)):
            found = list(_STEP.finditer(text))
            if found or text.isdigit():
                return int(found[-1].group(1)) if found else int(text)
        return None

    def order(self) -> tuple[Any, ...]:
        numbers = [int(text) for text in re.findall(r"\d+", base_of(self.path))]
        outer = [int(text) for text in re.findall(r"\d+", base_of(parent_of(self.path)))]
        return (self.step if self.step is not None else -1, numbers, outer, self.path)

    def names(self) -> list[str]:
        return sorted({name for sizes in self.sizes.values() for name in sizes})

    def whole(self, node: str, name: str) -> bool:
        return self.sizes.get(node, {}).get(name, 0) > 0


class Shape:
    """How many data-parallel and model-parallel ranks wrote a tag, as its file names say."""

    def __init__(self, names: list[str], stage: int | None = None) -> None:
        shards = [found for found in map(_SHARD.fullmatch, names) if found]
        models = [found for found in map(_MODEL.fullmatch, names) if found]
        layers = [found for found in map(LAYER.fullmatch, names) if found]
        self.optim = [found for found in shards if found.group(3) == "optim"]
        self.stage3 = stage == 3 or any(found.group(3) == "model" for found in shards)
        self.dp = 1 + max((int(found.group(1)) for found in shards), default=-1)
        self.mp = 1 + max(
            [int(found.group(2)) for found in shards] + [int(found.group(1)) for found in models], default=0
        )
        self.slices = 1 + max((int(found.group(2) or 0) for found in layers), default=0)
        self.pipeline = bool(layers)
        self.prefix = "bf16_" if any(found.group(0).startswith("bf16_") for found in self.optim) else ""

    def place(self, rank: int, world_size: int) -> tuple[int, int]:
        """Data-parallel and model-parallel rank (topology axes of a pipeline: pipe, data, model; else data, model)."""
        if not self.pipeline:
            return rank // self.mp, rank % self.mp
        dp = max(1, world_size // self.mp)
        stage, rest = divmod(rank, dp * self.slices)
        return rest // self.slices, stage * self.slices + rest % self.slices


def tags_of(listings: dict[str, dict[str, Any]]) -> list[Tag]:
    """The checkpoints of all nodes, the newest first."""
    tags: dict[str, Tag] = {}
    for node, listing in listings.items():
        for path, size in listing.get("files", []):
            folder, name = parent_of(path), base_of(path)
            states = _SHARD.fullmatch(name) or _MODEL.fullmatch(name) or EXPERT.fullmatch(name) or LAYER.fullmatch(name)
            if not states and not _TRAINER.fullmatch(folder):
                continue
            tags.setdefault(folder, Tag(folder)).sizes.setdefault(node, {})[name] = int(size)
    inner = {tag.trainer for tag in tags.values() if tag.trainer and tag.trainer != tag.path}
    return sorted((tag for tag in tags.values() if tag.path not in inner), key=Tag.order, reverse=True)
