# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A node's training container, as planners of roles whose files it reads need to know it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def container_name(cluster: str, host: str) -> str:
    return f"{cluster}-{host}"


def container_of(facts: Mapping[str, Any], cluster: str, host: str) -> Mapping[str, Any]:
    """Return what ``node_facts`` found of it; empty where there is none."""
    docker = facts.get("docker")
    containers = docker.get("containers") if isinstance(docker, Mapping) else None
    found = containers.get(container_name(cluster, host)) if isinstance(containers, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def runs_as_ours(container: Mapping[str, Any], cluster: str) -> bool:
    """Whether it runs and this collection made it: an image hands on the cluster's label, but not the hash."""
    labels = container.get("labels")
    return (
        container.get("state") == "running"
        and isinstance(labels, Mapping)
        and "swarmspeed.spec" in labels
        and labels.get("swarmspeed.cluster") == cluster
    )


BOUNDED = """\
exec 3>&1 4>&2
rc=$({
  {
    { timeout -k 5 240 "$@" 3>&- 4>&- 5>&-; echo $? >&5; } 2>&6 6>&- | head -c 65536 >&3
  } 6>&1 | head -c 65536 >&4
} 5>&1)
exit "${rc:-1}"
"""
"""Runs its arguments for four minutes at most, and hands on 64 KiB of each of their outputs: more ends them."""


def run_inside(container: str, *words: str) -> list[str]:
    """Return the command that runs words in a container: root there has put there what runs, and it prints anything."""
    return ["sh", "-c", BOUNDED, "sh", "docker", "exec", container, *words]


def entry_point(cluster: str, host: str, word: str) -> list[str]:
    """Return the command that runs a word of the entry point inside."""
    return run_inside(container_name(cluster, host), "sh", "/etc/swarmspeed/entrypoint.sh", word)
