# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What an image of one's own needs, a shell script that looks for it, and what is missing in words. Pure.

The script runs in a container of the image, without network, before the first training container is made of it.
docs/own_image.md has the same table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

END = "swarmspeed: checked everything"
"""The script's last line: without it what is missing is not known."""
_LACKS = "swarmspeed lacks "
_SHOWN = 300
"""Characters of an error of Docker's that are shown."""
_CORES = "--bind_cores_to_rank"


@dataclass(frozen=True)
class Need:
    """``test`` succeeds in a shell where it is there. ``package`` is Debian's; where it is empty, ``remedy`` is set."""

    name: str
    test: str
    purpose: str
    package: str = ""
    remedy: str = ""
    uses: str = "always"


def _program(name: str, purpose: str, package: str = "", *, remedy: str = "", uses: str = "always") -> Need:
    return Need(name, f"command -v {name}", purpose, package, remedy, uses)


NEEDS = (
    Need(
        "root as its user",
        '[ "$(id -u)" = 0 ]',
        "sshd and the mounts are root's",
        remedy="end the Dockerfile with USER root",
    ),
    _program("sed", "writes the settings of each node", "sed"),
    _program("grep", "writes the settings of each node", "grep"),
    Need("env of GNU coreutils", "env -0", "hands the environment on to logins over ssh", "coreutils"),
    Need("df of GNU coreutils", "df -B1 --output=size /", "measures shared memory", "coreutils"),
    _program("ip", "finds the interface of the training network", "iproute2"),
    _program("setsid", "resumes jobs when the container restarts", "util-linux"),
    _program("pkill", "has sshd read new keys", "procps"),
    _program("ssh", "tries whether the container answers", "openssh-client"),
    Need("/usr/sbin/sshd", "[ -x /usr/sbin/sshd ]", "is the container's process", "openssh-server"),
    Need(
        "an account of root that is not locked",
        "! grep -q '^root:!' /etc/shadow",
        "sshd does not admit a locked account, not even with a key",
        remedy="RUN usermod --password '*' root",
    ),
    Need(
        "Python 3.8 or later as python3",
        "python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))'",
        "starts, follows and stops jobs",
        "python3",
    ),
    Need(
        "PyTorch",
        "python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(\"torch\") is None)'",
        "the job trains with it",
        remedy="install torch for the python3 that is first on PATH (ENV PATH=…)",
        uses="torch",
    ),
    _program(
        "deepspeed",
        "starts the ranks (deepspeed_launch_launcher: deepspeed)",
        remedy="pip install deepspeed, in an environment whose bin is on PATH (ENV PATH=…)",
        uses="deepspeed",
    ),
    _program(
        "torchrun",
        "starts the ranks (deepspeed_launch_launcher: torchrun)",
        remedy="pip install torch, in an environment whose bin is on PATH (ENV PATH=…)",
        uses="torchrun",
    ),
    _program("pdsh", "reaches the other nodes (deepspeed_launch_transport: pdsh)", "pdsh", uses="pdsh"),
    Need(
        "libibverbs",
        "python3 -c 'import ctypes; ctypes.CDLL(\"libibverbs.so.1\")'",
        "NCCL opens it for the HCAs that nccl_env chose, and falls back to sockets without an error where it is "
        "missing",
        "libibverbs1",
        uses="rdma",
    ),
    Need(
        "drivers of libibverbs",
        "ls /etc/libibverbs.d/*.driver",
        "libibverbs finds no HCA without them",
        "ibverbs-providers",
        uses="rdma",
    ),
    _program("numactl", f"binds ranks to cores ({_CORES})", "numactl", uses="cores"),
)


def uses_of(job: Mapping[str, Any]) -> list[str]:
    """Return which needs apply to a job. Without a script none is started, and what starts one is not required.

    ``rdma`` of a job: whether the role nccl_env names HCAs to NCCL.
    """
    found = ["always"]
    if job.get("script"):
        launcher = str(job.get("launcher") or "")
        found += ["torch", launcher] if launcher in ("deepspeed", "torchrun") else []
        found += ["pdsh"] if job.get("transport") == "pdsh" else []
        found += ["cores"] if _CORES in (job.get("launcher_args") or []) else []
    return [*found, "rdma"] if job.get("rdma") else found


def needs_of(job: Mapping[str, Any]) -> list[Need]:
    """Return what a job's image needs."""
    uses = uses_of(job)
    return [need for need in NEEDS if need.uses in uses]


def check_script(job: Mapping[str, Any]) -> str:
    """Return a script for ``sh -c`` that prints a line for each need that is missing."""
    lines = [
        f"{{ {need.test}; }} >/dev/null 2>&1 || echo '{_LACKS}{number}'" for number, need in enumerate(needs_of(job))
    ]
    return "\n".join([*lines, f"echo '{END}'"])


def check_problem(job: Mapping[str, Any], run: Mapping[str, Any], image: str, node: str) -> str:
    """Return what the image lacks, in one sentence with its remedy; empty where nothing is missing.

    ``run`` is what Docker answered, with ``rc``, ``stdout`` and ``stderr``.
    """
    stdout = str(run.get("stdout") or "")
    if END not in stdout.splitlines():
        reported = " ".join(str(run.get("stderr") or stdout or f"exit status {run.get('rc')}").split())
        if re.search(r"exec: \"?sh\"?: executable file not found", reported):
            return (
                f"{node}: the image {image} has no shell (sh), which starts sshd in it. "
                "Remedy: begin its Dockerfile with a Debian or Ubuntu image."
            )
        return (
            f"{node}: the image {image} was not checked, because no container of it could run: "
            f"{reported[-_SHOWN:].rstrip('. ')}. Remedy: fix that; docker run --rm --entrypoint sh {image} -c true "
            "must work there."
        )
    wanted = needs_of(job)
    numbers = [int(number) for number in re.findall(rf"^{_LACKS}(\d+)$", stdout, re.MULTILINE)]
    missing = [wanted[number] for number in numbers if number < len(wanted)]
    if not missing:
        return ""
    shown = "; ".join(f"{need.name} ({need.purpose})" for need in missing)
    return f"{node}: the image {image} lacks {shown}. Remedy: {_remedy(missing)} (docs/own_image.md)."


def _remedy(missing: Sequence[Need]) -> str:
    packages = list(dict.fromkeys(need.package for need in missing if need.package))
    parts = [f"apt-get install {' '.join(packages)}, in its Dockerfile"] if packages else []
    parts += [need.remedy for need in missing if need.remedy]
    return "; ".join(dict.fromkeys(parts))
