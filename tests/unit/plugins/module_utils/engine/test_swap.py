# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A new container takes the place of a running one, with an invented engine that fails or is cut off anywhere."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.swap import LABEL, TRIES, Swap, SwapError

NAME = "lab-gpu2"


class KilledError(Exception):
    """The connection was cut: the controller, or the module on the node, has ended."""


class FakeEngine:
    """Containers by name, each an id and whether it runs. Ids in ``broken`` cannot be started."""

    def __init__(self, broken: str = "", killed_after: int | None = None, **containers: tuple[str, bool]) -> None:
        self.containers = {NAME + suffix.replace("_", "."): one for suffix, one in containers.items()}
        self.labels: dict[str, str] = {LABEL: "hash"}
        self.broken, self.left = broken, killed_after
        self.written: list[str] = []

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        found = re.fullmatch(r"/containers/([^/?]+)(?:/(\w+))?(?:\?(.*))?", path)
        assert found, path
        name, word, query = unquote(found.group(1)), found.group(2), unquote(found.group(3) or "")
        if name not in self.containers:
            raise EngineError(f"No such container: {name}", 404)
        if method == "GET":
            return {"Config": {"Labels": self.labels}}
        if self.left is not None:
            if not self.left:
                raise KilledError
            self.left -= 1
        self.written.append(f"{word or method} {name}")
        one, dummy = self.containers[name]
        if method == "DELETE":
            del self.containers[name]
        elif word == "rename":
            other = query.partition("name=")[2]
            if other in self.containers:
                raise EngineError(f"Conflict. The container name /{other} is already in use", 409)
            self.containers[other] = self.containers.pop(name)
        elif word == "start" and one in self.broken:
            raise EngineError("driver failed programming\nexternal connectivity", 500)
        else:
            self.containers[name] = (one, word == "start")
        assert sum(runs for dummy, runs in self.containers.values()) <= 1, "both would take the same ports"
        return None

    @property
    def running(self) -> dict[str, str]:
        return {name: one for name, (one, runs) in self.containers.items() if runs}


def swap(engine: FakeEngine, *others: str) -> Swap:
    return Swap(engine, NAME, others, lambda dummy: None)


def test_the_new_one_runs_and_the_other_is_kept_until_it_is_settled() -> None:
    engine = FakeEngine(_=("old", True), _new=("new", False))
    engine.containers[NAME] = engine.containers.pop(NAME + ".")
    assert swap(engine).swapped()
    assert engine.running == {NAME: "new"} and engine.containers[NAME + ".old"] == ("old", False)
    assert swap(engine).settled() and not swap(engine).settled()
    assert engine.containers == {NAME: ("new", True)}


def running(**more: Any) -> FakeEngine:
    engine = FakeEngine(_new=("new", False), **more)
    engine.containers[NAME] = ("old", True)
    return engine


def test_where_the_new_one_cannot_be_started_the_other_runs_again() -> None:
    engine = running(broken="new")
    with pytest.raises(SwapError) as raised:
        swap(engine).swapped()
    assert str(raised.value) == (
        "The new container lab-gpu2 cannot be started: driver failed programming external connectivity. The earlier "
        "one runs again, as it was."
    )
    assert engine.containers == {NAME: ("old", True), NAME + ".new": ("new", False)}
    assert engine.written.count(f"start {NAME}") == TRIES + 1


def test_where_neither_starts_both_reasons_are_given() -> None:
    with pytest.raises(SwapError, match=r"cannot be started: .*\. Nor does the earlier one start again: driver "):
        swap(running(broken="newold")).swapped()


def test_without_another_there_is_nothing_to_start_again() -> None:
    engine = FakeEngine(broken="new", _new=("new", False))
    with pytest.raises(SwapError, match=r"connectivity\.$"):
        swap(engine).swapped()
    assert not swap(FakeEngine()).restored()


def test_what_works_no_better_than_the_other_is_kept_for_its_log() -> None:
    engine = running()
    swap(engine).swapped()
    assert swap(engine).restored()
    assert engine.containers == {NAME: ("old", True), NAME + ".new": ("new", False)}


def test_the_container_of_another_name_ends_runs_again_and_goes() -> None:
    def renamed(**more: Any) -> FakeEngine:
        engine = FakeEngine(_new=("new", False), **more)
        engine.containers["lab-gpu9"] = ("old", True)
        return engine

    engine = renamed()
    assert swap(engine, "lab-gpu9", "gone").swapped() and engine.running == {NAME: "new"}
    assert swap(engine, "lab-gpu9", "gone").settled() and engine.containers == {NAME: ("new", True)}
    engine = renamed(broken="new")
    with pytest.raises(SwapError, match=r"The earlier one runs again, as it was\.$"):
        swap(engine, "lab-gpu9").swapped()
    assert engine.containers == {"lab-gpu9": ("old", True), NAME + ".new": ("new", False)}
    engine = renamed()
    swap(engine, "lab-gpu9").swapped()
    assert swap(engine, "lab-gpu9").restored()
    assert engine.containers == {"lab-gpu9": ("old", True), NAME + ".new": ("new", False)}


@pytest.mark.parametrize("act", ["swapped", "settled", "restored"])
@pytest.mark.parametrize("labels", [{}, {"swarmspeed.cluster": "lab"}])
def test_what_others_made_is_not_touched(act: str, labels: dict[str, str]) -> None:
    engine = running()
    engine.containers[NAME + ".old"] = ("theirs", False)
    engine.labels = labels
    with pytest.raises(SwapError, match=r"but this collection did not create it\. Rename or remove it\.$"):
        getattr(swap(engine), act)()
    assert engine.written == []


@pytest.mark.parametrize("calls", range(12))
@pytest.mark.parametrize("left", [{}, {"_old": ("older", False)}])
def test_whatever_it_is_interrupted_after_the_next_run_ends_with_the_new_one(calls: int, left: dict[str, Any]) -> None:
    """As the role does: a new one is created (again), takes the place of whatever is there, and the rest is removed."""
    engine = running(killed_after=calls, **left)
    try:
        swap(engine).swapped()
        swap(engine).settled()
    except KilledError:
        pass
    engine.left = None
    engine.containers.pop(NAME + ".new", None)
    if NAME in engine.containers:
        engine.containers[NAME + ".new"] = ("newest", False)
        swap(engine).swapped()
    else:  # the role creates and starts it by its own name
        engine.containers[NAME] = ("newest", True)
    swap(engine).settled()
    assert engine.containers == {NAME: ("newest", True)}
