# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Why a driver must not be installed on a host as it is, and the sources from which it would come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.driver.packages import CUDA_REPOSITORY, components
from ...module_utils.driver.sources import Source, extra_components, folded, from_dicts, offers_release, render
from .gathered import SOURCES_FILE
from .request import Node, Refusal, Request

GIB = 2**30
NEEDED = {"/usr": 2 * GIB, "/var": 2 * GIB, "/boot": 150 * 2**20}
"""Bytes: packages with the module's sources, their archives with the build of DKMS, one more initramfs. Estimates."""

_HEADING = "Kept by swarmspeed.cluster (nvidia_driver)"
_REPOSITORIES = "/compute/cuda/repos/"
_DIRECTORIES = {"x86_64": "x86_64", "aarch64": "sbsa"}


@dataclass(frozen=True)
class Repository:
    """Our source file's ``text`` (empty: none is needed), the ``address`` in it that is new, and files it replaces."""

    text: str = ""
    address: str = ""
    stale: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def repository(request: Request, node: Node, *, fabric: bool) -> Repository:
    """Return what must be added to apt's sources."""
    sources = from_dicts(node.host.get("sources"))
    distribution, codename = str(node.system.get("distribution")), str(node.system.get("codename"))
    if not offers_release(sources, codename):
        refusal = Refusal(
            f"no source of apt offers {distribution} {codename} main",
            "fix /etc/apt/sources.list or the files in /etc/apt/sources.list.d; a mirror will do",
        )
        return Repository(refusals=(refusal,))
    if request.source != CUDA_REPOSITORY:
        added = extra_components(sources, codename, components(distribution, fabric=fabric), SOURCES_FILE)
        address = next(source.uri for source in sources if source.suite == codename and "main" in source.components)
        return Repository(render(added, _HEADING), address)
    # NVIDIA's packages for Debian need some of contrib.
    contrib = extra_components(sources, codename, ("contrib",), SOURCES_FILE) if distribution == "debian" else []
    return _cuda(request, node, sources, contrib)


def _cuda(request: Request, node: Node, sources: list[Source], contrib: list[Source]) -> Repository:
    place = node.place(request)
    architecture = _DIRECTORIES.get(str(node.system.get("architecture")), "x86_64")
    release = f"{place.distribution}{place.release.replace('.', '')}"
    address = f"{request.repository_url.rstrip('/')}/{release}/{architecture}/"
    others = [source for source in sources if source.file != SOURCES_FILE and _REPOSITORIES in f"{source.uri}/"]
    same = [source for source in others if source.uri.rstrip("/") == address.rstrip("/")]
    if same and not request.allow_purge_conflicting:
        # Two files for one address with different keys stop apt altogether, so the one that is there serves.
        return Repository(render(contrib, _HEADING), address)
    if not request.repository_key:
        return Repository(refusals=(_no_key(request, node, address),))
    if "BEGIN PGP PUBLIC KEY BLOCK" not in request.repository_key:
        refusal = Refusal(
            "nvidia_driver_repository_key is no armoured public key",
            "give its text, from -----BEGIN PGP PUBLIC KEY BLOCK----- to the END line, not a file or an address",
        )
        return Repository(refusals=(refusal,))
    ours = Source(SOURCES_FILE, address, "/", (), (("Signed-By", folded(request.repository_key)),))
    stale = tuple(dict.fromkeys(source.file for source in others)) if request.allow_purge_conflicting else ()
    return Repository(render([*contrib, ours], _HEADING), address, stale)


def _no_key(request: Request, node: Node, address: str) -> Refusal:
    why = f"{request.reason}, so the driver comes from NVIDIA's repository" if request.reason else ""
    offer = node.place(request).offer
    where = f"the text of {address}{offer.key} (fingerprint {offer.fingerprint})" if offer else "its public key"
    return Refusal(
        f"{why or 'nvidia_driver_source is cuda_repository'}, and nvidia_driver_repository_key is empty",
        f"set nvidia_driver_repository_key to {where}" + (f"; or {request.instead}" if request.instead else ""),
    )


