# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role nccl_env: its files, the image that is queried for NCCL, and who reads the files again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..cluster.given_addresses import own_subnet
from ..core.problems import Problem
from ..plan.changes import Change, Changes, Inputs, RolePlan, Unknown
from ..plan.container import container_of, entry_point, run_inside, runs_as_ours
from ..plan.files import add_file, differs, entry_of, fact_after, found_file
from ..plan.fold import Facts, RoleVars
from ..plan.managed_file import ManagedFile
from ..plan.owned import add_records, entries, exposed, ours_to_change, owner_of_others, recorded, unrecorded
from ..workspace.environment import cuda_home
from .files import ENTRY_POINT, OVERLAY, Request, files, folders, jobs, ours, setting_plan
from .gathered import ROLE
from .proxy import proxy_environment
from .ranges import NcclError, as_text
from .settings import MARK, uses_rdma

NOTHING: dict[str, Any] = {
    "subnet": "",
    "owned": [],
    "folders": [],
    "files": [],
    "question": {},
    "render": [],
    "inside": {},
    "hcas": "",
    "host_rdma": {},
}
"""What the role's tasks read of a host on which there is nothing to do.

``hcas`` are those that ranks are to use, empty where they are to use sockets; ``host_rdma`` is what the hosts' network
needs for RDMA, whichever network is in use. verify.yml and bench_network.yml compare what NCCL took with these.
``owned`` are folders to record before anything is put into them. ``inside`` is
what verify reads in the container, and the lines that it must find there.
"""
QUESTION = """\
try:
    import torch
    found = torch.cuda.nccl.version() if torch.version.cuda else None
except Exception:
    found = None
print('.'.join(map(str, found)) if isinstance(found, tuple) else 'unknown')
"""
NO_RDMA = {"link_layer": None, "reason": "no node has an active RDMA port"}
_AS_BUILT = "as-built unknown\n"
_WHY = {"env": "nccl_env_environment or nccl_env_proxy", "nccl.release": "another image"}


@dataclass(frozen=True)
class Release:
    """The release of NCCL that ranks use, as text, empty where it is not known yet.

    ``record`` is kept beside the image's id, so that an image is queried once; None: no record is kept.
    """

    text: str
    record: str | None = None
    queried_image: str = ""


