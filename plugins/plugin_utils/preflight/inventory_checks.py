# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What can be checked before any host is contacted: groups, names, variables, and files on the controller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..core.kinds import KINDS
from ..core.problems import Problem, listing
from ..core.role_specs import Unknown, renamed
from ..core.values import mapping, whole
from ..training_container.options import SECCOMP, profile_name, profile_problems
from ..training_container.values import READ, wrong_values
from .connections import check_connections
from .controller import check_ansible_version, check_copies
from .controller_files import check_ca_certificate, check_files, check_vscode
from .inventory import Inventory, one_for_all
from .launch_values import check_launch_values
from .nccl import CONTAINER, VARIABLES, check_container, check_settings
from .network_values import check_cluster_address, check_overlay_values, check_swarm_values
from .places import check_overlaps, check_system_folders
from .play import check_play_hosts
from .unused_files import check_unused_files
from .values import check_values, check_variable_values

GROUPS = ("cluster", "managers", "workers")
RUNTIME = "deepspeed_launch_runtime"
TRANSPORT = "deepspeed_launch_transport"
BARE = "host"
"""The runtime of servers without Docker: ranks are processes of the host itself."""

MOST_MANAGERS = 7
"""More make a swarm slower and no safer (the source at ``check_managers``)."""

LABEL, LABEL_LENGTH = KINDS["dns_label"], 63
"""RFC 1123 host names, without capitals: ssh looks names up in known_hosts in lower case, DNS ignores case, and
Docker does not, so ``Node1`` would be one name to some and another to others. No dots: each would be a new label."""


def check_groups(inventory: Inventory) -> Iterator[Problem]:
    """The three groups exist, and every host of the cluster is in exactly one of ``managers`` and ``workers``."""
    missing = [name for name in GROUPS if name not in inventory.groups]
    for name in missing:
        yield Problem(
            f"group {name}",
            "missing from the inventory",
            "define group cluster with the children managers and workers (workers may be empty)",
        )
    cluster, managers, workers = (inventory.members(name) for name in GROUPS)
    if "cluster" not in missing and not cluster:
        yield Problem("group cluster", "has no host", "list at least one host in group managers, a child of cluster")
    for host in cluster:
        if host in managers and host in workers:
            yield Problem(host, "listed in both managers and workers", "keep each host in one of the two groups")
        elif host not in managers and host not in workers:
            yield Problem(
                host,
                "listed in cluster, but neither in managers nor in workers",
                "add each host to one of the two groups",
            )
    for host in dict.fromkeys([*managers, *workers]):
        if cluster and host not in cluster:
            yield Problem(
                host, "listed in managers or workers, but not in cluster", "make both groups children of cluster"
            )


def check_managers(inventory: Inventory) -> Iterator[Problem]:
    """The managers of a swarm decide by majority, so their number is odd. Servers without Docker form no swarm.

    Source: https://docs.docker.com/engine/swarm/admin_guide/#add-manager-nodes-for-fault-tolerance
    """
    count = len(inventory.members("managers"))
    bare = _bare(inventory)
    if "managers" in inventory.groups and not count:
        needs = "rank 0 runs on the first manager" if bare else "a swarm needs a manager"
        yield Problem("group managers", f"has no host, and {needs}", "put one host into it")
    elif count % 2 == 0 and count and not bare:
        yield Problem(
            "group managers",
            f"has {count} hosts ({listing(inventory.members('managers'))}); managers decide by majority, so an even "
            f"number tolerates no more failures than {count - 1} would",
            "use 1, 3 or 5 managers and move the others to group workers",
        )
    elif count > MOST_MANAGERS and not bare:
        yield Problem(
            "group managers",
            f"has {count} hosts; every decision of the swarm waits for more than half of them",
            "use 1, 3 or 5 managers and move the others to group workers",
            fatal=False,
        )


def check_names(inventory: Inventory) -> Iterator[Problem]:
    """Container ``<cluster_name>-<host>`` is a DNS label, and the cluster has one name."""
    names = {host: str(value) for host, value in inventory.values("cluster_name").items()}
    yield from one_for_all(inventory, "cluster_name", names)
    for host in inventory.members("cluster"):
        container = f"{names[host]}-{host}" if host in names else host
        if not LABEL.accepts(host):
            yield Problem(
                host,
                f"not {LABEL.what}; the training container is named after the host",
                "give the host a short name in the inventory and its address in ansible_host",
            )
        elif len(container) > LABEL_LENGTH:
            yield Problem(
                host,
                f"the name of its container, {container}, has {len(container)} characters; DNS allows {LABEL_LENGTH}",
                "shorten cluster_name or the host's name in the inventory",
            )


def check_network_mode(inventory: Inventory) -> Iterator[Problem]:
    """``cluster_network_mode`` is the same on every host."""
    yield from one_for_all(inventory, "cluster_network_mode", inventory.values("cluster_network_mode"))


def check_runtime(inventory: Inventory) -> Iterator[Problem]:
    """Ranks run in containers on every host or on none, and network and transport are such as they can have there.

    That the words themselves are known is seen to by the argument spec.
    """
    runtimes = inventory.values(RUNTIME)
    yield from one_for_all(inventory, RUNTIME, runtimes)
    bare = [host for host, value in runtimes.items() if value == BARE]
    modes, transports = inventory.values("cluster_network_mode"), inventory.values(TRANSPORT)
    joined = [host for host in bare if modes.get(host) == "overlay"]
    if joined:
        yield Problem(
            "cluster_network_mode",
            f"is overlay, but with {RUNTIME}: {BARE} there is no container that an overlay could join"
            + inventory.where(joined),
            f"remove cluster_network_mode, which is host then, or set {RUNTIME}: container",
        )
    logins = [host for host in bare if transports.get(host) == "pdsh"]
    if logins:
        yield Problem(
            TRANSPORT,
            f"is pdsh, but with {RUNTIME}: {BARE} no keys are made with which root could log in to your servers"
            + inventory.where(logins),
            f"set {TRANSPORT}: direct, which needs none, or {RUNTIME}: container",
        )


