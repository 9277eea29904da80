# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role training_image, over invented nodes: who makes the image, and who gets it from whom."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Change, Unknown
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import change_lines, drift_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.planner import (
    NOTHING,
    TrainingImagePlanner,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.image_nodes import CLUSTER, ROOT, WISHES, act, host, plan, reference
from tests.requested import entries
from tests.role_values import NODES

FIRST, SECOND, THIRD = NODES
REF = reference()
ARCHIVE: dict[str, Any] = {
    "training_image_source": "archive",
    "training_image_name": REF,
    "training_image_archive": "/srv/image.tar",
}
PULL: dict[str, Any] = {"training_image_source": "pull", "training_image_name": REF}
PRESENT: dict[str, Any] = {"training_image_source": "present", "training_image_name": REF}
OLD = "swarmspeed/lab:0123"


def lines(made: Plan) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in NODES}
    for change in made.changes:
        found[change.host] += change_lines(change)
    return found


# What is gathered


def test_the_content_of_the_repository_is_gathered() -> None:
    assert GATHERED.by_wishes is not None
    assert GATHERED.by_wishes(WISHES) == {"repositories": ["swarmspeed/lab"]}
    assert GATHERED.by_wishes({**WISHES, **PULL}) == {"repositories": ["swarmspeed/lab"]}


@pytest.mark.parametrize("wished", [ARCHIVE, PULL, PRESENT, {"deepspeed_launch_runtime": "host"}])
def test_nothing_is_read_where_nothing_is_built(wished: dict[str, Any]) -> None:
    assert list(TrainingImagePlanner().files({**WISHES, **wished})) == []


# One node makes it, the others get it


@pytest.mark.parametrize(
    ("wished", "why"), [({}, "built here"), (ARCHIVE, "loaded from training_image_archive")], ids=["build", "archive"]
)
def test_where_none_has_it_the_first_manager_makes_it_for_all(wished: dict[str, Any], why: str) -> None:
    made = plan(**wished)
    assert lines(made) == {
        FIRST: [
            f"+ image {REF}: (known after apply)  # {why}",
            f"+ image {REF} on {SECOND}: (known after apply)  # from here",
            f"+ image {REF} on {THIRD}: (known after apply)  # from here",
        ],
        SECOND: [f"+ image {REF}: (known after apply)  # from {FIRST}"],
        THIRD: [f"+ image {REF}: (known after apply)  # from {FIRST}"],
    }
    makes = "archive" if wished else "build"
    assert [bool(act(made, name)[makes]) for name in NODES] == [True, False, False]
    assert [act(made, name)["chain"] for name in NODES] == [list(NODES)] * 3
    assert act(made, THIRD)["addresses"] == CLUSTER["underlay"]["addresses"]
    assert not any(act(made, name)["pull"] for name in NODES)
    assert made.cluster["image"] == REF


@pytest.mark.parametrize("wished", [{}, ARCHIVE], ids=["build", "archive"])
def test_who_has_it_gives_it_and_takes_part(wished: dict[str, Any]) -> None:
    made = plan(host("a"), host(), host("a"), **wished)
    assert lines(made) == {
        FIRST: [f"+ image {REF} on {SECOND}: sha256:a  # from here"],
        SECOND: [f"+ image {REF}: sha256:a  # from {FIRST}"],
        THIRD: [],
    }
    assert [act(made, name)["chain"] for name in NODES] == [[FIRST, SECOND], [FIRST, SECOND], []]
    assert not any(act(made, name)["build"] or act(made, name)["archive"] for name in NODES)
    # Where the first manager lacks it, another one gives it.
    made = plan(host(), host("a"), host(), **wished)
    assert act(made, FIRST)["chain"] == [SECOND, FIRST, THIRD] and act(made, FIRST)["holder"] == SECOND
    assert lines(made)[FIRST] == [f"+ image {REF}: sha256:a  # from {SECOND}"]


