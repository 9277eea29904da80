# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the facts of every host allow to check: reachability, system, clocks, disk, swarms, subnets and ports.

The facts are those of ``node_facts``. One that is missing is a problem in words, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

from ..bundle.checks import check_fit
from ..connection.messages import PASSWORD, reason, waits_for_sudo
from ..core.problems import Problem, missing
from ..core.values import mapping, number, texts, whole
from ..overlay_network.checks import (
    check_overlay_encryption,
    check_overlay_mtu,
    check_overlay_names,
    check_overlay_network,
    check_overlay_subnet,
)
from ..plan.requested import Requested
from ..swarm.checks import (
    check_attached,
    check_host_names,
    check_swarm_fixed,
    check_swarm_left,
    check_swarm_managers,
    check_swarm_ports,
)
from ..swarm.foreign import check_foreign_swarm
from ..swarm.record import was_ours
from .launch import check_ds_config, check_hostfile, check_job_files, check_shrink
from .nccl import check_interfaces
from .planned import REFUSED, check_consents, check_refused
from .proxy import check_proxies
from .systems import check_architectures, check_distribution, check_end_of_life
from .versions import VERSION_CHECKS, check_versions

PYTHON = (3, 9)
"""The lowest Python on a host: Debian 12 and Ubuntu 22.04 have 3.11 and 3.10."""
MIB, GIB = 2**20, 2**30


@dataclass(frozen=True)
class Facts:
    """``hosts``: facts by host, null where there are none; ``unreachable``: by host why there are none."""

    hosts: Mapping[str, Any]
    requested: Requested
    unreachable: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bare(self) -> bool:
        """Whether ranks run on the hosts themselves: then nothing is asked of Docker, and nothing of its swarms."""
        return self.requested.runtime == "host"

    def present(self) -> dict[str, Mapping[str, Any]]:
        """Return the facts of the hosts that gave any."""
        return {host: facts for host, facts in self.hosts.items() if isinstance(facts, Mapping) and facts}

    def sections(self, name: str) -> dict[str, Mapping[str, Any]]:
        """Return one section of the facts by host, empty where a host did not give it."""
        return {host: mapping(facts.get(name)) for host, facts in self.present().items()}


def check_reachable(facts: Facts) -> Iterator[Problem]:
    """Every host answered and gave facts."""
    for host in dict.fromkeys([*facts.unreachable, *facts.hosts]):
        if host in facts.present():
            continue
        message = str(facts.unreachable.get(host) or "")
        if message:
            remedy = (
                f"make `ansible {host} -m ping` succeed with this inventory (address, user, key, known_hosts, sudo)"
            )
            yield Problem(
                host, f"cannot be reached: {reason(message)}", PASSWORD if waits_for_sudo(message) else remedy
            )
        else:
            yield Problem(
                host,
                "gave no facts",
                "see the error of the task that gathers facts of the hosts, further up, and run again",
            )


def check_systemd(facts: Facts) -> Iterator[Problem]:
    """Systemd runs the host: Docker, the firewall's openings and the reboot of a driver installation rely on it."""
    needed = "brings back what was opened in the firewall" if facts.bare else "starts and watches Docker"
    for host, system in facts.sections("system").items():
        if not isinstance(system.get("systemd"), bool):
            yield missing(host, "whether systemd runs")
        elif not system["systemd"]:
            yield Problem(
                host,
                f"is not run by systemd (no /run/systemd/system), which {needed}",
                "use a machine or virtual machine that was booted, not a plain container",
            )


def check_python(facts: Facts) -> Iterator[Problem]:
    """Python on the host is recent enough for the modules of this collection."""
    least = ".".join(map(str, PYTHON))
    for host, system in facts.sections("system").items():
        version = system.get("python")
        parts = [whole(part) for part in str(version).split(".")[:2]]
        if not isinstance(version, str) or len(parts) < 2 or None in parts:
            yield missing(host, "which Python it has")
        elif tuple(part or 0 for part in parts) < PYTHON:
            yield Problem(
                host,
                f"Ansible uses Python {version} there; at least {least} is needed",
                f"install python3 >= {least} and name it in ansible_python_interpreter",
            )


