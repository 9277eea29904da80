# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""From what the servers reported to the files of the folder, and to what a user reads at the end. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.kinds import KINDS
from ..core.problems import Problem
from . import surroundings, texts
from .access import same_machines
from .decisions import Choice, Network, choose_managers, choose_names, choose_network, gpus, notes
from .folder import HOSTS, Outcome, merged, with_keys, with_servers
from .host_keys import HostKey
from .inventory import Entry, entry, hosts, render, shared_variables
from .servers import KNOWN_HOSTS, Server
from .surroundings import Proxy

CONTROLLER = "the controller"


@dataclass(frozen=True)
class Given:
    """All that init knows; mappings are by the servers' labels, ``there`` has the folder's files."""

    servers: Sequence[Server]
    facts: Mapping[str, Mapping[str, Any]]
    keys: Sequence[HostKey]
    setup: texts.Setup
    release: str
    schema: str
    job: str
    script: str
    private_key: str = ""
    sudo_password: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    vault: bool = False
    cluster: str = "cluster"
    there: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """What is to be written, and what is reported about it."""

    outcome: Outcome
    names: Mapping[str, str]
    new: Sequence[str]
    reported: Sequence[str]

    def message(self, folder: str, *, diff: bool = False) -> str:
        """Return the text for the end of the run."""
        files = f"{folder}: {', '.join(sorted(self.outcome.write)) or 'nothing to write'}."
        place = "" if folder == "." else f"cd {folder} && "
        step = f"Next: {place}ansible-playbook swarmspeed.cluster.plan"
        return "\n".join([files, *self.reported, *self.outcome.notes, *(self.outcome.diffs if diff else []), step])


def written(given: Given) -> tuple[Made, list[Problem]]:
    """Return what becomes of the folder, and what forbids to write it."""
    read = {label: _files(facts) for label, facts in given.facts.items()}
    problems = list(same_machines({label: files[surroundings.MACHINE_ID].strip() for label, files in read.items()}))
    environments = {
        **{label: surroundings.parse_environment(files[surroundings.ENVIRONMENT]) for label, files in read.items()},
        CONTROLLER: given.environment,
    }
    proxy = surroundings.choose_proxy(environments)
    secrets = {"vault_become_password": given.sudo_password} if given.sudo_password else {}
    if proxy.secret:
        secrets["vault_cluster_proxy"] = proxy.url
    if secrets and not given.vault:
        problems.append(_no_vault(proxy, given.sudo_password))
    inventory = given.there.get(HOSTS, "")
    known = {_place(values): name for name, values in hosts(inventory).items()}
    new = [server for server in given.servers if (server.address, server.port or 22) not in known]
    names = {
        **{one.label: known[one.address, one.port or 22] for one in given.servers if one not in new},
        **choose_names(new, given.facts, list(known.values())),
    }
    network = choose_network(given.servers, given.facts)
    entries = _entries(given, new, names, shared_variables(inventory))
    managers = choose_managers(len(entries))
    wanted = {
        "ansible.cfg": texts.ansible_cfg(given.setup),
        ".gitignore": texts.gitignore(),
        texts.SCHEMA: given.schema,
        texts.CLUSTER: texts.cluster_yml(
            _cluster(given.cluster),
            network,
            proxy,
            surroundings.shared_mounts([one[surroundings.MOUNTS] for one in read.values()]),
        ),
        texts.JOB: texts.job_yml(given.job),
        texts.SCRIPT: given.script,
        **({texts.VAULT: texts.vault(secrets)} if given.vault else {}),
    }
    outcome = merged(wanted, given.there)
    if inventory:
        with_servers(outcome, inventory, entries)
        if secrets and texts.VAULT in given.there:
            outcome.notes.append(f"{texts.VAULT} must contain {', '.join(secrets)}: ansible-vault edit {texts.VAULT}")
    else:
        outcome.write[HOSTS] = render(entries, managers, given.release)
    with_keys(outcome, given.there.get(KNOWN_HOSTS, ""), given.keys)
    reported = _reported(given, names, network, proxy, None if inventory else managers)
    return Made(outcome, names, [one.name for one in entries], reported), problems


def _files(facts: Mapping[str, Any]) -> dict[str, str]:
    return {path: str((facts["files"].get(path) or {}).get("content") or "") for path in surroundings.READ}


def _place(values: Mapping[str, str]) -> tuple[str, int]:
    port = values.get("ansible_port", "")
    return values.get("ansible_host", "").lower(), int(port) if port.isdecimal() else 22


def _cluster(name: str) -> str:
    return name if KINDS["dns_label"].accepts(name) and len(name) <= 24 else "train"


def _entries(given: Given, new: Sequence[Server], names: Mapping[str, str], shared: Mapping[str, str]) -> list[Entry]:
    more = {"ansible_become_password": "{{ vault_become_password }}"} if given.sudo_password else {}
    made = []
    for server in new:
        # What hosts.yml sets for all would hold here too.
        port = {"ansible_port": server.port or 22} if "ansible_port" in shared or server.port else {}
        made.append(
            entry(server, names[server.label], gpus(given.facts[server.label]), given.private_key, {**port, **more})
        )
    return made


def _no_vault(proxy: Proxy, sudo_password: str) -> Problem:
    what = " and ".join(
        ["the password for sudo"] * bool(sudo_password)
        + [f"the proxy of {proxy.source}, which has a password,"] * proxy.secret
    )
    return Problem(
        "the vault",
        f"{what.rstrip(',')} must not be stored in plain text, but there is no password to encrypt it with",
        "run init again with --ask-vault-pass, and choose one, or with --vault-password-file",
    )


def _reported(
    given: Given, names: Mapping[str, str], network: Network, proxy: Proxy, managers: Choice | None
) -> list[str]:
    lines = [
        f"{names[server.label]}: {server.label}, {gpus(given.facts[server.label]) or 'no GPU'}"
        for server in given.servers
    ]
    lines.append(texts.choice_line("cluster_network_mode", network.mode))
    if network.address:
        lines.append(texts.choice_line("cluster_address", Choice("ansible_host", network.subnet.reason)))
    else:
        lines.append(
            texts.choice_line(
                "cluster_underlay_subnet", Choice(network.subnet.value or "not set", network.subnet.reason)
            )
        )
    if managers is not None:
        lines.append(texts.choice_line("managers", managers))
    if proxy.url:
        lines.append(f"cluster_proxy: from the environment of {proxy.source}.")
    if not given.vault:
        lines.append(f"No vault: 'ansible-vault create {texts.VAULT}' makes one where a token is needed.")
    return [*lines, *([proxy.note] if proxy.note else []), *notes(given.servers, names, given.facts)]
