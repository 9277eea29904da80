# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Preflight's report, read back from the output of a playbook. Tests assert by check and subject, not by sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEAD = re.compile(r"Preflight found (\d+) problems?\. Nothing was changed\.")
# Until the name of the check, so that a line without a remedy does not borrow that of the next.
_LINE = re.compile(r" (\d+)\. (.+?) \(check: (\w+)\)")
# A question, as in "did you mean 'stage'?", ends without a full stop.
_SENTENCE = re.compile(r"(.+?): (.+?)(?:(?<=\?)|\.) Remedy: ([^\s.].*)\.")


@dataclass(frozen=True)
class Reported:
    """One line of the report."""

    check: str
    subject: str
    text: str
    remedy: str


def reported(output: str) -> list[Reported]:
    """Return the lines of the last report in an output. One that is not as preflight writes it fails the test."""
    # Without our ansible.cfg a result is JSON on one line, in which a line break is two characters.
    text = " ".join(output.replace("\\n", " ").split())
    heads = list(_HEAD.finditer(text))
    assert heads, f"preflight reported no problem:\n{output[-6000:]}"
    # Some releases of Ansible print a failed task's message twice.
    count, position = int(heads[-1][1]), heads[-1].end()
    lines: list[Reported] = []
    while line := _LINE.match(text, position):
        if int(line[1]) != len(lines) + 1:
            break
        sentence = _SENTENCE.fullmatch(line[2])
        assert sentence, f"not 'subject: text. Remedy: remedy.': {line[2]}"
        lines.append(Reported(line[3], *sentence.groups()))
        position = line.end()
    assert len(lines) == count, f"{count} problems, and {len(lines)} lines that name their check:\n{output[-6000:]}"
    return lines
