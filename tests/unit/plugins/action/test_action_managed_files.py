# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The action managed_files: it goes to the node only for what differs, and shows no secret. The modules are fakes."""

from __future__ import annotations

import hashlib
import json
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.action import managed_files
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.digests import keyed_digest
from ansible_collections.swarmspeed.cluster.plugins.modules import managed_files as documented

OLD_SECRET, NEW_SECRET = "hunter2-old", "hunter2-new\n"


class Task:
    """What an action uses of its task; the copies it makes are copies, as the real ones are."""

    async_val = 0
    diff = True
    action = "swarmspeed.cluster.managed_files"

    def __init__(self, args: dict[str, Any], check_mode: bool, no_log: bool = False) -> None:
        self.args, self.check_mode, self.no_log = args, check_mode, no_log

    def copy(self) -> Task:
        return Task(dict(self.args), self.check_mode, self.no_log)


class Node:
    """Stands for everything behind the action; notes what reaches the node, in order."""

    def __init__(self, answers: dict[str, dict[str, Any]] | None = None) -> None:
        self.calls: list[tuple[str, str, dict[str, Any], bool]] = []
        self.answers = answers or {}

    def take(self, module: str, args: dict[str, Any], no_log: bool) -> dict[str, Any]:
        path = args.get("dest") or args["path"]
        self.calls.append((module, path, args, no_log))
        return self.answers.get(path, {"changed": True, "diff": {"after": "of the module"}, "invocation": args})

    def get(self, name: str, task: Task, **needed: Any) -> Any:
        """Stand for the loader of action plugins."""
        assert set(needed) == {"connection", "play_context", "loader", "templar", "shared_loader_obj"}

        def run(task_vars: dict[str, Any]) -> dict[str, Any]:
            assert "ansible_facts" in task_vars
            return self.take(name, task.args, task.no_log)

        return SimpleNamespace(run=run)


def facts(text: str | None, **other: Any) -> dict[str, Any]:
    digest = None if text is None else hashlib.sha256(text.encode()).hexdigest()
    return {"exists": True, "sha256": digest, "mode": "0644", "owner": 0, "group": 0, **other}


ABSENT = {"exists": False, "sha256": None, "mode": None, "owner": None, "group": None}
KNOWN: dict[str, dict[str, Any]] = {
    "/right": facts("right\n"),
    "/stale": facts("old\n", content="old\n"),
    "/open": facts("right\n"),
    "/none": ABSENT,
    "/dir": facts(None),
    "/secret": facts(OLD_SECRET, mode="0600", content=OLD_SECRET),  # content: as if asked for by mistake
    "/hosts": facts("10.0.0.1 a\n", content="10.0.0.1 a\n"),
}


