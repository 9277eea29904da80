"""Brings a job that failed back to where it can be started once more: with all nodes or those left, and a checkpoint.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

from typing import Any

from ..members import placed
from ..shrink import ShrinkError, shrink
from .base import now_text
from .checkpoints import Verdict
from .judge import Failure
from .local_run import rest
from .nodes import Nodes
from .readiness import refused
from .restarts import Restarts, judge


class RestartRecovery:
    """Between two attempts of a job. ``config``: its ds_config.json for the ranks there are, where it may shrink."""

    def __init__(self, nodes: Nodes, restarts: Restarts, config: dict[str, Any] | None) -> None:
        self._nodes, self._restarts, self.config = nodes, restarts, config

    def prepare(self, number: int, failure: Failure) -> tuple[Failure | None, list[str]]:
        """End what is left of the attempt before this one, and wait. Why it cannot be, or the arguments for it.

        Neither counts where somebody has stopped the job meanwhile.
        """
        nodes, grace = self._nodes, self._nodes.timing.failure_grace
        nodes.say(f"attempt {number - 1} failed: {failure.reason}")
        nodes.broadcast({"t": "end", "again": True, "grace": grace})
        nodes.end_all(grace)
        rest(self._restarts.pause(), nodes.tick, lambda: bool(nodes.requested()))
        missing = [] if nodes.stop_reason else nodes.wait_for_all(self._restarts.node_wait)
        if missing:
            final = self._without(missing, number, failure)
            if final is not None:
                return final, []
        if nodes.stop_reason:
            return None, []
        verdict = self.checkpoint()
        if verdict is not None and verdict.tag is not None and not verdict.complete:
            reason = f"{failure.reason} It cannot be resumed: {verdict.advice}"
            return Failure(reason, node=failure.node, final=True), []
        tag = verdict.tag if verdict else None
        self._restarts.done.append(
            {"attempt": number - 1, "reason": failure.reason, "at": now_text(), "resumed_from": tag}
        )
        nodes.state["restarts"] = self._restarts.done
        nodes.say(f"attempt {number} begins, " + (f"from checkpoint {tag}" if tag else "from the beginning"))
        return None, self._restarts.arguments(verdict)

    def checkpoint(self) -> Verdict | None:
        """The newest checkpoint, as all nodes see the folder."""
        folder = self._restarts.folder
        if not folder:
            return None
        place = self._nodes.place
        return judge(self._nodes.listings(folder), place.members, place.ds_config, place.world_size)

    def _without(self, missing: list[str], number: int, failure: Failure) -> Failure | None:
        """Go on without nodes that stayed away; or why not."""
        nodes, place = self._nodes, self._nodes.place
        away = f"{', '.join(missing)} did not come back within {self._restarts.node_wait:.0f} s."
        advice = "Repair that node and launch again, which resumes, or leave it out with deepspeed_launch_exclude."
        if not place.shrinks:
            return Failure(f"{failure.reason} The job cannot go on: {away} {advice}", node=missing[0], final=True)
        before = {"world_size": place.world_size, "nodes": len(place.members)}
        after = sum(len(member["slots"]) for member in place.members if member["name"] not in missing)
        words = f"{after} instead of {place.world_size} ranks."
        if self.config is not None:
            try:
                self.config, words = shrink(self.config, place.world_size, after)
            except ShrinkError as error:
                return Failure(
                    f"{failure.reason} {away} The job cannot go on with {after} rank(s): {error} {advice}",
                    node=missing[0],
                    final=True,
                )
        nodes.leave_out(missing)
        try:
            place.lay_out(self.config)
        except OSError as error:
            return Failure(f"{failure.reason} {away} No hostfile could be written for the others: {error}.", final=True)
        nodes.say(f"{away} The job goes on without: {words}")
        shrunk = {**before, "left_out": [], **(nodes.state.get("shrunk_from") or {})}
        nodes.state.update(
            shrunk_from={**shrunk, "left_out": [*shrunk["left_out"], *missing]},
            members=placed(place.members),
            world_size_expected=place.world_size,
            nodes_expected=len(place.members),
        )
        nodes.reset()
        nodes.part.begin(number)  # until then the part ends whatever runs on this node
        final = refused(nodes, str(place.own_config) if self.config is not None else None)
        if final is not None:
            final.final = True
        return final
