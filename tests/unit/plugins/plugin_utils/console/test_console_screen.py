# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which lines the events of a run give. The events are made up; tests/unit/plugins/callback has those of real runs."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.console.events import (
    Diff,
    End,
    Event,
    Message,
    Outcome,
    Play,
    Result,
    Retry,
    Started,
    Task,
    Tick,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.console.screen import ASCII, Screen, grouped

HOSTS = ("gpu1", "gpu2", "gpu3")
MANY = tuple(f"gpu{number}" for number in range(1, 65))
PLAY = Play("Deploy", HOSTS, ("preflight", "host", "docker", "swarm", "workspace"))


def ok(*hosts: str) -> list[Event]:
    return [Result(host, Outcome.OK) for host in hosts]


def skipped(*hosts: str) -> list[Event]:
    return [Result(host, Outcome.SKIPPED) for host in hosts]


def changed(*hosts: str) -> list[Event]:
    return [Result(host, Outcome.CHANGED) for host in hosts]


def failed(text: str, *hosts: str, outcome: Outcome = Outcome.FAILED) -> list[Event]:
    return [Result(host, outcome, text.format(host=host)) for host in hosts]


def lines(*events: Event, screen: Screen | None = None, step: float = 0.0) -> list[str]:
    """Feed events, ``step`` seconds apart."""
    screen = screen or Screen()
    return [line.text for number, event in enumerate(events) for line in screen.feed(event, number * step)]


