# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role training_image: who has the image, who builds, loads or pulls it, and who gets it from whom.

Ids differ between stores of images, so nodes are compared by the digest of the image's content. While a job runs, no
image is built, and none replaced on its nodes: its container would be made again after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..core.problems import Problem
from ..core.values import mapping, texts
from ..docker.unseen import unseen
from ..plan.changes import Change, Changes, Consent, Inputs, RolePlan, Unknown
from ..plan.container import container_of
from ..plan.fold import Facts, RoleVars
from ..plan.jobs import active_jobs
from .gathered import ROLE
from .inputs import Trouble
from .recipe import Recipe, files, named, recipe

NOTHING: dict[str, Any] = {
    "reference": "",
    "root": "",
    "holder": "",
    "content": "",
    "there": "",
    "pull": False,
    "archive": "",
    "build": {},
    "chain": [],
    "addresses": {},
    "prune": [],
    "removable": [],
}
"""What the role's tasks read of a host on which there is nothing to do.

``content`` is the digest of what is here, ``there`` that of ``holder``, who gives the image to the others: ``chain``
are the holder and those that it gives it to, in order. ``removable`` is what teardown removes.
"""
GIVEN = ("build", "archive")
"""Sources by which one node makes the image, and gives it to the others."""
_MADE = {"build": "built here", "archive": "loaded from training_image_archive"}
_UNKNOWN_CONTENT = "an unknown content"


@dataclass(frozen=True)
class _Cluster:
    """The image on all hosts of the cluster. The role_vars of the first host count, as the image is one for all."""

    hosts: Sequence[str]
    facts: Facts
    role_vars: Mapping[str, Any]
    reference: str
    recipe: Recipe | None
    addresses: Mapping[str, Any]

    @property
    def source(self) -> str:
        return str(self.role_vars["training_image_source"])

    @cached_property
    def contents(self) -> dict[str, str]:
        """What each host has; empty where there is no such image."""
        return {host: self._content(host) for host in self.hosts}

    def _content(self, host: str) -> str:
        known = docker(self.facts[host], "image_contents").get(self.reference)
        here = docker(self.facts[host], "images").get(self.reference)
        return str(known or (_UNKNOWN_CONTENT if here else ""))

    @cached_property
    def holder(self) -> str:
        """Who gives the image to others: the first manager, else the first host that has it.

        Where none has it, the first manager makes it.
        """
        having = [host for host in self.hosts if self.contents[host]]
        return self.hosts[0] if not having or self.hosts[0] in having else having[0]

    @property
    def there(self) -> str:
        return self.contents[self.holder]

    @property
    def lacking(self) -> list[str]:
        """Hosts that need what the holder has, or is about to have."""
        if unseen(self.facts[self.holder]):
            return []
        others = [host for host in self.hosts if host != self.holder and not unseen(self.facts[host])]
        return [host for host in others if self.contents[host] != (self.there or None)]

    @cached_property
    def jobs(self) -> dict[str, list[str]]:
        """The jobs that run in each host's container."""
        return {host: self._jobs(host) for host in self.hosts}

    def _jobs(self, host: str) -> list[str]:
        facts = self.facts[host]
        if container_of(facts, str(self.role_vars["cluster_name"]), host).get("state") != "running":
            return []
        return active_jobs(facts)

    @cached_property
    def former(self) -> str:
        """The image of which the containers are made until now, where it is another one."""
        cluster = str(self.role_vars["cluster_name"])
        images = [str(container_of(self.facts[host], cluster, host).get("image") or "") for host in self.hosts]
        others = [image for image in dict.fromkeys(images) if image not in ("", self.reference)]
        return ", ".join(others[:3])

    def consent(self, host: str) -> Consent | None:
        """What it takes to build an image, or to replace that of a host, while a job runs."""
        jobs = [job for one in self.hosts for job in self.jobs[one]] if self.makes(host) else self.jobs[host]
        if not jobs:
            return None
        what = "made" if self.makes(host) else "replaced"
        return Consent(
            variable="training_container_allow_recreate",
            effect=f"image {self.reference} must be {what} while job {', '.join(dict.fromkeys(jobs))} runs, and the "
            "training containers are then re-created",
            given=bool(self.role_vars["training_container_allow_recreate"]),
            otherwise="wait for the job, or stop it",
        )

    def makes(self, host: str) -> bool:
        """Whether this host builds, loads or pulls it."""
        return host == self.holder and not self.there and not unseen(self.facts[host])

    @property
    def coming(self) -> Any:
        """What hosts that lack the image will have."""
        if self.there:
            return self.there
        return Unknown("what the registry has" if self.source == "pull" else f"what {self.holder} makes")


