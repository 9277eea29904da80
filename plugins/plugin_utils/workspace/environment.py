# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A Python environment with PyTorch and DeepSpeed on a host: what goes in, and the commands that make it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils.hostfile import filters
from ..core.values import fingerprint
from ..plan.changes import Inputs
from ..plan.controller import NAMES
from ..training_image.operators import needed_operators, operator_names
from .gathered import record_path

INCOMPLETE = "incomplete"
"""What the record says before the environment is complete."""
_TOOLS = (
    *("setuptools", "wheel", "ninja", "packaging", "numpy", "psutil", "py-cpuinfo", "hjson", "msgpack", "einops"),
    *("pydantic", "tqdm"),
)
"""What DeepSpeed is built with."""
CUDA_SCRIPT = "role:training_image/files/cuda_home.py"
"""Puts a CUDA_HOME together from wheels, in an image and here."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Environment:
    """What is configured for the environment of a host; ``wheels`` are names of files in the ``wheelhouse``.

    ``compiler`` are requirements that bring nvcc, ``script`` is what makes a CUDA_HOME of them, and ``capabilities``
    what it compiles for.
    """

    path: str
    root: str
    python: str
    torch: str
    index: str
    deepspeed: str
    operators: Sequence[str]
    packages: Sequence[str]
    accelerator: str
    wheelhouse: str = ""
    wheels: Sequence[str] = ()
    compiler: Sequence[str] = ()
    script: str = ""
    capabilities: Sequence[str] = ()

    @property
    def cuda_home(self) -> str:
        return f"{self.path}/cuda" if self.compiler else ""

    @property
    def fingerprint(self) -> str:
        """Return a hash of all that goes in: a change makes the environment again, and none leaves it alone."""
        return fingerprint(
            {
                "python": self.python,
                "torch": self.torch,
                "deepspeed": self.deepspeed,
                "ops": self.operators,
                "packages": self.packages,
                "accelerator": self.accelerator,
                "from": self.wheels or self.index,
                **({"compiler": self.compiler, "script": self.script} if self.compiler else {}),
            }
        )

    @property
    def content(self) -> str:
        """Return in a few words what goes in."""
        return f"{self.torch}, deepspeed=={self.deepspeed}"

    @property
    def interpreter(self) -> str:
        return f"{self.path}/bin/python"

    @property
    def wheels_here(self) -> str:
        """Return where the wheels lie on the node while they are installed."""
        return f"{self.root}/wheelhouse" if self.wheelhouse else ""

    def pip(self, *arguments: str) -> list[str]:
        found = ["--no-index", "--find-links", self.wheels_here] if self.wheelhouse else []
        quiet = ["--disable-pip-version-check", "--no-cache-dir", "--quiet"]
        return [self.interpreter, "-m", "pip", "install", *quiet, *found, *arguments]

    def task_input(self, cpus: Any) -> dict[str, Any]:
        """Return what the role's tasks read where it is made; ``cpus`` is the number of the host's processors."""
        index = ["--index-url", self.index] if self.index and not self.wheelhouse else []
        release = f"deepspeed=={self.deepspeed}"
        return {
            "path": self.path,
            "record": record_path(self.path),
            "recorded": self.fingerprint,
            "create": [self.python, "-m", "venv", self.path],
            "wheelhouse": self.wheelhouse,
            "wheels": self.wheels_here,
            "root": self.root,
            "torch": self.pip(*index, *self.torch.split()),
            "tools": self.pip(*_TOOLS),
            "compiler": self._compiler(),
            # Its operators are made for the processor and the Python of the node they are built on.
            "deepspeed": self.pip("--no-deps", "--no-build-isolation", release),
            "variables": self._variables(cpus),
            "rest": self.pip(release, *self.torch.split(), *self.packages),
        }

    def _compiler(self) -> dict[str, Any]:
        """Return how CUDA's compiler comes into the environment; empty where none does."""
        if not self.compiler:
            return {}
        script = f"{self.path}/cuda_home.py"
        wheels = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.wheels_here} if self.wheelhouse else {}
        return {
            "script": script,
            "content": f"{self.script}\n",
            # Isolated: the folder of the script, which is the environment's, is no place to import from.
            "argv": [self.interpreter, "-I", script, self.cuda_home, *self.compiler],
            "variables": {"PATH": f"{self.path}/bin:{_PATH}", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **wheels},
        }

    def _variables(self, cpus: Any) -> dict[str, str]:
        """Return the environment variables with which DeepSpeed is built."""
        capabilities = ";".join(self.capabilities)
        return {
            **{f"DS_BUILD_{name.upper()}": "1" for name in self.operators},
            "MAX_JOBS": str(cpus),
            "PATH": f"{self.path}/bin:{_PATH}",
            "DS_ACCELERATOR": self.accelerator,
            **({"CUDA_HOME": self.cuda_home, "TORCH_CUDA_ARCH_LIST": capabilities} if self.compiler else {}),
            # Without a GPU in sight its setup does not ask for nvcc, which is needed only where one is compiled.
            **({} if self.operators else {"CUDA_VISIBLE_DEVICES": ""}),
        }


