# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role assets: which files of models and data sets each node lacks, and who gives them to whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...module_utils.common.untrusted_text import on_one_line
from ..core.problems import Problem
from ..core.values import mapping, texts
from ..plan.changes import Change, Changes, Consent, Inputs, RolePlan
from ..plan.controller import TEXT
from ..plan.fold import Facts, RoleVars
from .gathered import ENVIRONMENTS, ROLE, cache_of, manifest_path, sources_of
from .manifest import Manifest, from_text, size_text

NOTHING: dict[str, Any] = {
    "root": "",
    "place": "",
    "chain": [],
    "addresses": {},
    "manifests": {},
    "fetch": [],
    "names": [],
}
"""What the role's tasks read of a host on which there is nothing to do.

``chain`` are the nodes that take part, in order; ``manifests`` are the controller's lists of files by name, ``fetch``
the SHA-256 of those that the first node of the chain lacks. ``names`` are all models and data sets.
"""
LISTED = 20
"""Files that are listed by name, of those that are missing, differ or go."""
SHARED = (
    *("nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "9p", "afs"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.juicefs", "fuse.s3fs"),
)
"""File systems that several nodes may have mounted."""
COMPILED = (
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "CUDA_CACHE_PATH",
    "HF_DATASETS_CACHE",
)
"""Variables that name a folder into which programs compile, or unpack."""
_ABSENT, _CHANGED, _OTHER, _GONE = None, "changed on the node", "different", "listed before"


@dataclass
class _Host:
    """What is found out about one host: by asset and path what is wrong, and the files that it lacks."""

    name: str
    facts: Mapping[str, Any]
    role_vars: Mapping[str, Any]
    manifests: Mapping[str, Manifest]
    changes: Changes
    wrong: dict[str, list[tuple[str, str | None, bool]]] = field(default_factory=dict)
    lacks: dict[str, int] = field(default_factory=dict)

    @property
    def root(self) -> str:
        return str(self.role_vars["assets_path"])

    @property
    def part(self) -> Mapping[str, Any]:
        return mapping(self.facts.get("assets"))

    @property
    def bytes(self) -> int:
        return sum(self.lacks.values())

    def found(self, name: str) -> Mapping[str, Any]:
        return mapping(mapping(self.part.get("found")).get(name))

    def foreign(self, name: str) -> bool:
        """Whether there is a folder of this name with files in it that this role did not put there."""
        return bool(self.found(name).get("there")) and not self.found(name).get("recorded")

    def compare(self) -> None:
        for name, manifest in self.manifests.items():
            wrong = list(_differences(self.found(name), manifest))
            if not wrong:
                continue
            self.wrong[name] = wrong
            paths = {path for path, dummy, wanted in wrong if wanted}
            self.lacks.update({sha256: size for path, size, sha256 in manifest.files if path in paths})


def _differences(found: Mapping[str, Any], manifest: Manifest) -> Iterator[tuple[str, str | None, bool]]:
    """Yield each path that is not as listed, what is there, and whether it is listed."""
    changed, missing = set(texts(found.get("changed"))), set(texts(found.get("missing")))
    recorded = {str(path): str(digest) for path, digest in mapping(found.get("files")).items()}
    if found.get("recorded") and found.get("digest") == manifest.digest:
        recorded = {path: sha256 for path, dummy, sha256 in manifest.files}
    listed = set()
    for path, dummy, sha256 in manifest.files:
        listed.add(path)
        if path not in recorded or path in missing:
            yield path, _ABSENT, True
        elif path in changed:
            yield path, _CHANGED, True
        elif recorded[path] != sha256:
            yield path, _OTHER, True
    for path in recorded:
        if path not in listed:
            yield path, _GONE, False


@dataclass(frozen=True)
class _Cluster:
    hosts: Sequence[_Host]
    addresses: Mapping[str, Any]

    @cached_property
    def chain(self) -> list[str]:
        """Return the nodes that take part: first who lacks least, and gets it from the controller."""
        wrong = [host.name for host in self.hosts if host.wrong]
        if not wrong:
            return []
        first = min(self.hosts, key=lambda host: host.bytes)
        return [first.name, *(name for name in wrong if name != first.name)]


