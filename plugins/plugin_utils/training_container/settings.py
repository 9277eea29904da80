# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The settings of a node's training container: those configured, and those that a container was made with. Pure.

Whether a container is made again is decided by the hash of all settings, which is a label of it: what the engine says
of limits and the like is worded differently. A second label names the settings, so that those that differ can be shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ...module_utils.common.untrusted_text import parse_json
from ...module_utils.engine.daemon_config import same
from ...module_utils.fabric.rdma import switch_management
from ...module_utils.vscode.state import SERVER
from ..core.values import fingerprint, mapping
from ..nccl_env.ranges import as_text
from ..nvidia_container_toolkit.toolkit import toolkit_plan
from ..plan.changes import Changes, sealed
from .gathered import assets_of, extensions_of, workspace_of
from .mounts import CONFIGURATION, JOBS, WORKSPACE
from .options import devices, options

OVERLAY = "overlay"
CLUSTER_LABEL, HASH_LABEL = "swarmspeed.cluster", "swarmspeed.spec"
SETTINGS_LABEL, ADDRESS_LABEL = "swarmspeed.settings", "swarmspeed.address"
ENVIRONMENT, IMAGE, IMAGE_ID = "environment", "image", "image_id"
_ENVIRONMENT = "training_container_environment"
NO_NEW_PRIVILEGES = "no-new-privileges"
RDMA_DEVICES = "/dev/infiniband:/dev/infiniband"
_ID = re.compile("sha256:[0-9a-f]+")
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")
"""Of an image: one that a node named becomes an argument of docker there."""


def _has_rdma(facts: Mapping[str, Any]) -> bool:
    """Whether a host has an RDMA device that is not a way to its own NVSwitches."""
    found = mapping(facts.get("fabric")).get("infiniband") or []
    return len(found) > len(switch_management(found))


def image_of(role_vars: Mapping[str, Any], cluster: Mapping[str, Any], container: Mapping[str, Any]) -> str:
    """Return the name of the image: the cluster's, else the one that is named, else the one it was made of.

    Empty where none is known: the role is applied alone, and the name holds a hash of what goes in.
    """
    name = str(role_vars["training_image_name"] or "")
    if cluster.get(IMAGE):
        return str(cluster[IMAGE])
    if name and role_vars["training_image_source"] not in (None, "build"):
        return name if ":" in name.rpartition("/")[2] else f"{name}:latest"
    return _fitting(_NAME, settings_of(container).get(IMAGE) or container.get(IMAGE))


def image_here(image: str, facts: Mapping[str, Any]) -> str:
    """Return the id of an image on the host; empty where it is not there, or comes in this run."""
    return _fitting(_ID, mapping(mapping(facts.get("docker")).get("images")).get(image))


def wanted_settings(
    host: str,
    role_vars: Mapping[str, Any],
    facts: Mapping[str, Any],
    cluster: Mapping[str, Any],
    container: Mapping[str, Any],
    *,
    profile: str = "",
) -> dict[str, Any]:
    """Return the settings that are configured. One without an address of its own has none among them.

    ``profile``: that of seccomp, as the engine takes it.
    """
    overlay = network_mode(role_vars) == OVERLAY
    image = image_of(role_vars, cluster, container)
    address = mapping(mapping(cluster.get(OVERLAY)).get("addresses")).get(host) if overlay else None
    root = str(role_vars["cluster_root"])
    volumes = [f"{root}/etc:{CONFIGURATION}:ro", f"{root}/jobs:{JOBS}", f"{workspace_of(role_vars)}:{WORKSPACE}"]
    assets = assets_of(role_vars)
    volumes += [f"{assets}:{assets}:ro"] if assets else []
    # Where VS Code's server installs others, too, and keeps its list of all.
    volumes += [f"{extensions_of(role_vars)}:{SERVER}"] if extensions_of(role_vars) else []
    return {
        IMAGE: image,
        # One that is not here yet may be the very same: it is compared again once it has come.
        IMAGE_ID: image_here(image, facts) or _fitting(_ID, container.get(IMAGE_ID)),
        "network": network_name(role_vars),
        "shm_size": _shared_memory(role_vars, facts),
        "ulimits": role_vars["training_container_ulimits"],
        "ipc_mode": role_vars["training_container_ipc_mode"],
        "capabilities": role_vars["training_container_capabilities"],
        "security_opts": _security_options(role_vars),
        "devices": [*([RDMA_DEVICES] if _has_rdma(facts) else []), *devices(role_vars)],
        "device_requests": _device_requests(role_vars, facts, cluster),
        "volumes": [*volumes, *role_vars["training_container_volumes"]],
        # As text, which the module wants. What is text already keeps the hash that it had.
        ENVIRONMENT: {name: as_text(value) for name, value in mapping(role_vars[_ENVIRONMENT]).items()},
        "restart_policy": role_vars["training_container_restart_policy"],
        **options(role_vars, profile),
        **({"address": str(address)} if address else {}),
    }


