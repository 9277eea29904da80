# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Root's ssh between the hosts themselves, on request and without Docker (``ssh_trust_hosts``). Pure.

For who starts ``deepspeed --hostfile`` by hand. Files of users are left as they are, but for a block of our own in
root's ``authorized_keys``; the configuration is a file beside the system's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...module_utils.common.reported import accept, ssh_public_key
from ..core.problems import Problem
from ..plan.changes import Change, Changes, Inputs, RolePlan
from ..plan.files import add_file, differs, entry_of, fact_after, found_file
from ..plan.fold import Facts
from ..plan.managed_file import ManagedFile
from ..plan.owned import add_records, entries, ours_to_change, recorded, unrecorded
from ..plan.text import KNOWN_AFTER
from .files import Request, folders, known_hosts, ours, public_part
from .gathered import AUTHORIZED, CONFIGURATIONS, HOME, HOST_KEY, ROLE, block_name, configuration_path
from .keys import Pair, add_copy, add_pair, add_unknown, is_of_another_key, pair, private_after, public_after

NOTHING: dict[str, Any] = {"owned": [], "folders": [], "provide": {}, "files": [], "reload": [], "reach": []}
"""What the role's tasks read of a host on which there is nothing to do.

``owned`` are folders to record before anything is put into them.
``provide``, where keys are to be generated or copied: ``generate_host``, ``host_path`` and ``host_comment`` of the
container's, ``generate_cluster``, ``copy_cluster``, ``copied_from``, ``path`` and ``comment`` of the cluster's.
``reach``: the hosts at which verify logs in.
"""
_WHY = "ssh_trust_hosts"


def plan_servers(requested: Mapping[str, Request], facts: Facts, inputs: Inputs, wanted: bool) -> RolePlan:
    """Plan all hosts together, or what is to be removed of them where it is not ``wanted`` any more."""
    task_inputs: dict[str, Mapping[str, Any]] = dict.fromkeys(facts, NOTHING)
    refusals: list[Problem] = []
    host_keys = {}
    for host in requested if wanted else ():
        host_keys[host] = _host_key(host, files_of(facts[host]))
        if not host_keys[host]:
            text = f"ssh_trust_hosts pins the keys of the hosts' sshd, but {HOST_KEY} does not exist there"
            remedy = "install openssh-server, or have it generated with ssh-keygen -A; or ssh_trust_hosts: false"
            refusals.append(Problem(host, text, remedy))
    if refusals:
        return RolePlan(refusals=refusals, task_inputs=task_inputs)
    first = next(iter(requested.values())).first
    of_first = pair(first, files_of(facts[first]), requested[first].cluster_key, requested[first].cluster_comment)
    changes: list[Change] = []
    after: dict[str, Mapping[str, Any]] = {}
    for host, one in requested.items():
        if wanted:
            made, task_inputs[host], left = _plan_server(one, facts[host], of_first, host_keys, inputs)
        else:
            made, task_inputs[host], left = _plan_removal(one, facts[host], inputs)
        changes += made
        if made:
            after[host] = {
                **facts[host],
                "files": {**files_of(facts[host]), **left},
                "folders": recorded(facts[host], [item["path"] for item in task_inputs[host]["owned"]]),
            }
    return RolePlan(changes, task_inputs=task_inputs, facts=after)


