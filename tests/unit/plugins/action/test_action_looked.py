# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The actions hostfile and ds_config: the node is spared where, and only where, the module would change nothing.

Module and look are the real ones, over real files; the way to the node is a fake.
"""

from __future__ import annotations

import copy
import json
import os
import random
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.action import ds_config as ds_config_action
from ansible_collections.swarmspeed.cluster.plugins.action import hostfile as hostfile_action
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.system_io import file_facts
from ansible_collections.swarmspeed.cluster.plugins.modules import ds_config, hostfile
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.verify.kept_text_file import LookedAction

ACTIONS: dict[ModuleType, type[LookedAction]] = {
    hostfile: hostfile_action.ActionModule,
    ds_config: ds_config_action.ActionModule,
}
ROOT = {"owner": 0, "group": 0}
BY_ROOT = {"uid": 0, "gid": 0, "owner": "root", "group": "root"}
NODE = {"changed": True, "asked": "the node"}
HOSTS = [{"name": "gpu1", "slots": 8}, {"name": "gpu2", "slots": 4}]
CONFIG = {"train_batch_size": 32, "optimizer": {"type": "AdamW", "params": {"lr": "3e-5"}}}
SECRET_ASKED = {"config": {**CONFIG, "comet": {"enabled": True, "api_key": "s3cret-key"}}}
MODEL = {
    "preset": "auto",
    "world_size": 4,
    "model": {"parameters": "1B"},
    "gpus": {"count": 4, "memory": "24GB", "compute_capability": 8.6},
    "config": {"train_micro_batch_size_per_gpu": 1},
}


class Case:
    """One file, a task that keeps it, and the two ways to an answer."""

    def __init__(self, module: ModuleType, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.module, self.path, self._capsys = module, path, capsys
        self.task_vars: dict[str, Any] = {}

    def ask_module(self, **args: Any) -> dict[str, Any]:
        warned: list[str] = []
        with (
            patch_module_args({"path": str(self.path), **args}),
            pytest.raises(SystemExit),
            # In the process of a test, which has Ansible's own display, a warning is shown and not returned.
            mock.patch.object(AnsibleModule, "warn", lambda dummy, text: warned.append(text)),
        ):
            self.module.main()
        answer: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return {**answer, "warnings": warned} if warned else answer

    def look(self) -> dict[str, Any]:
        """What node_facts would say, had root written the file; elsewhere than in a lab a test is not root."""
        facts = file_facts(str(self.path), content=True, block=None)
        return {**facts, **ROOT} if facts["exists"] else facts

    def act(self, args: dict[str, Any], fact: Any = None, **task: Any) -> dict[str, Any]:
        """Run the action. The answer is NODE where it went there, with the task as it was."""
        task_args = {"path": str(self.path), "looked": True, **args}
        before = copy.deepcopy(task_args)
        action = ACTIONS[self.module](
            task=SimpleNamespace(
                **{"args": task_args, "action": "x", "async_val": 0, "delegate_to": None, "check_mode": False, **task}
            ),
            connection=SimpleNamespace(has_native_async=False, _shell=SimpleNamespace(tmpdir=None)),
            play_context=None,
            loader=None,
            templar=None,
            shared_loader_obj=None,
        )

        def execute(task_vars: dict[str, Any], wrap_async: Any) -> dict[str, Any]:
            assert "ansible_facts" in task_vars
            return dict(NODE)

        action._execute_module = execute  # type: ignore[method-assign]
        files = {str(self.path): self.look() if fact is None else fact}
        answer: dict[str, Any] = action.run(
            task_vars={"ansible_facts": {"swarmspeed": {"files": files}}, **self.task_vars}
        )
        assert task_args == before
        return answer


@pytest.fixture(name="case")
def make_case(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Case:
    return Case(request.param, tmp_path / "kept", capsys)


def by(module: ModuleType) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [module], indirect=True, ids=[module.__name__.rpartition(".")[2]])


# What a file may hold before, beside what the task itself writes, and what a task may ask for.
TEXTS = {
    hostfile: ["gpu1 slots=8\ngpu2 slots=4\n", "# ours\ngpu1 slots=8\ngpu2 slots=4\n", "127.0.0.1 localhost\n", ""],
    ds_config: ['{"train_batch_size": 32}', "{train_batch_size: 32 # by hand\n}", "no: [", "", "[]"],
}
ASKED: dict[ModuleType, list[dict[str, Any]]] = {
    hostfile: [
        {"hosts": HOSTS},
        {"hosts": {"gpu1": 8, "gpu2": 4}, "exclude": "gpu2:0", "first_host": "gpu1"},
        {"hosts": [*HOSTS, {"name": "spare", "slots": 0}], "mode": "600"},
        {"hosts": HOSTS, "first_host": "gpu2"},
        {"hosts": []},
        {},
        {"hosts": HOSTS, "force": True},
        {"hosts": HOSTS, "typo": 1},
        {"state": "absent"},
    ],
    ds_config: [
        {"config": {"train_batch_size": 32}},
        {"config": {"train_batch_size": "32"}, "force": True},
        {"config": {"train_batch_size": 32, "gradient_clipping": None}, "mode": "0640"},
        {"preset": "zero2", "config": CONFIG, "world_size": 4, "deepspeed_version": "0.19.7"},
        {"preset": "zero3", "config": CONFIG, "deepspeed_version": "0.18.5"},
        SECRET_ASKED,
        MODEL,
        {"config": {}, "preset": "zero4"},
        {"config": {"train_batch_sise": 32}},
        {},
        {"state": "absent"},
    ],
}
TABLE = [
    pytest.param(module, text, asked, id=f"{module.__name__.rpartition('.')[2]}-{at}-{number}")
    for module, many in ASKED.items()
    for number, asked in enumerate(many)
    for at, text in enumerate([None, *TEXTS[module]])
]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(("case", "text", "asked"), TABLE, indirect=["case"])
def test_the_node_is_spared_where_the_module_changes_nothing_with_its_very_reply(
    case: Case, text: str | None, asked: dict[str, Any], check_mode: bool
) -> None:
    """Without a text the file is what the task has written itself, where it can."""
    if text is None:
        case.ask_module(**asked)
    else:
        case.path.write_text(text)
        case.path.chmod(int(asked.get("mode", "0644"), 8))
    module = case.ask_module(**asked, looked=True, _ansible_check_mode=True, _ansible_diff=True)
    answer = case.act(asked, check_mode=check_mode)
    if module.get("failed") or module["changed"] or not case.path.exists():
        assert answer == NODE
        return
    assert answer == {**module, **BY_ROOT}
    assert (answer["changed"], answer["diff"]) == (False, [])
    assert "s3cret" not in json.dumps(answer)


def spared(case: Case, asked: dict[str, Any]) -> bool:
    case.ask_module(**asked)
    return case.act(asked) != NODE


@pytest.mark.parametrize(
    ("case", "asked"),
    [(hostfile, asked) for asked in ASKED[hostfile][:3]] + [(ds_config, asked) for asked in ASKED[ds_config][:7]],
    indirect=["case"],
)
def test_what_the_task_itself_has_written_spares_the_node(case: Case, asked: dict[str, Any]) -> None:
    assert spared(case, asked)


@pytest.mark.parametrize(
    ("case", "asked"),
    [(hostfile, ASKED[hostfile][1]), (ds_config, SECRET_ASKED), (ds_config, MODEL)],
    indirect=["case"],
)
def test_the_reply_holds_the_arguments_where_ansible_is_set_so(
    case: Case, asked: dict[str, Any], invocation_asked: dict[str, Any]
) -> None:
    """Before ansible-core 2.21 it always does, whatever the variable says."""
    assert spared(case, asked)
    case.task_vars = {"ansible_inject_invocation": "true"}
    answer = case.act(asked)
    assert answer == {**case.ask_module(**asked, looked=True, **invocation_asked), **BY_ROOT}
    assert answer["invocation"]["module_args"]["path"] == str(case.path)
    assert "s3cret" not in json.dumps(answer)
    case.task_vars = {"ansible_inject_invocation": "false"}
    assert case.act(asked) == {**case.ask_module(**asked, looked=True), **BY_ROOT}


@by(hostfile)
def test_warnings_are_the_modules(case: Case) -> None:
    asked = {"hosts": [*HOSTS, {"name": "spare", "slots": 0}]}
    assert spared(case, asked)
    assert case.act(asked)["warnings"] == [f"Left out of the hostfile {case.path}, having 0 slots: spare"]


@by(hostfile)
@pytest.mark.parametrize(
    "other",
    [
        {"looked": False},
        {"looked": "perhaps"},
        {"mode": "0600"},
        {"mode": "u=rw,go=r"},
        {"mode": 0o644},
        {"mode": None},
        {"owner": "root"},
        {"owner": None},
        {"group": "0"},
        {"attributes": "+i"},
        {"setype": "_default"},
        {"unsafe_writes": True},
        {"state": "absent"},
        {"hosts": HOSTS[::-1]},
        {"hosts": HOSTS[:1]},
        pytest.param({"hosts": object()}, id="hosts of no JSON type"),
        {"path": ["/etc/hostfile"]},
        {"path": "/somewhere/else"},
        {"path": "~/hostfile"},
        {"path": None},
        {"typo": 1},
    ],
    ids=str,
)
def test_other_tasks_go_to_the_node(case: Case, other: dict[str, Any]) -> None:
    assert spared(case, {"hosts": HOSTS})
    if "hosts" in other and not isinstance(other["hosts"], list):
        other = {"hosts": {1, 2}}  # what JSON cannot hold
    assert case.act({"hosts": HOSTS, **other}) == NODE


@by(hostfile)
@pytest.mark.parametrize("task", [{"async_val": 30}, {"delegate_to": "another"}], ids=str)
def test_a_task_for_another_host_or_in_the_background_goes_there(case: Case, task: dict[str, Any]) -> None:
    assert spared(case, {"hosts": HOSTS})
    assert case.act({"hosts": HOSTS}, **task) == NODE


@by(hostfile)
@pytest.mark.parametrize(
    "other",
    [
        {"exists": False, "sha256": None, "mode": None, "owner": None, "group": None, "content": None, "plain": None},
        {"owner": 1000},
        {"group": 1000},
        {"mode": "0600"},
        {"mode": "2644"},
        {"plain": False},
        {"plain": None},  # the text of a block, or facts of an older release
        {"sha256": "0" * 64},  # bytes that are no text, which the facts replace
    ],
    ids=str,
)
def test_other_facts_go_to_the_node(case: Case, other: dict[str, Any]) -> None:
    assert spared(case, {"hosts": HOSTS})
    fact = {key: value for key, value in {**case.look(), **other}.items() if value is not None}
    assert case.act({"hosts": HOSTS}, fact) == NODE


@by(hostfile)
def test_a_link_and_a_look_without_the_text_go_to_the_node(case: Case, tmp_path: Path) -> None:
    asked = {"hosts": HOSTS}
    assert spared(case, asked)
    assert case.act(asked, {**file_facts(str(case.path), content=False, block=None), **ROOT}) == NODE
    os.link(case.path, tmp_path / "second")
    assert case.ask_module(**asked)["state"] == "hard"
    assert case.act(asked) == NODE
    (tmp_path / "second").unlink()
    case.path.rename(tmp_path / "target")
    case.path.symlink_to("target")
    assert case.ask_module(**asked)["state"] == "link"
    assert case.act(asked) == NODE


@by(hostfile)
@pytest.mark.parametrize("task_vars", [None, {}, {"ansible_facts": {}}, {"ansible_facts": {"swarmspeed": {}}}])
def test_without_a_look_the_node_is_asked(case: Case, monkeypatch: pytest.MonkeyPatch, task_vars: Any) -> None:
    assert spared(case, {"hosts": HOSTS})
    action = hostfile_action.ActionModule
    wanted = action.run
    given = {"ansible_facts": {}, **(task_vars or {})}
    monkeypatch.setattr(action, "run", lambda self, task_vars: wanted(self, None, given))
    assert case.act({"hosts": HOSTS}) == NODE


@by(ds_config)
def test_a_short_secret_turns_no_value_to_text_and_a_warning_that_it_is_part_of_is_left_to_the_module(
    case: Case,
) -> None:
    comet = {"comet": {"enabled": True, "api_key": "a"}}
    asked = {"config": {**CONFIG, **comet, "gradient_clipping": 1}}
    assert spared(case, asked)
    assert case.act(asked) == {**case.ask_module(**asked, looked=True), **BY_ROOT}
    assert case.act(asked)["changed"] is False
    warned = {"config": {**CONFIG, **comet}}
    assert "gradient_clipping" in case.ask_module(**warned)["warnings"][0]
    assert case.act(warned) == NODE


@by(hostfile)
def test_any_hosts(case: Case) -> None:
    dice = random.Random(7)
    outcomes = set()
    for dummy in range(300):
        names = dice.sample(["a", "b", "10.0.0.1"], 2)
        asked = {
            "hosts": {name: dice.choice([0, 1, "1", 2.0, True]) for name in names},
            "mode": dice.choice(["0644", "644"]),
        }
        if dice.random() < 0.5:
            asked["include"] = dice.choice(["", "a", "b:0", "10.0.0.1", "a@b"])
        module = case.ask_module(**asked, looked=True, _ansible_check_mode=True)
        quiet = not module.get("failed") and not module["changed"]
        assert case.act(asked) == ({**module, **BY_ROOT} if quiet else NODE)
        outcomes.add((quiet, bool(module.get("failed"))))
        if dice.random() < 0.5:
            case.ask_module(**asked)
    assert outcomes == {(True, False), (False, False), (False, True)}
