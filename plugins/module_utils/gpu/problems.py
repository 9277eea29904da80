# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is wrong with a host's GPUs, in words with cause and remedy.

Sources: NVIDIA's fabric manager user guide and the CUDA runtime's error 802; for nvlsm and ib_umad the guide's "Systems
Using Fourth Generation NVSwitches" and spectrocloud/CanvOS#700 (an HGX B200); NVIDIA's MIG user guide, chapter "CUDA
Device Enumeration"; NVML's recovery actions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..common.command_io import CommandResult
from .explain import CHECK_LOG, explain
from .smi import Details, Gpu

SECURE_BOOT = (
    " Secure Boot is on, so the kernel loads only modules signed with a key that it trusts: check `dmesg | grep -i "
    "lockdown` and `mokutil --list-enrolled`."
)

LICENSED = "Licensed"
"""How nvidia-smi begins what it says of a licence that is valid; the rest is when it expires."""

WAITING = ("Not Started", "In Progress")
"""States of a GPU that has not joined the NVLink fabric, the least far first."""

_RECOVERIES = {
    "Reset": "Stop what runs on it, then `nvidia-smi --gpu-reset -i {index}`",
    "Drain and Reset": "Let what runs on it end and start nothing new, then `nvidia-smi --gpu-reset -i {index}`",
    "Drain P2P": "Let what uses its links end, then `nvidia-smi --gpu-reset -i {index}`",
    "Reboot": "Reboot this host",
    "System Reboot": "Reboot this host",
    "Bus Reset": "Stop what runs on it and reboot this host, which resets the bus",
    "Recover IMEX Domain": (
        "Stop what uses the IMEX domain, restart nvidia-imex on all of its nodes (`systemctl restart nvidia-imex`) and "
        "check `nvidia-imex-ctl -N`"
    ),
}
"""What nvidia-smi recommends (NVML's recovery actions, those of driver 615 included), and how to do it."""


@dataclass(frozen=True)
class Reading:
    """What nvidia-smi reported.

    ``answer`` is of the first call, None where it is not installed; ``report`` is of ``-q -x`` where that gave no
    document; ``broken`` are rows of GPUs that failed; ``details`` are by GPU uuid.
    """

    answer: CommandResult | None = None
    report: CommandResult | None = None
    gpus: tuple[Gpu, ...] = ()
    broken: tuple[str, ...] = ()
    details: dict[str, Details] = field(default_factory=dict)
    cuda_version: str | None = None

    def known(self) -> Iterator[tuple[Gpu, Details]]:
        """Give each usable GPU with what is known of it."""
        for gpu in self.gpus:
            yield gpu, self.details.get(gpu.uuid, Details())


@dataclass(frozen=True)
class Host:
    """All that was found. ``devices`` are the GPUs on the bus that are this host's own."""

    devices: list[dict[str, Any]]
    switches: list[dict[str, Any]]
    driver: dict[str, Any]
    fabric: dict[str, Any]
    secure_boot: bool | None
    reading: Reading


def find_problems(host: Host) -> list[str]:
    """Return every problem of a host that has GPUs, each with its cause and the remedy."""
    found = [*_driver_problems(host), *_smi_problems(host), *_gpu_problems(host), *_fabric_problems(host)]
    return list(dict.fromkeys(found))  # the first and the second call of nvidia-smi may fail alike


def _driver_problems(host: Host) -> Iterator[str]:
    addresses = _addresses(host.devices)
    nouveau = [device for device in host.devices if device["driver"] == "nouveau"]
    if nouveau:
        yield (
            f"The nouveau driver holds {_addresses(nouveau)}, so NVIDIA's driver cannot. "
            "Blacklist nouveau, rebuild the initramfs and reboot."
        )
    driver = host.driver
    if not driver["loaded"]:
        yield (
            f"NVIDIA's kernel module is not loaded, but this host has NVIDIA GPUs at {addresses}. "
            "Install the driver (role nvidia_driver); where it is installed, check `dkms status` and reboot."
            + (SECURE_BOOT if host.secure_boot else "")
        )
    elif host.reading.answer is None:
        yield (
            "The driver is loaded but nvidia-smi is not installed, so no GPU can be counted. Install it in the "
            "driver's version (Debian: nvidia-smi, Ubuntu: nvidia-utils-<branch>-server)."
        )
    wrong = [device for device in host.devices if _wrong_flavour(device, driver["flavour"])]
    if wrong:
        right = " or ".join(sorted({flavour for device in wrong for flavour in device["flavours"]}))
        yield (
            f"The {driver['flavour']} kernel module is loaded, which cannot drive the GPUs at {_addresses(wrong)} "
            f"({_generations(wrong)}). Install the {right} one (nvidia_driver_flavour: auto) and reboot."
        )
    dropped = [device for device in host.devices if _dropped(device, driver["version"])]
    if dropped:
        last = min(device["last_branch"] for device in dropped)
        yield (
            f"Driver {driver['version']} is too new for the GPUs at {_addresses(dropped)} ({_generations(dropped)}): "
            f"the last branch that supports them is {last}. Install that one (nvidia_driver_branch: {last})."
        )


