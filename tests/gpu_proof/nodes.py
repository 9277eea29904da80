# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Two nodes on one machine, a **stand-in** for two servers, and jobs over both, the examples among them.

Each node is a network namespace with a host name of its own, and a pair of virtual interfaces joins them. Modules, and
with them the ranks, run inside. NCCL takes ranks with other host names for ranks of other hosts: what they exchange
goes over TCP, and both may use the one GPU, which it refuses on one host. Files and processes are not kept apart, and
how fast it is says nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.gpu_proof.commands import run
from tests.gpu_proof.environment import ENVIRONMENT
from tests.gpu_proof.jobs import PLAYBOOK, Cluster, Node, of_ranks, site
from tests.gpu_proof.parts import Failed, Skipped
from tests.gpu_proof.paths import CACHE, ROOT

FOLDER = CACHE / "nodes"
NAMES = ("gpu1", "gpu2")
NETWORK = "198.18.77"
"""Addresses for tests of networks (RFC 2544), which no other host of the machine should have."""
PLACE = Path("/run/netns")


@dataclass(frozen=True)
class Example:
    """One of examples/. ``needs``: packages beside torch and DeepSpeed; ``says``: what its log must have, as a group.

    ``variables`` and ``environment``, that of the ranks, take the places of the example's own; ``on_gpu``: arguments
    that its script needs there besides.
    """

    needs: tuple[str, ...]
    says: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    on_gpu: tuple[str, ...] = ()


_OVER_BOTH = {"gpu_slots": 1, "deepspeed_launch_include": ""}
EXAMPLES = {
    "digits": Example(("sklearn",), r"digits: (accuracy on held-out digits [\d.]+, target [\d.]+ reached)"),
    # the machine may lack numactl, which binds the ranks in the lab
    "cifar10": Example(
        ("tensorboard",),
        r"cifar10: (accuracy on held-out pictures [\d.]+, target [\d.]+ reached)",
        {"deepspeed_launch_launcher_args": []},
    ),
    "gdgpt_pipeline": Example((), r"gdgpt: (held-out loss [\d.]+ -> [\d.]+, target [\d.]+ reached)"),
    "deepspeed_chat_sft": Example(
        ("transformers", "peft"),
        r"sft: (perplexity [\d.]+ -> [\d.]+, target [\d.]+ reached)",
        {"deepspeed_launch_vscode": False},
    ),
    "trainer_full": Example(
        ("transformers", "accelerate"), r"trainer_full: (loss [\d.]+ -> [\d.]+, step \d+)", _OVER_BOTH
    ),
    "lightning_ddp": Example(
        ("lightning", "jsonargparse"),
        r"lightning_ddp: (accuracy on held-out \w+ [\d.]+, target [\d.]+ reached)",
        {"deepspeed_launch_args": ["fit", "-c", "fit.yaml", "--trainer.num_nodes=2"]},
        {"LOCAL_RANK": "0"},
        ("--trainer.accelerator=gpu", "--trainer.strategy.init_args.process_group_backend=nccl"),
    ),
    "torchrun_single": Example(
        ("sklearn",), r"torchrun_single: (accuracy on held-out digits [\d.]+, target [\d.]+ reached)", _OVER_BOTH
    ),
}
"""With the values for the lab, vars.yml, and these: models and data are made on the spot."""


def both() -> Cluster:
    """Return the cluster of both nodes."""
    nodes = tuple(Node(name, str(FOLDER / name / "python3"), FOLDER / name / "root") for name in NAMES)
    return Cluster(nodes, f"{NETWORK}.0/24")


def with_both(job: Callable[[Cluster], dict[str, Any]]) -> dict[str, Any]:
    """Make the nodes, run a job over them, take them away. Raises Skipped where the machine has no such namespaces."""
    with _made():
        return job(both())


