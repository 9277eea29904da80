# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The texts of a new folder's files, but for the inventory. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .decisions import Choice, Network
from .inventory import comment, scalar
from .surroundings import Proxy

SCHEMA = "cluster.schema.json"
CLUSTER = "group_vars/cluster.yml"
JOB = "group_vars/all/job.yml"
VAULT = "group_vars/all/vault.yml"
SCRIPT = "code/train.py"
LOG = "ansible.log"


@dataclass(frozen=True)
class Setup:
    """What ansible.cfg depends on. ``collections`` is empty where Ansible finds the collection by itself."""

    collections: str = ""
    vault_files: Sequence[str] = ()
    ask_vault: bool = False


def ansible_cfg(setup: Setup) -> str:
    """Return ansible.cfg; commands are run in its folder."""
    lines = ["# Read when Ansible is run in this folder.", "[defaults]", "inventory = hosts.yml"]
    if setup.collections:
        lines += [
            "# Where swarmspeed.cluster is on this machine; without this line, where ansible-galaxy installs it.",
            f"collections_path = {setup.collections}:~/.ansible/collections:/usr/share/ansible/collections",
        ]
    lines += [
        "forks = 32",
        "gathering = explicit",
        "host_key_checking = true",
        "inject_facts_as_vars = false",
        "interpreter_python = auto_silent",
        "nocows = true",
        "retry_files_enabled = false",
        "stdout_callback = swarmspeed.cluster.console",
        "callback_result_format = yaml",
        "# All that the console leaves out.",
        f"log_path = {LOG}",
        "display_skipped_hosts = false",
        "timeout = 20",
    ]
    if setup.vault_files:
        lines.append(f"vault_password_file = {setup.vault_files[0]}")
    elif setup.ask_vault:
        lines.append("ask_vault_pass = true")
    lines += [
        "",
        "[inventory]",
        "# The first of them reports syntax errors in one sentence; the others are Ansible's own choice.",
        "enable_plugins = swarmspeed.cluster.syntax, host_list, script, auto, yaml, ini, toml",
        "any_unparsed_is_failed = true",
        "",
        "[connection]",
        "pipelining = true",
        "",
        "[ssh_connection]",
        "pipelining = true",
        "ssh_args = -o ControlMaster=auto -o ControlPersist=120s -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
        " -o PreferredAuthentications=publickey",
    ]
    return "\n".join(lines) + "\n"


def gitignore() -> str:
    """Return .gitignore: the vault is encrypted and belongs to the repository, its password does not."""
    ignored = (
        "plan.json",
        LOG,
        "/jobs/",
        "/reports/",
        "*.retry",
        "__pycache__/",
        "*vault_pass*",
        "*.env",
        ".env.*",
        "id_rsa*",
        "id_ecdsa*",
        "id_ed25519*",
        "*.pem",
        "*.key",
    )
    return f"# Results, and secrets in plain text. {VAULT} is encrypted and belongs in the repository.\n" + "".join(
        f"{one}\n" for one in ignored
    )


def cluster_yml(name: str, network: Network, proxy: Proxy, mounts: Sequence[str]) -> str:
    """Return the variables of the cluster."""
    parts = [
        f"# yaml-language-server: $schema=../{SCHEMA}\n---\n"
        "# The cluster. Every variable, with its default, is in the README of its role.\n\n"
        f"cluster_name: {scalar(name)}\n",
        comment(f"{network.mode.value}: {_clause(network.mode.reason)}.")
        + f"cluster_network_mode: {network.mode.value}\n",
        _subnet(network),
        _proxy(proxy),
    ]
    if mounts:
        listed = "".join(f"#   - {path}:{path}\n" for path in mounts)
        parts.append(
            comment("Mounted by every server; containers see it only with this line (docs/storage.md).")
            + f"# training_container_volumes:\n{listed}"
        )
    parts.append(
        "# --- secrets: only in the vault ('ansible-vault edit group_vars/all/vault.yml', or 'create')\n"
        '# assets_huggingface_token: "{{ vault_huggingface_token }}"\n'
    )
    return "\n".join(parts)


def _clause(text: str) -> str:
    return text.rstrip(". ")


def _subnet(network: Network) -> str:
    reason = comment(f"The network that carries the training: {_clause(network.subnet.reason)}.")
    if network.subnet.value:
        return f"{reason}cluster_underlay_subnet: {network.subnet.value}\n"
    if network.address:
        return f"{reason}cluster_address: {scalar(network.address)}\n"
    return f"{reason}# cluster_underlay_subnet: 10.1.0.0/24\n"


def _proxy(proxy: Proxy) -> str:
    if not proxy.url:
        return (
            "# --- behind a proxy\n"
            "# cluster_proxy: http://proxy.example.com:3128\n"
            "# cluster_no_proxy: [mirror.example.com]\n"
        )
    value = "{{ vault_cluster_proxy }}" if proxy.secret else proxy.url
    listed = ", ".join(scalar(entry) for entry in proxy.exceptions)
    return f"# --- the proxy in the environment of {proxy.source}\ncluster_proxy: {scalar(value)}\n" + (
        f"cluster_no_proxy: [{listed}]\n" if listed else ""
    )


def job_yml(example: str) -> str:
    """Return the variables of the job: those of examples/digits, with its script in this folder."""
    body = re.sub(r"^---\n(#.*\n)*", "", example)
    body = re.sub(r"^workspace_source: .*$", 'workspace_source: "{{ inventory_dir }}/code"', body, flags=re.MULTILINE)
    return (
        f"# yaml-language-server: $schema=../../{SCHEMA}\n---\n"
        "# The job: the handwritten digits of examples/digits, to test the cluster. For yours, put your script into\n"
        "# code/, and change these lines.\n" + body
    )


def vault(secrets: dict[str, str]) -> str:
    """Return what is to be encrypted."""
    known = {"vault_become_password", "vault_cluster_proxy"} & set(secrets)
    # A password may hold what Ansible would take as a template.
    lines = [f"{name}: {'!unsafe ' * ('{' in secrets[name])}{scalar(secrets[name])}" for name in sorted(known)]
    return "\n".join(["---", "# Secrets of this cluster.", *lines, "# vault_huggingface_token: hf_…", ""])


def choice_line(name: str, choice: Choice) -> str:
    return f"{name} {choice.value}: {_clause(choice.reason)}."