def run(
    files: Any,
    node: Node | None = None,
    *,
    check_mode: bool = False,
    no_log: bool = False,
    task_vars: dict[str, Any] | None = None,
) -> dict[str, Any]:
    node = node or Node()
    task = Task({"files": files}, check_mode, no_log)
    action = managed_files.ActionModule(
        task=task,
        connection=SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)),
        play_context=None,
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )

    def execute(module: str, args: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        assert "ansible_facts" in task_vars
        return node.take(module, args, task.no_log)

    action._execute_module = execute  # type: ignore[method-assign]
    action._shared_loader_obj = SimpleNamespace(action_loader=node)
    if task_vars is None:
        task_vars = {"ansible_facts": {"swarmspeed": {"files": KNOWN}}}
    try:
        result: dict[str, Any] = action.run(task_vars=task_vars)
    finally:
        assert task.no_log is no_log
    return result


RIGHT = [
    {"path": "/right", "content": "right\n"},
    {"path": "/dir"},
    {"path": "/none", "content": "x", "state": "absent"},
    {"path": "/hosts", "content": "10.0.0.1 a", "block": "b", "mode": "0600"},
]
WRONG: list[dict[str, Any]] = [
    {"path": "/dir", "mode": "0700"},
    {"path": "/stale", "content": "new\n"},
    {"path": "/open", "content": "right\n", "mode": "0600", "owner": 7, "group": 8},
    {"path": "/hosts", "content": "10.0.0.2 b\n", "block": "s x"},
    {"path": "/right", "content": "", "state": "absent"},
    {"path": "/secret", "content": NEW_SECRET, "mode": "0600", "secret": True},
]


@pytest.mark.parametrize("check_mode", [False, True])
def test_what_is_right_reaches_no_node(check_mode: bool) -> None:
    node = Node()
    assert run(RIGHT, node, check_mode=check_mode) == {"changed": False, "files": [], "diff": []}
    assert node.calls == []
    assert run([], node) == {"changed": False, "files": [], "diff": []}


def test_no_temporary_directory_is_made_on_the_node_in_advance() -> None:
    # The base class makes one before run() when this is set, which is a round trip for nothing.
    assert managed_files.ActionModule.TRANSFERS_FILES is False


def test_only_what_differs_is_written_in_order_and_by_the_module_for_it() -> None:
    node = Node()
    result = run([*RIGHT, *WRONG], node)
    assert result["changed"] is True
    assert result["files"] == ["/dir", "/stale", "/open", "/hosts", "/right", "/secret"]
    assert [call[1] for call in node.calls] == result["files"]
    root = {"owner": "0", "group": "0"}
    assert [(call[0], call[2]) for call in node.calls] == [
        ("ansible.builtin.file", {"path": "/dir", "mode": "0700", "state": "directory", **root}),
        ("ansible.legacy.copy", {"dest": "/stale", "content": "new\n", "mode": "0644", **root}),
        ("ansible.legacy.copy", {"dest": "/open", "content": "right\n", "mode": "0600", "owner": "7", "group": "8"}),
        (
            "ansible.builtin.blockinfile",
            {
                "path": "/hosts",
                "block": "10.0.0.2 b\n",
                "marker": "# {mark} s x",
                "state": "present",
                "create": True,
            },
        ),
        ("ansible.builtin.file", {"path": "/right", "state": "absent"}),
        ("ansible.legacy.copy", {"dest": "/secret", "content": NEW_SECRET, "mode": "0600", **root}),
    ]


def test_a_block_is_removed_and_no_file_made_for_that() -> None:
    node = Node()
    run([{"path": "/hosts", "block": "s x", "state": "absent", "content": ""}], node)
    ((module, _path, args, _no_log),) = node.calls
    assert module == "ansible.builtin.blockinfile"
    assert (args["state"], args["create"], args["block"]) == ("absent", False, "")


def test_check_mode_predicts_the_same_and_calls_nothing() -> None:
    node = Node()
    assert run([*RIGHT, *WRONG], node, check_mode=True) == run([*RIGHT, *WRONG])
    assert node.calls == []


def test_the_diffs_are_those_of_the_files_that_differ() -> None:
    diffs = run([*RIGHT, *WRONG])["diff"]
    assert [diff["before_header"] for diff in diffs] == [entry["path"] for entry in WRONG]
    assert (diffs[1]["before"], diffs[1]["after"]) == ("old\n", "new\n")
    assert (diffs[5]["before"], diffs[5]["after"]) == ("(a secret)\n", "(another secret)\n")


SECRETS = [
    {"path": "/secret", "content": NEW_SECRET, "mode": "0600", "secret": True},
    {"path": "/none", "content": NEW_SECRET, "mode": "0600", "secret": True},
    {"path": "/hosts", "content": NEW_SECRET, "block": "s x", "secret": True},
]


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_secret_is_in_no_result_and_in_no_log_of_the_node(check_mode: bool) -> None:
    node = Node()
    result = run([*SECRETS, {"path": "/stale", "content": "new\n"}], node, check_mode=check_mode)
    assert result["files"] == ["/secret", "/none", "/hosts", "/stale"]
    assert "hunter2" not in json.dumps(result)
    if not check_mode:
        assert [call[3] for call in node.calls] == [True, True, True, False]
        assert all("hunter2" in json.dumps(call[2]) for call in node.calls[:3])  # the node does get it


def test_no_log_of_the_task_holds_for_all_files() -> None:
    node = Node()
    run([{"path": "/stale", "content": "new\n"}, {"path": "/dir", "mode": "0700"}], node, no_log=True)
    assert [call[3] for call in node.calls] == [True, True]


def test_a_secret_is_compared_by_the_key_that_preflight_drew() -> None:
    found = {**facts(None, mode="0600"), "sha256": keyed_digest(NEW_SECRET.encode(), "k"), "keyed": True}
    known = {"ansible_facts": {"swarmspeed": {"files": {"/secret": found}}}}
    entry = {"path": "/secret", "content": NEW_SECRET, "mode": "0600", "secret": True}
    assert run([entry], task_vars={**known, "_preflight_digest_key": "k"})["changed"] is False
    assert run([entry], task_vars={**known, "_preflight_digest_key": "another"})["changed"] is True


@pytest.mark.parametrize("entry", [*WRONG, *SECRETS])
def test_a_module_that_fails_ends_the_task_with_path_and_cause(entry: dict[str, Any]) -> None:
    answer = {"failed": True, "msg": "No space left on device", "invocation": {"content": NEW_SECRET}}
    node = Node({entry["path"]: answer})
    with pytest.raises(AnsibleActionFail) as caught:
        run([entry, {"path": "/none", "content": "never written"}], node)
    assert str(caught.value) == f"{entry['path']}: No space left on device"
    assert [call[1] for call in node.calls] == [entry["path"]]


def test_a_host_that_goes_down_while_a_file_is_written_is_named() -> None:
    """The action copy passes on Ansible's own message, that JSON could not be parsed."""
    text = "Module result deserialization failed: No start of json char found"
    cut = {"failed": True, "msg": text, "module_stdout": "", "module_stderr": "Shared connection to gpu2 closed.\r\n"}
    known = {"inventory_hostname": "gpu2", "ansible_facts": {"swarmspeed": {"files": KNOWN}}}
    with pytest.raises(AnsibleActionFail, match=r"^gpu2: writing /stale was cut off before it returned a result"):
        run([{"path": "/stale", "content": "new"}], Node({"/stale": cut}), task_vars=known)


def test_a_module_that_fails_without_a_word() -> None:
    with pytest.raises(AnsibleActionFail, match=r"^/stale: could not be written$"):
        run([{"path": "/stale", "content": ""}], Node({"/stale": {"failed": True}}))


ASK = ": node_facts did not gather this file. Add it to files: of the node_facts task."


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path": "/unknown", "content": NEW_SECRET, "secret": True}, "/unknown" + ASK),
        (
            {"path": "/none", "content": NEW_SECRET, "mode": "420", "secret": True},
            "/none: mode '420' is not four octal digits. Write it as text, in quotes: \"0644\".",
        ),
        (
            {"path": "etc/x", "content": NEW_SECRET},
            "'etc/x' is not an absolute path. Write it from the root: /etc/…",
        ),
        (
            {"path": "/none", "content": NEW_SECRET, "state": "gone"},
            "value of state must be one of: present, absent, got: gone found in files",
        ),
        ({"content": NEW_SECRET}, "missing required arguments: path found in files"),
        (
            {"path": "/stale", "content": NEW_SECRET, "mark": "Kept by us"},
            "/stale exists, but this collection did not create it: its first line does not contain 'Kept by us'. It "
            "was left unchanged.",
        ),
    ],
)
def test_a_wrong_file_stops_the_task_before_the_first_is_written(
    entry: dict[str, Any], message: str, check_mode: bool
) -> None:
    node = Node()
    with pytest.raises(AnsibleActionFail) as caught:
        run([{"path": "/stale", "content": "new\n"}, entry], node, check_mode=check_mode)
    assert str(caught.value).startswith(message) and "hunter2" not in str(caught.value)
    assert node.calls == []


@pytest.mark.parametrize("task_vars", [{}, {"ansible_facts": {}}, {"ansible_facts": {"swarmspeed": {"files": None}}}])
def test_without_facts_nothing_is_written(task_vars: dict[str, Any]) -> None:
    node = Node()
    with pytest.raises(AnsibleActionFail, match="^/stale" + ASK.replace(".", r"\.") + "$"):
        run([{"path": "/stale", "content": "new\n"}], node, task_vars=task_vars)
    assert node.calls == []


def test_its_options_are_the_documented_ones() -> None:
    options = from_yaml(documented.DOCUMENTATION)["options"]["files"]["suboptions"]
    plain = {
        name: {key: value for key, value in option.items() if key in ("type", "default", "required", "choices")}
        for name, option in options.items()
    }
    spec = {
        name: {key: value for key, value in option.items() if key != "no_log"}
        for name, option in managed_files.FILE_SPEC.items()
    }
    assert spec == plain
