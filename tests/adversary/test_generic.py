# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Every field of what a node returns is replaced by every hostile value, and handed to all that reads it.

Allowed is one error of one line, or a result that is as harmless as with honest facts: no further line in a file, no
option, no path elsewhere, no template that was evaluated.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.utils.yaml import from_yaml
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action import cluster_facts, cluster_report, node_facts
from ansible_collections.swarmspeed.cluster.plugins.action import job_logs as JOB_LOGS  # a plugin
from ansible_collections.swarmspeed.cluster.plugins.action import training_job as training_job_action
from ansible_collections.swarmspeed.cluster.plugins.filter.job_table import job_table, jobs_to_stop
from ansible_collections.swarmspeed.cluster.plugins.filter.transfer import image_chain
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile import text as hostfile
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.keys import (
    key_line,
    known_hosts,
    ssh_command,
)
from ansible_collections.swarmspeed.cluster.plugins.modules import training_job, training_job_info
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection import following
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.gathered import HOSTS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.planner import HostPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.files import ENTRY_POINT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.planner import NcclEnvPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, Planner, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.files import SSHD_CONFIG
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.ssh_trust.planner import SshTrustPlanner

from tests.adversary import hostile
from tests.adversary.hostile import HOSTILE, KEY, KEY_FILE, MARK, leaves, one_line, planted, renamed, returned
from tests.nccl_nodes import IMAGE, ROLE_VARS, TEXT
from tests.plain_hosts import ROLE_VARS as HOST_ROLE_VARS
from tests.ssh_nodes import ROLE_VARS as SSH_ROLE_VARS
from tests.ssh_nodes import TEXT as SSHD_TEXT

GPU1, GPU2 = hostile.facts(1), hostile.facts(2)


