# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Judges a job by what its launchers and ranks say and how they end: whether it did what was requested, and if not, who
failed first and why.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..diagnose import Diagnosis, first_cause
from ..evidence import CERTAIN, LIKELY, Finding
from ..exits import exit_meaning
from ..launcher_log import LogWatch
from ..members import ranks_by_node

_WEAK = ("exit-ssh", "exit-sigabrt", "unknown")
"""What a node that has gone leaves behind on the others: ssh that breaks off, an abort, an end without a word."""


def weak(finding: Finding | None) -> bool:
    return finding is None or finding.kind == "symptom" or finding.id in _WEAK


@dataclass
class Failure:
    """Why a job did not do what was requested. ``reason`` is the sentence for people; the rest is known or not."""

    reason: str
    node: str = ""
    rank: int | None = None
    code: int | None = None
    finding: Finding | None = None
    final: bool = False
    """Starting once more cannot help."""

    @property
    def weak(self) -> bool:
        """Whether all that is known may come of another node's end."""
        return not self.final and (weak(self.finding) or self.finding is None or self.finding.confidence != CERTAIN)


class Judge:
    """Hears every line, with the node and rank it comes from. Rank ``None`` is the launcher."""

    def __init__(self, spec: dict[str, Any], members: list[dict[str, Any]], world_size: int) -> None:
        self._launcher = spec.get("launcher", "deepspeed")
        self._ranks = ranks_by_node(members)
        self._world_size, self._nodes = world_size, len(members) or int(spec["nodes"])
        self._pdsh = spec.get("transport", "pdsh") != "direct"
        self.watch = LogWatch()
        self.watch.hosts = [member["name"] for member in members]
        self._diagnosis = Diagnosis()

    def feed(self, node: str, rank: int | None, line: str) -> str:
        """Take a line in; return it as the merged log has it."""
        if rank is not None:
            self.watch.feed(f"{node}: [rank{rank}]: {line}\n".encode("utf-8", "replace"))
            self._diagnosis.feed(node, rank, line)
            return f"{node}: rank {rank}: {line}"
        # pdsh has named the node already, where it was not the runner itself that spoke.
        named = line if not node or self._pdsh else f"{node}: {line}"
        self.watch.feed(f"{named}\n".encode("utf-8", "replace"))
        host = self.watch.host_of(named)
        self._diagnosis.feed(host or node, None, named[len(host) + 2 :] if host else named)
        return named

    def finish(self) -> None:
        self.watch.finish()

    def wrong_world(self) -> Failure | None:
        reason = self.watch.wrong_world(self._world_size, self._nodes)
        return Failure(reason, final=True) if reason else None

    def world_size(self, seen: dict[str, int]) -> int | None:
        """The world size as the launchers have said, or as many ranks as have shown themselves."""
        if self._launcher == "deepspeed":
            return self.watch.world_size
        return sum(seen.values()) or None

    def nodes_seen(self, seen: dict[str, int]) -> int:
        if self._launcher == "deepspeed":
            return len(self.watch.node_ranks)
        return sum(1 for count in seen.values() if count)

    def failed(self, codes: dict[str, int | None], ranks: dict[int, int]) -> bool:
        """Somebody has ended badly."""
        return bool(self.watch.exits) or any(codes.values()) or any(ranks.values()) or bool(self._short(codes))

    def _short(self, codes: dict[str, int | None]) -> str:
        """A node whose launcher ended with 0 before its ranks: a signal ended launch.py, and its ranks live on."""
        if self._pdsh or self._launcher != "deepspeed":
            return ""
        done = self.watch.successes_of
        short = [node for node, ranks in self._ranks.items() if done.get(node, 0) < len(ranks)]
        return next((node for node, code in codes.items() if code == 0 and node in short), "")

    def why(self, codes: dict[str, int | None], ranks: dict[int, int]) -> Failure | None:
        """Why the job, whose launchers have ended or must be ended, did not succeed; ``None`` when it did."""
        wrong = self.wrong_world()
        if wrong:
            return wrong
        first = next((code for code in codes.values() if code), 0)
        if first or self.watch.exits or any(ranks.values()):
            return self._because(codes, ranks)
        if self._launcher != "deepspeed":
            return None
        node = self._short(codes)
        if node:
            return Failure(
                f"the launcher on {node} ended with exit code 0 before its ranks did: a signal ended launch.py, which "
                "DeepSpeed reports as 0. Look for the out-of-memory killer in that node's kernel log, or for somebody "
                "who killed it.",
                node=node,
            )
        reason = self.watch.incomplete(self._world_size, self._nodes)
        return Failure(reason) if reason else None

    def _because(self, codes: dict[str, int | None], ranks: dict[int, int]) -> Failure:
        """Who failed first, how it ended, what it said, and what to do."""
        for number, ended in ranks.items():
            self._diagnosis.exited(self._node_of(number), number, ended, self._launcher)
        for host, ended, ssh in self.watch.exits:
            self._diagnosis.exited(host, self._only_rank(host), ended, "pdsh" if ssh else self._launcher)
        findings = self._diagnosis.result()
        finding = first_cause(findings)
        elsewhere = next((host for host, value, ssh in self.watch.exits if ssh and value == 255), "")
        if weak(finding) and not (finding and finding.id == "unknown" and finding.line):
            # An end without a word, somewhere, says less than ssh to a node that broke off.
            finding = next((one for one in findings if one.id == "exit-ssh"), finding)
        node = finding.node if finding else ""
        rank = finding.rank if finding else None
        if not node and not self._pdsh:
            node = next((name for name, ended in codes.items() if ended), "")
        rank = self._only_rank(node) if rank is None else rank
        code = self._code(node, rank, codes, ranks)
        who = "the launcher"
        if rank is not None or node:
            who = (f"rank {rank}" if rank is not None else "a rank") + (f" on {node}" if node else "")
        if elsewhere and code == 255 and (weak(finding) or node == elsewhere):
            who = f"ssh to {elsewhere}"
            node, rank = elsewhere, self._only_rank(elsewhere)  # the code is that of pdsh, which runs on rank 0's node
        reported = f"{who} ended with {exit_meaning(code, self._launcher).text}"
        if finding is None or finding.id == "unknown":
            last = finding.cause if finding else "The log says nothing more."
            return Failure(f"{reported}. {last}", node=node, rank=rank, code=code, finding=finding)
        reported_already = finding.line in finding.cause or reported in finding.line or who.startswith("ssh to ")
        line = "" if reported_already else f": {finding.line}"
        stop = "" if finding.cause.endswith((".", "!", "?")) else "."
        link = ":" if finding.kind == "script" else f"{line}."
        sure = "Likely: " if finding.confidence == LIKELY else ""
        reason = f"{reported}{link} {sure}{finding.cause}{stop} Remedy: {finding.remedy}"
        return Failure(reason, node=node, rank=rank, code=code, finding=finding)

    def stalled(self, reason: str) -> Failure:
        """A job in which nothing moves: its ranks' last lines may show what they wait for."""
        finding = first_cause(self._diagnosis.result(stalled=True))
        if finding is None or finding.id.startswith("unknown"):
            return Failure(reason)
        text = f"{reason} {finding.cause} Remedy: {finding.remedy}"
        return Failure(text, node=finding.node, rank=finding.rank, finding=finding)

    def _code(self, node: str, rank: int | None, codes: dict[str, int | None], ranks: dict[int, int]) -> int:
        """The exit code that belongs to who failed first."""
        if rank is not None and ranks.get(rank):
            return ranks[rank]
        known = [code for host, code, ssh in self.watch.exits if host == node and not ssh]
        known += [code for host, code, _ssh in self.watch.exits if host == node]
        own = codes.get(node)
        return next(iter(known), own or next((code for code in codes.values() if code), 0))

    def _node_of(self, rank: int) -> str:
        return next((node for node, ranks in self._ranks.items() if rank in ranks), "")

    def _only_rank(self, node: str) -> int | None:
        ranks = self._ranks.get(node, range(0))
        return ranks[0] if len(ranks) == 1 else None

    def describe(self, failure: Failure) -> dict[str, Any]:
        """The first failure as the state file has it."""
        node, _rank, trace = self.watch.culprit()
        finding = failure.finding
        # Where no rank is to blame, a traceback is that of somebody who met the same.
        mine = trace if finding is not None and failure.node in {"", node} else []
        return {
            "node": failure.node or None,
            "rank": failure.rank,
            "exit_code": failure.code,
            "cause": finding.cause if finding else failure.reason,
            "remedy": finding.remedy if finding else "",
            "setting": finding.setting if finding else "",
            "kind": finding.kind if finding else "",
            "id": finding.id if finding else "",
            "line": finding.line if finding else "",
            "confidence": finding.confidence if finding else "",
            "traceback": mine,
        }
