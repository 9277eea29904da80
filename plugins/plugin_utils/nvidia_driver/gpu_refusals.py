# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""GPUs and fabrics for which this role must not install a driver, or cannot alone.

Sources: NVIDIA's fabric manager user guide ("Systems Using Fourth Generation NVSwitches"), its IMEX guide and its vGPU
user guide; the start script of nvidia-fabricmanager 580, which looks for ``ib_umad``, ``ibstat`` and ``nvlsm``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...module_utils.driver.packages import CUDA_REPOSITORY
from ...module_utils.gpu.pci import capability_of
from ...module_utils.gpu.problems import LICENSED
from .gathered import FABRIC_PACKAGES
from .request import Node, Refusal, Request

_OF_RACKS = {"10.0", "10.3"}
"""Compute capabilities of B200 and B300. On Arm these are GB200 and GB300."""
_UMAD = "the kernel module ib_umad"


def guest_refusal(node: Node) -> Refusal | None:
    """Return why no driver of a distribution or of NVIDIA's repository serves a guest with a vGPU, or None."""
    parts = [str(device.get("address")) for device in node.devices if device.get("vgpu") is True]
    if not parts:
        return None
    return Refusal(
        f"this host is a guest with a vGPU ({', '.join(parts)}), which needs the host's GRID guest driver",
        "install the guest driver of the hypervisor's vGPU release (its administrator has it) and set "
        "nvidia_driver_source: keep",
    )


def licence_refusal(node: Node) -> Refusal | None:
    """Return why a job must not begin on a vGPU that works, or None: it is slowed down while it runs."""
    states = {gpu.get("index"): str(gpu.get("license") or "") for gpu in node.gpu.get("gpus") or []}
    without = [str(index) for index, state in states.items() if state and not state.startswith(LICENSED)]
    if not without:
        return None
    return Refusal(
        f"GPU {', '.join(without)}: a vGPU without a valid licence, so it is slowed down after a while",
        "put the licence server's token into /etc/nvidia/ClientConfigToken, systemctl restart nvidia-gridd, and run "
        "again",
    )


def rack_refusal(node: Node) -> Refusal | None:
    """Return why GB200 and GB300 are left to their owner, or None: several trays share one NVLink domain."""
    capabilities = {capability_of(str(device.get("device_id") or "")) for device in node.devices}
    if node.system.get("architecture") != "aarch64" or not capabilities & _OF_RACKS:
        return None
    return Refusal(
        "these are GPUs of a GB200 or GB300; their trays form one NVLink domain through nvidia-imex, and this role "
        "does not set that up",
        "install driver and nvidia-imex in one version on every tray (NVIDIA's IMEX guide) and set "
        "nvidia_driver_source: keep",
    )


def switch_refusals(request: Request, node: Node) -> Iterator[Refusal]:
    """Yield what the NVSwitches of B200 and later lack. Where the GPUs have joined the fabric, nothing is missing."""
    fabric, packages = node.gpu.get("fabric"), node.facts.get("packages")
    state = fabric.get("state") if isinstance(fabric, Mapping) else None
    if not node.switch_management or state == "Completed":
        return
    there = packages if isinstance(packages, Mapping) else {}
    missing = [name for name in FABRIC_PACKAGES if not there.get(name)]
    missing += [] if node.host.get("umad") is True else [_UMAD]
    switches = f"{len(node.switch_management)} NVSwitches of B200 or later ({', '.join(node.switch_management[:8])})"
    if missing:
        yield Refusal(
            f"this host has {switches}, and its fabric manager cannot start without {', '.join(missing)}",
            "add NVIDIA's repository to apt on this host, apt-get install nvlsm infiniband-diags, echo ib_umad "
            ">/etc/modules-load.d/ib_umad.conf, modprobe ib_umad, and run again with nvidia_driver_source: "
            "cuda_repository, which brings the fabric manager in the driver's version",
        )
    elif request.source != CUDA_REPOSITORY and not node.loaded.get("loaded"):
        yield Refusal(
            f"this host has {switches}, and its fabric manager must be NVIDIA's own",
            "set nvidia_driver_source: cuda_repository",
        )