def files_of(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    value = facts.get("files")
    return value if isinstance(value, Mapping) else {}


def authorized_block(requested: Request, cluster_key: str) -> ManagedFile:
    """Return the block that lets the cluster's key in as root, from the addresses of the hosts alone."""
    line = f'restrict,pty,from="{requested.sources}" {cluster_key.strip()}\n'
    return ManagedFile(AUTHORIZED, line, "0600", block=block_name(requested.cluster))


def configuration(requested: Request) -> ManagedFile:
    """Return root's configuration of ssh. What root has in its own wins, as ssh takes the first value that it finds."""
    lines = [f"# Kept by swarmspeed.cluster, role ssh_trust ({_WHY}). For root only; ~/.ssh/config comes first."]
    for name in requested.hosts:
        lines += [
            f"Match localuser root originalhost {name}",
            f"  HostName {requested.addresses[name]}",
            f"  HostKeyAlias {name}",
            f"  Port {requested.server_ports[name]}",
        ]
    lines += [
        f"Match localuser root originalhost {','.join(requested.hosts)}",
        "  User root",
        f"  IdentityFile {_word(requested.cluster_key)}",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {_word(f'{requested.ssh}/known_hosts')}",
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
        "  PasswordAuthentication no",
        "  ConnectTimeout 10",
        "  ServerAliveInterval 15",
        "  # The key is good from these addresses only, and a host with several networks could take another one.",
        f"  BindAddress {requested.addresses[requested.host]}",
        "  LogLevel ERROR",
    ]
    return ManagedFile(configuration_path(requested.cluster), "".join(f"{line}\n" for line in lines))


def _word(path: str) -> str:
    """Return a path as ssh_config(5) takes it: blanks, quotes and % have a meaning there."""
    if re.fullmatch(r"[\w./@+:,-]+", path, re.ASCII):
        return path
    escaped = path.replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _host_key(host: str, files: Mapping[str, Any]) -> str:
    """Return the public key of the host's own sshd. Raises ``ReportedError`` where what a host reports is none."""
    found = found_file(files, HOST_KEY)
    content = found.get("content") if found.get("exists") is True else None
    if content is None:
        return ""
    accept(host, HOST_KEY, content, ssh_public_key)
    return str(content)


def _plan_server(
    requested: Request, facts: Mapping[str, Any], of_first: Pair, host_keys: Mapping[str, str], inputs: Inputs
) -> tuple[list[Change], dict[str, Any], dict[str, Any]]:
    """Return the changes of a host, what its tasks read, and the facts of its files afterwards."""
    known, key = files_of(facts), inputs.digest_key
    changes = Changes(ROLE, requested.host)
    records = unrecorded(facts, ours(requested))
    add_records(changes, facts, records)
    owned = [*ours_to_change(facts, folders(requested)), *_folders_of_others(known)]
    places = [item for item in owned if differs(item, known, key)]
    for item in places:
        add_file(changes, item, known, key)
    is_first, copied = requested.host == requested.first, pair(requested.host, known, requested.cluster_key)
    takes_key = (
        add_pair(changes, requested.cluster_key, of_first, known)
        if is_first
        else add_copy(changes, requested, copied, of_first)
    )
    exists, public = of_first.public is not None, of_first.public or KNOWN_AFTER
    trusted = [
        (authorized_block(requested, public), exists),
        (known_hosts(requested, host_keys), True),
        (configuration(requested), True),
    ]
    there = found_file(known, f"{requested.cluster_key}.pub")
    if of_first.foreign if is_first else is_of_another_key(there, of_first):
        trusted.append((public_part(requested.cluster_key, public), exists))
    texts: list[ManagedFile] = []
    for item, complete in trusted:
        if not complete:
            add_unknown(changes, item, known)
        elif differs(item, known, key):
            add_file(changes, item, known, key, _WHY)
            texts.append(item)
    provide: dict[str, Any] = {}
    if takes_key:
        provide = {
            "generate_host": False,
            "host_path": requested.host_key,
            "host_comment": "",
            "generate_cluster": is_first,
            "copy_cluster": not is_first,
            "copied_from": requested.first,
            "path": requested.cluster_key,
            "comment": requested.cluster_comment,
        }
    task_input = {
        **NOTHING,
        "owned": entries(records),
        "folders": [entry_of(item) for item in places],
        "provide": provide,
        "files": [entry_of(item) for item in (*places, *texts)],
        "reach": list(requested.hosts),
    }
    left = {item.path: fact_after(item, key) for item in (*owned, *(item for item, dummy in trusted))}
    left[requested.cluster_key] = private_after(copied, of_first)
    if is_first:
        left[f"{requested.cluster_key}.pub"] = public_after(requested.cluster_key, of_first, there)
    return changes.found, task_input, left


def _folders_of_others(known: Mapping[str, Any]) -> list[ManagedFile]:
    """Folders that are made where they are missing; one that exists keeps its mode."""
    wanted = (ManagedFile(HOME, None, "0700"), ManagedFile(CONFIGURATIONS, None, "0755"))
    return [item for item in wanted if found_file(known, item.path).get("exists") is not True]


def _plan_removal(
    requested: Request, facts: Mapping[str, Any], inputs: Inputs
) -> tuple[list[Change], dict[str, Any], dict[str, Any]]:
    """Take back who is trusted. The key itself stays until teardown; no host accepts it then."""
    known, key = files_of(facts), inputs.digest_key
    items = [
        ManagedFile(AUTHORIZED, "", block=block_name(requested.cluster), state="absent"),
        ManagedFile(configuration_path(requested.cluster), "", state="absent"),
    ]
    changes = Changes(ROLE, requested.host)
    texts = [item for item in items if differs(item, known, key)]
    for item in texts:
        add_file(changes, item, known, key, _WHY)
    task_input = {**NOTHING, "files": [entry_of(item) for item in texts]}
    return changes.found, task_input, {item.path: fact_after(item, key) for item in texts}