def test_an_image_that_is_another_one_is_replaced_by_that_of_the_holder() -> None:
    made = plan(host("a"), host("b"), host("a"))
    assert lines(made) == {
        FIRST: [f"~ image {REF} on {SECOND}: sha256:b → sha256:a  # from here"],
        SECOND: [f"~ content of image {REF}: sha256:b → sha256:a  # from {FIRST}"],
        THIRD: [],
    }
    assert [drift_text(change) for change in made.changes] == [
        f"image {REF} on {SECOND} is sha256:b, wanted is sha256:a",
        f"content of image {REF} is sha256:b, wanted is sha256:a",
    ]


def test_an_image_whose_content_is_not_known_is_there() -> None:
    unknown = host("a")
    unknown["docker"]["image_contents"] = {}
    made = plan(unknown, unknown, unknown)
    assert made.changes == () and act(made, FIRST)["content"] == ""  # which verify fails at
    made = plan(host("a"), unknown, host("a"))
    assert lines(made)[SECOND] == [f"~ content of image {REF}: an unknown content → sha256:a  # from {FIRST}"]


def test_on_one_node_nothing_is_given() -> None:
    made = plan(host(), cluster={**CLUSTER, "hosts": [FIRST]})
    assert len(made.changes) == 1 and act(made, FIRST)["chain"] == [] and act(made, FIRST)["build"]


# The other sources


def test_pulled_is_on_every_node_that_lacks_it() -> None:
    made = plan(**PULL)
    assert lines(made) == {name: [f"+ image {REF}: (known after apply)  # pulled"] for name in NODES}
    made = plan(host("a"), host(), host("b"), **PULL)
    assert lines(made) == {
        FIRST: [],
        SECOND: [f"+ image {REF}: sha256:a  # pulled"],
        THIRD: [f"~ content of image {REF}: sha256:b → sha256:a  # pulled"],
    }
    assert [act(made, name)["pull"] for name in NODES] == [False, True, True]
    assert all(act(made, name)["chain"] == [] for name in NODES)


def test_present_is_refused_where_it_is_not() -> None:
    made = plan(host("a"), host(), host("b"), **PRESENT)
    assert made.changes == ()
    assert [(one.subject, one.text) for one in made.refusals] == [
        (SECOND, f"the image {REF} is not there, and training_image_source is present"),
    ]
    # Another content cannot be replaced: verify compares the two.
    assert [act(made, THIRD)[name] for name in ("content", "there", "holder")] == ["sha256:b", "sha256:a", FIRST]
    assert plan(host("a"), host("a"), host("a"), **PRESENT).refusals == ()


def test_a_source_of_deepspeed_that_is_none_is_refused() -> None:
    (refusal,) = plan(training_image_deepspeed_source="nonsense").refusals
    assert refusal.subject == FIRST and refusal.sentence.startswith(
        "training_image_deepspeed_source is neither an archive"
    )


# An image of another name, and jobs that run


def running(*jobs: str, image: str = OLD, state: str = "running") -> dict[str, Any]:
    """Return what a host has beside images: jobs, and the container that they run in."""
    return {"jobs": dict.fromkeys(jobs, "running"), "container": {"state": state, "image": image}}


def with_container(name: str, facts: dict[str, Any], beside: dict[str, Any]) -> dict[str, Any]:
    docker = {**facts["docker"], "containers": {f"lab-{name}": beside["container"]}}
    return {**facts, "docker": docker, "jobs": beside["jobs"]}


def nodes(*contents: str, **beside: dict[str, Any]) -> list[dict[str, Any]]:
    found = [host(content) for content in contents]
    return [with_container(name, facts, beside[name]) if name in beside else facts for name, facts in zip(NODES, found)]


def consents(made: Plan) -> dict[str, str]:
    return {change.what: change.missing_consent.effect for change in made.changes if change.missing_consent}