def check_clock(facts: Facts) -> Iterator[Problem]:
    """No clock is further than ``max_clock_offset`` from the controller's, nor any two hosts' from one another.

    Only what lies beyond the uncertainty of the measurement counts. Swarm's certificates, apt and logs of several hosts
    need clocks that agree. Offsets are positive where the host is ahead.
    """
    limit = facts.requested.max_clock_offset
    within: dict[str, tuple[float, float]] = {}
    for host, clock in facts.sections("clock").items():
        offset, uncertainty = number(clock.get("offset")), number(clock.get("uncertainty"))
        if offset is None or uncertainty is None:
            yield missing(host, "how its clock stands")
        elif abs(offset) - abs(uncertainty) > limit:
            yield Problem(
                host,
                f"its clock is {abs(offset):.1f} s {'ahead of' if offset > 0 else 'behind'} the controller's "
                f"(±{abs(uncertainty):.1f} s); {limit:g} s are allowed",
                "switch on time synchronisation there (timedatectl set-ntp true), "
                "or on the controller where every host is named here",
            )
        else:
            within[host] = (offset, abs(uncertainty))
    if len(within) < 2:
        return
    # The pair that is surely furthest apart: each measured offset is taken at the end of its range nearest the other's.
    late = max(within, key=lambda host: within[host][0] - within[host][1])
    early = min(within, key=lambda host: within[host][0] + within[host][1])
    apart = within[late][0] - within[late][1] - (within[early][0] + within[early][1])
    if apart > limit:
        yield Problem(
            f"{early}, {late}",
            f"their clocks are at least {apart:.1f} s apart ({late} is ahead); {limit:g} s are allowed",
            "switch on time synchronisation on both (timedatectl set-ntp true)",
        )


def check_disk(facts: Facts) -> Iterator[Problem]:
    """There is the space that the image and the job need."""
    for path, need in facts.requested.min_free.items():
        for host, disk in facts.sections("disk").items():
            images = mapping(mapping(facts.present()[host].get("docker")).get("images"))
            files = mapping(facts.present()[host].get("files"))
            if need.unless_image is not None and need.unless_image in images:
                continue
            if need.unless_file is not None and mapping(files.get(need.unless_file)).get("exists") is True:
                continue
            free = whole(mapping(disk.get(path)).get("free_bytes"))
            if free is None:
                yield missing(host, f"how much space is free at {path}")
            elif free < need.size:
                yield Problem(
                    host,
                    f"{_room(free, need.size)} are free at {path}; {_room(need.size, need.size)} are needed",
                    f"free space there, or lower {need.variable}" if need.variable else "free space there",
                )


def _room(size: int, need: int) -> str:
    """Return a size in the unit in which what is needed is a number that says something."""
    return f"{size / GIB:.1f} GiB" if need >= GIB else f"{size / MIB:.1f} MiB"


def check_image(facts: Facts) -> Iterator[Problem]:
    """An image that is to be there already, is."""
    image = facts.requested.image_present
    if not image or facts.bare:
        return
    for host, docker in facts.sections("docker").items():
        if image not in mapping(docker.get("images")):
            yield Problem(
                host,
                f"the image {image} is not there, and training_image_source is present",
                "load it on this host (docker load), or set training_image_source to pull, archive or build",
            )


def check_port(facts: Facts) -> Iterator[Problem]:
    """With the host's own network, no other process listens on the port of the containers' sshd."""
    port = facts.requested.ssh_port
    if facts.requested.network_mode != "host" or facts.bare:
        return
    for host, listening in facts.sections("listening").items():
        tcp = listening.get("tcp")
        if not isinstance(tcp, list):
            yield missing(host, "on which ports something listens")
            continue
        name = facts.requested.containers.get(host, f"{facts.requested.cluster_name}-{host}")
        containers = mapping(mapping(facts.present()[host].get("docker")).get("containers"))
        container = mapping(containers.get(name))
        # In the overlay our own container listens in a network namespace of its own: then it is somebody else.
        ours = container.get("state") == "running" and "host" in mapping(container.get("addresses"))
        if port in tcp and not ours:
            yield Problem(
                host,
                f"TCP port {port} is taken, which the training container's sshd needs with cluster_network_mode: host",
                f"see who listens (ss -ltnp 'sport = :{port}') and stop it, or use cluster_network_mode: overlay",
            )