class NcclEnvPlanner:
    """Plans each host by its own facts, and by what the cluster as a whole has."""

    role = ROLE

    def files(self, role_vars: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        yield ENTRY_POINT

    def plan(self, facts: Facts, role_vars: RoleVars, inputs: Inputs) -> RolePlan:
        changes: list[Change] = []
        refusals: list[Problem] = []
        task_inputs: dict[str, Mapping[str, Any]] = {}
        after: dict[str, Mapping[str, Any]] = {}
        for host, found in facts.items():
            if not inputs.cluster.get("underlay"):  # what concerns all hosts is not known; preflight says why
                task_inputs[host] = NOTHING
                continue
            requested = request(host, role_vars[host], inputs)
            refusals += [
                Problem(
                    host,
                    (
                        f"{path} existed before this collection, and other accounts than its owner can write there "
                        f"(mode {mode}) and so replace what root puts there"
                    ),
                    f"chmod go-w {path} there, or set another cluster_root",
                )
                for path, mode in exposed(found, ours(requested))
            ]
            if not requested.runtime_host and (owner := owner_of_others(found, requested.etc)):
                text = (
                    f"{requested.etc} existed before this collection and belongs to user {owner}, but sshd in the "
                    "container accepts keys only from a folder of root"
                )
                remedy = f"chown root {requested.etc} there, or set another cluster_root"
                refusals.append(Problem(host, text, remedy))
            known, release = _section(found, "files"), release_of(requested, found)
            try:
                planned = setting_plan(requested, _section(found, "fabric"), release.text or requested.expected)
            except NcclError as error:
                refusals.append(Problem(host, error.text, error.remedy))
                task_inputs[host] = {**NOTHING, "subnet": requested.subnet}
                continue
            owned = [
                *ours_to_change(found, folders(requested)),
                *files(requested, planned["lines"], inputs.files.get(ENTRY_POINT, "")),
            ]
            record = f"{requested.etc}/nccl.release"
            if release.record is not None:
                owned.append(ManagedFile(record, release.record))
            different = [item for item in owned if differs(item, known, inputs.digest_key)]
            # On servers without Docker the folder of jobs is in both lists.
            records = [*unrecorded(found, ours(requested)), *unrecorded(found, jobs(requested), there=True)]
            records = list(dict.fromkeys(records))
            collected = Changes(ROLE, host)
            add_records(collected, found, records)
            for item in different:
                if item.path == record and not release.text:
                    _add_record(collected, item, known)
                else:
                    add_file(collected, item, known, inputs.digest_key, _WHY.get(item.path.rpartition("/")[2], ""))
            changes += collected.found
            task_inputs[host] = {
                **task_input(requested, found, release, different),
                "owned": entries(records),
                "hcas": planned["settings"].get("NCCL_IB_HCA", "") if uses_rdma(planned["settings"]) else "",
                "host_rdma": _host_rdma(requested, found, release),
            }
            if different or records:
                left = {item.path: fact_after(item, inputs.digest_key) for item in owned}
                if release.record is not None:
                    left[record]["content"] = release.record
                after[host] = {**found, "files": {**known, **left}, "folders": recorded(found, records)}
        return RolePlan(changes, refusals, task_inputs, after)


def request(host: str, role_vars: Mapping[str, Any], inputs: Inputs) -> Request:
    """Return what is configured for a host's settings, with what the cluster says."""
    cluster = inputs.cluster
    underlay = cluster["underlay"]
    mode = str(role_vars["cluster_network_mode"] or OVERLAY)
    subnet = (cluster.get("overlay") or {}).get("subnet") if mode == OVERLAY else own_subnet(underlay, host)
    return Request(
        cluster=str(role_vars["cluster_name"]),
        host=host,
        root=str(role_vars["cluster_root"]),
        runtime_host=role_vars["deepspeed_launch_runtime"] == "host",
        network_mode=mode,
        network=str(role_vars["overlay_network_name"]) if mode == OVERLAY else mode,
        ssh_port=int(role_vars["ssh_trust_port"] or 2222),
        subnet=str(subnet or ""),
        interface=str((underlay.get("interfaces") or {}).get(host) or ""),
        rdma=cluster.get("rdma") or NO_RDMA,
        accelerator=str(cluster.get("accelerator") or "cpu"),
        image=str(cluster.get("image") or ""),
        version=str(role_vars["nccl_env_version"] or ""),
        debug=str(role_vars["nccl_env_debug"] or ""),
        timeout=int(role_vars["nccl_env_timeout"] or 0),
        settings=role_vars["nccl_env_settings"],
        environment={**proxy_environment(role_vars, cluster, str(subnet or "")), **role_vars["nccl_env_environment"]},
        cuda_home=cuda_home(role_vars, cluster),
        expected=_expected(role_vars, cluster),
    )


def _expected(role_vars: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    """Return the release of NCCL that comes with the PyTorch that was chosen; empty where the user brings PyTorch."""
    if cluster.get("accelerator") != "cuda":
        return ""
    on_host = role_vars["deepspeed_launch_runtime"] == "host"
    own_image = role_vars["training_image_source"] != "build" or role_vars["training_image_dockerfile"]
    if not role_vars["workspace_python_environment"] if on_host else own_image:
        return ""
    return str((cluster.get("versions") or {}).get("nccl") or "")


def _host_rdma(requested: Request, facts: Mapping[str, Any], release: Release) -> dict[str, str]:
    """Return what NCCL needs for RDMA in the hosts' network; nothing where it would not take what is set there."""
    try:
        planned = setting_plan(requested, _section(facts, "fabric"), release.text or requested.expected, "host")
    except NcclError:
        return {}
    names = ("NCCL_IB_DISABLE", "NCCL_IB_GID_INDEX", "NCCL_IB_HCA")
    return {name: value for name, value in planned["settings"].items() if name in names}


def release_of(requested: Request, facts: Mapping[str, Any]) -> Release:
    """Return the release: as it is configured, else as the image reported when it was new here.

    Not on CPUs, where NCCL is not used, nor without Docker, where ranks' Python may be installed later in this run.
    """
    if requested.version or requested.runtime_host or requested.accelerator != "cuda":
        return Release(requested.version)
    record = found_file(_section(facts, "files"), f"{requested.etc}/nccl.release")
    there = str(record.get("content") or "").split()
    image, release = (*there, "", "")[:2]
    if not requested.image:  # the role is applied alone: what is recorded stays
        return Release(release)
    here = _section(_section(facts, "docker"), "images").get(requested.image)
    if not here:
        return Release("", _AS_BUILT)
    if image != here:
        return Release("", f"{here} unknown\n", str(here))
    return Release(release or "unknown", f"{here} {release or 'unknown'}\n")


def task_input(
    requested: Request, facts: Mapping[str, Any], release: Release, different: list[ManagedFile]
) -> dict[str, Any]:
    """Return what the role's tasks read. Its files may hold secrets."""
    record = f"{requested.etc}/nccl.release"
    entries = [item for item in different if not (item.path == record and release.queried_image)]
    question: dict[str, Any] = {}
    if release.queried_image:
        python = ["--entrypoint", "python3", requested.image, "-c", QUESTION]
        question = {
            "argv": ["docker", "run", "--rm", "--network", "none", *python],
            "record": record,
            "image": release.queried_image,
        }
    container = container_of(facts, requested.cluster, requested.host)
    attached = requested.network in _section(container, "addresses")
    takes_over = not requested.runtime_host and attached and runs_as_ours(container, requested.cluster)
    read = [item for item in different if item.text is not None and item.path != record]
    return {
        "subnet": requested.subnet,
        "folders": [entry_of(item) for item in entries if item.text is None],
        "files": [entry_of(item) for item in entries],
        "question": question,
        # One that is about to be re-created renders them itself, but does so here without harm.
        "render": entry_point(requested.cluster, requested.host, "render") if read and takes_over else [],
        "inside": {} if requested.runtime_host else inside(requested, container),
    }


def inside(requested: Request, container: Mapping[str, Any]) -> dict[str, Any]:
    """Return what verify reads in the container, and what must be there once the interface is filled in."""
    gloo = requested.environment.get("GLOO_SOCKET_IFNAME", MARK)
    nccl = as_text(requested.settings.get("NCCL_SOCKET_IFNAME", f"={MARK}"))
    script = f"cat /etc/nccl.conf; grep ^GLOO_SOCKET_IFNAME= /root/.ssh/environment; {requested.locate}"
    return {
        "container": requested.container,
        "state": str(container.get("state") or "absent"),
        "argv": run_inside(requested.container, "sh", "-c", script),
        "lines": [f"GLOO_SOCKET_IFNAME={gloo}", *([f"NCCL_SOCKET_IFNAME={nccl}"] if nccl else [])],
    }


def _add_record(changes: Changes, item: ManagedFile, known: Mapping[str, Any]) -> None:
    """What the image will say is not known before it was asked."""
    found = found_file(known, item.path)
    before = (str(found.get("content") or "").strip() or "(an empty file)") if found.get("exists") is True else None
    changes.add(item.path, before, Unknown("the release of NCCL that the image has"), _WHY["nccl.release"])


def _section(facts: Any, name: str) -> Mapping[str, Any]:
    value = facts.get(name) if isinstance(facts, Mapping) else None
    return value if isinstance(value, Mapping) else {}