def test_the_plan_says_which_image_another_one_is_made_in_place_of() -> None:
    beside = {FIRST: running(), SECOND: running(), THIRD: running(image="team/own:1")}
    made = plan(*nodes("", "", "", **beside))
    assert lines(made)[FIRST][0] == f"+ image {REF}: (known after apply)  # built here, in place of {OLD}, team/own:1"
    assert not consents(made)
    made = plan(*nodes("", "", "", **{FIRST: running(image=REF)}))
    assert lines(made)[FIRST][0] == f"+ image {REF}: (known after apply)  # built here"
    made = plan(*nodes("", "", "", **beside), **PULL)
    assert lines(made)[THIRD] == [f"+ image {REF}: (known after apply)  # pulled"]


def test_while_a_job_runs_no_image_is_built_without_consent() -> None:
    facts = nodes("", "", "", **{SECOND: running("chat"), THIRD: running("chat", "eval")})
    made = plan(*facts)
    effect = "while job {} runs, and the training containers are then made again"
    built = f"image {REF} must be made {effect.format('chat, eval')}"
    replaced = f"image {REF} must be replaced {effect.format('chat')}"
    assert consents(made) == {f"image {REF}": f"image {REF} must be replaced {effect.format('chat, eval')}"}
    found = outcome(made, "", ["training_image"])["consents"]["training_container_allow_recreate"]
    remedy = "Remedy: set training_container_allow_recreate: true to allow it, or wait for the job, or stop it"
    assert found[FIRST] == entries(f"{built}. {remedy}") and found[SECOND] == entries(f"{replaced}. {remedy}")
    assert not consents(plan(*facts, training_container_allow_recreate=True))


@pytest.mark.parametrize(
    ("beside", "contents", "needed"),
    [
        ({}, ("", "", ""), False),
        ({FIRST: running("chat", state="exited")}, ("", "", ""), False),
        ({FIRST: {**running(), "jobs": {"chat": "succeeded"}}}, ("", "", ""), False),
        # A node that is new gets the image beside a job on the others.
        ({FIRST: running("chat", image=REF)}, ("a", "", "a"), False),
        ({SECOND: running("chat", image=REF)}, ("a", "b", "a"), True),
        ({SECOND: running("chat", image=REF)}, ("a", "a", "a"), False),
    ],
)
def test_when_a_job_stands_against_it(beside: dict[str, Any], contents: tuple[str, ...], needed: bool) -> None:
    assert bool(consents(plan(*nodes(*contents, **beside)))) is needed


# Where the role has nothing to do


@pytest.mark.parametrize("wished", [{}, ARCHIVE, PULL, PRESENT])
def test_nothing_to_do(wished: dict[str, Any]) -> None:
    made = plan(host("a"), host("a"), host("a"), **wished)
    assert (made.changes, made.refusals) == ((), ())
    known = {"reference": REF, "root": ROOT, "holder": FIRST, "content": "sha256:a", "there": "sha256:a"}
    assert act(made, SECOND) == {**NOTHING, **known}


@pytest.mark.parametrize("cluster", [{}, {"hosts": list(NODES)}, {**CLUSTER, "hosts": [*NODES, "gpu9"]}])
def test_where_the_cluster_is_not_known_nothing_is_planned(cluster: dict[str, Any]) -> None:
    made = plan(cluster=cluster)
    assert (made.changes, made.refusals) == ((), ()) and act(made, FIRST) == NOTHING
    assert "image" not in made.cluster


def test_without_docker_there_is_no_image() -> None:
    made = plan(deepspeed_launch_runtime="host")
    assert (made.changes, made.refusals) == ((), ()) and act(made, FIRST) == NOTHING
    assert outcome(made, "run", [])["image"] == ""


# Older images


def older(**more: Any) -> dict[str, Any]:
    return host(
        "a", others={OLD: "lab", "swarmspeed/lab:other": "other", "swarmspeed/lab:none": "", "x:1": "lab"}, **more
    )


def test_older_images_go_where_name_and_label_say_that_they_are_ours() -> None:
    requested: dict[str, Any] = {"training_image_prune": True}
    made = plan(older(), host("a"), host("a"), **requested)
    assert lines(made) == {FIRST: [f"- image {OLD}  # training_image_prune"], SECOND: [], THIRD: []}
    assert act(made, FIRST)["prune"] == [OLD]
    assert plan(older(), host("a"), host("a")).changes == ()
    # One that a container is made of stays.
    used = older(containers={"job": {"image_id": "sha256:old"}})
    assert plan(used, host("a"), host("a"), **requested).changes == ()