CASES: dict[str, tuple[list[Event], list[str]]] = {
    "a second run": (
        [PLAY, Task("Gather", "preflight"), *ok(*HOSTS), Task("Reach", "swarm"), *ok(*HOSTS), End(HOSTS)],
        [
            "Deploy: gpu1, gpu2, gpu3",
            "✓ preflight",
            "✓ host, docker: nothing to do",
            "✓ swarm",
            "✓ workspace: nothing to do",
            "✓ Done in 1 s: nothing changed.",
        ],
    ),
    "changes, with their hosts": (
        [
            PLAY,
            Task("Install", "docker"),
            *changed(*reversed(HOSTS)),
            Task("Start", "docker"),
            *ok("gpu1", "gpu2"),
            *changed("gpu3"),
            End(HOSTS),
        ],
        [
            "Deploy: gpu1, gpu2, gpu3",
            "✓ preflight, host: nothing to do",
            "  ~ Install: gpu1, gpu2, gpu3",
            "  ~ Start: gpu3",
            "✓ docker: 4 changes",
            "✓ swarm, workspace: nothing to do",
            "✓ Done in 1 s: 4 changes (2 on gpu3; 1 on gpu1, gpu2).",
        ],
    ),
    "roles of which everything is skipped": (
        [
            *(PLAY, Task("Gather", "preflight"), *ok(*HOSTS)),
            Task("Install", "docker"),
            *skipped(*HOSTS),
            Task("Join", "swarm"),
            *skipped(*HOSTS),
            Task("Look", "swarm"),
            *ok("gpu1"),
            End(HOSTS),
        ],
        [
            "Deploy: gpu1, gpu2, gpu3",
            "✓ preflight",
            "✓ host, docker: nothing to do",
            "✓ swarm",
            "✓ workspace: nothing to do",
            "✓ Done in 1 s: nothing changed.",
        ],
    ),
    "an error of all hosts, once": (
        [Play("", HOSTS), Task("Install", "docker"), *failed("{host}: no such package", *HOSTS)],
        ["✗ docker: Install", "  gpu1, gpu2, gpu3: no such package"],
    ),
    "an error that does not begin with its host": (
        [Play("", HOSTS), Task("Install"), *failed("exit status 1\nno such package", "gpu1", "gpu2")],
        ["✗ Install (gpu1, gpu2)", "  exit status 1", "  no such package"],
    ),
    "different errors": (
        [Play("", HOSTS), Task("Install"), *failed("disk full", "gpu1"), *failed("no such package", "gpu2")],
        ["✗ Install (gpu1)", "  disk full", "✗ Install (gpu2)", "  no such package"],
    ),
    "what follows from an error": (
        [
            *(Play("", HOSTS), Task("Report", "docker")),
            *failed("{host}: skipped because of gpu2: its engine is of another origin.", "gpu1", "gpu3"),
            *failed("{host}: its engine is of another origin.", "gpu2"),
        ],
        [
            "✗ docker: Report",
            "  gpu2: its engine is of another origin.",
            "  For this, nothing is done on gpu1, gpu3.",
        ],
    ),
    "a task that one host runs for all": (
        [
            Play("", HOSTS),
            Task("Check", "preflight", once=True),
            *failed("1 problem", "gpu1"),
            End(HOSTS, {"gpu1": 1}),
        ],
        ["✗ preflight: Check", "  1 problem", "✗ Failed after 1 s."],
    ),
    "dead hosts, a line each": (
        [
            *(Play("", HOSTS), Task("Install", "docker")),
            *failed("{host}: stopped responding (timed out)", "gpu1", outcome=Outcome.UNREACHABLE),
            *failed("{host}: stopped responding (no route)", "gpu2", outcome=Outcome.UNREACHABLE),
            End(HOSTS, {}, {"gpu1": 1, "gpu2": 1}, more="All output: run.log"),
        ],
        [
            "✗ gpu1: stopped responding (timed out)",
            "✗ gpu2: stopped responding (no route)",
            "✗ Failed after 1 s: no connection to gpu1, gpu2. All output: run.log",
        ],
    ),
    "no tick after a failure": (
        [PLAY, Task("Install", "docker"), *failed("disk full", "gpu1"), End(HOSTS, {"gpu1": 1})],
        [
            "Deploy: gpu1, gpu2, gpu3",
            "✓ preflight, host: nothing to do",
            "✗ docker: Install (gpu1)",
            "  disk full",
            "✗ Failed after 1 s: gpu1.",
        ],
    ),
    "a rescue and an ignored failure": (
        [
            *(Play("", HOSTS), Task("Install")),
            *failed("disk full", "gpu1", outcome=Outcome.RESCUED),
            Task("Look"),
            *failed("nothing", "gpu1", outcome=Outcome.IGNORED),
            End(HOSTS),
        ],
        ["! Install (gpu1); its rescue follows", "  disk full", "✓ Done in 1 s: nothing changed. 1 failure ignored."],
    ),
    "a rescue that fails again with the same words": (
        [
            *(Play("", HOSTS), Task("Install"), *failed("disk full", "gpu1", outcome=Outcome.RESCUED)),
            *(Task("Report"), *failed("disk full", "gpu1"), End(HOSTS, {"gpu1": 1})),
        ],
        [
            "! Install (gpu1); its rescue follows",
            "  disk full",
            "✗ Report (gpu1)",
            "  (as above)",
            "✗ Failed after 1 s: gpu1.",
        ],
    ),
    "messages": (
        [
            *(Play("", HOSTS), Task("Report"), Message("gpu1", "Underlay eth0\nRDMA none"), *ok("gpu1")),
            *(Task("Tell"), Message("gpu1", "old"), Message("gpu2", "new"), Message("gpu3", "old"), *ok(*HOSTS)),
        ],
        ["  Underlay eth0", "  RDMA none", "  gpu1, gpu3: old", "  gpu2: new"],
    ),
    "the messages of a loop": (
        [Play("", HOSTS), Task("Report"), Message("gpu1", "one"), Message("gpu1", "two"), *ok("gpu1")],
        ["  one", "  two"],
    ),
    "diffs as they are, hosts with the same together": (
        [
            *(Play("", HOSTS), Task("Write"), Diff("gpu1", "--- before\n+++ after\n+x\n"), *changed("gpu1")),
            *(Diff("gpu2", "--- before\n+++ after\n+x\n"), *changed("gpu2")),
            End(HOSTS, check=True),
        ],
        [
            "  ~ Write: gpu1, gpu2",
            "--- before",
            "+++ after",
            "+x",
            "✓ Checked in 1 s: 2 changes to make (1 on gpu1, gpu2).",
        ],
    ),
    "many hosts": (
        [
            Play("Deploy", MANY, ("docker",)),
            Task("Install", "docker"),
            *changed(*MANY),
            Task("Start", "docker"),
            *changed(*MANY[:7]),
        ],
        [
            "Deploy: all 64 hosts",
            "  ~ Install: all 64 hosts",
            "  ~ Start: gpu1, gpu2, gpu3, gpu4, gpu5 and 2 more",
            "✓ docker: 71 changes",
        ],
    ),
    "batches": (
        [
            Play("Deploy", ("gpu1",)),
            Task("Start"),
            *changed("gpu1"),
            Play("Deploy", ("gpu2",)),
            Task("Start"),
            *changed("gpu2"),
        ],
        ["Deploy: gpu1", "  ~ Start: gpu1", "Deploy: gpu2", "  ~ Start: gpu2"],
    ),
    "a play with nothing to tell": ([Play("Find", HOSTS), Task("Look"), *ok(*HOSTS)], []),
}


