# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What each node of a job must have before it starts: memory, GPUs, a port, files, space, and no dead locks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ..core.problems import Problem, listing
from . import gpus
from .node import GIB, MIB, SITE, Node, by, names, size

SHM_EVER = 64 * MIB
"""Docker's own size: data loaders and NCCL run out of it."""
SHM_SLOTS = GIB
"""Bytes of /dev/shm for several ranks on a node."""
SHM_FREE = 256 * MIB
"""Bytes of it that must be free for several ranks; SHM_EVER for one."""
MEMLOCK = GIB
"""Bytes of locked memory below which InfiniBand cannot register its buffers."""


def check_memory(nodes: Sequence[Node]) -> Iterator[Problem]:
    """Shared and locked memory."""
    for node in nodes:
        shm, several = node.answer["shm"], len(node.requested["slots"]) > 1
        if shm["error"]:
            yield Problem(node.name, f"/dev/shm: {shm['error']}", "the ranks need it: mount a tmpfs there")
        elif shm["size"] <= SHM_EVER or (several and shm["size"] < SHM_SLOTS):
            requested = f" for {len(node.requested['slots'])} ranks" if several else ""
            remedy = (
                f"raise training_container_shm_size ({SITE} training_container)"
                if node.contained
                else "mount -o remount,size=50% /dev/shm"
            )
            yield Problem(node.name, f"/dev/shm has {size(shm['size'])}, too little{requested}", remedy)
        elif shm["free"] < (SHM_FREE if several else SHM_EVER):
            largest = f"; largest there: {', '.join(shm['largest'])}" if shm["largest"] else ""
            yield Problem(
                node.name,
                f"/dev/shm is full: {size(shm['free'])} of {size(shm['size'])} are free{largest}",
                "remove what an earlier job left there, or stop the job that uses it",
            )
        yield from _locked(node)


def _locked(node: Node) -> Iterator[Problem]:
    limit, exempt = node.answer["memlock"]["limit"], node.answer["memlock"]["exempt"]
    if limit is None or node.requested["accelerator"] != "cuda":
        return
    text = f"the limit of locked memory is {size(limit)}"
    if node.answer["infiniband"] and not exempt and limit < MEMLOCK:
        remedy = (
            f"training_container_ulimits with memlock:-1:-1 ({SITE} training_container)"
            if node.contained
            else "memlock unlimited in /etc/security/limits.d (host_limits), and log in again"
        )
        yield Problem(node.name, f"{text}, too little for InfiniBand", remedy)
    elif not exempt:
        yield Problem(node.name, f"{text}; that is enough without InfiniBand", "", fatal=False)


def check_gpus(nodes: Sequence[Node]) -> Iterator[Problem]:
    """The GPUs of the job's slots work and are free."""
    for node in nodes:
        if node.answer["smi"] is None:
            continue
        remedies = {
            "broken": f"{SITE} nvidia_container_toolkit,training_container"
            if node.contained
            else f"{SITE} nvidia_driver",
            "absent": "correct gpu_slots or deepspeed_launch_include",
            "busy": "end what uses it, or choose other slots with deepspeed_launch_include",
            "mode": "set it with nvidia-smi -c DEFAULT, or choose other slots with deepspeed_launch_include",
            "note": "",
        }
        for finding in gpus.judge(node.answer["smi"], node.requested["slots"]):
            yield Problem(node.name, finding.text, remedies[finding.kind], fatal=finding.kind != "note")


def check_port(nodes: Sequence[Node]) -> Iterator[Problem]:
    """The port of the rendezvous is free."""
    for node in nodes:
        port = node.answer["port"]
        if port and port["error"]:
            holder = f" by process {port['holder']}" if port["holder"] else ""
            what = f"is taken{holder}" if "in use" in port["error"] else f"cannot be listened on ({port['error']})"
            remedy = "end that process, or set deepspeed_launch_master_port to another port or to 0"
            yield Problem(node.name, f"port {port['port']} of the rendezvous {what}", remedy)