def _wrong_flavour(device: dict[str, Any], flavour: str | None) -> bool:
    return bool(flavour and device["flavours"] and flavour not in device["flavours"])


def _dropped(device: dict[str, Any], version: str | None) -> bool:
    return bool(version and device["last_branch"] and int(version.split(".")[0]) > device["last_branch"])


def _smi_problems(host: Host) -> Iterator[str]:
    reading, driver = host.reading, host.driver
    if reading.answer is None:
        return
    reported = explain(reading.answer)
    if reported:
        yield reported
    elif driver["matches"] is False:
        yield (
            f"The loaded kernel module is {driver['version']} but the libraries are {driver['library_version']}: "
            "programs started from now on fail. Reboot this host."
        )
    if reading.report is not None:
        yield explain(reading.report) or (
            "nvidia-smi -q -x returned an incomplete document, so MIG, ECC and the fabric were not checked. Run it on "
            f"this host. {CHECK_LOG}."
        )
    elif reading.gpus and reading.cuda_version is None:
        yield (
            "nvidia-smi names no CUDA version: the driver's CUDA library is missing. Install it in the driver's "
            "version (Debian: libcuda1, Ubuntu: libnvidia-compute-<branch>-server)."
        )
    for row in reading.broken:
        yield f"A GPU is listed but broken: {row}. Check `dmesg | grep Xid`, then reboot this host."
    answering = len(reading.gpus) + len(reading.broken)
    if 0 < answering < len(host.devices):
        yield (
            f"Only {answering} of {len(host.devices)} NVIDIA GPUs ({_addresses(host.devices)}) answer. "
            f"{CHECK_LOG}; one that has fallen off the bus comes back with a power cycle."
        )


def _gpu_problems(host: Host) -> Iterator[str]:
    for gpu, details in host.reading.known():
        name = f"GPU {gpu.index}"
        if details.unreadable:
            yield (
                f"{name} gives ERR! instead of {', '.join(details.unreadable)}: it or its driver has failed. "
                f"{CHECK_LOG}, then reboot this host."
            )
        if details.ecc_volatile:
            yield (
                f"{name} has had memory errors since its last reset that ECC could not correct "
                f"({details.ecc_volatile}); what was computed on it then is wrong. {CHECK_LOG}, then stop what runs "
                f"on it and `nvidia-smi --gpu-reset -i {gpu.index}`, or reboot. If such errors come again, "
                "replace the GPU."
            )
        if details.repair_failed:
            yield f"{name} could not retire more failing memory. Replace it."
        elif details.recovery:
            todo = _RECOVERIES.get(details.recovery, CHECK_LOG).format(index=gpu.index)
            yield f"{name} wants to be recovered (nvidia-smi says '{details.recovery[:60]}'). {todo}."
        elif details.repair_pending:
            yield (
                f"{name} has failing memory that goes out of use at its next reset. "
                f"{_RECOVERIES['Reset'].format(index=gpu.index)}, or reboot."
            )
        if details.license and not details.license.startswith(LICENSED):
            yield (
                f"{name} is a vGPU without a valid licence (nvidia-smi says '{details.license[:60]}'), so it is slowed "
                "down after a while, and CUDA may call it busy or unavailable. Put the licence server's token into "
                "/etc/nvidia/ClientConfigToken (in a cloud, install the provider's own guest driver, which brings the "
                "licence), `systemctl restart nvidia-gridd`, and check `nvidia-smi -q | grep -A 2 Licensed`."
            )
    yield from _mig_problems(host.reading)