class Task:
    """An action without Ansible around it."""

    def __init__(self, plugin: Any, answer: Any = None, **args: Any) -> None:
        task = SimpleNamespace(args=args, check_mode=False, async_val=0, diff=False, action="attack", no_log=False)
        connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None), reset=lambda: None)
        self.action = plugin.ActionModule(
            task=task, connection=connection, play_context=None, loader=None, templar=None, shared_loader_obj=None
        )
        self.action._execute_module = lambda **requested: dict(answer)

    def run(self, **variables: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.action.run(task_vars={"inventory_hostname": "gpu1", **variables})
        return result


def gathered(facts: Any) -> dict[str, Any]:
    """What a play knows after node_facts."""
    result = Task(node_facts, {"ansible_facts": {"swarmspeed": facts}}).run()
    found: dict[str, Any] = result["ansible_facts"]["swarmspeed"]
    return found


def view_of(facts: dict[str, Any]) -> dict[str, Any]:
    hostvars = {"gpu1": {"ansible_facts": {"swarmspeed": facts}}, "gpu2": {"ansible_facts": {"swarmspeed": GPU2}}}
    overlay = {"name": "lab", "containers": {"gpu1": "lab-gpu1", "gpu2": "lab-gpu2"}}
    task = Task(cluster_facts, hosts=["gpu1", "gpu2"], overlay=overlay, host_key_file=KEY_FILE)
    result = task.run(hostvars=hostvars)
    found: dict[str, Any] = result["ansible_facts"]["swarmspeed_cluster"]
    return found


def planned(facts: dict[str, Any], view: dict[str, Any]) -> list[str]:
    """Return the files that are planned for a host on which none is written yet, in host mode."""
    role_vars = {**ROLE_VARS, **SSH_ROLE_VARS, "cluster_network_mode": "host"}
    files = {ENTRY_POINT: TEXT, SSHD_CONFIG: SSHD_TEXT}
    every = {"gpu1": without_files(facts), "gpu2": without_files(GPU2)}
    roles: list[Planner] = [SshTrustPlanner(), NcclEnvPlanner()]
    made = fold(roles, every, dict.fromkeys(every, role_vars), Inputs({**view, "image": IMAGE}, files))
    assert not made.refusals
    return [
        entry["content"]
        for task_input in made.task_inputs["gpu1"].values()
        for entry in task_input["files"]
        if "content" in entry
    ]


def without_files(facts: dict[str, Any]) -> dict[str, Any]:
    """Leave the keys alone, and let those that are private exist."""
    kept = {path: file for path, file in facts["files"].items() if path.endswith(".pub")}
    private = {path.removesuffix(".pub"): {"exists": True, "sha256": "x", "mode": "0600"} for path in kept}
    return {**facts, "files": {**kept, **private}}


def host_plan(facts: dict[str, Any], view: dict[str, Any], **desired: Any) -> Plan:
    """Plan the role host of a host on which nothing is written yet."""
    found = {**facts, "files": {}}
    return fold([HostPlanner()], {"gpu1": found}, {"gpu1": {**HOST_ROLE_VARS, **desired}}, Inputs(view))


def written(view: dict[str, Any], facts: dict[str, Any]) -> str:
    """Return all that is written of it into files, as planned."""
    of_host = host_plan(facts, view, host_apt_mirror="http://mirror.example.com/debian").task_inputs["gpu1"]["host"][
        "files"
    ]
    assert HOSTS in [entry["path"] for entry in of_host]
    found = [*(entry["content"] for entry in of_host), *planned(facts, view)]
    found.append(hostfile.render(hostfile.check(view["slots"]).hosts))
    return "\n".join(str(text) for text in found)


HONEST = written(view_of(gathered(GPU1)), gathered(GPU1))


def harmless(text: str) -> None:
    assert MARK not in text and "49" not in re.findall(r"\b49\b", text), text[:500]
    assert "{{" not in text and "ProxyCommand" not in text
    assert "\r" not in text and "\u2028" not in text


SEEN: dict[str, str] = {}


def remembered(view: dict[str, Any], facts: dict[str, Any]) -> str:
    """Write once for each difference: most facts go into no file at all."""
    key = repr((view, facts["files"], facts["fabric"]))
    if key not in SEEN:
        SEEN[key] = written(view, facts)
    return SEEN[key]


def attack(facts: Any) -> str:
    """Hand facts to everything; return what came of it."""
    try:
        found = gathered(facts)
        view = view_of(found)
        text = remembered(view, found)
    except AnsibleError as error:
        one_line(str(error))
        return "refused"
    harmless(text)
    assert len(text.splitlines()) <= len(HONEST.splitlines()) + 2
    return "harmless"


PLACES = sorted({path[0] for path in leaves(GPU1)})


@pytest.mark.parametrize("part", PLACES)
def test_facts_of_a_node(part: str) -> None:
    seen = {"refused": 0, "harmless": 0}
    for path in leaves({part: GPU1[part]}):
        for name, value in HOSTILE.items():
            came = attack(planted(GPU1, path, value))
            seen[came] += 1
            if isinstance(value, str) and path[0] in ("fabric",) and path[-1] in ("address", "name", "subnet", "dev"):
                assert came == "refused", (path, name)
        if isinstance(path[-1], str) and len(path) > 1:
            for name in ("an option", "a way up", "a line break", "a template", "ten megabytes"):
                attack(renamed(GPU1, path, HOSTILE[name]))
    assert seen["refused"]  # an attack that nothing refuses would show that nothing looks


def test_facts_that_are_no_facts() -> None:
    for value in HOSTILE.values():
        if value:
            assert attack(value) == "refused"


def test_a_module_that_returns_variables_sets_none() -> None:
    """Before, any fact in the answer became a variable of the host."""
    answer = {"ansible_facts": {"swarmspeed": GPU1, "workspace_source": "/root/.ssh", "ansible_host": "evil"}}
    assert list(Task(node_facts, answer).run()["ansible_facts"]) == ["swarmspeed"]


def test_facts_that_another_module_returned_later_are_read_again() -> None:
    forged = planted(GPU1, ("fabric", "interfaces", 0, "addresses", 0, "address"), f"10.20.0.1\nProxyCommand {MARK}")
    with pytest.raises(AnsibleError) as caught:
        view_of(forged)
    one_line(str(caught.value))


DIGEST = f"sha256:{'ab' * 32}"
GATHERED: dict[str, Any] = {
    "architecture": "x86_64",
    "store": "graph",
    "image": {"content": DIGEST, "layers": [DIGEST], "os": "linux", "architecture": "amd64", "history": [7]},
    "images": [{"id": DIGEST, "layers": []}],
    "free": {"engine": 1 << 40, "spool": 1 << 40, "same": False},
    "places": {"engine": "/var/lib/docker", "spool": "/srv"},
    "spooled": {"ab": 3},
    "account": "root",
    "host_key": KEY,
    "public_key": KEY,
}


def test_what_a_node_says_of_its_images() -> None:
    refused = 0
    addresses, ports = {"gpu1": "10.20.0.1", "gpu2": "10.20.0.2"}, {"gpu1": 22}
    for path in leaves(GATHERED):
        for value in HOSTILE.values():
            try:
                gathered = {"gpu1": planted(GATHERED, path, value), "gpu2": GATHERED}
                made = image_chain(gathered, "gpu1", "swarmspeed:1", addresses, ports)
            except AnsibleError as error:
                one_line(str(error))
                refused += 1
                continue
            for text in made["problems"]:
                assert text.isprintable() and len(text) < 5000
            for part in made["parts"].values():
                for source in part["sources"]:
                    words = ssh_command(source)
                    assert MARK not in " ".join(words)
                    assert words[words.index("-l") + 1 :: 1][0][0] != "-"
                assert len(known_hosts(part["sources"]).splitlines()) == len(part["sources"])
                for reader, key in part["readers"].items():
                    harmless(key_line(key, "true", reader, "run", 0))
    assert refused > 200


JOB = returned(training_job_info)["jobs"][0] | {"name": "digits", "state": "running"}
JOB["summary"] |= {"members": [{"name": "gpu1", "slots": [0], "first_rank": 0}]}


def test_jobs_of_a_node() -> None:
    honest = job_table({"gpu1": {"jobs": [JOB]}})
    for path in leaves({"jobs": [JOB]}):
        for value in HOSTILE.values():
            results = {"gpu1": planted({"jobs": [JOB]}, path, value), "gpu2": {"jobs": [JOB]}}
            for read in (job_table, jobs_to_stop):
                try:
                    found = read(results)
                except AnsibleError as error:
                    one_line(str(error))
                    continue
                lines = found if isinstance(found, list) else found["lines"] + found["silent"]
                assert all(len(line) < 20_000 for line in lines)
                assert not any("\x1b" in line or "\u2028" in line for line in lines)
                assert len(lines) <= len(honest) + 4


FIELDS = from_yaml(training_job.RETURN)
REPLY: dict[str, Any] = {
    "changed": False,
    "todo": "none",
    "job": hostile.sample(FIELDS["job"])
    | {
        "name": "digits",
        "state": "succeeded",
        "members": [{"name": "gpu1", "slots": [0], "first_rank": 0}],
        "spec_hash": "ab" * 32,
        "shrunk_from": None,
    },
    "log": "gpu1: hello\n",
    "log_offset": 12,
    "log_size": 12,
    "log_path": "/srv/jobs/digits/launcher.log",
}


def test_replies_about_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(following, "display", SimpleNamespace(display=shown.append))
    monkeypatch.setattr(ActionBase, "run", lambda *_args: {})
    refused = 0
    for path in leaves(REPLY):
        for value in HOSTILE.values():
            task = Task(training_job_action, planted(REPLY, path, value), name="digits", observe=True, follow=True)
            # One look and no waiting: a reply that never ends is the user's to end, by Ctrl-C or follow_timeout.
            task.action._task.args["follow_timeout"] = 1
            ticks = iter(range(1_000_000))
            task.action._sleep = lambda seconds: None
            task.action._clock = lambda ticks=ticks: float(next(ticks))
            try:
                task.run()
            except AnsibleError as error:
                assert str(error).isprintable() and len(str(error)) < 2000
                refused += 1
    assert refused > 200
    assert not any("\x1b" in line or "\u2028" in line or len(line) > 5000 for line in shown)


LOGS: dict[str, Any] = {
    "files": [{"path": "launcher.log", "mtime_ns": 5, "shortened": False, "data": "eJxLBAAAYgBi"}],
    "more": False,
    "problems": ["state.json is gone"],
    "run": {"run": 1, "run_id": "r", "started_at": "t0"},
}


def test_logs_of_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ActionBase, "run", lambda *_args: {})
    here = tmp_path / "here"
    refused = 0
    for path in leaves(LOGS):
        for value in HOSTILE.values():
            answers = [planted(LOGS, path, value), planted(LOGS, path, value)]
            action = Task(JOB_LOGS, name="digits", dest=str(here), jobs_dir="/srv/jobs").action
            action._execute_module = lambda answers=answers, **requested: answers.pop() if answers else {"failed": True}
            try:
                action.run(task_vars={"inventory_hostname": "gpu1"})
            except AnsibleError as error:
                assert str(error).isprintable() and len(str(error)) < 2000
                refused += 1
    assert refused > 50
    assert {entry.name for entry in tmp_path.iterdir()} <= {"here"}
    assert {entry.name for entry in (here / "digits/gpu1").rglob("*") if entry.is_file()} <= {"launcher.log"}