@pytest.mark.parametrize("case", CASES)
def test_lines_of_a_run(case: str) -> None:
    events, expected = CASES[case]
    ends = [] if isinstance(events[-1], End) else [Task("next")]
    assert lines(*events, *ends) == expected


def test_what_is_being_waited_for_is_shown_after_twice_as_long_each_time() -> None:
    screen = Screen()
    lines(Play("", HOSTS), Task("Install", "docker"), *map(Started, HOSTS), *ok("gpu1"), screen=screen)
    shown = [(second, line.text) for second in range(1, 400) for line in screen.feed(Tick(), float(second))]
    assert shown == [
        (15, "… docker: Install: waiting for gpu2, gpu3, 15 s"),
        (45, "… docker: Install: waiting for gpu2, gpu3, 45 s"),
        (135, "… docker: Install: waiting for gpu2, gpu3, 2 min 15 s"),
    ]


def test_tries_and_many_hosts_are_counted() -> None:
    screen = Screen()
    lines(Play("", MANY), Task("Wait"), *map(Started, MANY), *ok(*MANY[:60]), Retry("gpu64", 3, 10), screen=screen)
    assert [line.text for line in screen.feed(Tick(), 15.0)] == ["… Wait: waiting for 4 of 64 hosts, 15 s, try 4 of 10"]


@pytest.mark.parametrize("task", [Task("Confirm", prompts=True), None])
def test_nothing_is_waited_for_where_a_task_asks_or_none_runs(task: Task | None) -> None:
    screen = Screen()
    events: list[Event] = [task, Started("gpu1")] if task else []
    lines(Play("", HOSTS), *events, screen=screen)
    assert screen.feed(Tick(), 500.0) == []


def test_an_error_does_not_wait_for_hosts_that_go_on() -> None:
    screen = Screen()
    lines(Play("", HOSTS), Task("Install"), *map(Started, HOSTS), *failed("disk full", "gpu1"), screen=screen)
    assert screen.feed(Tick(), 1.0) == []
    assert [line.text for line in screen.feed(Tick(), 2.5)] == ["✗ Install (gpu1)", "  disk full"]
    assert screen.feed(Task("next"), 9.0) == []  # once


@pytest.mark.parametrize(("width", "expected"), [(80, 2), (200, 1), (0, 1)])
def test_own_lines_are_wrapped_to_the_terminal(width: int, expected: int) -> None:
    roles = tuple(f"role_{number:02}" for number in range(14))
    events = Play("", HOSTS, roles), End(HOSTS)
    shown = lines(*events, screen=Screen(width))[:-1]
    assert len(shown) == expected
    assert all(len(line) <= (width or 1000) for line in shown)
    assert " ".join(line.strip() for line in shown).startswith("✓ role_00, role_01,")


def test_times_from_five_seconds() -> None:
    events = [PLAY, Task("Install", "docker"), *changed("gpu1"), End(HOSTS)]
    assert lines(*events, step=70.0)[2:4] == ["  ~ Install: gpu1 (2 min 20 s)", "✓ docker: 1 change (2 min 20 s)"]


def test_signs_without_unicode() -> None:
    events = [PLAY, Task("Install", "docker"), *failed("disk full", "gpu1"), End(HOSTS, {"gpu1": 1})]
    assert all(line.isascii() for line in lines(*events, screen=Screen(signs=ASCII)))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"a": "a: x", "b": "b: x"}, [(["a", "b"], "a, b: x")]),
        ({"a": "a: x", "b": "b: y"}, [(["a"], "a: x"), (["b"], "b: y")]),
        ({"a": "a goes on", "b": "b goes on"}, [(["a", "b"], "a goes on (the same for b)")]),
        ({"a": "a: a goes on", "b": "b: b goes on"}, [(["a", "b"], "a, b: a goes on (the same for b)")]),
        ({"a": "no x", "b": "no x"}, [(["a", "b"], "no x")]),
        # A name within a longer one is another host.
        ({"gpu1": "gpu10: x", "gpu2": "gpu20: x"}, [(["gpu1"], "gpu10: x"), (["gpu2"], "gpu20: x")]),
        # A name that is also a word.
        ({"a": "in /a/b", "b": "in /a/b"}, [(["a", "b"], "in /a/b")]),
        ({"a": "a: b: x"}, [(["a"], "a: b: x")]),
    ],
)
def test_hosts_that_say_the_same(texts: dict[str, str], expected: list[tuple[list[str], str]]) -> None:
    assert grouped(texts) == expected