def example(name: str, accelerator: str, limit: float, cluster: Cluster) -> dict[str, Any]:
    """Run one of examples/; return the line in which it says what it reached."""
    chosen = EXAMPLES[name]
    missing = [package for package in chosen.needs if not installed(package)]
    if missing:
        raise Skipped(f"there is no {' and no '.join(missing)} beside torch on this machine")
    # in place of the example's own, which are for the lab's CPUs
    environment = {**of_ranks(), "HF_HUB_OFFLINE": "1", **chosen.environment}
    values = {
        "deepspeed_launch_rerun": True,
        # no image is built, so its packages are not checked
        "training_image_python_packages": [],
        "training_image_wheelhouse": "",
        **chosen.variables,
        "deepspeed_launch_environment": environment,
    }
    on_gpu = accelerator == "cuda"
    if on_gpu and chosen.on_gpu:
        values["deepspeed_launch_args"] = [*chosen.variables["deepspeed_launch_args"], *chosen.on_gpu]
    command = site(values, accelerator, cluster, [ROOT / "examples" / name / "vars.yml"])
    found = {"reached": read_reached(run(command, limit, **PLAYBOOK), chosen.says)}
    if on_gpu and not used_nccl(cluster.nodes[0].root / "host_jobs" / name):
        raise Failed("the job's logs do not show that its ranks used NCCL", found)
    return found


def used_nccl(job: Path) -> bool:
    """Return whether a log of the job has the line of the examples that names the backend."""
    logs = (path.read_text(encoding="utf-8", errors="replace") for path in job.rglob("*.log"))
    return any("backend nccl" in log for log in logs)


def read_reached(printed: str, says: str) -> str:
    """Return the last line that says so. Raises Failed where there is none."""
    found = re.findall(says, printed)
    if not found:
        raise Failed(f"the log has no line such as {says}")
    return str(found[-1])


def installed(package: str) -> bool:
    """Return whether the environment, or what is beside torch, has a package."""
    program = str(ENVIRONMENT / "bin" / "python3")
    question = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return not subprocess.run([program, "-c", question], capture_output=True, check=False, timeout=60).returncode


@contextmanager
def _made() -> Iterator[None]:
    if os.geteuid() != 0:
        raise Skipped("network namespaces need root")
    _remove()
    try:
        for command in commands():
            done = _done(command)
            if done.returncode:
                raise Skipped(f"{shlex.join(command)}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
        for name in NAMES:
            _write_python(name)
        yield
    finally:
        _remove()


def commands() -> Iterator[list[str]]:
    """Yield what makes both namespaces and joins them."""
    for name in NAMES:
        yield ["ip", "netns", "add", _netns(name)]
    first, second = (_netns(name) for name in NAMES)
    yield ["ip", "link", "add", "eth0", "netns", first, "type", "veth", "peer", "name", "eth0", "netns", second]
    for number, name in enumerate(NAMES, 1):
        inside = ["ip", "-n", _netns(name)]
        yield [*inside, "addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0"]
        for interface in ("lo", "eth0"):
            yield [*inside, "link", "set", interface, "up"]


def _write_python(name: str) -> None:
    """Write the program that modules of a node run with: the environment's Python, inside, under the node's name."""
    path = FOLDER / name / "python3"
    path.parent.mkdir(parents=True, exist_ok=True)
    inside = ["nsenter", f"--net={PLACE / _netns(name)}", "unshare", "--uts", "sh", "-c"]
    script = f'hostname {name} && exec {shlex.quote(str(ENVIRONMENT / "bin" / "python3"))} "$@"'
    path.write_text(f'#!/bin/sh\nexec {shlex.join([*inside, script])} {name} "$@"\n', encoding="utf-8")
    path.chmod(0o755)


def _remove() -> None:
    """End what is left in the namespaces and take them away, and their interfaces with them, if there are any."""
    for name in NAMES:
        if (PLACE / _netns(name)).exists():
            pids = _done(["ip", "netns", "pids", _netns(name)]).stdout.split()
            for pid in map(int, pids):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            _done(["ip", "netns", "del", _netns(name)])


def _done(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)


def _netns(name: str) -> str:
    return f"swarmspeed-proof-{name}"