def test_a_report_of_hostile_facts(tmp_path: Path) -> None:
    """A page is text: what is hostile may stand in it, escaped; it may not be of another place or form."""
    args = {"cluster": "lab", "hosts": ["gpu1"], "folder": str(tmp_path / "reports"), "jobs": {}}
    for path in leaves(GPU1):
        for name in ("a line break", "a list", "null"):
            try:
                found = gathered(planted(GPU1, path, HOSTILE[name]))
            except AnsibleError:
                continue  # what does not pass here is not gathered, and the page says why
            answer = {"ansible_facts": {"swarmspeed": found}}
            task = Task(cluster_report, **args, gathered={"gpu1": answer})
            task.action._task.check_mode = True  # the document is made, and no page of each is written
            try:
                task.run(hostvars={"gpu1": {}})
            except AnsibleError as error:
                one_line(str(error))
    assert not list(tmp_path.iterdir())


def test_firewall_plans() -> None:
    """Of a host that is let in to and that keeps packets out, so that there is something to write."""
    view = view_of(gathered(GPU1))
    view["underlay"] = {**view["underlay"], "addresses": {"gpu1": "10.20.0.1", "gpu2": "10.20.0.2"}}
    view["hosts"] = ["gpu1", "gpu2"]
    closed = {**GPU1, "firewall": {**GPU1["firewall"], "active": ["ufw", "firewalld", "iptables", "nftables"]}}
    for mode in ("overlay", "host"):
        for path in leaves(closed["firewall"]):
            for value in HOSTILE.values():
                try:
                    found = gathered({**closed, "firewall": planted(closed["firewall"], path, value)})
                except AnsibleError as error:
                    one_line(str(error))
                    continue  # what does not pass here is not gathered
                made = host_plan(found, view, cluster_network_mode=mode).task_inputs["gpu1"]["host"]
                harmless("\n".join([*(str(entry["content"]) for entry in made["files"]), *made["ufw"]]))
