# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role training_container: one container a node, compared with what runs there.

A container whose settings differ, that has ended or was cut off from its network is made again. In one that runs a job
that needs consent, and no node begins without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils.engine.swap import NEW, OLD
from ..core.problems import Problem
from ..core.values import mapping, texts
from ..docker.unseen import unseen
from ..nccl_env.settings import chooses_rdma
from ..plan.changes import Change, Changes, Consent, Inputs, RolePlan
from ..plan.container import container_name, container_of, run_inside
from ..plan.files import add_file, differs, entry_of, fact_after
from ..plan.fold import Facts, RoleVars
from ..plan.jobs import active_jobs
from ..plan.managed_file import ManagedFile
from ..plan.owned import add_records, entries, ours_to_change, real_paths, recorded, unrecorded
from ..plan.places import overlaps, wrong_places
from ..training_image.needs import check_script
from .gathered import ROLE, folders_of, ours
from .options import PREFIX, problems, profile_name, seccomp_profile
from .settings import (
    CLUSTER_LABEL,
    HASH_LABEL,
    IMAGE,
    OVERLAY,
    add_differences,
    image_here,
    labels_of,
    network_mode,
    network_name,
    wanted_settings,
)

NOTHING: dict[str, Any] = {
    "name": "",
    "ours": False,
    "settings": {},
    "missing": "",
    "image_check": {},
    "owned": [],
    "folders": [],
    "make": {},
    "connect": [],
    "start": [],
    "ready": [],
    "log": [],
    "inside": [],
    "reach": {},
    "reached": False,
    "left": [],
}
"""What the role's tasks read of a host on which there is no container to be.

``settings`` are those that are configured, whatever is planned: the network benchmark makes its containers with them.
``reach`` is what must be tested live: the containers that are to reach one another over the overlay network.
``reached`` is whether they did when facts were gathered, and nothing has been changed on any host since.
``left`` are this cluster's other containers on the host: of an earlier name of it, or of a run that was interrupted.
"""
SHARED_MEMORY = "df -B1 --output=size /dev/shm | tail -n 1"


@dataclass(frozen=True)
class Node:
    """A host, with the settings configured for its container, and the container as it is, empty without one."""

    host: str
    role_vars: Mapping[str, Any]
    facts: Mapping[str, Any]
    settings: Mapping[str, Any]
    container: Mapping[str, Any]

    @property
    def cluster(self) -> str:
        return str(self.role_vars["cluster_name"])

    @property
    def name(self) -> str:
        return container_name(self.cluster, self.host)

    @property
    def ours(self) -> bool:
        return self._made_here(self.container)

    @property
    def beside(self) -> dict[str, Mapping[str, Any]]:
        """All other containers of the host."""
        known = mapping(mapping(self.facts.get("docker")).get("containers"))
        return {str(name): mapping(container) for name, container in known.items() if name != self.name}

    @property
    def left(self) -> list[str]:
        """This cluster's others: of an earlier name of this host, or of a run that was interrupted."""
        return [name for name, container in self.beside.items() if self._made_here(container)]

    @property
    def renamed(self) -> list[str]:
        """Those of them that run."""
        return [name for name in self.left if self.beside[name].get("state") == "running"]

    def _made_here(self, container: Mapping[str, Any]) -> bool:
        """By the hash, which only this role gives: an image hands on the cluster's label to any container of it."""
        labels = mapping(container.get("labels"))
        return HASH_LABEL in labels and labels.get(CLUSTER_LABEL) == self.cluster

    @property
    def runs(self) -> bool:
        return self.container.get("state") == "running"

    @property
    def network(self) -> str:
        return network_name(self.role_vars)

    @property
    def address(self) -> str:
        """The address that it is to have in the overlay; empty where the swarm gives it one."""
        return str(self.settings.get("address") or "")

    @property
    def jobs(self) -> list[str]:
        """The jobs that run in it."""
        return active_jobs(self.facts) if self.runs or self.renamed else []


