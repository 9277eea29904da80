# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a managed node could do to the controller and to other nodes by what it returned. One attack a test."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import tarfile
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action import (
    bundle_collect,
    bundle_image,
    cluster_facts,
    job_logs,
    node_facts,
)
from ansible_collections.swarmspeed.cluster.plugins.filter.job_table import job_table
from ansible_collections.swarmspeed.cluster.plugins.filter.transfer import image_chain
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.keys import ssh_command
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.cluster.underlay import UnderlayError, common_underlay

from tests.adversary.hostile import KEY, KEY_FILE, facts, one_line, planted

DIGEST = f"sha256:{'ab' * 32}"
SYSTEM = {"distribution": "debian", "release": "12", "architecture": "x86_64"}


def action(plugin: Any, answers: list[Any], folder: Path, **args: Any) -> Any:
    """An action whose modules answer from a list; what it fetches from the node lies in a folder."""
    shell = SimpleNamespace(tmpdir=str(folder), join_path=lambda *parts: "/".join(parts))
    made = plugin.ActionModule(
        task=SimpleNamespace(args=args, check_mode=False, async_val=0, diff=False, action="attack", no_log=False),
        connection=SimpleNamespace(_shell=shell, fetch_file=shutil.copyfile, reset=lambda: None),
        play_context=None,
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )
    made._execute_module = lambda **requested: answers.pop(0)
    return made


def refused(run: Any) -> str:
    with pytest.raises(AnsibleError) as caught:
        run()
    one_line(str(caught.value))
    return str(caught.value)


