# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Jobs over two nodes of one machine: what makes the nodes, what is launched, and what counts. Nothing is run here."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.documents import ROOT
from tests.gpu_proof import jobs, nodes
from tests.gpu_proof.parts import Failed, Skipped

ELSEWHERE = {"bare_hosts", "llama_factory_sft"}
"""The first is the job of digits; the second needs releases of its own."""


def test_every_example_is_run_but_those_that_cannot() -> None:
    assert set(nodes.EXAMPLES) | ELSEWHERE == {path.parent.name for path in (ROOT / "examples").glob("*/vars.yml")}
    specs = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "roles").glob("*/meta/arg*.yml")]
    known = {name for spec in specs for options in spec["argument_specs"].values() for name in options["options"]}
    for example in nodes.EXAMPLES.values():
        assert set(example.variables) <= known


@pytest.mark.parametrize("name", nodes.EXAMPLES)
def test_the_job_is_named_after_the_example_and_prints_what_is_looked_for(name: str) -> None:
    folder = ROOT / "examples" / name
    assert yaml.safe_load((folder / "vars.yml").read_text(encoding="utf-8"))["deepspeed_launch_name"] == name
    prefix = nodes.EXAMPLES[name].says.partition(":")[0]
    scripts = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    assert f'"{prefix}: ' in scripts and re.search(r"backend \{", scripts)


def test_both_nodes_are_in_the_network_of_the_inventory() -> None:
    cluster = nodes.both()
    made = list(nodes.commands())
    given = [ipaddress.ip_interface(command[-3]) for command in made if "addr" in command]
    assert {str(interface.network) for interface in given} == {cluster.subnet} and len(set(given)) == 2
    found = jobs.inventory("cuda", cluster)["cluster"]
    hosts = {**found["children"]["managers"]["hosts"], **found["children"]["workers"]["hosts"]}
    assert list(hosts) == list(nodes.NAMES)
    assert len({(host["cluster_root"], host["ansible_python_interpreter"]) for host in hosts.values()}) == 2


def test_the_pair_of_interfaces_joins_both_and_is_up() -> None:
    made = [" ".join(command) for command in nodes.commands()]
    first, second = (f"swarmspeed-proof-{name}" for name in nodes.NAMES)
    assert f"ip link add eth0 netns {first} type veth peer name eth0 netns {second}" in made
    for name in (first, second):
        assert {f"ip -n {name} link set eth0 up", f"ip -n {name} link set lo up"} <= set(made)


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stand in for the playbook: it prints what the example's job prints; keep the variables that it is given."""
    kept: dict[str, Any] = {"printed": "digits: accuracy on held-out digits 0.98, target 0.95 reached"}

    def run(command: list[str], dummy: float, **options: Any) -> str:
        kept["command"], kept["options"] = command, options
        kept["values"] = json.loads((tmp_path / "job.json").read_text(encoding="utf-8"))
        return str(kept["printed"])

    monkeypatch.setattr(nodes, "run", run)
    monkeypatch.setattr(nodes, "installed", lambda package: package not in kept.get("missing", ()))
    monkeypatch.setattr(jobs, "CACHE", tmp_path)
    kept["cluster"] = jobs.Cluster(tuple(jobs.Node(name, "python3", tmp_path / name) for name in nodes.NAMES), "")
    kept["log"] = tmp_path / "gpu1" / "host_jobs" / "digits" / "ranks" / "rank-00000.log"
    kept["log"].parent.mkdir(parents=True)
    kept["log"].write_text("digits: 2 ranks, backend nccl\n", encoding="utf-8")
    return kept


def test_an_example_that_reached_its_target(launched: dict[str, Any]) -> None:
    found = nodes.example("digits", "cuda", 9.0, launched["cluster"])
    assert found == {"reached": "accuracy on held-out digits 0.98, target 0.95 reached"}
    assert f"@{ROOT / 'examples/digits/vars.yml'}" in launched["command"]
    assert launched["command"][-2:] == ["--tags", jobs.TAGS]
    assert launched["values"]["training_image_python_packages"] == []
    assert launched["values"]["deepspeed_launch_environment"]["HF_HUB_OFFLINE"] == "1"


def test_an_example_that_trained_without_nccl_proves_nothing_of_gpus(launched: dict[str, Any]) -> None:
    launched["log"].write_text("digits: 2 ranks, backend gloo\n", encoding="utf-8")
    with pytest.raises(Failed, match="do not show that its ranks used NCCL"):
        nodes.example("digits", "cuda", 9.0, launched["cluster"])
    assert nodes.example("digits", "cpu", 9.0, launched["cluster"])


def test_an_example_that_does_not_print_its_result(launched: dict[str, Any]) -> None:
    launched["printed"] = "digits: accuracy on held-out digits 0.48, target 0.95 missed"
    with pytest.raises(Failed, match="the log has no line such as digits: "):
        nodes.example("digits", "cuda", 9.0, launched["cluster"])


def test_an_example_whose_packages_are_missing_is_skipped(launched: dict[str, Any]) -> None:
    launched["missing"] = ("transformers", "peft")
    with pytest.raises(Skipped, match="there is no transformers and no peft beside torch on this machine"):
        nodes.example("deepspeed_chat_sft", "cuda", 9.0, launched["cluster"])


@pytest.mark.parametrize(("accelerator", "more"), [("cpu", 0), ("cuda", 2)])
def test_lightning_is_given_its_accelerator(launched: dict[str, Any], accelerator: str, more: int) -> None:
    launched["printed"] = "lightning_ddp: accuracy on held-out sounds 1.0, target 0.9 reached"
    log = launched["log"].parents[2] / "lightning_ddp" / "node.log"
    log.parent.mkdir()
    log.write_text("backend nccl", encoding="utf-8")
    nodes.example("lightning_ddp", accelerator, 9.0, launched["cluster"])
    arguments = launched["values"]["deepspeed_launch_args"]
    assert arguments[:3] == ["fit", "-c", "fit.yaml"] and len(arguments) == 4 + more
    assert launched["values"]["deepspeed_launch_environment"]["LOCAL_RANK"] == "0"


def test_nodes_need_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Skipped, match="network namespaces need root"):
        nodes.with_both(lambda dummy: {})


def test_a_machine_without_virtual_interfaces_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    requested: list[list[str]] = []

    def refuse(command: list[str], **dummy: Any) -> subprocess.CompletedProcess[str]:
        requested.append(command)
        unknown = "veth" in command
        return subprocess.CompletedProcess(
            command, int(unknown), "", "Error: Unknown device type.\n" if unknown else ""
        )

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(nodes, "PLACE", tmp_path)
    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(Skipped, match=r"ip link add eth0 netns .* eth0 netns \S+: Error: Unknown device type\."):
        nodes.with_both(lambda dummy: {})
    assert len(requested) == 3
