# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)


"""The files of the role host, as ``managed_files`` keeps them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..plan.managed_file import ManagedFile
from .gathered import (
    APT_PROXY,
    CA,
    CA_FOLDER,
    EXCLUSIONS,
    GIT,
    GIT_OF_ROOT,
    GIT_PROXY,
    HOSTS,
    LIMITS,
    MIRROR,
    PIP,
    PIP_FOLDER,
    PIP_MARK,
    SYSCTLS,
    block_name,
)

_EXCLUSIONS = r"""// Kept by swarmspeed.cluster (host_unattended_exclusions): their upgrade would end a job.
Unattended-Upgrade::Package-Blacklist {
    "^docker\.io$";
    "^docker-(ce|cli|ce-cli|buildx-plugin)";
    "^containerd";
    "^runc$";
    "^(lib)?nvidia-";
    "^libcuda1$";
    "^linux-(modules|objects|signatures)-nvidia-";
};
"""
_LIMITS = """# Kept by swarmspeed.cluster (host_limits): RDMA registers memory, large jobs open many files.
* - memlock unlimited
root - memlock unlimited
* - nofile 1048576
root - nofile 1048576
"""
_GIT_INCLUDE = f"[include]\n\tpath = {GIT_PROXY}\n"
WHY = {
    APT_PROXY: "host_apt_proxy",
    EXCLUSIONS: "host_unattended_exclusions",
    MIRROR: "host_apt_mirror",
    PIP_FOLDER: "host_pip_index, host_pip_proxy or host_ca_certificate",
    PIP: "host_pip_index, host_pip_proxy or host_ca_certificate",
    GIT_PROXY: "host_git_proxy",
    GIT: "host_git_proxy",
    GIT_OF_ROOT: "host_git_proxy",
    CA_FOLDER: "host_ca_certificate",
    CA: "host_ca_certificate",
    HOSTS: "host_names",
    LIMITS: "host_limits",
    SYSCTLS: "host_sysctls",
}


def managed_files(
    role_vars: Mapping[str, Any], system: Mapping[str, Any], authority: str, names: str | None
) -> list[ManagedFile]:
    """Return the files, but for the firewall's.

    ``authority`` is the text of ``host_ca_certificate``. ``names`` is the block of /etc/hosts; where it is None the
    nodes are not known, and a block that is there stays.
    """
    block = block_name(role_vars)
    pip = "".join(str(role_vars[name]) for name in ("host_pip_index", "host_pip_proxy", "host_ca_certificate"))
    git, certificate = str(role_vars["host_git_proxy"]), str(role_vars["host_ca_certificate"])
    git_secret = has_user(git)
    pip_secret = has_user(f"{role_vars['host_pip_index']} {role_vars['host_pip_proxy']}")
    # A folder is named only where something goes into it.
    files = [ManagedFile(PIP_FOLDER, None, mode="0755")] if pip else []
    files += [ManagedFile(CA_FOLDER, None, mode="0755")] if certificate else []
    files += [
        ManagedFile(
            APT_PROXY, _apt_proxy(role_vars), mode="0600", secret=True, state=present(bool(role_vars["host_apt_proxy"]))
        ),
        ManagedFile(EXCLUSIONS, _EXCLUSIONS, state=present(bool(role_vars["host_unattended_exclusions"]))),
        ManagedFile(MIRROR, _mirror(role_vars, system), state=present(bool(role_vars["host_apt_mirror"]))),
        # pip reads this file first, and /etc/pip.conf and everybody's own after it: no one's settings are lost.
        ManagedFile(
            PIP,
            _pip(role_vars),
            mode="0600" if pip_secret else "0644",
            secret=pip_secret,
            mark=PIP_MARK,
            state=present(bool(pip)),
        ),
        ManagedFile(CA, authority, state=present(bool(certificate))),
        ManagedFile(
            GIT_PROXY,
            _git_proxy(git),
            mode="0600" if git_secret else "0644",
            secret=git_secret,
            state=present(bool(git)),
        ),
        # git fails for everybody who may not read an included file, so one with a password is root's.
        ManagedFile(GIT, _GIT_INCLUDE, block=block, state=present(bool(git) and not git_secret)),
        ManagedFile(GIT_OF_ROOT, _GIT_INCLUDE, block=block, state=present(bool(git) and git_secret)),
    ]
    if names is not None:
        files.append(ManagedFile(HOSTS, names, block=block, state=present(bool(role_vars["host_names"]))))
    return [
        *files,
        ManagedFile(LIMITS, _LIMITS, state=present(bool(role_vars["host_limits"]))),
        ManagedFile(SYSCTLS, _sysctls(role_vars["host_sysctls"]), state=present(bool(role_vars["host_sysctls"]))),
    ]


def present(wanted: bool) -> str:
    return "present" if wanted else "absent"


def has_user(addresses: str) -> bool:
    """Whether one of these URLs names a user, and so perhaps a password."""
    return re.search("://[^/ ]*@", addresses) is not None


def names_block(hosts: Sequence[Any], addresses: Mapping[str, Any]) -> str:
    """Return the lines of /etc/hosts: each node by its address in the underlay."""
    return "".join(f"{addresses[name]} {name}\n" for name in hosts)


def _apt_proxy(role_vars: Mapping[str, Any]) -> str:
    proxy = role_vars["host_apt_proxy"]
    return (
        "# Kept by swarmspeed.cluster (host_apt_proxy)\n"
        f'Acquire::http::Proxy "{proxy}";\n'
        f'Acquire::https::Proxy "{proxy}";\n'
    )


def _mirror(role_vars: Mapping[str, Any], system: Mapping[str, Any]) -> str:
    codename, distribution = system.get("codename"), system.get("distribution")
    return (
        "# Kept by swarmspeed.cluster (host_apt_mirror)\n"
        "Types: deb\n"
        f"URIs: {role_vars['host_apt_mirror']}\n"
        f"Suites: {codename} {codename}-updates\n"
        f"Components: {'main restricted universe' if distribution == 'ubuntu' else 'main'}\n"
        f"Signed-By: /usr/share/keyrings/{distribution}-archive-keyring.gpg\n"
    )


def _pip(role_vars: Mapping[str, Any]) -> str:
    lines = [f"# {PIP_MARK} (host_pip_index, host_pip_proxy, host_ca_certificate)", "[global]"]
    if role_vars["host_pip_index"]:
        lines.append(f"index-url = {role_vars['host_pip_index']}")
    if role_vars["host_pip_proxy"]:
        lines.append(f"proxy = {role_vars['host_pip_proxy']}")
    if role_vars["host_ca_certificate"]:
        lines.append("cert = /etc/ssl/certs/ca-certificates.crt")
    return "\n".join([*lines, ""])


def _git_proxy(proxy: str) -> str:
    escaped = proxy.replace("\\", "\\\\").replace('"', '\\"')
    return f'# Kept by swarmspeed.cluster (host_git_proxy)\n[http]\n\tproxy = "{escaped}"\n'


def _sysctls(wanted: Mapping[str, Any]) -> str:
    lines = [f"{name} = {wanted[name]}\n" for name in sorted(wanted, key=lambda name: str(name).lower())]
    return "".join(["# Kept by swarmspeed.cluster (host_sysctls)\n", *lines])