def deb(file: str, data: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    stanza = f"Package: one\nVersion: 1\nArchitecture: amd64\nFilename: ./one.deb\nSize: {len(data)}\nSHA256: {digest}"
    known = {"name": "one", "version": "1", "source": "one 1", "size": len(data), "sha256": digest}
    return {**known, "file": file, "stanza": stanza}


def collected(tmp_path: Path, *debs: dict[str, Any], name: str, data: bytes, system: Any = None) -> Any:
    node = tmp_path / "node"
    node.mkdir()
    (node / "data").write_bytes(data)
    with tarfile.open(node / "packages.tar", "w") as tar:
        tar.add(node / "data", arcname=name)
    answers: list[Any] = [{"debs": list(debs)}, {"archive": str(node / "packages.tar")}, {}]
    made = action(
        bundle_collect, answers, node, bundle=str(tmp_path / "home/bundle"), system=system or SYSTEM, groups=[]
    )
    return lambda: made.run(task_vars={"inventory_hostname": "maker"})


def outside(tmp_path: Path) -> list[str]:
    """Files that lie neither on the node nor in the bundle."""
    found = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    return [name for name in found if not name.startswith(("node/", "home/bundle/"))]


def test_a_bundles_maker_names_a_file_outside_of_it(tmp_path: Path) -> None:
    """It wrote the controller's user an authorized_keys."""
    name, data = "../../../.ssh/authorized_keys", b"ssh-ed25519 AAAA attacker\n"
    try:
        collected(tmp_path, deb(name, data), name=name, data=data)()
    except AnsibleError as error:
        one_line(str(error))
    assert outside(tmp_path) == []


def test_a_bundles_maker_writes_through_a_name_in_the_list_of_packages(tmp_path: Path) -> None:
    """A second paragraph in a stanza became one more package in every node's list."""
    entry = deb("one.deb", b"one")
    entry["stanza"] += "\n\nPackage: sudo\nVersion: 99\nArchitecture: amd64\nFilename: ./evil.deb\nSize: 1\nSHA256: 00"
    reported = refused(collected(tmp_path, entry, name="one.deb", data=b"one"))
    assert reported.startswith("maker: bundle_collect.debs[0].stanza")


def test_a_bundles_maker_sends_a_bomb(tmp_path: Path) -> None:
    """A compressed archive was unpacked without an end to it: a gigabyte of zeros takes a megabyte to send."""
    node = tmp_path / "node"
    node.mkdir()
    (node / "zeros").write_bytes(bytes(1 << 22))
    with tarfile.open(node / "packages.tar", "w:gz") as tar:
        tar.add(node / "zeros", arcname="one.deb")
    answers: list[Any] = [{"debs": [deb("one.deb", b"one")]}, {"archive": str(node / "packages.tar")}, {}]
    made = action(bundle_collect, answers, node, bundle=str(tmp_path / "b"), system=SYSTEM, groups=[])
    printed = refused(lambda: made.run(task_vars={"inventory_hostname": "maker"}))
    assert "arrived incomplete" in printed


def test_a_bundles_maker_names_its_system_with_a_way_up(tmp_path: Path) -> None:
    system = {**SYSTEM, "distribution": "sub/debian"}
    reported = refused(collected(tmp_path, deb("one.deb", b"one"), name="one.deb", data=b"one", system=system))
    assert "cannot be what a system is called" in reported


def test_a_bundles_maker_calls_its_image_by_a_path(tmp_path: Path) -> None:
    """Letters of any script counted as letters and digits of an id."""
    answers: list[Any] = [{"stdout": "sha256:ⅩⅡ٣" + "x" * 5000}, {}, {}, {"stdout": ""}]
    made = action(bundle_image, answers, tmp_path, bundle=str(tmp_path / "bundle"), name="team:1")
    assert "not a digest" in refused(lambda: made.run(task_vars={"inventory_hostname": "maker"}))


def gather(**changed: Any) -> dict[str, Any]:
    image = {"content": DIGEST, "layers": [DIGEST], "os": "linux", "architecture": "amd64", "history": [7]}
    return {
        "architecture": "x86_64",
        "store": "graph",
        "image": image,
        "images": [{"id": DIGEST, "layers": []}],
        "free": {"engine": 1 << 40, "spool": 1 << 40, "same": False},
        "places": {"engine": "/var/lib/docker", "spool": "/srv"},
        "spooled": {},
        "account": "root",
        "host_key": KEY,
        "public_key": KEY,
        **changed,
    }


def chain(**changed: Any) -> dict[str, Any]:
    gathered = {"gpu1": gather(**changed), "gpu2": gather(image={})}
    addresses, ports = {"gpu1": "10.0.0.1", "gpu2": "10.0.0.2"}, {"gpu1": 22, "gpu2": 22}
    made: dict[str, Any] = image_chain(gathered, "gpu1", "team:1", addresses, ports)
    return made


def test_a_node_gives_every_later_nodes_ssh_an_option() -> None:
    """As root, there: the words began with what the node called its account."""
    reported = refused(lambda: chain(account="-oProxyCommand=touch /root/owned;"))
    assert "gpu1: image_transfer.gathered.account is '-oProxyCommand=touch /root/owned;'" in reported


def test_no_word_of_ssh_that_comes_from_a_node_can_be_an_option() -> None:
    """Whatever the controller let through: an account is an option's value, an address follows the end of options."""
    source = {"name": "gpu1", "address": "-oProxyCommand=x", "port": 22, "account": "-oProxyCommand=y", "host_key": KEY}
    words = ssh_command(source)
    assert words[words.index("-oProxyCommand=y") - 1] == "-l"
    assert words[words.index("-oProxyCommand=x") - 1] == "--"


def test_a_nodes_key_is_the_line_of_another() -> None:
    """What it calls its public key became options in the authorized_keys of others."""
    reported = refused(lambda: chain(public_key='command="sh",no-restrict ssh-ed25519 AAAA'))
    assert "not one public key of OpenSSH" in reported


def test_a_node_invents_a_layer_that_is_a_path() -> None:
    image = {**gather()["image"], "layers": ["sha256:../../../../etc/cron.d/x"]}
    assert "gathered.image.layers[0] is 'sha256:../../" in refused(lambda: chain(image=image))


def fabric(address: str, name: str = "eth0") -> dict[str, Any]:
    placed = planted(facts()["fabric"], ("interfaces", 0, "addresses", 0, "address"), address)
    found: dict[str, Any] = planted(placed, ("interfaces", 0, "name"), name)
    return found


def test_a_nodes_address_adds_a_proxy_command_to_everybodys_ssh_config() -> None:
    with pytest.raises(UnderlayError) as caught:
        common_underlay({"gpu1": fabric("10.20.0.1\n  ProxyCommand touch /root/owned"), "gpu2": facts(2)["fabric"]})
    one_line(str(caught.value))
    assert "interfaces[0].addresses[0].address is '10.20.0.1\\n  ProxyCommand" in str(caught.value)


def test_a_nodes_interface_adds_a_line_to_an_environment() -> None:
    with pytest.raises(UnderlayError) as caught:
        common_underlay({"gpu1": fabric("10.20.0.1", "eth0\nLD_PRELOAD=/x.so"), "gpu2": facts(2)["fabric"]})
    one_line(str(caught.value))


def test_a_nodes_host_key_is_a_line_for_another_node(tmp_path: Path) -> None:
    """known_hosts and authorized_keys of all containers are made of these files."""
    forged = planted(facts(), ("files", KEY_FILE, "content"), KEY + "gpu2 ssh-ed25519 AAAA\n")
    hostvars = {"gpu1": {"ansible_facts": {"swarmspeed": forged}}}
    made = action(cluster_facts, [], tmp_path, hosts=["gpu1"], host_key_file=KEY_FILE)
    printed = refused(lambda: made.run(task_vars={"hostvars": hostvars}))
    assert printed.startswith(f"gpu1: {KEY_FILE} is ")


def test_a_node_sets_a_variable_of_its_own_host(tmp_path: Path) -> None:
    """Facts in the answer beside ours became variables, such as the folder of the controller that is sent to it."""
    answer = {"ansible_facts": {"swarmspeed": facts(), "workspace_source": "/root/.ssh"}}
    made = action(node_facts, [answer], tmp_path)
    assert list(made.run(task_vars={"inventory_hostname": "gpu1"})["ansible_facts"]) == ["swarmspeed"]


def test_a_node_without_a_clock_ends_in_no_traceback(tmp_path: Path) -> None:
    broken = facts()
    del broken["system"]["time"]
    made = action(node_facts, [{"ansible_facts": {"swarmspeed": broken}}], tmp_path)
    printed = refused(lambda: made.run(task_vars={"inventory_hostname": "gpu1"}))
    assert printed.startswith("gpu1: node_facts.system.time is null, not left out")


def test_a_node_counts_its_runs_in_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state.json that it sent once is read on the controller the next time: an int() of it ended in a traceback."""
    monkeypatch.setattr(ActionBase, "run", lambda *_args: {})
    here = tmp_path / "here/digits/gpu1"
    here.mkdir(parents=True)
    (here / "state.json").write_text(json.dumps({"run": "../../x", "run_id": "a"}), encoding="utf-8")
    data = base64.b64encode(zlib.compress(b"log\n")).decode()
    files = [{"path": "launcher.log", "mtime_ns": 5, "shortened": False, "data": data}]
    answers: list[Any] = [{"files": files, "more": False, "problems": [], "run": {"run": 2, "run_id": "b"}}]
    args = {"name": "digits", "dest": str(tmp_path / "here"), "jobs_dir": "/srv/jobs"}
    found = action(job_logs, answers, tmp_path, **args).run(task_vars={"inventory_hostname": "gpu1"})
    assert found["gathered"] == ["launcher.log"]
    assert (here / "runs/0000/state.json").is_file()


def test_a_file_of_the_year_when_the_sun_goes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ActionBase, "run", lambda *_args: {})
    data = base64.b64encode(zlib.compress(b"log\n")).decode()
    files = [{"path": "launcher.log", "mtime_ns": 10**40, "shortened": False, "data": data}]
    made = action(job_logs, [{"files": files, "more": False}], tmp_path, name="digits", dest=str(tmp_path / "h"))
    refused(lambda: made.run(task_vars={"inventory_hostname": "gpu1"}))


def test_a_job_forges_lines_of_the_table() -> None:
    """Its state.json lies in a folder that a container can write."""
    forged = {
        "name": "digits",
        "state": "failed",
        "reason": "x",
        "since": "now\nimportant  succeeded  1  2026-11-22T10:00:00Z",
        "log_path": "/srv/jobs/digits/launcher.log",
        "summary": {"figures": {"step": "\x1b[2J", "loss": [1]}},
    }
    lines = job_table({"gpu1": {"jobs": [forged]}})
    assert len(lines) == 3 and all("\n" not in line and "\x1b" not in line for line in lines)


def test_a_job_of_wrong_types_does_not_hide_the_others() -> None:
    good = {"name": "good", "state": "running", "log_path": "/srv/jobs/good/launcher.log"}
    forged = {"name": "digits", "state": "running", "seconds": "x", "summary": {"members": 7}, "log_path": 3}
    lines = job_table({"gpu1": {"jobs": [forged, good]}})
    assert any(line.startswith("good") for line in lines) and any(line.startswith("digits") for line in lines)