def test_verify_does_not_fail_at_an_image_whose_container_was_just_replaced() -> None:
    made = plan(older(), host("a"), host("a"), training_image_prune=True)
    found = outcome(made, "run", ["training_image"])
    assert found["drift"][FIRST]["training_image"] == [] and found["pending"][FIRST]["training_image"] is True
    assert f"- image {OLD}" in found["text"]


@pytest.mark.parametrize("runtime", ["container", "host"])
def test_teardown_removes_the_images_of_the_repository_by_consent(runtime: str) -> None:
    requested: dict[str, Any] = {"deepspeed_launch_runtime": runtime}
    made = plan(older(), host("a"), host(running=False, others={OLD: "lab"}), training_image_remove=True, **requested)
    found = [act(made, name)["removable"] for name in NODES]
    assert found == [[OLD, "swarmspeed/lab:other", "swarmspeed/lab:none", REF], [REF], []]
    assert act(plan(older(), host("a"), host("a"), **requested), FIRST)["removable"] == []


# Properties


def applied(facts: Mapping[str, Any], made: Plan, name: str) -> dict[str, Any]:
    """Return the facts of a host once the role has done what it reads."""
    found, doing = copy.deepcopy(dict(facts)), act(made, name)
    for old in doing["prune"]:
        del found["docker"]["images"][old]
    if doing["pull"] or doing["build"] or doing["archive"] or name in doing["chain"][1:]:
        found["docker"]["images"][REF] = "sha256:9"
        found["docker"]["image_contents"][REF] = doing["there"] or "sha256:made"
    return found


@settings(max_examples=examples(80))
@given(
    st.lists(st.sampled_from(["", "a", "b"]), min_size=3, max_size=3),
    st.sampled_from([{}, ARCHIVE, PULL]),
    st.booleans(),
)
def test_what_is_applied_is_not_planned_again(contents: list[str], wished: dict[str, Any], prune: bool) -> None:
    requested = {**wished, "training_image_prune": prune}
    hosts = [host(content, others={OLD: "lab"} if prune else None) for content in contents]
    made = plan(*hosts, **requested)
    after = [applied(facts, made, name) for facts, name in zip(hosts, NODES)]
    again = plan(*after, **requested)
    assert (again.changes, again.refusals) == ((), ())
    contents_after = {facts["docker"]["image_contents"][REF] for facts in after}
    assert len(contents_after) == 1
    # A node without planned changes does not act, and the one that sends takes part.
    for name in NODES:
        doing = act(made, name)
        does = doing["pull"] or doing["build"] or doing["archive"] or doing["chain"] or doing["prune"]
        assert bool(does) == bool(made.of("training_image", name))
    json.dumps(outcome(made, "run", ["training_image"]))


def test_what_only_the_run_can_know_says_why() -> None:
    unknown = [change.after for change in plan().changes if isinstance(change, Change)]
    assert {value.reason for value in unknown if isinstance(value, Unknown)} == {f"what {FIRST} makes"}


def test_a_password_of_the_build_is_in_what_the_role_acts_on_and_nowhere_else() -> None:
    made = plan(training_image_proxy="http://u:hunter2@proxy.example:3128")
    found = outcome(made, "run", ["training_image"])
    assert "hunter2" in json.dumps(found.pop("acts")) and "hunter2" not in json.dumps(found)


def test_nothing_is_guessed_of_a_host_whose_engine_is_started_first() -> None:
    here = host("1")
    for stopped in (FIRST, THIRD):
        found = [host(unseen=True) if name == stopped else here for name in NODES]
        assert plan(*found).changes == ()
        assert plan(*found, **PRESENT).refusals == ()
    # The image is made on the first manager, which could have it: nothing is built before that is known.
    none = plan(host(unseen=True), host(), host())
    assert none.changes == () and not act(none, FIRST)["build"] and not act(none, SECOND)["chain"]