def check_gpu_slots(inventory: Inventory) -> Iterator[Problem]:
    """``gpu_slots``, where it is set, is not zero for all hosts together."""
    values = inventory.values("gpu_slots")
    if (
        values
        and set(values) == set(inventory.members("cluster"))
        and all(whole(value) == 0 for value in values.values())
    ):
        yield Problem(
            "gpu_slots", "is 0 for every host, so no process would run", "set it to 1 or more for at least one host"
        )


def check_variable_names(inventory: Inventory) -> Iterator[Problem]:
    """No variable has a name that only resembles one of this collection. What may be another role's is a warning."""
    users: dict[str, list[str]] = {}
    for host, names in inventory.names.items():
        for name in names:
            users.setdefault(str(name), []).append(host)
    for name in sorted(users) if inventory.specs else ():
        unknown = inventory.specs.judge(name) if inventory.specs else None
        if unknown:
            yield _misspelt(unknown, inventory.where(users[name]))


def _misspelt(unknown: Unknown, where: str) -> Problem:
    if unknown.renamed:
        text, remedy = renamed(str(unknown.nearest))
        return Problem(unknown.name, text + where, remedy)
    if unknown.prefix is None:
        text = f"is not a variable of this collection, but looks like one{where}"
    else:
        text = f"is not a variable of this collection, although its name begins with {unknown.prefix}_{where}"
    remedy = f"did you mean {unknown.nearest}? Rename it" if unknown.nearest else "remove it, or rename it"
    if unknown.certain:
        return Problem(unknown.name, text, f"{remedy}; if it is another role's, add variable_names to preflight_skip")
    return Problem(unknown.name, text, f"{remedy} unless another role of yours uses it", fatal=False)


def check_image_settings(inventory: Inventory) -> Iterator[Problem]:
    """What goes into the training image makes sense by itself, whatever the nodes are."""
    yield from inventory.image(inventory)


def check_bundle(inventory: Inventory) -> Iterator[Problem]:
    """The offline bundle is whole, and was made for these values of the variables."""
    yield from inventory.bundle()


def check_nccl(inventory: Inventory) -> Iterator[Problem]:
    """Settings of NCCL and Gloo are such as these take: what is out of range they would change, or ignore."""
    by_name = {name: inventory.values(name) for name in VARIABLES}
    modes = inventory.values("cluster_network_mode")
    hosts: dict[Problem, list[str]] = {}
    for host in inventory.members("cluster"):
        given = {name: values[host] for name, values in by_name.items() if host in values}
        for problem in check_settings(given, modes.get(host)):
            hosts.setdefault(problem, []).append(host)
    for problem, reported_for in hosts.items():
        yield replace(problem, text=problem.text + inventory.where(reported_for))


def check_container_environment(inventory: Inventory) -> Iterator[Problem]:
    """No secret is where everyone with access to the engine can read it."""
    found = inventory.values(CONTAINER).values()
    yield from dict.fromkeys(problem for value in found for problem in check_container(mapping(value)))


def check_container_options(inventory: Inventory) -> Iterator[Problem]:
    """Docker, and the module that talks to it, take the options of the containers."""
    if _bare(inventory):
        return
    found: dict[Problem, list[str]] = {}
    by_name = {name: inventory.values(name) for name in (*READ, SECCOMP)}
    path = inventory.files.get(SECCOMP)
    for host in inventory.members("cluster"):
        values = {name: of_hosts[host] for name, of_hosts in by_name.items() if host in of_hosts}
        # That the file is there is a check of its own.
        here = isinstance(path, str) and path and inventory.kind(path) == "file"
        profiles = profile_problems(values, {profile_name(values): inventory.text(str(path))}) if here else ()
        for wrong in (*wrong_values(values), *profiles):
            found.setdefault(Problem(wrong.variable, wrong.text, wrong.remedy), []).append(host)
    for problem, hosts in found.items():
        yield replace(problem, text=f"{problem.text}{inventory.where(hosts)}")


def _bare(inventory: Inventory) -> bool:
    runtimes = set(map(str, inventory.values(RUNTIME).values()))
    return runtimes == {BARE}


REPEATED = ("unused_files",)
"""Checks whose warnings are repeated at the end of a run: by then, what they concern was done without the values."""

INVENTORY_CHECKS: dict[str, Callable[[Inventory], Iterator[Problem]]] = {
    "ansible_version": lambda inventory: check_ansible_version(inventory.controller),
    "copies": lambda inventory: check_copies(inventory.controller),
    "play_hosts": check_play_hosts,
    "connections": check_connections,
    "unused_files": check_unused_files,
    "groups": check_groups,
    "managers": check_managers,
    "names": check_names,
    "cluster_address": check_cluster_address,
    "swarm_values": check_swarm_values,
    "overlay_values": check_overlay_values,
    "network_mode": check_network_mode,
    "runtime": check_runtime,
    "gpu_slots": check_gpu_slots,
    "variable_names": check_variable_names,
    "variable_values": check_variable_values,
    "values": check_values,
    "launch_values": check_launch_values,
    "system_folders": check_system_folders,
    "overlaps": check_overlaps,
    "nccl_env": check_nccl,
    "container_environment": check_container_environment,
    "container_options": check_container_options,
    "files": check_files,
    "vscode": check_vscode,
    "ca_certificate": check_ca_certificate,
    "image_settings": check_image_settings,
    "bundle": check_bundle,
}
