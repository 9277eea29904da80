# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What must be alike on all nodes of a job before it starts, and that each finds and reaches every other one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..core.problems import Problem, listing
from .node import SITE, Node, by, names, shown, unique

SSH_REMEDIES = (
    (r"not resolve|Name or service|name resolution", f"{SITE} overlay_network,training_container"),
    (r"Permission denied|Host key|identification|Too many auth", f"{SITE} ssh_trust"),
    (r"refused", f"{SITE} training_container starts its sshd again"),
    (
        r"timed out|[Nn]o route|unreachable|no answer",
        "open swarm_data_path_port/udp and port 7946 between the nodes, on the host's network ssh_trust_port/tcp",
    ),
    (
        r"^ssh: No such file",
        "add openssh-client to the image, or use deepspeed_launch_transport: direct",
    ),
)


def check_image(nodes: Sequence[Node]) -> Iterator[Problem]:
    """The same image everywhere, by what is in it."""
    by_content = by(nodes, lambda node: node.image.get("content"))
    if len(by_content) > 1:
        shown = [f"{_short(where[0].image)} on {names(where)}" for where in by_content.values()]
        remedy = f"{SITE} training_image,training_container"
        yield Problem("image", f"its content differs between the nodes: {'; '.join(shown)}", remedy)


def _short(image: Mapping[str, Any]) -> str:
    return f"{image.get('reference')} ({str(image.get('id'))[:19]})"


def check_versions(nodes: Sequence[Node]) -> Iterator[Problem]:
    """The same releases everywhere. A difference in the third figure of Python's harms nothing."""
    minor = by(nodes, lambda node: ".".join(node.answer["python"].split(".")[:2]))
    whole = by(nodes, lambda node: node.answer["python"])
    if len(minor) > 1:
        yield Problem("python", f"its version differs between the nodes: {shown(minor)}", _same_releases(nodes))
    elif len(whole) > 1:
        yield Problem("python", f"its version differs a little between the nodes: {shown(whole)}", "", fatal=False)
    for package in dict.fromkeys(name for node in nodes for name in node.answer["versions"]):
        found = by(nodes, partial(_version, package))
        if len(found) > 1:
            yield Problem(package, f"its version differs between the nodes: {shown(found)}", _same_releases(nodes))


def _version(package: str, node: Node) -> str:
    return str(node.answer["versions"].get(package) or "none")


def _same_releases(nodes: Sequence[Node]) -> str:
    if nodes[0].contained:
        return f"use one image everywhere ({SITE} training_image,training_container)"
    return "install one release of it on every node"


def check_programs(nodes: Sequence[Node]) -> Iterator[Problem]:
    """What the launch calls is there."""
    for node in nodes:
        for program, path in node.answer["programs"].items():
            if path is None:
                where = "in the container" if node.contained else "on the host"
                remedy = (
                    "add it to the image, or put its folder into PATH with deepspeed_launch_environment"
                    if node.contained
                    else "install it there, or name its folder with deepspeed_launch_path"
                )
                yield Problem(node.name, f"{program} is not on the PATH {where}", remedy)
        for module, missing in (node.answer.get("modules") or {}).items():
            if missing:
                where = "in the container" if node.contained else "on the host"
                part = "" if missing == module else f" (there is no {missing})"
                bring = (
                    "add its package to the image (training_image_python_packages)"
                    if node.contained
                    else "add its package (workspace_python_packages)"
                )
                remedy = f"{bring}, or correct deepspeed_launch_script"
                yield Problem(node.name, f"Python {where} cannot run the module {module}{part}", remedy)


def check_names(nodes: Sequence[Node]) -> Iterator[Problem]:
    """Every node finds every other by name, at the address that it has in the training network."""
    own = {node.name: node.own for node in nodes}
    failures: dict[tuple[str, str], str] = {}
    for node in nodes:
        if not node.own and node.requested["subnet"]:
            remedy = (
                f"{SITE} overlay_network,training_container"
                if node.contained
                else "correct cluster_underlay_subnet or cluster_address"
            )
            yield Problem(node.name, f"it has no address in the training network {node.requested['subnet']}", remedy)
        for target, found in node.answer["names"].items():
            if not found["addresses"]:
                failures[(node.name, target)] = f"{found['host']}: {found['error']}"
            elif own.get(target) and not set(found["addresses"]) & set(own[target]):
                seen, has = ", ".join(found["addresses"]), ", ".join(own[target])
                failures[(node.name, target)] = f"{found['host']} resolves to {seen}, but its address is {has}"
    for sources, targets, words in group(failures):
        remedy = (
            f"{SITE} overlay_network,training_container" if nodes[0].contained else f"{SITE} host with host_names: true"
        )
        yield Problem(listing(sources), f"cannot find {listing(targets)} by name ({words})", remedy)


def check_ssh(nodes: Sequence[Node]) -> Iterator[Problem]:
    """Every node reaches every other by ssh."""
    failures = {(node.name, target): words for node in nodes for target, words in node.answer["ssh"].items() if words}
    for sources, targets, words in group(failures):
        remedy = next((text for pattern, text in SSH_REMEDIES if re.search(pattern, words)), f"{SITE} ssh_trust")
        yield Problem(listing(sources), f"cannot reach {listing(targets)} by ssh ({words})", remedy)


def group(failures: Mapping[tuple[str, str], str]) -> Iterator[tuple[list[str], list[str], str]]:
    """Sources, targets and words of what failed between pairs of nodes, by what they have in common.

    One node that is cut off gives as many failures as there are nodes, twice; that is two things to say.
    """
    left = dict(failures)
    kinds: dict[str, list[tuple[str, str]]] = {}
    for (source, target), words in left.items():
        kinds.setdefault(re.sub(rf"\S*{re.escape(target)}\S*|\d+\.\d+\.\d+\.\d+", "*", words), []).append(
            (source, target)
        )
    for pairs in kinds.values():
        rest = dict.fromkeys(pairs)
        while rest:
            sources, targets = unique(pair[0] for pair in rest), unique(pair[1] for pair in rest)
            if len(rest) < sum(1 for source in sources for target in targets if source != target):
                # Not everybody to everybody: the node with most of them, as the one that fails or that is not reached.
                (end, name), dummy = Counter((end, pair[end]) for pair in rest for end in (1, 0)).most_common(1)[0]
                chosen = [pair for pair in rest if pair[end] == name]
                sources, targets = unique(pair[0] for pair in chosen), unique(pair[1] for pair in chosen)
            covered = [(source, target) for source in sources for target in targets if source != target]
            yield sources, targets, left[covered[0]]
            for pair in covered:
                rest.pop(pair, None)