def check_foreign_files(facts: Facts) -> Iterator[Problem]:
    """No file of the user's is replaced, in a folder that was in use before this collection came."""
    for host, folders in facts.sections("folders").items():
        for path, folder in folders.items():
            if names := texts(mapping(folder).get("replaced")):
                yield Problem(
                    host,
                    f"{path} has files that are not this collection's, and would be replaced: {', '.join(names)}",
                    "move them, or set another cluster_root",
                )


def _check_foreign_swarm(facts: Facts) -> Iterator[Problem]:
    if facts.bare:
        return
    docker: dict[str, Mapping[str, Any]] = {}
    for host, section in facts.sections("docker").items():
        if section:
            docker[host] = section
        else:
            yield missing(host, "whether it has Docker")
    wanted = facts.requested
    yield from check_foreign_swarm(
        docker,
        managers=wanted.managers,
        cluster_name=wanted.cluster_name,
        leave_foreign=wanted.swarm_allow_leave_foreign,
        adopt=wanted.swarm_allow_adopt,
        own=[host for host, found in facts.present().items() if was_ours(found, wanted.cluster_name)],
    )


def _check_swarm_left(facts: Facts) -> Iterator[Problem]:
    # A host without facts may be any of the nodes.
    if set(facts.present()) >= {*facts.hosts, *facts.unreachable}:
        yield from check_swarm_left(facts.present(), facts.requested)


def _of_hosts(
    check: Callable[[Mapping[str, Mapping[str, Any]], Requested], Iterator[Problem]],
) -> Callable[[Facts], Iterator[Problem]]:
    return lambda facts: check(facts.present(), facts.requested)


def _of_versions(check: str) -> Callable[[Facts], Iterator[Problem]]:
    return lambda facts: check_versions(check, facts.requested.versions)


def _of_refusals(check: str) -> Callable[[Facts], Iterator[Problem]]:
    return lambda facts: check_refused(check, facts.present(), facts.requested.refused)


def check_launch_files(facts: Facts) -> Iterator[Problem]:
    """The plan refuses nothing of the job's files. What check ``hostfile`` reports is not listed again by host."""
    if not any(check_hostfile(facts.requested.launch)):
        yield from check_refused("deepspeed_launch", facts.present(), facts.requested.refused)


FACT_CHECKS: dict[str, Callable[[Facts], Iterator[Problem]]] = {
    "reachable": check_reachable,
    "distribution": _of_hosts(check_distribution),
    "architectures": _of_hosts(check_architectures),
    "end_of_life": _of_hosts(check_end_of_life),
    "systemd": check_systemd,
    "python": check_python,
    "clock": check_clock,
    "proxy": lambda facts: check_proxies(facts.sections("proxies")),
    "disk": check_disk,
    "image": check_image,
    "foreign_files": check_foreign_files,
    "foreign_swarm": _check_foreign_swarm,
    "host_names": _of_hosts(check_host_names),
    "swarm_fixed": _of_hosts(check_swarm_fixed),
    "swarm_managers": _of_hosts(check_swarm_managers),
    "swarm_left": _check_swarm_left,
    "swarm_attached": _of_hosts(check_attached),
    "swarm_ports": _of_hosts(check_swarm_ports),
    "overlay_subnet": _of_hosts(check_overlay_subnet),
    "overlay_network": _of_hosts(check_overlay_network),
    "overlay_mtu": _of_hosts(check_overlay_mtu),
    "overlay_encryption": _of_hosts(check_overlay_encryption),
    "overlay_names": _of_hosts(check_overlay_names),
    "port_2222": check_port,
    "nccl_interface": lambda facts: check_interfaces(facts.sections("fabric"), facts.requested.socket_interfaces),
    **{check: _of_refusals(check) for check in REFUSED},
    "deepspeed_launch": check_launch_files,  # instead of the one from REFUSED
    "consents": lambda facts: check_consents(facts.present(), facts.requested.consents),
    **{check: _of_versions(check) for check in VERSION_CHECKS},
    "hostfile": lambda facts: check_hostfile(facts.requested.launch),
    "ds_config": lambda facts: check_ds_config(facts.requested.launch),
    "shrink": lambda facts: check_shrink(facts.requested.launch),
    "job_files": lambda facts: check_job_files(facts.present(), facts.requested.launch),
    "bundle_systems": lambda facts: check_fit(facts.requested.bundle, facts.sections("system")),
}
