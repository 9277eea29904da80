# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The controller is killed, in the middle of each playbook; and two controllers at once."""

from __future__ import annotations

from tests.chaos.faults.base import Attempt, Failed, Fault
from tests.chaos.runs import NO_JOB
from tests.playbook_run import LAB, ROOT, container, variables

JOB = {
    "deepspeed_launch_name": "chaos",
    "deepspeed_launch_args": ["--epochs", "4", "--target", "0", "--checkpoints="],
    "deepspeed_launch_logs_dir": str(ROOT / ".cache" / "chaos" / LAB / "jobs"),
}
"""examples/digits, as the lab's inventory has it, but shorter."""
AGAIN = {"deepspeed_launch_rerun": True}
IMAGE = "swarmspeed/swarmspeed"


def nothing() -> None:
    """Most playbooks need no preparation: the round before left a whole cluster."""


def kill_site(attempt: Attempt) -> None:
    running = attempt.at_the_moment("site", attempt.torn_down, lambda: attempt.start("site", "site", *NO_JOB))
    running.kill(attempt.round.scope)


def kill_site_twice(attempt: Attempt) -> None:
    kill_site(attempt)
    again = attempt.start("site-again", "site", *NO_JOB)
    moment = attempt.round.second * attempt.runs.durations.expected("site")
    if again.ended_within(moment):
        # It had less to do than a whole run. What it said counts as that of any other run after a kill.
        verdict = again.finish().verdict(attempt.lab.nodes)
        if verdict.kind == "failed":
            raise Failed(f"the run after the first kill: {verdict.why}")
        attempt.moment += "; the second run ended before its moment"
        return
    attempt.moment += f"; {again.task()} ({moment:.1f} s after the second start)"
    again.kill(attempt.round.scope)


def kill_verify(attempt: Attempt) -> None:
    attempt.at_the_moment("verify", nothing, lambda: attempt.start("verify", "verify", *NO_JOB)).kill(
        attempt.round.scope
    )


def kill_teardown(attempt: Attempt) -> None:
    def up() -> None:
        attempt.complete("site", "site", *NO_JOB)

    attempt.at_the_moment("teardown", up, lambda: attempt.start("teardown", "teardown")).kill(attempt.round.scope)


def kill_launch(attempt: Attempt) -> None:
    given = variables(**JOB, **AGAIN)
    attempt.at_the_moment("launch", nothing, lambda: attempt.start("launch", "launch", *given)).kill(
        attempt.round.scope
    )


def kill_transfer(attempt: Attempt) -> None:
    def lacking() -> None:
        attempt.lab.run(
            attempt.target,
            f"docker rm --force {container(attempt.target)} >/dev/null 2>&1 || true\n"
            f"docker images --quiet {IMAGE} | sort -u | xargs --no-run-if-empty docker rmi --force >/dev/null",
        )

    words = ("--tags", "training_image", *NO_JOB)
    attempt.at_the_moment("transfer", lacking, lambda: attempt.start("transfer", "site", *words)).kill(
        attempt.round.scope
    )


def two_controllers(attempt: Attempt) -> None:
    """The second begins some time after the first; each succeeds, or says in a sentence what it met."""
    first = attempt.at_the_moment("site", attempt.torn_down, lambda: attempt.start("first", "site", *NO_JOB))
    second = attempt.start("second", "site", *NO_JOB)
    for name, running in (("first", first), ("second", second)):
        verdict = running.finish(600).verdict(attempt.lab.nodes)
        if verdict.kind == "failed":
            attempt.problems.append(f"the {name} of two controllers: {verdict.why}")


BUSY = r"another transfer of an image has been running there|is being started|another run"
KILLS = (
    Fault("kill-site", "controller killed during `site.yml`", kill_site, times=8, kill=True, refusal=BUSY),
    Fault(
        "kill-site-twice",
        "controller killed during `site.yml`, and again during the run that follows",
        kill_site_twice,
        times=4,
        kill=True,
        refusal=BUSY,
    ),
    Fault("kill-teardown", "controller killed during `teardown.yml`", kill_teardown, times=5, kill=True, refusal=BUSY),
    Fault("kill-verify", "controller killed during `verify.yml`", kill_verify, times=4, kill=True, refusal=BUSY),
    Fault(
        "kill-transfer",
        "controller killed while a node is given its image",
        kill_transfer,
        times=5,
        kill=True,
        refusal=BUSY,
    ),
    Fault(
        "kill-launch",
        "controller killed during `launch.yml`",
        kill_launch,
        times=4,
        kill=True,
        refusal=BUSY,
        site=variables(**JOB),
    ),
    Fault("two-controllers", "two `site.yml` at the same time", two_controllers, limit=1500, refusal=BUSY),
)
