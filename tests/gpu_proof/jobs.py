# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Jobs of a proof, launched as users launch them: site.yml with this machine as the only host, without Docker.

Only the roles that a job needs there are asked for by their tags; preflight runs always. What it would refuse on a
machine that is a container itself is left out by name, and the names go into the result.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.gpu_proof.commands import EXTENSIONS, JOB, attempt, read, run
from tests.gpu_proof.environment import ENVIRONMENT
from tests.gpu_proof.parts import Failed, Skipped
from tests.gpu_proof.paths import CACHE, ROOT

CLUSTER = CACHE / "cluster"
TAGS = "nccl_env,workspace,deepspeed_launch"
LEFT_OUT = ("systemd", "distribution", "disk", "ansible_version")
"""Checks of preflight: machines with a GPU that are containers have no systemd, and any distribution will do here."""
PLAYBOOK: dict[str, Any] = {"cwd": ROOT, "extra": {"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}}
"""How playbooks run: from this checkout, their results as one line."""
_EPOCH = re.compile(r"digits: epoch (\d+)/\d+ loss ([\d.]+) accuracy ([\d.]+)")


@dataclass(frozen=True)
class Node:
    """A host of the inventory: its name, the Python that its modules run with, and where its files are."""

    name: str
    python: str
    root: Path


@dataclass(frozen=True)
class Cluster:
    """Nodes, and the network that they find one another by."""

    nodes: tuple[Node, ...]
    subnet: str


# the machine may have no other network
ALONE = Cluster((Node("gpu", "{{ ansible_playbook_python }}", CLUSTER),), "127.0.0.0/8")
"""This machine itself."""


def inventory(accelerator: str, cluster: Cluster = ALONE) -> dict[str, Any]:
    """Return the inventory of a cluster on this machine; its first node is the manager."""
    hosts = {
        node.name: {
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": node.python,
            "cluster_root": str(node.root),
        }
        for node in cluster.nodes
    }
    manager = cluster.nodes[0].name
    return {
        "cluster": {
            "children": {
                "managers": {"hosts": {manager: hosts.pop(manager)}},
                "workers": {"hosts": hosts},
            },
            "vars": {
                "cluster_accelerator": accelerator,
                "cluster_underlay_subnet": cluster.subnet,
                "preflight_skip": list(LEFT_OUT),
                "nvidia_driver_source": "keep",
                "deepspeed_launch_runtime": "host",
                "deepspeed_launch_path": str(ENVIRONMENT / "bin"),
                "deepspeed_launch_logs_dir": str(CACHE / "logs"),
                "deepspeed_launch_restarts": 0,
                "deepspeed_launch_environment": of_ranks(),
            },
        }
    }


def of_ranks() -> dict[str, str]:
    """Return the environment variables that every rank gets."""
    return {"TORCH_EXTENSIONS_DIR": str(EXTENSIONS), **handed_on(os.environ)}


def handed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what ranks need of the caller's environment: where the CUDA toolkit and the driver's libraries are."""
    return {name: environment[name] for name in ("CUDA_HOME", "LD_LIBRARY_PATH") if environment.get(name)}


def optimizer(fused: bool, **parameters: float) -> dict[str, Any]:
    """Return AdamW, DeepSpeed's compiled one or torch's."""
    return {"type": "AdamW", "params": {**parameters, **({} if fused else {"torch_adam": True})}}


def transformer_config(stage: int, fused: bool, offload: bool) -> dict[str, Any]:
    """Return what the transformer trains with."""
    zero: dict[str, Any] = {"stage": stage}
    if offload:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": False}
    return {
        "train_micro_batch_size_per_gpu": 32,
        "gradient_accumulation_steps": 1,
        "steps_per_print": 1000,
        "bf16": {"enabled": True},
        "optimizer": optimizer(fused or offload, lr=2e-3),
        "zero_optimization": zero,
    }


@dataclass(frozen=True)
class Job:
    """What is launched. ``variables`` are further ones of the playbook."""

    name: str
    script: Path
    arguments: Sequence[str] = ()
    config: dict[str, Any] | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)


def launch(job: Job, accelerator: str, limit: float, cluster: Cluster = ALONE) -> str:
    """Launch one job and follow it to its end; return what the playbook printed. Raises Failed."""
    return run(prepared(job, accelerator, cluster), limit, **PLAYBOOK)


def attempted(job: Job, accelerator: str, limit: float) -> tuple[int, str]:
    """Launch one job that is to fail; return the playbook's exit status and what it printed."""
    return attempt(prepared(job, accelerator), limit, **PLAYBOOK)


def prepared(job: Job, accelerator: str, cluster: Cluster = ALONE) -> list[str]:
    """Write the scripts and the variables of a job; return the command that launches it."""
    for node in cluster.nodes:
        workspace = node.root / "workspace"
        workspace.mkdir(parents=True, exist_ok=True)
        for source in (*JOB.glob("*.py"), job.script):
            shutil.copy(source, workspace)
    given = {**job_variables(job.name, job.script.name, job.arguments, job.config), **job.variables}
    return site(given, accelerator, cluster)


def site(values: Mapping[str, Any], accelerator: str, cluster: Cluster, before: Sequence[Path] = ()) -> list[str]:
    """Write the variables of a job; return the command that launches it. ``before``: files with what they override."""
    path = CACHE / "job.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    options = [word for file in (*before, path) for word in ("-e", f"@{file}")]
    return [*playbook("site.yml", accelerator, cluster), *options, "--tags", TAGS]


def playbook(name: str, accelerator: str, cluster: Cluster = ALONE) -> list[str]:
    """Return the command that runs one of our playbooks on a cluster of this machine."""
    hosts = CACHE / "inventory.json"
    hosts.write_text(json.dumps(inventory(accelerator, cluster)), encoding="utf-8")
    return [*as_root(), str(ENVIRONMENT / "bin" / "ansible-playbook"), name, "-i", str(hosts)]


def as_root() -> list[str]:
    """Return what a command begins with, as the roles write files that are root's: nothing for root itself.

    Anyone else is root in a user namespace, where the files are still one's own; root's home, which roles look into, is
    empty there if it cannot be read. Raises Skipped where there is no such namespace.
    """
    if os.geteuid() == 0:
        return []
    inside = '[ -x /root ] || mount -t tmpfs none /root; exec "$@"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", inside, "sh"]
    program = shutil.which(command[0])
    if program is None or subprocess.run([*command, "true"], capture_output=True, check=False, timeout=30).returncode:
        raise Skipped("you are not root, and this machine allows no user namespaces (unshare --map-root-user)")
    return command


def job_variables(name: str, script: str, arguments: Sequence[str], config: dict[str, Any] | None) -> dict[str, Any]:
    """Return a job's variables; without a configuration the script gets none."""
    found: dict[str, Any] = {
        "deepspeed_launch_name": name,
        "deepspeed_launch_script": script,
        "deepspeed_launch_args": list(arguments),
        "deepspeed_launch_rerun": True,
    }
    if config is None:
        return {**found, "deepspeed_launch_config_argument": ""}
    preset = f"zero{config['zero_optimization']['stage']}" if "zero_optimization" in config else "zero2"
    return {**found, "deepspeed_launch_ds_config_preset": preset, "deepspeed_launch_ds_config": config}


def digits(accelerator: str, limit: float) -> dict[str, Any]:
    """Run examples/digits: 12 epochs to 95 %."""
    config = {
        "train_micro_batch_size_per_gpu": 16,
        "gradient_accumulation_steps": 1,
        "steps_per_print": 1000,
        "optimizer": optimizer(False, lr=2e-3, weight_decay=0.01),
    }
    arguments = ["--epochs", "12", "--target", "0.95", "--checkpoints", ""]
    job = Job("digits", ROOT / "examples" / "digits" / "train.py", arguments, config)
    return read_digits(launch(job, accelerator, limit))


def read_digits(printed: str) -> dict[str, Any]:
    """Return first and last loss and the accuracy. Raises Failed where the loss did not fall."""
    epochs = {int(number): (float(loss), float(accuracy)) for number, loss, accuracy in _EPOCH.findall(printed)}
    if len(epochs) < 2:
        raise Failed("the log shows fewer than two epochs")
    first, last = epochs[min(epochs)], epochs[max(epochs)]
    found = {"losses": [first[0], last[0]], "accuracy": last[1]}
    if last[0] >= first[0]:
        raise Failed(f"the loss did not fall: {first[0]} after the first epoch, {last[0]} after the last", found)
    return found


def transformer(
    stage: int, accelerator: str, limit: float, *, fused: bool, offload: bool = False, cluster: Cluster = ALONE
) -> dict[str, Any]:
    """Train the transformer; the script itself fails where its loss did not halve."""
    name = f"transformer-zero{stage}{'-offload' if offload else ''}"
    config = transformer_config(stage, fused, offload)
    return _with_result(Job(name, JOB / "transformer.py", config=config), accelerator, limit, cluster)


def collective(accelerator: str, limit: float, cluster: Cluster = ALONE) -> dict[str, Any]:
    """Run one all-reduce over all GPUs."""
    found = _with_result(Job("collective", JOB / "collective.py"), accelerator, limit, cluster)
    if accelerator == "cuda" and not found["nccl_loaded"]:
        raise Failed("no libnccl is in the process, though the backend is nccl", found)
    return found


def _with_result(job: Job, accelerator: str, limit: float, cluster: Cluster) -> dict[str, Any]:
    result = CACHE / f"{job.name}.json"
    result.unlink(missing_ok=True)
    launch(replace(job, arguments=["--result", str(result)]), accelerator, limit, cluster)
    return read(result)
