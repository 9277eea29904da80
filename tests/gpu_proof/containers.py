# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""GPUs in containers: the whole site.yml over two servers with an engine of their own, its results step by step.

``machines.py`` makes the servers and ``training_image.py`` the image, out of what the machine has. The controller is
the machine itself, inside the first server's network, and reaches both over ssh as a user's would.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.gpu_proof import machines, training_image
from tests.gpu_proof.commands import JOB, attempt, final_lines
from tests.gpu_proof.environment import ENVIRONMENT
from tests.gpu_proof.jobs import transformer_config
from tests.gpu_proof.machines import BROUGHT, MACHINES, PLACE, must
from tests.gpu_proof.parts import PASSED, Failed, Part, Proof, Skipped
from tests.gpu_proof.paths import CACHE, ROOT

SSH = PLACE / "ssh"
CODE = PLACE / "code"
WORKSPACE = "/srv/swarmspeed/swarmspeed/workspace"
"""Where the role workspace puts it by default."""
LOGS = CACHE / "containers"
"""What the playbooks printed, and the journals of the servers."""
LEFT_OUT = ("disk",)
"""Checks of preflight that a stand-in for a server cannot pass: its disk is the machine's."""
_RECAP = re.compile(r"^(\S+)\s*: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
_CUDA = (
    "import torch; torch.ones(1, device='cuda').sum().item(); "
    "print('cuda', torch.cuda.device_count(), torch.cuda.get_device_name(0))"
)


def parts(accelerator: str, held: Proof, slow: float) -> Iterator[Part]:
    """Yield the steps in order; after one that failed, those that need it are skipped."""
    on_gpu = accelerator == "cuda"

    def step(name: str, limit: float, run: Callable[[float], dict[str, Any]], after: str = "") -> Part:
        def run_it(seconds: float) -> dict[str, Any]:
            if after and held.state(f"containers {after}") != PASSED:
                raise Skipped(f"containers {after} did not pass")
            return run(seconds)

        return Part(f"containers {name}", limit * slow, run_it)

    yield step("probe", 60, _probe)
    yield step("servers", 90, partial(_servers, accelerator))
    yield step("image", 240, _image, "servers")
    site = partial(_site, accelerator)
    yield step("site.yml", 240, site, "image")
    if on_gpu:
        yield step("CDI description", 20, _described, "site.yml")
        yield step("CUDA in the training container", 40, _cuda, "site.yml")
        yield step("CUDA after three daemon-reloads", 40, _cuda_after_reloads, "site.yml")
        yield step("device nodes made again", 40, _nodes_again, "site.yml")
    yield step("job", 180, partial(_job, accelerator), "site.yml")
    yield step("status.yml", 60, partial(_status, accelerator, held.plain), "job")
    yield step("second site.yml", 60, partial(_second, accelerator), "site.yml")
    yield step("verify.yml", 120, partial(_verify, accelerator), "site.yml")
    if on_gpu:
        yield step("CUDA after a restart of the engine", 90, _cuda_after_engine, "site.yml")
    yield step("teardown.yml", 120, partial(_teardown, accelerator), "servers")


def _probe(limit: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "probe.json"
        must(["python3", str(JOB / "probe.py"), str(result)], limit)
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found


def _servers(accelerator: str, limit: float) -> dict[str, Any]:
    if os.geteuid():
        raise Skipped("servers of their own need root")
    if not (BROUGHT / "runc").exists():
        raise Skipped(f"{BROUGHT.relative_to(ROOT)} is not there (make gpu-proof-machine)")
    machines.remove()
    machines.unpack()
    training_image.unpack_extra()
    _keys()
    CODE.mkdir(exist_ok=True)
    for name in ("transformer.py", "model.py"):
        shutil.copy(JOB / name, CODE)
    devices = [path for path in map(Path, ("/dev/nvidia0", "/dev/nvidiactl")) if path.exists()]
    for machine in MACHINES:
        machines.start(machine, devices if accelerator == "cuda" else [])
        folder = machine.merged / "root/.ssh"
        folder.mkdir(mode=0o700, exist_ok=True)
        shutil.copy(SSH / "id_ed25519.pub", folder / "authorized_keys")
    for command in machines.joining(*(machine.pid for machine in MACHINES)):
        must(command)
    for machine in MACHINES:
        machines.wait(machine)
        machine.run(["ldconfig"])
    first = MACHINES[0]
    version = must(
        ["nsenter", "--all", f"--target={first.pid}", "docker", "version", "--format", "{{.Server.Version}}"]
    )
    return {"engine": version.strip(), "release": first.run("cat /etc/debian_version").stdout.strip()}


def _keys() -> None:
    """Make a key, and programs of ssh that find their libraries: the machine may have no ssh."""
    shutil.rmtree(SSH, ignore_errors=True)
    SSH.mkdir(mode=0o700, parents=True)
    for name in ("ssh", "scp", "sftp", "ssh-keygen"):
        program = SSH / name
        libraries = training_image.EXTRA / "usr/lib/x86_64-linux-gnu"
        found = shutil.which(name)
        where = found or f"{training_image.EXTRA}/usr/bin/{name}"
        given = "" if found else f"LD_LIBRARY_PATH={libraries} "
        program.write_text(f'#!/bin/sh\n{given}exec {where} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    must([str(SSH / "ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(SSH / "id_ed25519")])


def _image(limit: float) -> dict[str, Any]:
    sizes = training_image.make()
    training_image.load()
    ask = "import torch, deepspeed; print('torch', torch.__version__, 'DeepSpeed', deepspeed.__version__)"
    ran = MACHINES[0].run(["docker", "run", "--rm", "--network=none", training_image.NAME, "python3", "-c", ask], limit)
    if ran.returncode:
        raise Failed(f"the image has no torch: {machines.last(ran.stderr)}", {"megabytes": sizes})
    return {"megabytes": sizes, "has": machines.last(ran.stdout)}


def inventory(accelerator: str) -> dict[str, Any]:
    """Return the inventory of both servers, and the job."""
    options = f"-o UserKnownHostsFile={SSH}/known_hosts -o StrictHostKeyChecking=accept-new -o IdentitiesOnly=yes"
    hosts = {
        machine.name: {
            "ansible_host": machine.address,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(SSH / "id_ed25519"),
            "ansible_ssh_common_args": options,
            "ansible_ssh_executable": str(SSH / "ssh"),
            # sftp and scp start an ssh at a place of their own, where there may be none
            "ansible_ssh_transfer_method": "piped",
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        for machine in MACHINES
    }
    first, second = MACHINES
    config = {**transformer_config(2, False, False), "train_micro_batch_size_per_gpu": 8}
    return {
        "cluster": {
            "children": {
                "managers": {"hosts": {first.name: hosts[first.name]}},
                "workers": {"hosts": {second.name: hosts[second.name]}},
            },
            "vars": {
                "cluster_accelerator": accelerator,
                "cluster_underlay_subnet": f"{machines.NETWORK}.0/24",
                "preflight_skip": list(LEFT_OUT),
                "nvidia_driver_source": "keep",
                "docker_source": "keep",
                "training_image_source": "present",
                "training_image_name": training_image.NAME,
                "training_container_ulimits": [],
                "training_container_shm_size": "1g",
                "workspace_source": str(CODE),
                "deepspeed_launch_name": "transformer",
                "deepspeed_launch_script": "transformer.py",
                "deepspeed_launch_args": ["--result", "result.json", "--steps", "20"],
                "deepspeed_launch_ds_config_preset": "zero2",
                "deepspeed_launch_ds_config": config,
                "deepspeed_launch_environment": {"OMP_NUM_THREADS": "1"},
            },
        }
    }


def playbook(name: str, accelerator: str, limit: float, *options: str) -> str:
    """Run a playbook as a user does; return what it printed. Raises Failed."""
    code, printed = attempted(name, accelerator, limit, *options)
    if code:
        raise Failed(f"{name} ended with {code}: {final_lines(printed)}")
    return printed


def attempted(name: str, accelerator: str, limit: float, *options: str) -> tuple[int, str]:
    """Run a playbook; return its exit status and what it printed, which also stays beside the result."""
    hosts = CACHE / "containers.json"
    hosts.write_text(json.dumps(inventory(accelerator)), encoding="utf-8")
    ansible = [str(ENVIRONMENT / "bin" / "ansible-playbook"), name, "-i", str(hosts), *options]
    path = {"PATH": f"{SSH}:{ENVIRONMENT / 'bin'}:{os.environ.get('PATH', '')}"}
    inside = ["nsenter", "--net", f"--target={MACHINES[0].pid}"]
    code, printed = attempt([*inside, *ansible], limit, cwd=ROOT, extra=path)
    LOGS.mkdir(exist_ok=True)
    (LOGS / f"{name}{'.'.join(['', *options]).replace('/', '_')[:60]}.log").write_text(printed, encoding="utf-8")
    return code, printed


def recap(printed: str) -> dict[str, int]:
    """Return how many tasks changed something, by host. Raises Failed where no host is named."""
    found = {host: int(changed) for host, changed, *_ in _RECAP.findall(printed)}
    if not set(found) >= {machine.name for machine in MACHINES}:
        raise Failed("the recap lacks a server")
    return found


def _site(accelerator: str, limit: float) -> dict[str, Any]:
    return {"changed": recap(playbook("site.yml", accelerator, limit, "--skip-tags", "deepspeed_launch"))}


def _second(accelerator: str, limit: float) -> dict[str, Any]:
    changed = recap(playbook("site.yml", accelerator, limit))
    if any(changed.values()):
        raise Failed(f"the second run changed {changed}", {"changed": changed})
    return {"changed": changed}


def _job(accelerator: str, limit: float) -> dict[str, Any]:
    printed = playbook("site.yml", accelerator, limit)
    found = json.loads(MACHINES[0].run(["cat", f"{WORKSPACE}/result.json"]).stdout or "{}")
    if found.get("ranks") != len(MACHINES) or found["device"] != accelerator:
        raise Failed("not every server had a rank on its device", found)
    return {**found, "changed": recap(printed)}


def _status(accelerator: str, plain: Callable[[str], str], limit: float) -> dict[str, Any]:
    printed = playbook("status.yml", accelerator, limit)
    rows = (line.split() for line in printed.splitlines())
    row = next((row for row in rows if row[:1] == ["transformer"]), [])
    if row[1:2] != ["succeeded"]:
        raise Failed("status.yml does not show the job as succeeded", {"row": plain(" ".join(row))})
    return {"shown": plain(" ".join(row))}


def _verify(accelerator: str, limit: float) -> dict[str, Any]:
    printed = playbook("verify.yml", accelerator, limit)
    fabric = re.findall(r"Fabric: .*?(?=\n\S|\Z)", printed, re.DOTALL)
    return {"changed": recap(printed), "fabric": " ".join(fabric[-1].split())[:300] if fabric else ""}


def _teardown(accelerator: str, limit: float) -> dict[str, Any]:
    try:
        changed = recap(playbook("teardown.yml", accelerator, limit))
    finally:
        left = {m.name: m.run("docker ps -aq | wc -l").stdout.strip() for m in MACHINES}
    return {"changed": changed, "containers_left": left}


def _inside(command: str, limit: float = 60.0) -> dict[str, str]:
    """Run a command in the training container of every server; return the last line of each. Raises Failed."""
    found: dict[str, str] = {}
    for machine in MACHINES:
        name = machine.run("docker ps --format '{{.Names}}' | head -1").stdout.strip()
        ran = machine.run(["docker", "exec", name, "sh", "-ec", command], limit)
        if ran.returncode:
            raise Failed(f"{machine.name}: {machines.last(ran.stderr or ran.stdout)}", {"said": found})
        found[machine.name] = machines.last(ran.stdout)
    return found


def _described(limit: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for machine in MACHINES:
        listed = machine.run("grep -rlE 'nvidia.com/gpu' /etc/cdi /var/run/cdi 2>/dev/null | head -1").stdout.strip()
        text = machine.run(["cat", listed]).stdout if listed else ""
        nodes = sorted(set(re.findall(r"path: (/dev/nvidia\S+)", text)))
        found[machine.name] = {"nodes": nodes, "libraries": len(set(re.findall(r"containerPath: (\S+\.so\S*)", text)))}
        lacking = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"} - set(nodes)
        if lacking:
            raise Failed(f"{machine.name}: the CDI description lacks {', '.join(sorted(lacking))}", found)
    return found


def _cuda(limit: float) -> dict[str, Any]:
    return {"said": _inside(f"python3 -c {shlex.quote(_CUDA)}", limit)}


def _cuda_after_reloads(limit: float) -> dict[str, Any]:
    for machine in MACHINES:
        for dummy in range(3):
            machine.run(["systemctl", "daemon-reload"])
    return _cuda(limit)


def _nodes_again(limit: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for machine in MACHINES:
        machine.run("rm -f /dev/nvidia-uvm /dev/nvidia-uvm-tools")
        ran = machine.run(
            "systemctl restart swarmspeed-nvidia-devices; ls /dev/nvidia-uvm /dev/nvidia-uvm-tools", limit
        )
        if ran.returncode:
            raise Failed(f"{machine.name}: {machines.last(ran.stderr)}")
        found[machine.name] = ran.stdout.split()
    return {"nodes": found}


def _cuda_after_engine(limit: float) -> dict[str, Any]:
    for machine in MACHINES:
        ran = machine.run(["systemctl", "restart", "docker"], limit)
        if ran.returncode:
            raise Failed(f"{machine.name}: {machines.last(ran.stderr)}")
    return _cuda(limit)


def clean() -> None:
    """Take the servers away, and what they were made of."""
    if PLACE.exists() and not os.geteuid():
        _keep_journals()
        machines.remove()
        # not where something is mounted still, which would be emptied too
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
        if not any(place.startswith(f"{PLACE}/") for place in mounted):
            shutil.rmtree(PLACE, ignore_errors=True)


def _keep_journals() -> None:
    """Keep what the services and the descriptions say, for whoever looks for a cause."""
    LOGS.mkdir(parents=True, exist_ok=True)
    for machine in MACHINES:
        with contextlib.suppress(Failed):
            command = (
                "journalctl --no-pager -n 300 -u docker -u swarmspeed-nvidia-devices; cat /var/run/cdi/* /etc/cdi/*"
            )
            (LOGS / f"{machine.name}.log").write_text(
                machine.run(f"{{ {command}; }} 2>&1 || true").stdout, encoding="utf-8"
            )
