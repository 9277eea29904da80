# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a refusal tells the user to do, as something that can be done literally. Pure.

Of several remedies joined by "or" the first is taken. Only what is a command, a variable or a wait is followed; where
a remedy is neither ("make room there"), the fault says what a person would do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from tests.chaos.verdict import Refusal

# Whatever is printed is run on nodes of the lab: nothing but these programs, and no shell syntax.
_PROGRAMS = r"(?:docker|systemctl|dpkg|apt-get|apt-mark|chmod|timedatectl|kill)"
_ARGUMENTS = r"(?: [\w./:=@+-]+)+"
_COMMAND = re.compile(rf"{_PROGRAMS}{_ARGUMENTS}")
_QUOTED = re.compile(rf"[`\"]({_PROGRAMS}{_ARGUMENTS})[`\"]")
_BARE = re.compile(rf"^(?:run )?({_PROGRAMS}{_ARGUMENTS}?)(?=[,;] | there\b| here\b| on |$)")
_READS_ONLY = re.compile(r"docker (?:info|logs|ps|inspect|system df)\b|systemctl status\b")
_PLAYBOOK = re.compile(r"^[`\"]?ansible-playbook (\w+)\.yml((?: --tags [\w,]+)?)(?: again)?")
_VARIABLE = re.compile(r"^(?:set )?([a-z]+(?:_[a-z]+)+): ([\w./-]+)(?=[\s,.;]|$)")
_TEARDOWN = re.compile(r"[`\"]?teardown\.yml[`\"]? and [`\"]?site\.yml[`\"]?")
_WAIT = re.compile(r"^wait (?:until|a minute|for)")
_AGAIN = re.compile(r"^run (?:the playbook )?again|^run it again")

Kind = Literal["command", "playbook", "variable", "wait", "again"]


@dataclass(frozen=True)
class Action:
    """Something to be done: on ``node`` where it is a command there."""

    kind: Kind
    text: str
    node: str = ""
    arguments: tuple[str, ...] = ()
    value: Any = None


def actions(refusal: Refusal, nodes: Sequence[str]) -> list[Action]:
    """Return what the remedy says to do, first alternative first; empty where only a person can tell."""
    remedy = refusal.remedy.strip().rstrip(".")
    where = [name for name in nodes if re.search(rf"\b{re.escape(name)}\b", refusal.where)] or [
        name for name in nodes if re.search(rf"\b{re.escape(name)}\b", refusal.cause)
    ]
    found: list[Action] = []
    if _WAIT.match(remedy):
        found = [Action("wait", remedy)]
    elif variable := _VARIABLE.match(remedy):
        found = [Action("variable", variable[1], value=yaml.safe_load(variable[2]))]
    elif playbook := _PLAYBOOK.match(remedy):
        found = [Action("playbook", playbook[1], arguments=tuple(playbook[2].split()))]
    elif command := _command(remedy):
        found = _on_nodes(command, remedy, where, nodes)
    elif _TEARDOWN.search(remedy):
        found = [Action("playbook", "teardown")]
    elif _AGAIN.match(remedy):
        found = [Action("again", remedy)]
    return found


def is_command(text: str) -> bool:
    """Whether this is one of the programs with plain arguments, and nothing that a shell would read otherwise."""
    return bool(_COMMAND.fullmatch(text))


def _command(remedy: str) -> str:
    """Return the first command that does something, of the first alternative; empty where there is none."""
    if bare := _BARE.match(remedy):
        return bare[1]
    quoted = _QUOTED.findall(remedy.partition(", or ")[0])
    return next((command for command in quoted if not _READS_ONLY.match(command)), "")


def _on_nodes(command: str, remedy: str, where: Sequence[str], nodes: Sequence[str]) -> list[Action]:
    # "restart the engine of lab2": the remedy may name another node than the refusal.
    after = remedy.partition(command)[2]
    named = [name for name in nodes if re.match(rf"[`\"]? on {re.escape(name)}\b", after)]
    return [Action("command", command, node=name) for name in named or where]