class AssetsPlanner:
    """Plans all hosts of the cluster together: a node gets from the one before it what the controller sent once."""

    role = ROLE

    def files(self, role_vars: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        for source in sources_of(role_vars):
            yield f"{TEXT}{manifest_path(cache_of(role_vars), source)}"

    def plan(self, facts: Facts, role_vars: RoleVars, inputs: Inputs) -> RolePlan:
        names = texts(inputs.cluster.get("hosts"))
        nothing = {host: dict(NOTHING) for host in facts}
        if not names or any(name not in facts for name in names):
            return RolePlan(task_inputs=nothing)  # preflight says why
        hosts = [
            _Host(name, facts[name], role_vars[name], _manifests(role_vars[name], inputs), Changes(ROLE, name))
            for name in names
        ]
        for host in hosts:
            host.compare()
        cluster = _Cluster(hosts, mapping(mapping(inputs.cluster.get("underlay")).get("addresses")))
        for host in hosts:
            _add_changes(host)
        _add_given(cluster)
        made: list[Change] = [change for host in hosts for change in host.changes.found]
        return RolePlan(
            made,
            [refusal for host in hosts for refusal in _refusals(host, len(hosts) > 1)],
            task_inputs={**nothing, **{host.name: _task_input(cluster, host) for host in hosts}},
            facts={host.name: _after(host) for host in hosts if host.wrong},
        )


def _manifests(role_vars: Mapping[str, Any], inputs: Inputs) -> dict[str, Manifest]:
    found = {}
    for source in sources_of(role_vars):
        manifest = from_text(inputs.files.get(f"{TEXT}{manifest_path(cache_of(role_vars), source)}", ""))
        if manifest:
            found[source.name] = manifest
    return found


def _add_changes(host: _Host) -> None:
    for name, wrong in host.wrong.items():
        path, source = f"{host.root}/{name}", host.manifests[name].source
        after = f"as in {source}"
        if host.foreign(name):
            consent = Consent(
                "assets_allow_adopt",
                f"files in {path} that this role did not put there are replaced where they differ",
                bool(host.role_vars["assets_allow_adopt"]),
                "move the folder away first",
            )
            host.changes.add(path, "files of somebody else", after, consent=consent)
            continue
        listed: set[str] = set()
        for before in (_ABSENT, _CHANGED, _OTHER, _GONE):
            paths = [one for one, found, dummy in wrong if found == before]
            wanted = None if before == _GONE else after
            for one in paths[:LISTED]:
                what = f"{path}/{on_one_line(one)}"
                if what not in listed:  # without what a terminal would obey, two names can look alike
                    host.changes.add(what, before, wanted)
                listed.add(what)
            more = len(paths) - len(paths[:LISTED])
            if more:
                kind = f"files that are {before}" if before in (_CHANGED, _OTHER) else "files"
                kind = "files to remove" if before == _GONE else kind
                host.changes.add(f"{more} more {kind} below {path}", before, wanted)


def _add_given(cluster: _Cluster) -> None:
    """A node that lacks nothing and gives is part of it, too."""
    for host in cluster.hosts:
        if cluster.chain and host.name == cluster.chain[0] and not host.wrong:
            for other in cluster.hosts:
                for name, wrong in other.wrong.items():
                    count = len([path for path, dummy, wanted in wrong if wanted])
                    after = f"as on {host.name}"
                    host.changes.add(f"{name} on {other.name}", f"{count} files missing or different", after)


def _refusals(host: _Host, several: bool) -> Iterator[Problem]:
    for variable in ENVIRONMENTS if host.manifests else ():
        for name, value in mapping(host.role_vars.get(variable)).items():
            if name in COMPILED and f"{value}/".startswith(f"{host.root}/"):
                yield Problem(
                    host.name,
                    f"{name} in {variable} is below {host.root}, where programs cannot write",
                    f"set {name} to a folder of each node's own, such as /tmp/cache, or leave it out",
                )
    if not host.wrong:
        return
    kind, free = str(host.part.get("filesystem") or ""), host.part.get("free_bytes")
    if kind in SHARED and several:
        yield Problem(
            host.name,
            f"{host.root} is on {kind}; several nodes may have it mounted, and each of them would write there",
            "set assets_path to a folder on a disk of the node's own",
        )
    came = host.part.get("incoming_bytes")
    needed = max(0, host.bytes - (came if isinstance(came, int) else 0))
    if isinstance(free, int) and needed > free:
        yield Problem(
            host.name,
            (
                f"{size_text(free)} are free in {host.root}, but {size_text(needed)} are needed there for "
                f"{', '.join(host.wrong)}"
            ),
            "free space there, or set assets_path to a folder on a larger disk",
        )


def _task_input(cluster: _Cluster, host: _Host) -> dict[str, Any]:
    task_input = {**NOTHING, "root": host.root, "names": list(host.manifests)}
    if host.name not in cluster.chain:
        return task_input
    concerned = [name for name in host.manifests if any(name in other.wrong for other in cluster.hosts)]
    paths = {source.name: manifest_path(cache_of(host.role_vars), source) for source in sources_of(host.role_vars)}
    first = host.name == cluster.chain[0]
    return {
        **task_input,
        "place": f"{host.role_vars['cluster_root']}/assets_transfer",
        "chain": cluster.chain,
        "addresses": dict(cluster.addresses),
        "manifests": {name: str(paths[name]) for name in concerned},
        "fetch": list(host.lacks) if first else [],
    }


def _after(host: _Host) -> dict[str, Any]:
    as_wanted = {
        name: {
            "recorded": True,
            "there": True,
            "digest": host.manifests[name].digest,
            "changed": [],
            "missing": [],
            "files": {},
        }
        for name in host.wrong
    }
    found = {**mapping(host.part.get("found")), **as_wanted}
    return {**host.facts, "assets": {**host.part, "found": found}}
