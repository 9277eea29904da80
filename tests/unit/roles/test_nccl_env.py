# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What preflight reports of networks and settings, and the lines of the entry point that find the interface."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.role_values import ROLES, load, value, variables


@pytest.mark.parametrize(
    ("mode", "layer", "reported"),
    [("overlay", "infiniband", True), ("overlay", None, False), ("host", "infiniband", False)],
)
def test_host_mode_is_advised_where_rdma_lies_idle(mode: str, layer: str | None, reported: bool) -> None:
    found = variables(cluster_network_mode=mode)
    found["swarmspeed_cluster"] = {**found["swarmspeed_cluster"], "rdma": {"link_layer": layer, "reason": "so it is"}}
    lines = value("_preflight_reported", found)
    assert any("With cluster_network_mode: host, it is used" in line for line in lines) is reported


def test_one_line_says_which_network_and_why() -> None:
    assert value("_preflight_underlay", variables()) == (
        "Training network 10.1.0.0/24 (MTU 9000, 100 Gbit/s): the only subnet that all hosts share. "
        "RDMA: none, as no node has an active RDMA port."
    )
    found = variables()
    cluster = found["swarmspeed_cluster"]
    cluster["underlay"]["speed_mbps"] = None
    assert "(MTU 9000, speed unknown)" in value("_preflight_underlay", {**found, "swarmspeed_cluster": cluster})


@pytest.mark.parametrize(("args", "shown"), [("--lr 1 'a b'", True), (["--lr", "1"], False), ("", False)])
def test_arguments_in_one_text_are_reported_as_a_list(args: Any, *, shown: bool) -> None:
    found = variables(deepspeed_launch_script="train.py", deepspeed_launch_args=args)
    words = ["--lr", "1", "a b"] if args else []
    task_input = {"deepspeed_launch": {"arguments": words}}
    found["swarmspeed_plan"] = {
        **found.get("swarmspeed_plan", {}),
        "task_inputs": {found["inventory_hostname"]: task_input},
    }
    lines = value("_preflight_reported", found)
    assert ('Arguments of the script: ["--lr", "1", "a b"].' in lines) is shown


@pytest.mark.parametrize(
    ("changed", "accelerator", "reported"),
    [
        ({}, "cuda", []),
        ({"cluster_accelerator": "auto"}, "cpu", ["No NVIDIA GPU was found: the job runs on CPUs"]),
        ({"cluster_accelerator": "cpu"}, "cpu", ["cluster_accelerator is cpu: the job runs on CPUs"]),
        ({"cluster_network_mode": "host"}, "cuda", ["cluster_network_mode is host: no overlay network"]),
        ({"deepspeed_launch_runtime": "host"}, "cuda", ["deepspeed_launch_runtime is host: ranks run as processes"]),
        ({"deepspeed_launch_script": ""}, "cuda", ["No job is configured (deepspeed_launch_script is empty)"]),
    ],
)
def test_what_has_nothing_to_do_is_reported_once_before_any_change(
    changed: dict[str, Any], accelerator: str, reported: list[str]
) -> None:
    found = variables(**{"deepspeed_launch_script": "train.py", **changed})
    found["swarmspeed_cluster"] = {**found["swarmspeed_cluster"], "accelerator": accelerator}
    underlay, *lines = value("_preflight_reported", found)
    assert underlay.startswith("Training network ") and len(lines) == len(reported)
    assert all(line.startswith(start) for line, start in zip(lines, reported, strict=True))
    (task,) = [task for task in load("preflight/tasks/main.yml") if "ansible.builtin.debug" in task]
    assert task["run_once"] is True  # once, not for each of 64 nodes


@pytest.mark.parametrize(
    ("printed", "interface", "address"),
    [
        # Recorded: iproute2 6.1.0 on a node of the lab.
        (
            "58: eth0    inet 10.231.1.11/24 brd 10.231.1.255 scope global eth0\\       "
            "valid_lft forever preferred_lft forever",
            "eth0",
            "10.231.1.11",
        ),
        # Invented: an address of a cloud's machine.
        ("2: ens5    inet 172.31.16.9/32 scope global ens5", "ens5", "172.31.16.9"),
        ("", "", ""),
    ],
)
def test_what_the_entry_point_reads_of_it(tmp_path: Path, printed: str, interface: str, address: str) -> None:
    """Its own lines in a real shell, with a stand-in for ``ip`` that prints one answer."""
    template = (ROLES / "nccl_env/files/entrypoint").read_text(encoding="utf-8")
    function = template[template.index("locate() {") : template.index("render() {")]
    function = function.replace("@LOCATE@", "ip -4 -o address show")
    stand_in = f"ip() {{ printf '%s\\n' '{printed}'; }}\nsubnet=x\n"
    script = f'set -eu\n{stand_in}{function}locate && echo "$interface $address"\n'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    if interface:
        assert (done.returncode, done.stdout) == (0, f"{interface} {address}\n")
    else:
        assert done.returncode == 1
        assert done.stderr.startswith("swarmspeed: no interface of this container is in x; its networks are: ")


# By nohup, the signal would be ignored by all of them.
UNSHARE = ["env", "--default-signal=HUP", "unshare", "--mount"]


@pytest.mark.skipif(
    not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode != 0,
    reason="needs root, and mount namespaces",
)
def test_its_own_sshd_reads_new_keys_and_not_that_of_the_host(tmp_path: Path) -> None:
    """As in a container with the host's PIDs: a stand-in for the host's sshd, and one in a namespace of its own."""
    program = shutil.which("sleep")
    assert program is not None
    shutil.copy(program, tmp_path / "sshd")
    entry = ROLES / "nccl_env/files/entrypoint"
    with subprocess.Popen([tmp_path / "sshd", "600"]) as hosts:
        begun = "until grep -qx sshd /proc/$!/comm; do sleep 0.1; done"
        script = f"{tmp_path}/sshd 600 & {begun}; sh {entry} reload; wait $!; echo $?"
        try:
            done = subprocess.run(
                [*UNSHARE, "sh", "-c", script], capture_output=True, text=True, timeout=60, check=True
            )
            assert done.stdout == f"{128 + signal.SIGHUP}\n"
            assert hosts.poll() is None
        finally:
            hosts.kill()
