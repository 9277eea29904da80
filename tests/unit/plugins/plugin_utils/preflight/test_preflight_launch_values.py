# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The job's variables before any connection: wrong values, the roles' own defaults, and those of the examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Problem
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.launch_values import (
    PREFIX,
    check_launch_values,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.documents import ROOT
from tests.effort import examples
from tests.role_values import load

DEFAULTS = {**load("deepspeed_launch/defaults/main.yml"), "deepspeed_launch_logs_dir": "/home/me/jobs"}


def found(by_host: dict[str, dict[str, Any]] | None = None, **values: Any) -> list[Problem]:
    hosts = by_host or {"gpu1": {}, "gpu2": {}}
    inventory = Inventory(
        groups={"cluster": list(hosts)},
        hosts={host: {PREFIX + name: value for name, value in own.items()} for host, own in hosts.items()},
        defaults={**DEFAULTS, **{PREFIX + name: value for name, value in values.items()}},
        writable=lambda path: not path.startswith("/sealed"),
    )
    return list(check_launch_values(inventory))


def test_the_defaults_pass() -> None:
    assert found() == []


@pytest.mark.parametrize(("name", "value"), [("script", "-m not a module"), ("logs_dir", "/sealed/jobs")])
def test_a_value_that_no_host_could_use_is_one_problem_of_its_variable(name: str, value: Any) -> None:
    (problem,) = found(**{name: value})
    assert problem.subject == PREFIX + name and problem.fatal
    assert not problem.text.endswith(".") and not problem.remedy.endswith(".")


@given(value=st.one_of(st.integers(), st.floats(), st.text(max_size=8), st.none(), st.lists(st.integers(), max_size=2)))
@settings(max_examples=examples(200), deadline=None)
@pytest.mark.parametrize("name", ["name", "script", "logs_dir", "environment"])
def test_any_value_passes_or_becomes_a_problem(name: str, value: Any) -> None:
    assert {problem.subject for problem in found(**{name: value})} <= {PREFIX + name}


def test_an_empty_argument_is_lost_by_pdsh_with_those_after_it() -> None:
    given: dict[str, Any] = {"args": ["--name", "", "--lr", "1"]}
    (problem,) = found(transport="pdsh", **given)
    assert (problem.subject, problem.fatal) == ("deepspeed_launch_args", True)
    assert problem.text == "has an empty argument, with which pdsh loses those after it"
    assert found(**given) == [] == found(transport="pdsh", args=["--name=", "x"])
    assert found(transport="pdsh", args="--name '' --lr 1") == [problem]


@pytest.mark.parametrize("launcher", ["deepspeed", "torchrun"])
@pytest.mark.parametrize("given", [["--", "a"], "-- a", ["--"]])
def test_argparse_of_the_launcher_drops_two_dashes_before_the_first_argument(launcher: str, given: Any) -> None:
    (problem,) = found(launcher=launcher, args=given)
    assert (problem.subject, problem.fatal) == ("deepspeed_launch_args", True)
    assert problem.text == "begins with --, which the launcher takes for itself"
    assert found(launcher="per_node", args=given) == [] == found(launcher=launcher, args=["a", "--", "b"])


@pytest.mark.parametrize("launcher", ["torchrun", "per_node"])
def test_pdsh_starts_only_the_launcher_of_deepspeed(launcher: str) -> None:
    (problem,) = found(transport="pdsh", launcher=launcher)
    assert problem.subject == "deepspeed_launch_transport" and launcher in problem.text
    assert found(transport="pdsh") == []


def test_what_the_shell_behind_pdsh_would_change_is_refused_where_the_job_has_several_nodes() -> None:
    odd: dict[str, Any] = {"transport": "pdsh", "environment": {"A": "a b"}}
    (problem,) = found(**odd)
    assert problem.subject == "deepspeed_launch_environment"
    assert found({"gpu1": {}}, **odd) == [] == found(**odd, include="gpu1")
    (problem,) = found(transport="pdsh", environment={"HF_TOKEN": "hf_abcdefghijklmnop"})
    assert "hf_abc" not in problem.line()


def test_a_secret_stands_in_one_variable_and_in_no_process_list() -> None:
    (problem,) = found(secrets={"A": "abcdef", "B": "ghijkl"}, environment={"B": "x", "A": "y", "C": "z"})
    assert problem.subject == "deepspeed_launch_secrets"
    assert problem.text == "A, B is also set in deepspeed_launch_environment"
    (problem,) = found(secrets={"A": "abcdef"}, transport="pdsh")
    assert problem.subject == "deepspeed_launch_secrets" and "process list" in problem.text
    assert "abcdef" not in problem.line()
    assert found(secrets={"A": "abcdef"}) == [] == found(transport="pdsh")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (
            {"on_hang": "restart"},
            ["is restart, but with deepspeed_launch_resume: never the job would be ended and not started again"],
        ),
        ({"on_hang": "restart", "resume": "auto"}, []),
        ({"on_hang": "stop"}, []),
    ],
)
def test_a_hang_that_is_to_be_restarted_needs_resume(values: dict[str, Any], texts: list[str]) -> None:
    problems = found(**values)
    assert [problem.text for problem in problems] == texts
    assert not any(problem.fatal for problem in problems)


