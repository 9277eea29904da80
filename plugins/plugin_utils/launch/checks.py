# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether a job can start, by what job_precheck found on all its nodes: every problem, with node, cause and remedy.

Pure. What is the same on several nodes is reported once; what fails between pairs of nodes is reported by the
node that they have in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.problems import Problem, listing
from ..core.values import mapping
from . import cross_node_checks, per_node_checks
from .node import Node

CHECKS = (
    cross_node_checks.check_image,
    cross_node_checks.check_versions,
    cross_node_checks.check_programs,
    cross_node_checks.check_names,
    cross_node_checks.check_ssh,
    per_node_checks.check_memory,
    per_node_checks.check_gpus,
    per_node_checks.check_port,
    per_node_checks.check_files,
    per_node_checks.check_exports,
    per_node_checks.check_space,
    per_node_checks.check_locks,
    per_node_checks.check_operators,
)


@dataclass(frozen=True)
class Verdict:
    """``problems`` keep the job from starting; ``notes`` are worth knowing; ``agreed`` is what all nodes have alike."""

    problems: list[str]
    notes: list[str]
    agreed: str

    def message(self, preview: bool = False) -> str:
        """One text for all of it. In check mode it is a preview: what the run brings may not be there yet."""
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        if not self.problems:
            head = f"Checks before the start: {self.agreed}."
        elif preview:
            head = f"As the nodes are now, {count} would keep the job from starting; the run may fix some before."
        else:
            head = f"The job was not started: {count} found on its nodes."
        lines = [f"{number}. {text}" for number, text in enumerate(self.problems, 1)]
        return "\n".join([head, *lines, *(f"Note: {note}" for note in self.notes)])


def judge(results: Mapping[str, Any]) -> Verdict:
    """The verdict over what job_precheck returned, by node of the job; None for a node that gave no answer."""
    found: list[Problem] = []
    nodes: list[Node] = []
    for name, result in results.items():
        given = mapping(result)
        trouble = mapping(given.get("trouble"))
        if given.get("answer"):
            nodes.append(Node(name, given["asked"], given["answer"], mapping(given.get("image"))))
        elif trouble:
            found.append(Problem(name, trouble["text"], trouble["remedy"]))
        else:
            found.append(Problem(name, "it did not answer the checks", "check the error of this node above"))
    for check in CHECKS:
        found += check(nodes)
    merged: dict[tuple[str, str, bool], list[str]] = {}
    for problem in found:
        merged.setdefault((problem.text, problem.remedy, problem.fatal), []).append(problem.subject)
    fatal: list[str] = []
    notes: list[str] = []
    for (text, remedy, is_fatal), subjects in merged.items():
        line = f"{listing(dict.fromkeys(subjects))}: {text}."
        (fatal if is_fatal else notes).append(f"{line} Remedy: {remedy}." if remedy else line)
    return Verdict(fatal, notes, agreed(nodes, len(results)))


def agreed(nodes: Sequence[Node], count: int) -> str:
    """What all nodes have alike, for people to read."""
    seen = [{"python": node.answer["python"], **node.answer["versions"]} for node in nodes]
    first = seen[0] if seen else {}
    same = [f"{name} {value}" for name, value in first.items() if value and all(one.get(name) == value for one in seen)]
    return f"{count} node{'s' if count != 1 else ''}, each with {', '.join(same)}" if same else f"{count} node(s)"