def check_files(nodes: Sequence[Node]) -> Iterator[Problem]:
    """Script, configuration, hostfile and data are there, and the first three are the same everywhere."""
    again = f"{SITE} workspace"
    files = (("script", again), ("ds_config", f"{SITE} ds_config"), ("hostfile", f"{SITE} hostfile"))
    for node in nodes:
        answer = node.answer
        if answer["chdir"]:
            yield Problem(node.name, f"the working directory {node.requested['chdir']} {answer['chdir']}", again)
        for what, remedy in files:
            if answer[what] and answer[what]["error"]:
                yield Problem(node.name, f"{what} {answer[what]['path']} {answer[what]['error']}", remedy)
        for path, error in answer["paths"].items():
            if error:
                remedy = (
                    "bring it there, or mount it (training_container_volumes)" if node.contained else "bring it there"
                )
                yield Problem(node.name, f"{path} of deepspeed_launch_data_paths {error}", remedy)
    for what, remedy in files:
        found = by(nodes, partial(_digest, what))
        if len(found) > 1:
            shown = "; ".join(f"one on {names(where)}" for where in found.values())
            yield Problem(what, f"its content differs between the nodes: {shown}", remedy)


def check_exports(nodes: Sequence[Node]) -> Iterator[Problem]:
    """DeepSpeed's runner, on the first node, gives no other one a value that is good for this one alone."""
    for node in nodes[:1]:
        for path, variables in (node.answer.get("exports") or {}).items():
            where = "which DeepSpeed exports to all nodes in place of their own values"
            text = f"{path} sets {listing(variables)}, {where}"
            remedy = (
                "remove it from that file: role nccl_env finds each node's, and nccl_env_settings or "
                "nccl_env_environment of a host set others"
            )
            yield Problem(node.name, text, remedy)


def _digest(what: str, node: Node) -> str:
    return str((node.answer[what] or {}).get("sha256") or "")


def check_space(nodes: Sequence[Node]) -> Iterator[Problem]:
    """There is room for checkpoints, in a folder that can be written to."""
    for node in nodes:
        space, need = node.answer["checkpoints"], node.requested["checkpoint_gib"]
        if not space:
            continue
        if space["error"] or not space["writable"]:
            why = space["error"] or f"{space['at']} cannot be written to"
            yield Problem(node.name, f"checkpoints {space['path']}: {why}", "correct deepspeed_launch_checkpoints")
        elif need and space["free"] < need * GIB:
            requested = size(int(need * GIB))
            yield Problem(
                node.name,
                f"{space['at']} has {size(space['free'])} free for checkpoints, but {requested} are needed",
                "free space there, or correct deepspeed_launch_checkpoints or deepspeed_launch_checkpoint_gib",
            )


def check_locks(nodes: Sequence[Node]) -> Iterator[Problem]:
    """No lock is left in torch's extension cache for which all ranks would wait."""
    for node in nodes:
        for lock in node.answer["locks"]:
            age = f"{lock['path']}, {lock['age']} s old"
            if lock["error"]:
                text = f"the dead lock {age}, cannot be removed ({lock['error']}), and every rank would wait for it"
                yield Problem(node.name, text, "remove it by hand")
            elif lock["state"] == "removed":
                yield Problem(node.name, f"the dead lock {age}, was removed", "", fatal=False)
            elif lock["state"] == "gone":
                continue
            elif lock["state"] == "dead":
                yield Problem(node.name, f"the dead lock {age}, is removed before a start", "", fatal=False)
            elif lock["state"] == "shared":
                text = f"the lock {age}, is on a network file system: whether another machine holds it is unknown"
                remedy = "if nothing is compiling, remove it; every rank would wait for it"
                yield Problem(node.name, text, remedy, fatal=False)
            else:
                who = f" by process {lock['holder']}" if lock["holder"] else ""
                text = (
                    f"the lock {age}, {'is' if lock['state'] == 'held' else 'may be'} held{who}; the ranks wait for it"
                )
                yield Problem(node.name, text, "", fatal=False)


def check_operators(nodes: Sequence[Node]) -> Iterator[Problem]:
    """What DeepSpeed would compile at the first step can be compiled there."""
    for node in nodes:
        found = node.answer["operators"]
        if not found["compile"]:
            continue
        text = f"DeepSpeed compiles {', '.join(found['compile'])} at the first step"
        if not found["missing"]:
            yield Problem(node.name, f"{text}, which takes minutes", "", fatal=False)
            continue
        remedy = (
            f"add them to training_image_deepspeed_ops, or set training_image_compiler: true ({SITE} "
            "training_image,training_container); an image of your own needs the one or the other built in"
            if node.contained
            else "install what is missing, or a DeepSpeed with these operators"
        )
        yield Problem(node.name, f"{text}; missing there: {', '.join(found['missing'])}", remedy)