def network_mode(role_vars: Mapping[str, Any]) -> str:
    return str(role_vars["cluster_network_mode"] or OVERLAY)


def network_name(role_vars: Mapping[str, Any]) -> str:
    """Return the engine's name of the network that the container is on."""
    if network_mode(role_vars) != OVERLAY:
        return "host"
    return str(role_vars["overlay_network_name"] or role_vars["cluster_name"])


def labels_of(cluster: str, wanted: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of a container that is made with these settings."""
    # As a JSON text: without the environment, which may hold what somebody takes for a secret.
    labelled = {name: value for name, value in wanted.items() if name != ENVIRONMENT}
    labels = {
        CLUSTER_LABEL: cluster,
        HASH_LABEL: fingerprint(wanted),
        SETTINGS_LABEL: json.dumps(labelled, sort_keys=True, separators=(",", ":"), default=str),
    }
    return {**labels, ADDRESS_LABEL: str(wanted["address"])} if wanted.get("address") else labels


def settings_of(container: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a container was made with, as its label has them; empty where it has none."""
    try:
        found = parse_json(str(mapping(container.get("labels")).get(SETTINGS_LABEL) or "").encode())
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def add_differences(
    changes: Changes, name: str, container: Mapping[str, Any], wanted: Mapping[str, Any], key: str
) -> list[str]:
    """Add a change for each setting of the container that is another one, and return their names."""
    before, after = str(mapping(container.get("labels")).get(HASH_LABEL) or ""), fingerprint(wanted)
    if before == after:
        return []
    found = settings_of(container)
    if not found:
        changes.add(f"settings of container {name}", f"hash {before}", f"hash {after}")
        return ["settings"]
    names = [one for one in {**wanted, **found} if one != ENVIRONMENT and not same(found.get(one), wanted.get(one))]
    if IMAGE in names and IMAGE_ID in names:
        names.remove(IMAGE_ID)
    for one in names:
        changes.add(f"{_words(one)} of container {name}", found.get(one), wanted.get(one))
    if not names:
        names = [ENVIRONMENT]
        changes.add(f"environment of container {name}", sealed(before, key), sealed(after, key))
    return [_words(one) for one in names]


def _fitting(form: re.Pattern[str], value: Any) -> str:
    """Return what a node reported where it has this form, else nothing."""
    return value if isinstance(value, str) and form.fullmatch(value) else ""


def _words(setting: str) -> str:
    return "image id" if setting == IMAGE_ID else setting


def _shared_memory(role_vars: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """Half of the memory, at least 1 GiB: Docker's 64 MiB ends in bus errors. It is a limit, nothing is set aside."""
    requested = str(role_vars["training_container_shm_size"])
    if requested != "auto":
        return requested
    memory = mapping(facts.get("system")).get("memory_bytes")
    return f"{max(int((memory if isinstance(memory, int) else 0) / 2 / 1024**3), 1)}g"


def _security_options(role_vars: Mapping[str, Any]) -> list[str]:
    options = [str(option) for option in role_vars["training_container_security_opts"]]
    reported = any(option.startswith(NO_NEW_PRIVILEGES) for option in options)
    return (
        [*options, NO_NEW_PRIVILEGES] if role_vars["training_container_no_new_privileges"] and not reported else options
    )


def _device_requests(
    role_vars: Mapping[str, Any], facts: Mapping[str, Any], cluster: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return how it asks for all GPUs of its node, where the cluster computes on them."""
    if cluster.get("accelerator") != "cuda":
        return []
    requested = {
        "mode": role_vars["nvidia_container_toolkit_mode"] or "auto",
        "engine_source": role_vars["docker_source"] or "distribution",
        "engine_config": role_vars["docker_daemon_config"] or {},
    }
    found: list[dict[str, Any]] = toolkit_plan(facts, requested)["device_requests"]
    return found
