# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Works out what concerns more than one node, once, on the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils.common.reported import ReportedError, accept, ssh_public_key
from ..plugin_utils.cluster.underlay import UnderlayError
from ..plugin_utils.nvidia_driver.planner import requested
from ..plugin_utils.nvidia_driver.version_host import host_of
from ..plugin_utils.overlay_network.addressing import OverlayError, OverlayRequest
from ..plugin_utils.registry.cluster_view import ClusterError, cluster_view
from ..plugin_utils.validate.node import node_facts
from ..plugin_utils.validate.own_facts import check_own_facts
from ..plugin_utils.versions.choose import choose
from ..plugin_utils.versions.requested import parse_requested
from ..plugin_utils.versions.table import load_table


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Runs on the controller only; meant for run_once."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        dummy, arguments = self.validate_argument_spec(
            argument_spec={
                "hosts": {"type": "list", "elements": "str", "required": True},
                "managers": {"type": "list", "elements": "str", "default": []},
                "accelerator": {"type": "str", "default": "auto", "choices": ["auto", "cuda", "cpu"]},
                "underlay_subnet": {"type": "str"},
                "overlay": {
                    "type": "dict",
                    "options": {
                        "name": {"type": "str", "required": True},
                        "subnet": {"type": "str", "default": ""},
                        "pool": {"type": "str", "default": "10.64.0.0/12"},
                        "mtu": {"type": "int", "default": 0},
                        "recreate": {"type": "bool", "default": False},
                        "swarm_pools": {"type": "list", "elements": "str", "default": []},
                        "containers": {"type": "dict", "default": {}},
                    },
                },
                "host_key_file": {"type": "str", "no_log": False},
                "versions": {"type": "dict", "default": {}},
                "gathered": {"type": "str", "default": ""},
                "run": {"type": "str", "default": ""},
            }
        )
        hosts, hostvars = arguments["hosts"], (task_vars or {})["hostvars"]
        facts: dict[str, Any] = {
            name: (hostvars[name].get("ansible_facts") or {}).get("swarmspeed") if name in hostvars else None
            for name in hosts
        }
        for name, found in facts.items():
            check_own_facts(name, found)
        missing = [name for name, found in facts.items() if not found or _of_another_run(found, arguments["run"])]
        if missing:
            # Preflight, which runs next, names them with cause and remedy.
            result.update(changed=False, skipped=True, msg=f"no facts of {', '.join(missing)}")
            return result
        try:
            # Again: any module that ran on a host since facts were gathered could have returned facts of this name.
            facts = {name: checked_facts(name, found) for name, found in facts.items()}
        except ReportedError as error:
            raise AnsibleActionFail(str(error)) from None
        overlay = None
        if arguments["overlay"]:
            addresses = {name: str(hostvars[name].get("training_container_address") or "") for name in hosts}
            overlay = OverlayRequest(**arguments["overlay"], addresses=addresses)
        try:
            view = cluster_view(
                hosts,
                facts,
                accelerator=arguments["accelerator"],
                slots={name: hostvars[name].get("gpu_slots") for name in hosts},
                underlay_subnet=arguments["underlay_subnet"],
                ssh_addresses={name: str(hostvars[name].get("ansible_host", name)) for name in hosts},
                own_addresses={name: str(hostvars[name].get("cluster_address") or "") for name in hosts},
                overlay=overlay,
            )
        except (ClusterError, UnderlayError, OverlayError) as error:
            raise AnsibleActionFail(str(error)) from error
        view["managers"] = [name for name in hosts if name in arguments["managers"]]
        view["host_keys"] = {
            name: (facts[name]["files"].get(arguments["host_key_file"]) or {}).get("content") for name in hosts
        }
        # What is requested of each host's driver is in its variables, which are part of what was gathered.
        gathered = {name: hostvars[name].get(arguments["gathered"]) or {} for name in hosts}
        drivers = {name: requested(found["role_vars"]) for name, found in gathered.items() if found.get("role_vars")}
        view["versions"] = versions_of(view, facts, arguments["versions"], drivers)
        result.update(changed=False, ansible_facts={"swarmspeed_cluster": view})
        return result


def _of_another_run(found: Any, run: str) -> bool:
    """Whether facts came from a fact cache, such as those of a host that cannot be reached today."""
    return bool(run) and (not isinstance(found, Mapping) or found.get("run") != run)


def checked_facts(host: str, found: Any) -> dict[str, Any]:
    """Return a host's facts. Its public keys become lines of known_hosts and authorized_keys of all."""
    facts = node_facts(host, found)
    for path, file in facts["files"].items():
        if path.endswith(".pub") and file.get("content") is not None:
            accept(host, path, file["content"], ssh_public_key)
    return facts


def versions_of(
    view: Mapping[str, Any], facts: Mapping[str, Any], chosen: Mapping[str, Any], drivers: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the versions for the hosts that take part: one without a slot has no say."""
    table = load_table()
    taking_part = [name for name in view["hosts"] if view["slots"][name] and view["accelerator"] == "cuda"]
    hosts = [host_of(name, facts[name], drivers.get(name) or {}, table) for name in taking_part]
    return choose(hosts, parse_requested(chosen), table, view["accelerator"]).as_dict()