def _mig_problems(reading: Reading) -> Iterator[str]:
    known = list(reading.known())
    in_mig = [gpu for gpu, details in known if details.mig]
    divided = [gpu for gpu, details in known if details.mig and details.instances]
    if divided and len(known) > 1:
        yield (
            f"{_numbers(divided)} in MIG mode, divided into instances: a CUDA process on this host then sees one "
            "instance and no other GPU, so this host counts as one slot. Turn MIG off "
            f"({'; '.join(f'`nvidia-smi -i {gpu.index} -mig 0`' for gpu in divided)}), or keep this host out."
        )
    empty = [gpu for gpu in in_mig if gpu not in divided]
    if empty:
        yield (
            f"{_numbers(empty)} in MIG mode without an instance, so no program can compute there. Turn MIG off "
            f"({'; '.join(f'`nvidia-smi -i {gpu.index} -mig 0`' for gpu in empty)}), or create instances "
            "(`nvidia-smi mig -cgi … -C`)."
        )


def _fabric_problems(host: Host) -> Iterator[str]:
    fabric, driver = host.fabric, host.driver
    waiting, failed = [], []
    for gpu, details in host.reading.known():
        if details.fabric_state in WAITING:
            waiting.append(f"{gpu.index} ('{details.fabric_state}')")
        elif details.fabric_state == "Completed" and details.fabric_status not in (None, "Success"):
            failed.append(f"{gpu.index} ('{details.fabric_status}')")
    start = (
        "Install the fabric manager in the driver's version (Debian and Ubuntu: nvidia-fabricmanager-<branch>) and "
        "start it (`systemctl enable --now nvidia-fabricmanager`)"
    )
    blackwell = any(device["generation"] == "Blackwell" for device in host.devices)
    if waiting and fabric["manager_running"]:
        subnet_manager = " On HGX B200 and later nvlsm must run beside it: `pgrep -a nvlsm`, `lsmod | grep ib_umad`."
        yield (
            f"GPU {', '.join(waiting)}: not yet part of the NVLink fabric although the fabric manager runs, so CUDA "
            "fails with error 802 (system not yet initialized). Check `journalctl -u nvidia-fabricmanager` and `dmesg "
            "| grep -e Xid -e SXid`, then `systemctl restart nvidia-fabricmanager`; if that does not help, reboot this "
            "host." + (subnet_manager if blackwell else "")
        )
    elif waiting:
        if blackwell:
            start += (
                "; on HGX B200 and later it starts only with NVIDIA's packages nvlsm and infiniband-diags "
                "(`apt-get install nvlsm infiniband-diags`) and the kernel module ib_umad (`modprobe ib_umad`, and "
                "`echo ib_umad >/etc/modules-load.d/ib_umad.conf` for the next boot)"
            )
        yield (
            f"GPU {', '.join(waiting)}: not yet part of the NVLink fabric, so CUDA fails with error 802 (system not "
            f"yet initialized). {start}; in GB200 and GB300 racks it runs on the switch trays instead."
        )
    elif host.switches and fabric["manager_running"] is False:
        yield (
            f"This host has NVSwitches ({len(host.switches)}) but no fabric manager is running, so CUDA fails with "
            f"error 802 (system not yet initialized). {start}."
        )
    if failed:
        yield (
            f"GPU {', '.join(failed)}: the NVLink fabric could not be set up. Check "
            "`journalctl -u nvidia-fabricmanager` and `dmesg | grep SXid`."
        )
    manager = fabric["manager_version"]
    if manager and driver["version"] and manager != driver["version"]:
        yield (
            f"The fabric manager is {manager} but the driver is {driver['version']}: it refuses any other version than "
            f"its own. Install nvidia-fabricmanager in version {driver['version']}."
        )


def _addresses(devices: list[dict[str, Any]]) -> str:
    return ", ".join(device["address"] for device in devices)


def _generations(devices: list[dict[str, Any]]) -> str:
    return ", ".join(sorted({device["generation"] for device in devices}))


def listed(gpus: list[Gpu]) -> str:
    return "GPU " + ", ".join(str(gpu.index) for gpu in gpus)


def _numbers(gpus: list[Gpu]) -> str:
    return f"{listed(gpus)} {'is' if len(gpus) == 1 else 'are'}"
