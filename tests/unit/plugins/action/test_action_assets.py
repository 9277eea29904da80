# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The controller sides of asset_sources and asset_transfer, with a script of replies in place of the module."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail, AnsibleFilterError
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action import asset_sources, asset_transfer
from ansible_collections.swarmspeed.cluster.plugins.filter.transfer import asset_chain
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import from_text

from tests.hub_stand_in import TOKEN

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIeLkmbk8Vp6pjyB2hT0lJ4U0w6pXn8cRjGfYc1X2y3z"
GATHERED: dict[str, Any] = {
    **{"lacking_bytes": 4, "lacking_files": 1, "spooled_bytes": 0, "free_bytes": 100, "root": "/a"},
    **{"account": "root", "host_key": KEY, "public_key": KEY},
}
DATA = b"1,2\n"
SHA256 = hashlib.sha256(DATA).hexdigest()


class Listing(asset_sources.ActionModule):
    def __init__(self, **args: Any) -> None:
        self._task = SimpleNamespace(args=args, check_mode=False, async_val=0)

    def validate_argument_spec(self, argument_spec: Any = None, **more: Any) -> Any:
        defaults = {name: option.get("default") for name, option in argument_spec.items()}
        return None, {**defaults, **self._task.args}


class Sender(asset_transfer.ActionModule):
    """The action with a script of replies. What is sent is read at once."""

    def __init__(self, script: list[dict[str, Any]], **args: Any) -> None:
        self._task = SimpleNamespace(args=args, check_mode=False, async_val=0)
        self.script, self.sent, self.requested = list(script), [], []  # type: ignore[var-annotated]  # filled below
        self._connection = SimpleNamespace(
            _shell=SimpleNamespace(tmpdir="/tmp/x", join_path=lambda *parts: "/".join(parts))
        )

    def _execute_module(self, **call: Any) -> dict[str, Any]:
        self.requested.append(dict(call["module_args"]))
        return self.script.pop(0)

    def _transfer_file(self, local_path: str, remote_path: str) -> None:
        if local_path.endswith(".json"):
            self.sent.append(json.loads(Path(local_path).read_text()))
            return
        with tarfile.open(local_path) as archive:
            self.sent.append({entry.name: archive.extractfile(entry).read() for entry in archive})  # type: ignore[union-attr]  # files


@pytest.fixture(autouse=True)
def _base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ActionBase, "run", lambda *dummy: {})