def test_hosts_of_one_job_do_not_differ() -> None:
    (problem,) = found({"gpu1": {"master_port": 29500}, "gpu2": {}})
    assert problem.text == "differs between hosts of one cluster: 29500 for gpu1; 0 for gpu2"


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("examples/*/vars*.yml")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_the_examples_pass(path: Path) -> None:
    variables = load(str(path)).items()
    given_values = {name.removeprefix(PREFIX): value for name, value in variables if name.startswith(PREFIX)}
    assert given_values and found({host: {} for host in ("lab1", "lab2", "lab3", "gpu1", "gpu2")}, **given_values) == []


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"include": "gpu1:0,a"}, "include: 'a' in"),
        ({"exclude": "@"}, "exclude: names no host at one place"),
        ({"include": "gpu1;gpu2"}, "include: names 'gpu1;gpu2', which is not a host of the cluster"),
        ({"ds_config_preset": "zero5"}, "ds_config_preset: 'zero5' is not one of auto, zero0"),
        ({"ds_config": {"train_micro_batch_size_per_gpu": -4}}, "ds_config: train_micro_batch_size_per_gpu must be a"),
        ({"ds_config": {"zero_optimization": {"stage": 7}}}, "ds_config: zero_optimization.stage must be a whole"),
    ],
)
def test_what_no_host_could_use_is_found_without_asking_one(values: dict[str, Any], text: str) -> None:
    (problem,) = found(**values)
    assert f"{problem.subject.removeprefix(PREFIX)}: {problem.text}".startswith(text), problem


@pytest.mark.parametrize(
    "values",
    [
        {"ds_config": {"train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto"}},
        {"ds_config": {"fp16": {"enabled": True}}, "ds_config_preset": "auto"},
        {"include": "gpu1:0,1@gpu2", "ds_config": {}},
        {"ds_config": {"somebodys_key": -1}, "ds_config_script_keys": ["somebodys_key"]},
    ],
)
def test_what_only_the_hosts_or_the_script_decide_is_left_to_later_checks(values: dict[str, Any]) -> None:
    assert found(**values) == []


@pytest.mark.parametrize(
    ("args", "first", "corrected"),
    [
        (["--lr 1e-4 --epochs 3"], "--lr 1e-4 --epochs 3", '["--lr", "1e-4", "--epochs", "3"]'),
        (["--bf16", "--lr 1e-4"], "--lr 1e-4", '["--bf16", "--lr", "1e-4"]'),
        (["train --lr 1", 3, "--name 'a b'"], "train --lr 1", '["train", "--lr", "1", "3", "--name", "a b"]'),
        (["--name it's --lr 1"], "--name it's --lr 1", '["--name", "it\'s", "--lr", "1"]'),
        (["--api_key hunter22 --lr 1"], "--api_key ******** --lr 1", '["--api_key", "********", "--lr", "1"]'),
    ],
)
def test_several_arguments_in_one_item_are_questioned_with_the_corrected_list(
    args: list[Any], first: str, corrected: str
) -> None:
    (problem,) = found(args=args)
    assert (problem.subject, problem.fatal) == ("deepspeed_launch_args", False)
    assert problem.text == f"{first!r} is one item of the list, so the script gets it as a single argument"
    assert problem.remedy == f"write {corrected}, or one text instead of the list"


def test_hosts_with_the_same_item_share_a_warning() -> None:
    mine = {"args": ["--lr 1 --epochs 3"]}
    (problem,) = found({"gpu1": mine, "gpu2": {"args": ["--lr", "1"]}, "gpu3": mine})
    assert problem.text.endswith("as a single argument (set for gpu1, gpu3)")


@pytest.mark.parametrize(
    "args",
    [
        "--lr 1e-4 --epochs 3",
        "--name 'unclosed",
        ["--prompt", "a text - with blanks -- and dashes"],
        ["--name=my run", "--lr", "-1 2"],
        ["-c", "python train.py --lr 1"],
        ["-lc", "cd /x && ./train --lr 1"],
        [],
    ],
)
def test_a_text_and_an_item_with_blanks_of_its_own_are_not_questioned(args: Any) -> None:
    assert found(args=args) == []