class TrainingContainerPlanner:
    """Plans each host by its own facts, and by what the cluster as a whole has."""

    role = ROLE

    def files(self, role_vars: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        if profile_name(role_vars):
            yield profile_name(role_vars)

    def plan(self, facts: Facts, role_vars: RoleVars, inputs: Inputs) -> RolePlan:
        changes: list[Change] = []
        refusals: list[Problem] = []
        task_inputs: dict[str, Mapping[str, Any]] = {}
        after: dict[str, Mapping[str, Any]] = {}
        hosts = [host for host in texts(inputs.cluster.get("hosts")) if host in facts]
        for host, found in facts.items():
            desired = role_vars[host]
            container = container_of(found, str(desired["cluster_name"]), host)
            # Where what concerns all hosts is not known, preflight says why.
            if desired["deepspeed_launch_runtime"] == "host" or not inputs.cluster.get("underlay"):
                left = Node(host, desired, found, {}, container)
                task_inputs[host] = {**NOTHING, "name": left.name, "ours": left.ours, "left": left.left}  # for teardown
                continue
            wrong = [Problem(host, *one) for one in problems(desired, found, inputs.files)]
            wrong += _misplaced(host, desired, found)
            profile = "" if wrong else seccomp_profile(desired, inputs.files)
            settings = wanted_settings(host, desired, found, inputs.cluster, container, profile=profile)
            node = Node(host, desired, found, settings, container)
            collected = Changes(ROLE, host)
            reasons = [] if unseen(found) else _compare(collected, node, inputs.digest_key)
            refused = [*wrong, *_refusal(node)] or list(_barred(node, reasons))
            if refused:
                refusals += refused
                task_inputs[host] = {**_as_found(node), **_reach(node, hosts, facts)}
                continue
            folders = _folders(node, inputs.digest_key) if reasons else []
            records = unrecorded(found, ours(desired)) if reasons else []
            add_records(collected, found, records)
            _add_container(collected, node, reasons, folders, inputs.digest_key)
            _add_left(collected, node)
            changes += collected.found
            made = {**_made(node, folders, profile, inputs.cluster), "owned": entries(records)} if reasons else {}
            task_inputs[host] = {**_as_found(node), **_reach(node, hosts, facts), **made}
            if reasons or node.left:
                after[host] = {
                    **_facts_after(node, folders if reasons else [], bool(reasons), inputs.digest_key),
                    "folders": recorded(found, records),
                }
        if changes:  # the role goes on with all hosts, and tests what it has changed
            task_inputs = {host: {**task_input, "reached": False} for host, task_input in task_inputs.items()}
        return RolePlan(changes, refusals, task_inputs, after)


def _misplaced(host: str, role_vars: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Problem]:
    """What of the folders shows only on the host, where links lead elsewhere. The rest was refused before."""
    for judge in (wrong_places, overlaps):
        for trouble in judge(role_vars, real_paths(facts)):
            yield Problem(host, f"{trouble.subject}: {trouble.text}", trouble.remedy)


def _refusal(node: Node) -> Iterator[Problem]:
    foreign = [node.name] if node.container and not node.ours else []
    foreign += [name for name in (node.name + NEW, node.name + OLD) if name in node.beside and name not in node.left]
    if foreign:
        text = f"the container {foreign[0]} exists, but this collection did not create it"
        yield Problem(node.host, text, "rename or remove it, or choose another cluster_name")
    elif not node.settings[IMAGE]:
        text = "the name of the training image is unknown; the role training_image determines it"
        remedy = "set swarmspeed_image to a name that docker image ls shows, or use site.yml --tags training_container"
        yield Problem(node.host, text, remedy)


def _barred(node: Node, reasons: Sequence[str]) -> Iterator[Problem]:
    """Docker attaches no new container to the overlay of such a node; one that runs stays. Seen with 26.1."""
    availability = node.role_vars["swarm_availability"]
    if reasons and network_mode(node.role_vars) == OVERLAY and availability in ("pause", "drain"):
        text = (
            f"swarm_availability is {availability}, and Docker attaches no new container to the overlay on such a node"
        )
        yield Problem(node.host, text, "leave it active until the container runs, and set it again then")


def _compare(changes: Changes, node: Node, key: str) -> list[str]:
    """Add what differs of the container that is there, and return why it is made; nothing where it is as configured."""
    if not node.container:
        return ["there is none"]
    reasons = add_differences(changes, node.name, node.container, node.settings, key)
    if not node.runs:
        return [*reasons, "it does not run"]
    # One goes on without its network when its node leaves the swarm.
    addresses = mapping(node.container.get("addresses"))
    if node.network not in addresses:
        if "network" not in reasons:
            changes.add(f"network {node.network} of container {node.name}", None, True)
        return [*reasons, "network"]
    there = addresses[node.network]
    if node.address and there and there != node.address and "address" not in reasons:
        changes.add(f"address of container {node.name}", there, node.address)
        reasons.append("address")
    return reasons


def _folders(node: Node, key: str) -> list[ManagedFile]:
    """Return the folders that it mounts and that are not as they must be."""
    owned = ours_to_change(
        node.facts, (ManagedFile(path, None, mode) for path, mode in folders_of(node.role_vars).items())
    )
    return [item for item in owned if differs(item, mapping(node.facts.get("files")), key)]


def _add_container(changes: Changes, node: Node, reasons: Sequence[str], folders: list[ManagedFile], key: str) -> None:
    if not reasons:
        return
    for item in folders:
        add_file(changes, item, mapping(node.facts.get("files")), key)
    what = f"container {node.name}"
    if not node.container:
        place = f"network {node.network}{f', address {node.address}' if node.address else ''}"
        changes.add(what, None, f"image {node.settings[IMAGE]}, {place}")
        return
    state = str(node.container.get("state") or "unknown")
    why = ", ".join(dict.fromkeys(reasons)) if node.runs else ""
    changes.add(what, state, "made again" if node.runs else "running", why, _consent(node))


def _add_left(changes: Changes, node: Node) -> None:
    for name in node.left:
        state = str(node.beside[name].get("state") or "unknown")
        interrupted = name in (node.name + NEW, node.name + OLD)
        why = "left by a run that was interrupted" if interrupted else "of another name of this host"
        changes.add(f"container {name}", state, None, why, _consent(node, name) if name in node.renamed else None)


def _consent(node: Node, left: str = "") -> Consent | None:
    if not node.jobs:
        return None
    what = f"{left} must be removed" if left else f"{node.name} must be re-created"
    return Consent(
        variable="training_container_allow_recreate",
        effect=f"container {what}, which cuts off job {', '.join(node.jobs)} in it",
        given=bool(node.role_vars["training_container_allow_recreate"]),
        otherwise="wait for the job, or stop it",
    )


def _as_found(node: Node) -> dict[str, Any]:
    """Return what the tasks read whatever is planned."""
    return {
        **NOTHING,
        "name": node.name,
        "ours": node.ours,
        "left": node.left,
        "settings": node.settings,
        "inside": run_inside(node.name, "sh", "-c", SHARED_MEMORY),
    }


def _made(node: Node, folders: list[ManagedFile], profile: str, cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the tasks read where it is made, for the first time or again."""
    image = str(node.settings[IMAGE])
    # Beside the one that is there, so that what the engine refuses is refused before anything happens to that.
    swap = bool(node.container or node.renamed)
    name = node.name + NEW if swap else node.name
    missing = (
        f"{node.host}: the image {image}, from which the container is created, is missing. Remedy: ansible-playbook "
        "site.yml --tags training_image,training_container"
    )
    return {
        "missing": "" if image_here(image, node.facts) else missing,
        "image_check": _image_check(node, image, cluster),
        "folders": [entry_of(item) for item in folders],
        "make": {
            "name": name,
            "hostname": node.name if network_mode(node.role_vars) == OVERLAY else "",
            "labels": labels_of(node.cluster, node.settings),
            # The engine's API takes a profile itself, not the path of one.
            "security_opts": [*node.settings["security_opts"], *([PREFIX + profile] if profile else [])],
            # Also where it has ended: when the engine was restarted, its place in the overlay can be lost.
            "swap": swap,
            "restore": bool(node.runs or node.renamed),
            "others": node.renamed,
            "state": "present" if node.address or swap else "started",
        },
        # An address goes with a network by name, which docker_container looks for first, in vain on a worker.
        "connect": ["docker", "network", "connect", "--ip", node.address, node.network, name] if node.address else [],
        "start": ["docker", "start", node.name] if node.address and not swap else [],
        "ready": run_inside(node.name, "ssh", "-o", "ConnectTimeout=5", node.host, "true"),
        "log": ["docker", "logs", "--tail", "5", node.name],
    }


def _image_check(node: Node, image: str, cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return how an image is searched for what containers need. The collection's own Dockerfile installs all of it."""
    role_vars = node.role_vars
    if role_vars["training_image_source"] == "build" and not role_vars["training_image_dockerfile"]:
        return {}
    job = {
        "script": role_vars["deepspeed_launch_script"] or "",
        "launcher": role_vars["deepspeed_launch_launcher"] or "deepspeed",
        "transport": role_vars["deepspeed_launch_transport"] or "direct",
        "launcher_args": role_vars.get("deepspeed_launch_launcher_args") or [],
        "rdma": _nccl_uses_rdma(node, cluster),
    }
    options = ["--rm", "--network=none", "--pull=never", "--entrypoint=sh"]
    return {"image": image, "job": job, "argv": ["docker", "run", *options, image, "-c", check_script(job)]}


def _nccl_uses_rdma(node: Node, cluster: Mapping[str, Any]) -> bool:
    """Whether the role nccl_env names HCAs to NCCL: then the image needs what NCCL opens for them."""
    if cluster.get("accelerator") != "cuda":
        return False
    return chooses_rdma(
        network_mode(node.role_vars),
        mapping(cluster.get("rdma")),
        mapping(node.facts.get("fabric")),
        settings=mapping(node.role_vars["nccl_env_settings"]),
        environment=mapping(node.role_vars["nccl_env_environment"]),
    )


def _reach(node: Node, hosts: Sequence[str], facts: Facts) -> dict[str, Any]:
    """Return which containers are to reach one another; none on the hosts' own network, or where there is one node."""
    if network_mode(node.role_vars) != OVERLAY or len(hosts) < 2:
        return {}
    containers = {host: container_name(node.cluster, host) for host in hosts}
    port = int(node.role_vars["ssh_trust_port"] or 2222)
    return {
        "reach": {"containers": containers, "port": port},
        "reached": _reached({host: facts[host] for host in hosts}),
    }


def _reached(facts: Facts) -> bool:
    """Whether every host has reached every other one. What is gathered after a change says nothing of it."""
    return all(
        mapping(mapping(found.get("reach")).get(other)).get("stage") == "done"
        for host, found in facts.items()
        for other in facts
        if other != host
    )


def _facts_after(node: Node, folders: list[ManagedFile], made: bool, key: str) -> dict[str, Any]:
    docker = mapping(node.facts.get("docker"))
    known = {name: one for name, one in mapping(docker.get("containers")).items() if name not in node.left}
    if not made:
        return {**node.facts, "docker": {**docker, "containers": known}}
    labels = {**mapping(node.container.get("labels")), **labels_of(node.cluster, node.settings)}
    container = {
        **node.container,
        "state": "running",
        "image": node.settings[IMAGE],
        "image_id": node.settings["image_id"],
        "labels": labels,
        "addresses": {node.network: node.address or None},
    }
    return {
        **node.facts,
        "docker": {**docker, "containers": {**known, node.name: container}},
        "files": {**mapping(node.facts.get("files")), **{item.path: fact_after(item, key) for item in folders}},
    }