@pytest.fixture
def listed(tmp_path: Path) -> tuple[str, str]:
    """A data set of one file on the controller, listed. Return cache and list."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/set.csv").write_bytes(DATA)
    cache = str(tmp_path / "cache")
    found = Listing(sources=[{"name": "mine", "folder": str(tmp_path / "data")}], cache=cache, token=TOKEN).run()
    assert found["assets"]["mine"]["bytes"] == 4 and found["changed"] is False and TOKEN not in str(found)
    (path,) = (tmp_path / "cache/manifests").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    return cache, str(path)


def test_a_list_is_sent_at_the_start_and_pieces_of_what_is_lacking_with_feed(listed: tuple[str, str]) -> None:
    cache, path = listed
    sender = Sender([{"gathered": GATHERED}], step="start", manifests={"mine": path})
    assert sender.run(task_vars={"inventory_hostname": "lab1"})["gathered"] == GATHERED
    manifest = from_text(Path(path).read_text())
    assert manifest is not None and sender.sent == [{"mine": manifest.for_node()}]
    assert sender.requested == [{"step": "start", "listed": "/tmp/x/listed.json"}]
    sender = Sender([{"needed": {SHA256: 1}}, {"needed": {}}], step="feed", manifests={"mine": path}, cache=cache)
    assert sender.run(task_vars={"inventory_hostname": "lab1"}) == {"changed": False, "bytes": 3}
    assert sender.sent == [{f"{SHA256}.1": DATA[1:]}]
    assert [requested.get("archive") for requested in sender.requested] == [None, "/tmp/x/piece.tar"]


def test_a_node_that_asks_for_what_is_not_listed_gets_nothing(listed: tuple[str, str]) -> None:
    cache, path = listed
    sender = Sender([{"needed": {"f" * 64: 0}}], step="feed", manifests={"mine": path}, cache=cache)
    assert sender.run(task_vars={"inventory_hostname": "lab1"})["bytes"] == 0 and sender.sent == []
    for needed in ({"../../etc/shadow": 0}, {SHA256: -1}, [1]):
        sender = Sender([{"needed": needed}], step="feed", manifests={"mine": path}, cache=cache)
        with pytest.raises(AnsibleActionFail, match=r"^lab1: asset_transfer\.needed"):
            sender.run(task_vars={"inventory_hostname": "lab1"})


def test_a_failure_of_the_module_is_the_actions_own(listed: tuple[str, str]) -> None:
    cache, path = listed
    failed: dict[str, Any] = {"failed": True, "msg": "no"}
    for script in ([failed], [{"needed": {SHA256: 0}}, failed]):
        sender = Sender(script, step="feed", manifests={"mine": path}, cache=cache)
        assert sender.run(task_vars={})["msg"] == "no"


def test_a_file_that_is_gone_and_a_list_that_is_damaged_are_named(listed: tuple[str, str], tmp_path: Path) -> None:
    cache, path = listed
    (tmp_path / "data/set.csv").unlink()
    sender = Sender([{"needed": {SHA256: 0}}], step="feed", manifests={"mine": path}, cache=cache)
    with pytest.raises(AnsibleActionFail, match=r"data/set\.csv: .*No such file.*\. Remedy: run again\.$"):
        sender.run(task_vars={})
    Path(path).write_text("{}")
    with pytest.raises(AnsibleActionFail, match=r": the list of files of mine cannot be read\. Remedy: run again\.$"):
        Sender([], step="start", manifests={"mine": path}).run(task_vars={})


def test_a_source_or_a_cache_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        AnsibleActionFail, match=r"^assets_sources: item 1: name is not the name of a folder\. Remedy: .*\.$"
    ):
        Listing(sources=[{"folder": "/x"}], cache=str(tmp_path)).run()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x").write_text("x")
    (tmp_path / "file").write_text("")
    with pytest.raises(AnsibleActionFail, match=r"^assets_cache: .*Remedy: set it to a folder of the controller"):
        Listing(sources=[{"name": "x", "folder": str(tmp_path / "data")}], cache=str(tmp_path / "file")).run()


@pytest.mark.parametrize(
    "changed",
    [
        {"account": "-oProxyCommand=touch /root/owned;"},
        {"public_key": 'command="sh" ssh-ed25519 AAAA'},
        {"lacking_bytes": -1},
        {"root": "a b\nc"},
    ],
)
def test_what_a_node_reports_is_checked_before_others_connect_to_it(changed: dict[str, Any]) -> None:
    gathered = {"lab1": GATHERED, "lab2": {**GATHERED, **changed}}
    with pytest.raises(
        AnsibleFilterError, match=rf"^asset_chain: lab2: asset_transfer\.gathered\.{next(iter(changed))} is "
    ):
        asset_chain(gathered, ["lab1", "lab2"], {"lab1": "10.0.0.1", "lab2": "10.0.0.2"}, {})


def test_the_chain_and_what_forbids_it() -> None:
    where = {"lab1": "10.0.0.1", "lab2": "10.0.0.2"}
    made = asset_chain({"lab1": GATHERED, "lab2": GATHERED}, ["lab2", "lab1"], where, {"lab2": "2022"})
    assert made["problems"] == []
    assert made["parts"]["lab2"]["sources"] == [] and list(made["parts"]["lab2"]["readers"]) == ["lab1"]
    (source,) = made["parts"]["lab1"]["sources"]
    assert (source["name"], source["address"], source["port"]) == ("lab2", "10.0.0.2", 2022)
    full = {**GATHERED, "lacking_bytes": 3 << 20, "spooled_bytes": 1 << 20}
    assert asset_chain({"lab1": full}, ["lab1"], where, {})["problems"] == [
        "lab1: 0.0 MiB are free in /a, but 2.0 MiB are needed there. Remedy: free space there, or set assets_path to "
        "a folder on a larger disk."
    ]
    assert asset_chain({"lab1": {"trouble": "no. Remedy: x"}}, ["lab1"], where, {})["problems"] == [
        "lab1: no. Remedy: x"
    ]
    with pytest.raises(AnsibleFilterError, match="expected what every node of the chain reported"):
        asset_chain({}, ["lab1"], where, {})
    with pytest.raises(AnsibleFilterError, match=r"'lab1' is missing|lab1.* is missing"):
        asset_chain({"lab2": GATHERED, "lab1": GATHERED}, ["lab1", "lab2"], {"lab2": "10.0.0.2"}, {})
