# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the scenarios' tests assert of a playbook that preflight refused: that it passes, and that it can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Problem, Report
from ansible_collections.swarmspeed.cluster.tests.playbook_run import Run

CLOCK = Problem("lab2", "its clock is 90.0 s behind the controller's (±0.3 s)", "timedatectl set-ntp true", "clock")
DISK = Problem("lab1, lab3", "8.0 GiB are free at /: 10.0 GiB are needed", "free space there", "disk")
NAMES = ("clock", "lab2"), ("disk", "lab1, lab3")


def message(*problems: Problem) -> str:
    return Report(problems, (), ()).message()


def run(text: str, rc: int = 2, changed: int = 0) -> Run:
    """Return a run as ansible-core 2.19 ends it, with the message of the failed task twice."""
    indented = "\n".join(f"        {line}" for line in text.splitlines())
    result = f"    changed: false\n    msg: |-\n{indented}\n    problems:\n    -   check: clock\n"
    output = (
        f"TASK [swarmspeed.cluster.preflight : Check the facts of the nodes] ***\n"
        f"[ERROR]: Task failed: Action failed: {text}\nOrigin: roles/preflight/tasks/main.yml:42:3\n\n"
        f"fatal: [lab1]: FAILED! => \n{result}\n"
        f"PLAY RECAP ***\nlab1                       : ok=3    changed={changed}    unreachable=0    failed=1\n"
    )
    return Run(rc, output)


def test_problems_are_asserted_by_check_and_subject_in_any_order() -> None:
    run(message(*(replace(DISK, subject=host, text=f"{host} is full") for host in ("lab1", "lab3")))).refused_by(
        NAMES[1]
    )
    assert run(message(CLOCK)).refused_by(NAMES[0]).rc == 2
    run(message(CLOCK, DISK)).refused_by(*NAMES)
    run(message(CLOCK, DISK)).refused_by(*reversed(NAMES))
    # Broken into lines as a terminal does it, and printed once, as ansible-core 2.18 does.
    once = run(message(CLOCK, DISK)).output.partition("fatal: ")[2]
    Run(2, once.replace(" Remedy: ", "\n   Remedy: ")).refused_by(*NAMES)


ONE, TWO = message(CLOCK), message(CLOCK, DISK)
FAILS: dict[str, tuple[Run, tuple[tuple[str, str], ...], str]] = {
    "succeeded": (run(ONE, rc=0), NAMES[:1], "was to be refused"),
    "nothing named": (run(ONE), (), "name the problems"),
    "one is missing": (run(ONE), NAMES, "found "),
    "another subject": (run(ONE), (("clock", "lab1"),), "found "),
    "another check": (run(ONE), (("disk", "lab2"),), "found "),
    "another host": (run(message(DISK)), (("disk", "lab1, lab2"),), "found "),
    "a host less": (run(message(DISK)), (("disk", "lab1"),), "found "),
    "one more": (run(TWO), NAMES[:1], "found "),
    "one twice": (run(message(CLOCK, CLOCK)), NAMES[:1], "found "),
    "no report": (run("lab2: bad. Remedy: fix it. (check: clock)"), NAMES[:1], "reported no problem"),
    "the count is too high": (run(ONE.replace("1 problem", "2 problems")), NAMES[:1], "2 problems, and 1 lines"),
    "the count is too low": (run(TWO.replace("2 problems", "1 problem")), NAMES[:1], "1 problems, and 2 lines"),
    "a wrong number": (run(ONE.replace("1. lab2", "2. lab2")), NAMES[:1], "1 problems, and 0 lines"),
    "an empty remedy": (run(ONE.replace(CLOCK.remedy, "")), NAMES[:1], "not 'subject: text"),
    "no remedy": (run(TWO.replace(f" Remedy: {CLOCK.remedy}.", "")), NAMES, "not 'subject: text"),
    "no subject": (run(ONE.replace("lab2: ", "")), NAMES[:1], "not 'subject: text"),
    "no check": (run(ONE.replace(" (check: clock)", "")), NAMES[:1], "1 problems, and 0 lines"),
    "no check before another line": (run(TWO.replace(" (check: clock)", "")), NAMES, "2 problems, and 1 lines"),
    "a traceback": (run(f"{ONE}\nTraceback (most recent call last):"), NAMES[:1], "Traceback"),
    "something was changed": (run(ONE, changed=1), NAMES[:1], "changed=1"),
}


@pytest.mark.parametrize(("given", "problems", "why"), FAILS.values(), ids=FAILS)
def test_the_assertion_can_fail(given: Run, problems: tuple[tuple[str, str], ...], why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        given.refused_by(*problems)
