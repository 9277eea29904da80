# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The files in which a node's ranks find the settings of NCCL and Gloo, and the container's entry point. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..plan.container import container_name
from ..plan.managed_file import ManagedFile
from .ranges import parse_release
from .settings import MARK, nccl_plan

ENTRY_POINT = "role:nccl_env/files/entrypoint"
"""The container's entry point, which comes with the role; ``@SUBNET@``, ``@LOCATE@`` and ``@SSH_PORT@`` are filled."""
OVERLAY = "overlay"
_OF_CONTAINERS = (
    "# Kept by swarmspeed.cluster, role nccl_env. A file and not the environment: DeepSpeed copies rank 0's NCCL_* to "
    "every node."
)
_OF_THE_HOST = "# Kept by swarmspeed.cluster, role nccl_env. Ranks find it by NCCL_CONF_FILE."


@dataclass(frozen=True)
class Request:
    """What is configured for a host, and what the cluster says of it.

    ``runtime_host``: ranks are processes of the host itself. ``interface`` is the host's in the underlay; ``subnet``
    that of the training network. ``image`` is the name of the training image, empty where it is not known.
    ``cuda_home`` is where the host's Python environment has nvcc, if it has. ``expected`` is the release of NCCL that
    the PyTorch of the row of versions brings, which ranks have as soon as what this collection builds is there.
    """

    cluster: str
    host: str
    root: str
    runtime_host: bool
    network_mode: str
    network: str
    ssh_port: int
    subnet: str
    interface: str
    rdma: Mapping[str, Any]
    accelerator: str
    image: str
    version: str = ""
    debug: str = ""
    timeout: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    cuda_home: str = ""
    expected: str = ""

    @property
    def container(self) -> str:
        return container_name(self.cluster, self.host)

    @property
    def etc(self) -> str:
        return f"{self.root}/etc"

    @property
    def locate(self) -> str:
        """The command that finds the training network's interface inside the container.

        By address and not by route: it may be a /32, or in a part of the subnet that was requested.
        """
        device = "" if self.network_mode == OVERLAY else f"dev {self.interface} "
        return f"ip -4 -o address show {device}scope global to {self.subnet}"


def setting_plan(requested: Request, fabric: Mapping[str, Any], release: str, network_mode: str = "") -> dict[str, Any]:
    """Return NCCL's ``settings`` and the ``lines`` of its file. Raises ``NcclError`` where a release takes them not.

    ``network_mode`` stands for another one than the cluster's own.
    """
    wanted = {
        "network_mode": network_mode or requested.network_mode,
        # Inside a container the name is not known before: the entry point fills it in.
        "interface": requested.interface if requested.runtime_host else MARK,
        "subnet": requested.subnet,
        "rdma": requested.rdma,
        "settings": requested.settings,
        "environment": requested.environment,
        "timeout": requested.timeout,
        "debug": requested.debug,
        "release": parse_release(release),
    }
    return nccl_plan(wanted, fabric)


def ours(requested: Request) -> list[str]:
    """Return the folders of which it is recorded whether they are ours, before anything is put into them."""
    return [requested.root, requested.etc, *(jobs(requested) if requested.runtime_host else [])]


def jobs(requested: Request) -> list[str]:
    """Return the folders of jobs, which on servers with Docker others make: a container that mounts them, or a job."""
    return [f"{requested.root}/{name}" for name in ("jobs", "host_jobs")]


def folders(requested: Request) -> list[ManagedFile]:
    """Return the folders that the files lie in, and on servers without Docker those of jobs."""
    return [ManagedFile(name, None, "0700") for name in ours(requested)]


def files(requested: Request, lines: Sequence[str], entry_point: str) -> list[ManagedFile]:
    """Return the files but for the record of the release."""
    environment = {"DS_ACCELERATOR": requested.accelerator, "GLOO_SOCKET_IFNAME": MARK, **requested.environment}
    if requested.runtime_host:
        home = {"CUDA_HOME": requested.cuda_home} if requested.cuda_home else {}
        # The host's own /etc/nccl.conf stays as it is.
        path = f"{requested.etc}/nccl.conf.host"
        texts = _text(_OF_THE_HOST, lines), _environment({"NCCL_CONF_FILE": path, **home, **environment})
        filled = [text.replace(MARK, requested.interface) for text in texts]
        return [ManagedFile(path, filled[0]), _secret(requested, filled[1])]
    return [
        ManagedFile(f"{requested.etc}/nccl.conf", _text(_OF_CONTAINERS, lines)),
        _secret(requested, _environment(environment)),
        ManagedFile(f"{requested.etc}/entrypoint.sh", _entry_point(requested, entry_point), "0755"),
    ]


def _secret(requested: Request, text: str) -> ManagedFile:
    return ManagedFile(f"{requested.etc}/env", text, "0600", secret=True)


def _text(head: str, lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in (head, *lines))


def _environment(given: Mapping[str, Any]) -> str:
    ordered = sorted(given.items(), key=lambda item: str(item[0]).lower())
    return "".join(f"{name}={'' if value is None else value}\n" for name, value in ordered)


def _entry_point(requested: Request, text: str) -> str:
    for mark, value in (
        ("@SUBNET@", requested.subnet),
        ("@LOCATE@", requested.locate),
        ("@SSH_PORT@", requested.ssh_port),
    ):
        text = text.replace(mark, str(value))
    return text
