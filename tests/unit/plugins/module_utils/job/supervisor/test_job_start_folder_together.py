# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Nodes that share the workspace (NFS) end a run at once: no order of their system calls loses what it has made."""

from __future__ import annotations

import os
import random
import shutil
import threading
from pathlib import Path
from typing import Any, Callable

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.code_places import RUNS

from tests.effort import examples
from tests.unit.plugins.module_utils.job.supervisor.test_job_start_folder import Workspace

CALLS = ("mkdir", "open", "readlink", "rename", "rmdir", "stat", "symlink", "unlink")
MADE = {"out/0": "0", "out/1": "1", "new/0": "0", "new/deep/1": "1", "ckpt/step2": "2", "metrics.json": "replaced"}
BEFORE = {"metrics.json": "old", "ckpt/step1": "1"}


class Turns:
    """Two threads of which only one runs; before each system call the other one may get its turn."""

    def __init__(self, seed: int, share: float) -> None:
        self._choice, self._share = random.Random(seed), share
        self._next = threading.Condition()
        self._alive: list[int] = []
        self._turn = 0
        self.errors: list[BaseException] = []

    def step(self) -> None:
        number = getattr(threading.current_thread(), "number", None)
        if number is None:
            return
        with self._next:
            if len(self._alive) > 1 and self._choice.random() < self._share:
                self._turn = 1 - number
                self._next.notify_all()
                self._next.wait_for(lambda: self._turn == number, 30)

    def run(self, *actions: Callable[[], Any]) -> None:
        threads = [threading.Thread(target=self._one, args=(action,)) for action in actions]
        self._alive = list(range(len(threads)))
        for number, thread in enumerate(threads):
            thread.number = number  # type: ignore[attr-defined]
            thread.start()
        for thread in threads:
            thread.join(60)
        if self.errors:
            raise self.errors[0]

    def _one(self, action: Callable[[], Any]) -> None:
        number = threading.current_thread().number  # type: ignore[attr-defined]
        with self._next:
            self._next.wait_for(lambda: self._turn == number, 30)
        try:
            action()
        except BaseException as error:
            self.errors.append(error)
        with self._next:
            self._alive.remove(number)
            self._turn = 1 - number
            self._next.notify_all()


def a_run_that_ends(workspace: Workspace) -> list[Any]:
    """Three supervisors of a run that has made files beside those that were there; one of them has shown nothing."""
    for name, text in BEFORE.items():
        (workspace.path / name).parent.mkdir(exist_ok=True)
        (workspace.path / name).write_text(text)
    nodes = [workspace.run() for _node in range(3)]
    for node in nodes:
        node.prepare()
    own = Path(nodes[0].path)
    (own / "ckpt").unlink()
    for name, text in MADE.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / f"{name}.part").write_text(text)
        (own / f"{name}.part").replace(own / name)
        for node in nodes[:2]:
            workspace.refresh(node)
    return nodes


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("also", ["settles", "shows what is new"])
def test_what_a_run_has_made_is_kept_whoever_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, also: str, share: float
) -> None:
    turns = Turns(0, share)
    for call in CALLS:
        real = getattr(os, call)

        def stepped(*args: Any, real: Callable[..., Any] = real, **options: Any) -> Any:
            turns.step()
            return real(*args, **options)

        monkeypatch.setattr(os, call, stepped)
    for seed in range(examples(200)):
        workspace = Workspace(tmp_path / "workspace")
        one, two, three = a_run_that_ends(workspace)
        workspace.now += 5
        turns = Turns(seed, share)
        turns.run(*[one.settle, two.settle if also == "settles" else three.refresh][:: 1 if seed % 2 else -1])
        assert one.settle() == []  # what was shown too late stays in the run's folder until the next one does this
        found = {
            str(path.relative_to(workspace.path)): path.read_text()
            for path in workspace.path.rglob("*")
            if path.is_file() and not path.is_symlink() and ".swarmspeed" not in path.parts
        }
        assert found == {**BEFORE, **MADE}, f"seed {seed}"
        assert list((workspace.path / RUNS).iterdir()) == [], f"seed {seed}"
        shutil.rmtree(workspace.path)