class TrainingImagePlanner:
    """Plans all hosts of the cluster together, or none: the image is to be the same on all."""

    role = ROLE

    def files(self, role_vars: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        if role_vars["training_image_source"] == "build" and role_vars["deepspeed_launch_runtime"] != "host":
            yield from files(role_vars)

    def plan(self, facts: Facts, role_vars: RoleVars, inputs: Inputs) -> RolePlan:
        nothing = {host: {**NOTHING, "removable": _removable(facts[host], role_vars[host])} for host in facts}
        hosts = texts(inputs.cluster.get("hosts"))
        if not hosts or "accelerator" not in inputs.cluster or any(host not in facts for host in hosts):
            return RolePlan(task_inputs=nothing)  # preflight says why
        if any(role_vars[host]["deepspeed_launch_runtime"] == "host" for host in hosts):
            return RolePlan(task_inputs=nothing)  # ranks are processes of the hosts
        desired = role_vars[hosts[0]]
        built = recipe(desired, inputs) if desired["training_image_source"] == "build" else None
        if isinstance(built, Trouble):
            refusal = Problem(hosts[0], f"{built.subject} {built.text}", built.remedy)
            return RolePlan(refusals=[refusal], task_inputs=nothing)
        reference = built.reference if built else str(desired.get("swarmspeed_image") or named(desired))
        addresses = mapping(mapping(inputs.cluster.get("underlay")).get("addresses"))
        cluster = _Cluster(hosts, facts, desired, reference, built, addresses)
        changes = {host: _plan_host(cluster, host) for host in hosts}
        old = {host: _old_images(cluster, host) if desired["training_image_prune"] else [] for host in hosts}
        for host, names in old.items():
            for name in names:
                changes[host].add(f"image {name}", True, None, "training_image_prune", tolerated=True)
        made: list[Change] = [change for host in hosts for change in changes[host].found]
        return RolePlan(
            made,
            list(_refusals(cluster)),
            task_inputs={
                **nothing,
                **{host: {**nothing[host], **_task_input(cluster, host, old[host])} for host in hosts},
            },
            facts={host: _without(facts[host], names) for host, names in old.items() if names},
            cluster={"image": reference},
        )


def _plan_host(cluster: _Cluster, host: str) -> Changes:
    """Return the changes of a host. What it gets is not among its facts afterwards: its id is known only then."""
    changes = Changes(ROLE, host)
    image, given = f"image {cluster.reference}", cluster.source in GIVEN
    if cluster.source == "present":
        return changes
    if host == cluster.holder:
        if cluster.makes(host):
            why = _MADE.get(cluster.source, "pulled")
            if cluster.recipe and cluster.recipe.requirements.auto:
                why += f" with the packages of {cluster.recipe.requirements.path}"
            why += f", in place of {cluster.former}" if cluster.former else ""
            changes.add(image, None, cluster.coming, why, cluster.consent(host))
        for other in cluster.lacking if given else ():
            changes.add(f"{image} on {other}", cluster.contents[other] or None, cluster.coming, "from here")
    elif host in cluster.lacking:
        before = cluster.contents[host] or None
        why = f"from {cluster.holder}" if given else "pulled"
        changes.add(f"content of {image}" if before else image, before, cluster.coming, why, cluster.consent(host))
    return changes


def _refusals(cluster: _Cluster) -> Iterable[Problem]:
    """Refuse where it should be present and is not. One of another content cannot be replaced; verify fails at it."""
    for host in cluster.hosts if cluster.source == "present" else ():
        if not cluster.contents[host] and not unseen(cluster.facts[host]):
            yield Problem(
                host,
                f"the image {cluster.reference} is missing, and training_image_source: present does not fetch it",
                "load it on this node (docker load), or set training_image_source to pull, archive or build",
            )


def _task_input(cluster: _Cluster, host: str, old: list[str]) -> dict[str, Any]:
    """Return what the role's tasks read. A build may hold passwords."""
    makes = cluster.makes(host)
    chain = [cluster.holder, *cluster.lacking] if cluster.source in GIVEN and cluster.lacking else []
    content = cluster.contents[host]
    wants = makes or host in cluster.lacking
    return {
        "reference": cluster.reference,
        "root": str(cluster.role_vars["cluster_root"]),
        "holder": cluster.holder,
        "content": "" if content == _UNKNOWN_CONTENT else content,
        "there": cluster.there,
        "pull": wants and cluster.source == "pull",
        "archive": str(cluster.role_vars["training_image_archive"]) if makes and cluster.source == "archive" else "",
        "build": _build(cluster, host) if makes and cluster.recipe else {},
        "chain": chain if host in chain else [],
        "addresses": dict(cluster.addresses) if host in chain else {},
        "prune": old,
    }


def _build(cluster: _Cluster, host: str) -> dict[str, Any]:
    made = cluster.recipe.task_input() if cluster.recipe else {}
    # By which a later run knows it as this cluster's, to remove it.
    return {**made, "labels": {"swarmspeed.cluster": str(cluster.role_vars["cluster_name"])}}


def _of_repository(facts: Mapping[str, Any], role_vars: Mapping[str, Any]) -> list[str]:
    prefix = f"{role_vars['training_image_repository']}:"
    return [name for name in docker(facts, "images") if name.startswith(prefix)]


def _old_images(cluster: _Cluster, host: str) -> list[str]:
    """Return older images of this cluster, of which no container is made.

    By its name an image could be somebody else's, and by its label made from ours: both must say that it is ours.
    """
    facts, name = cluster.facts[host], str(cluster.role_vars["cluster_name"])
    used = {mapping(container).get("image_id") for container in docker(facts, "containers").values()}
    images, clusters = docker(facts, "images"), docker(facts, "image_clusters")
    return sorted(
        image
        for image in _of_repository(facts, cluster.role_vars)
        if image != cluster.reference and images[image] not in used and clusters.get(image) == name
    )


def _removable(facts: Mapping[str, Any], role_vars: Mapping[str, Any]) -> list[str]:
    """Return what teardown removes: all images of the repository, by consent."""
    running = mapping(facts.get("docker")).get("running")
    return _of_repository(facts, role_vars) if role_vars["training_image_remove"] and running else []


def _without(facts: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    images = {name: found for name, found in docker(facts, "images").items() if name not in names}
    return {**facts, "docker": {**mapping(facts.get("docker")), "images": images}}


def docker(facts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return mapping(mapping(facts.get("docker")).get(name))