def environment(role_vars: Mapping[str, Any], inputs: Inputs) -> Environment:
    """Return what is configured for a host's environment, with what the cluster says."""
    versions = inputs.cluster.get("versions") or {}
    accelerator = str(inputs.cluster["accelerator"])
    wheelhouse = str(role_vars["workspace_python_wheelhouse"] or "")
    names = list(role_vars["workspace_python_deepspeed_ops"] or [])
    nvcc = compiler(role_vars, inputs.cluster)
    if not names and (accelerator == "cpu" or nvcc):
        # Without nvcc of PyTorch's release nothing is compiled on GPUs beforehand unless it is named.
        names = operator_names(role_vars["training_image_deepspeed_ops"]) or needed_operators(
            accelerator,
            str(role_vars["deepspeed_launch_ds_config_preset"] or ""),
            role_vars["deepspeed_launch_ds_config"] or {},
        )
    return Environment(
        path=str(role_vars["workspace_python_environment"]),
        root=str(role_vars["cluster_root"]),
        python=str(role_vars["workspace_python"]),
        torch=str(role_vars["workspace_python_torch"] or versions.get("torch") or ""),
        index=str(role_vars["workspace_python_torch_index"] or versions.get("torch_index") or ""),
        deepspeed=str(role_vars["workspace_python_deepspeed_version"]),
        operators=names,
        packages=list(role_vars["workspace_python_packages"] or []),
        accelerator=accelerator,
        wheelhouse=wheelhouse,
        wheels=inputs.files.get(f"{NAMES}{wheelhouse}", "").splitlines() if wheelhouse else [],
        compiler=nvcc,
        script=inputs.files.get(CUDA_SCRIPT, "").rstrip() if nvcc else "",
        capabilities=list(versions.get("capabilities") or []) if nvcc else [],
    )


def compiler(role_vars: Mapping[str, Any], cluster: Mapping[str, Any]) -> list[str]:
    """Return the requirements that bring nvcc of the CUDA that PyTorch has: none on CPUs, nor where no wheel has it.

    They were chosen for the PyTorch of the cluster, so none go with another one or another index that the host names.
    """
    versions = cluster.get("versions") or {}
    for name in ("torch", "torch_index"):
        if str(role_vars[f"workspace_python_{name}"] or "") not in ("", str(versions.get(name) or "")):
            return []
    if cluster.get("accelerator") != "cuda" or not role_vars["workspace_python_compiler"]:
        return []
    return [str(one) for one in versions.get("compiler") or []]


def cuda_home(role_vars: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    """Return where CUDA's compiler is in the environment, for ranks; empty where it is not."""
    path = str(role_vars["workspace_python_environment"] or "")
    return f"{path}/cuda" if path and compiler(role_vars, cluster) else ""


def nodes(role_vars: Mapping[str, Any], cluster: Mapping[str, Any]) -> list[str]:
    """Return the nodes of the job. Hosts that it leaves out need no environment. Raises ``HostsError``."""
    include, exclude = role_vars["deepspeed_launch_include"], role_vars["deepspeed_launch_exclude"]
    chosen = filters.plan(cluster["slots"], include or None, exclude or None).chosen
    return [host.name for host in chosen]