def secure_boot_refusal(node: Node) -> Refusal | None:
    """Return why a module that is built on this host would not be loaded, or None."""
    if not node.gpu.get("secure_boot") or node.host.get("mok_enrolled"):
        return None
    ubuntu = node.system.get("distribution") == "ubuntu"
    signed = "take Ubuntu's signed modules (nvidia_driver_source: distribution); or " if ubuntu else ""
    return Refusal(
        "Secure Boot is on, and the firmware does not trust the key with which DKMS signs modules on this host, so the "
        "module would be built and never loaded",
        f"{signed}enrol the key ({_enrolment(node, ubuntu=ubuntu)}; then reboot, confirm it at the console and run "
        "again), or switch Secure Boot off in the firmware",
    )


_SHIM_KEY, _DKMS_KEY = "/var/lib/shim-signed/mok/MOK.der", "/var/lib/dkms/mok.pub"
_MAKE_SHIM_KEY = "apt-get install shim-signed mokutil; update-secureboot-policy --new-key"
_MAKE_DKMS_KEY = "apt-get install dkms mokutil openssl; dkms generate_mok"
_MAKE_KEY_BY_HAND = (
    "apt-get install dkms mokutil openssl; openssl req -new -x509 -nodes -days 36500 -newkey rsa:2048 "
    '-subj "/CN=DKMS module signing key" -keyout /var/lib/dkms/mok.key -outform DER -out /var/lib/dkms/mok.pub'
)
"""What dkms does itself when it builds for the first time. The dkms of Debian 12 (3.0.10) has no generate_mok."""


def _enrolment(node: Node, *, ubuntu: bool) -> str:
    """Return the commands that make the key, where there is none, and have the firmware asked to trust it."""
    key = _SHIM_KEY if ubuntu else _DKMS_KEY
    old = node.system.get("distribution") == "debian" and node.system.get("release") == "12"
    make = _MAKE_SHIM_KEY if ubuntu else _MAKE_KEY_BY_HAND if old else _MAKE_DKMS_KEY
    return f"mokutil --import {key}" if key in (node.host.get("mok_keys") or []) else f"{make}; mokutil --import {key}"


def state_refusals(node: Node, *, builds: bool) -> Iterator[Refusal]:
    """Yield what is unfinished or too small on this host. ``builds``: no set of packages brings a module ready made."""
    host = node.host
    if not host:
        yield Refusal(
            "what was found there does not say what packages it has",
            "run the playbook again; if it stays so, check the output of swarmspeed.cluster.node_facts for this host",
        )
        return
    unfinished = [str(name) for name in host.get("unfinished") or []]
    if host.get("interrupted") or unfinished:
        named = f" ({', '.join(unfinished[:8])}{' …' if len(unfinished) > 8 else ''})" if unfinished else ""
        yield Refusal(
            f"an earlier run of dpkg or apt was interrupted{named}",
            "run `dpkg --configure -a`, then `apt-get -f install`, on this host and fix what they report",
        )
    if host.get("installer"):
        yield Refusal(
            f"NVIDIA's own installer installed a driver ({host['installer']} is there), which packages would damage",
            f"run {host['installer']} on this host first, or set nvidia_driver_source: keep",
        )
    kernel, headers = str(host.get("kernel")), host.get("headers") or {}
    if not host.get("kernel_there"):
        yield Refusal(
            f"kernel {kernel} has no modules on this host (/lib/modules/{kernel})",
            "reboot into a kernel that is installed, or correct nvidia_driver_kernel",
        )
    elif builds and not headers.get("installed") and headers.get("available") is False:
        yield Refusal(
            f"apt has no package linux-headers-{kernel}, without which no module can be built for this kernel",
            "install the newest kernel of the distribution with its headers, reboot into it, and run again",
        )
    yield from _disk(host.get("disk") or {})


def _size(count: int) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count // 2**20} MiB"


def _disk(disk: Mapping[str, Any]) -> Iterator[Refusal]:
    """Paths on one file system are counted together."""
    needs: dict[Any, list[str]] = {}
    for path in NEEDED:
        entry = disk.get(path) or {}
        if entry.get("free_bytes") is not None:
            needs.setdefault(entry.get("filesystem"), []).append(path)
    for paths in needs.values():
        free, need = disk[paths[0]]["free_bytes"], sum(NEEDED[path] for path in paths)
        if free < need:
            yield Refusal(
                f"{_size(free)} are free at {' and '.join(paths)}; the driver needs about {_size(need)}",
                "free space there (apt-get clean, old kernels)",
            )
