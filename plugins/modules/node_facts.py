#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Gather facts of a node, read-only."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_facts
short_description: Gather facts of one node, once, for all roles
version_added: 0.1.0
description:
  - Reads, in one round trip, what the roles of this collection compare with the requested state.
  - Never changes anything, and works on a host with only Python installed.
  - Run through an action plugin of the same name, which adds the offset of the node's clock.
options:
  packages:
    description:
      - Debian packages whose installed version is wanted. With an architecture or a version, as in C(libc6:amd64) and
        C(bc=1.07*), only such a one counts.
    type: list
    elements: str
    default: []
  files:
    description: Files and directories to read.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path on the node.
        type: path
        required: true
      content:
        description: Whether to return the text too. Never set this for a file that holds a secret.
        type: bool
        default: false
      secret:
        description: Whether the file holds a secret. If so, its digest is an HMAC by O(digest_key) (C(keyed) is true),
          from which a short password cannot be guessed, and its text is not returned. For an OpenSSH private key, the
          public half is returned as C(public_key).
        type: bool
        default: false
      block:
        description: Read only the block that M(ansible.builtin.blockinfile) keeps under this name in the file.
        type: str
      mark:
        description: Text to search for in the file's first line. The result is in C(marked).
        type: str
  digest_key:
    description:
      - Key for the digests of secrets; a comparison needs it too. The playbooks generate one for each run, which stays
        in the controller's memory.
      - Without it, a random key is used, so nothing can be compared.
    type: str
  trees:
    description:
      - Directories and the files wanted below them, as a mapping of directory to a mapping of relative path to SHA-256.
      - Files that are missing or differ are returned as a list.
      - As containers can write below them and below O(jobs), no link is followed there, not even to one of O(files).
    type: dict
    default: {}
  tree_sizes:
    description: The sizes of files of O(trees), likewise. A file of another size differs, and is not read.
    type: dict
    default: {}
    version_added: 0.1.0
  disks:
    description: Paths at which free space is wanted. A path that does not exist yet counts as its nearest existing
      parent.
    type: list
    elements: path
    default: []
  groups:
    description: Unix groups whose members are wanted.
    type: list
    elements: str
    default: []
  accounts:
    description: Accounts of which is wanted whether they exist on the host, in whatever source it takes accounts from.
    type: list
    elements: str
    default: []
  sysctls:
    description: Kernel parameters whose value is wanted.
    type: list
    elements: str
    default: []
  jobs:
    description: Directory of the training jobs, whose states are wanted.
    type: path
  assets:
    description: Models and data sets that the role P(swarmspeed.cluster.assets#role) keeps on the node.
    type: dict
    default: {}
    suboptions:
      root:
        description: Folder that holds their folders.
        type: path
      wanted:
        description: By name, the digest of the wanted list of files. Empty where it is not known.
        type: dict
        default: {}
  folders:
    description:
      - Folders of which it is wanted whether they are this collection's, as M(swarmspeed.cluster.owned_folders) records
        it, and where links lead.
    type: dict
    default: {}
    suboptions:
      cluster:
        description: Name of the cluster.
        type: str
      root:
        description: The node state directory.
        type: path
      paths:
        description: The folders. One that is not there is judged by where it would be.
        type: list
        elements: path
        default: []
  vscode:
    description: Folder in which M(swarmspeed.cluster.vscode_extensions) keeps VS Code extensions.
    type: path
  code:
    description: One of the folders in O(trees), to which the role P(swarmspeed.cluster.workspace#role) copies code.
    type: path
  reach:
    description:
      - Tests whether the C(container) of this host reaches those in C(hosts), by the hosts' names, at C(port) over the
        overlay network, as M(swarmspeed.cluster.overlay_reach) does.
      - Tested along with the other facts, where the container runs. Three seconds are spent on all of them.
    type: dict
    default: {}
    suboptions:
      container:
        description: Name of the container to test from.
        type: str
      hosts:
        description: Names of the other containers, by the names of their hosts.
        type: dict
        default: {}
      port:
        description: The TCP port to connect to.
        type: int
  resolve:
    description:
      - Names of proxies and mirrors to resolve on this host. Two seconds are spent on all of them together; a name that
        is not resolved by then has no address.
    type: list
    elements: str
    default: []
  proxies:
    description:
      - HTTP proxies, by the variable that names each, to check whether they let this host through. At most five seconds
        are spent on each.
    type: dict
    default: {}
  repositories:
    description:
      - Image repositories, without tags, whose content is wanted. C(docker.image_contents) has a digest for each tag,
        which is the same in every image store. Ids differ between stores.
      - C(docker.image_clusters) has the cluster that an image was built for, for all images with that label.
    type: list
    elements: str
    default: []
  docker_socket:
    description: The socket of the Docker engine.
    type: path
    default: /var/run/docker.sock
  driver_kernel:
    description: The kernel that NVIDIA's driver is wanted for, as C(uname -r) prints it. When empty, the running one.
    type: str
    default: ''
  sysfs_root:
    description: Where the GPUs' sysfs is. A directory other than V(/sys) is a recorded tree, for tests.
    type: path
    default: /sys
  proc_root:
    description: Where the driver's procfs is. A directory other than V(/proc) is a recorded tree, for tests.
    type: path
    default: /proc
  plan:
    description:
      - Roles whose changes M(swarmspeed.cluster.plan) will plan from the result, or V(all). What their plans need is
        gathered in addition to what the other options name, and their variables are returned as C(role_vars).
      - Used by the action plugin only, on the controller. As variables may hold passwords, the result is then not
        shown.
    type: list
    elements: str
    default: []
  run:
    description: Identifies the run in which the facts are gathered. Returned among them as C(run), by which
      M(swarmspeed.cluster.plan) distinguishes them from those of an earlier run in a fact cache. Used by the action
      plugin only.
    type: str
    default: ''
extends_documentation_fragment:
  - swarmspeed.cluster.attributes.read_only
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Gather facts of every node
  swarmspeed.cluster.node_facts:
    packages: [docker.io]
    disks: [/var/lib/docker]
    files:
      - path: /etc/docker/daemon.json
        content: true
"""

RETURN = r"""
ansible_facts:
  description: What was found.
  returned: always
  type: dict
  contains:
    swarmspeed:
      description: The facts.
      type: dict
      returned: always
      contains:
        system:
          description:
            - Distribution, release, codename, kernel, architecture, processors, memory in bytes, host name.
            - Time in seconds since the epoch.
            - Whether the kernel supports ESP (C(esp)), which encrypted overlays need; null where that is not known.
          type: dict
          returned: always
        clock:
          description: Offset of the node's clock from the controller's, and its uncertainty, in seconds.
          type: dict
          returned: always
          sample: {offset: 0.02, uncertainty: 0.3}
        disk:
          description: Free and total bytes of each path requested.
          type: dict
          returned: always
        packages:
          description: Installed version of each package requested, or null.
          type: dict
          returned: always
        dpkg:
          description:
            - Whether dpkg was interrupted. C(unfinished), packages with their state, and C(journal), whether
              C(/var/lib/dpkg/updates) waits to be read. While another dpkg or apt is running (C(busy)), both may be the
              case for a moment.
          type: dict
          returned: always
          sample: {unfinished: ["rsync (half-configured)"], journal: false, busy: false}
        files:
          description: Existence, SHA-256, mode, owner and group (numbers) of each path requested; where requested, its
            text and whether it is C(plain), neither a link nor with an SELinux context.
          type: dict
          returned: always
        trees:
          description: For each directory, the relative paths that are missing or differ.
          type: dict
          returned: always
        trees_missing:
          description: For each directory, those that are missing.
          type: dict
          returned: always
        code:
          description:
            - Of the code in O(code). Files that an earlier source had, C(left) as they were copied (with their digests
              C(copied)) or C(kept), which somebody has changed; whether the wanted ones are C(recorded) as copied;
              digests of code that is C(unneeded), as no job of this node was started from it; C(readers), jobs of an
              earlier release that run in O(code) itself; and for each other job that is C(running) the files of its own
              code that are not what it was started from. Empty where it was not asked for.
          type: dict
          returned: always
        groups:
          description: Members of each group requested, or null where the group does not exist.
          type: dict
          returned: always
        accounts:
          description: For each account requested, whether it exists.
          type: dict
          returned: always
          sample: {ada: true}
        sysctls:
          description: Value of each kernel parameter requested, or null.
          type: dict
          returned: always
        jobs:
          description: The last written state of each job below the directory requested. Where not all can be listed,
            C(more-than-can-be-listed) with the state C(unknown) stands for the others, and counts as one that runs.
          type: dict
          returned: always
        jobs_succeeded:
          description: For each job that succeeded, C(finished_at), and as C(spec) an HMAC by O(digest_key) of its
            specification's hash.
          type: dict
          returned: always
        assets:
          description:
            - For the models and data sets in O(assets), the file system of their folder (C(root), C(filesystem),
              C(free_bytes), C(incoming_bytes)), the names of those that have a record (C(recorded)), and for each one
              requested (C(found)) the digest of its list of files, the recorded files that were C(changed) since, and,
              where another digest is recorded, its C(files).
          type: dict
          returned: always
        folders:
          description: By path, the C(real) one without links, and the C(state). V(ours) and V(theirs) are recorded; of
            the others, V(made) holds what proves that this collection made it, and V(in_use) other files. Of an C(etc)
            in use by somebody else, the files that would be C(replaced).
          type: dict
          returned: always
        vscode:
          description: Unpacked VS Code extensions, by SHA-256 of the file, each with its C(folder) and whether it is
            C(intact), which means still there and listed.
          type: dict
          returned: always
        reach:
          description: RV(swarmspeed.cluster.overlay_reach#module:reached). Empty where it was not tested.
          type: dict
          returned: always
        listening:
          description: TCP and UDP ports on which something listens.
          type: dict
          returned: always
        gpu:
          description: As M(swarmspeed.cluster.gpu_info) returns it.
          type: dict
          returned: always
        cdi:
          description:
            - What C(/var/run/cdi/nvidia.yaml) names of a host's GPUs, the devices (C(names)) and the device files
              (C(nodes)). Null without a GPU, and where there is no such file.
          type: dict
          returned: always
        driver:
          description:
            - NVIDIA's driver on a host with a GPU, else null. Packages (C(packages), C(unfinished), C(interrupted)),
              the kernel it is wanted for (C(kernel), C(kernel_there), C(headers), C(image_flavours),
              C(kernel_packages)), its module on disk (C(module), C(dkms), C(mok_enrolled), C(mok_keys)), the kernel
              that boots next and its module (C(next_boot)), what uses it (C(users), C(services), C(persistence_off),
              C(umad)), apt's C(sources), an C(installer) of NVIDIA's own, free C(disk) space, C(machine_id) and
              C(boot_id).
          type: dict
          returned: always
        fabric:
          description: As M(swarmspeed.cluster.fabric_info) returns it.
          type: dict
          returned: always
        services:
          description:
            - Servers that the host uses. C(nameservers), C(addresses) that URLs in the configuration of apt, Docker,
              pip and git name (each with the file), and C(resolved), the addresses of each name requested.
          type: dict
          returned: always
        proxies:
          description:
            - By variable, what the proxy answered. Its C(address), whether a user was C(given), C(status) and
              C(schemes) of the answer, or the C(error).
          type: dict
          returned: always
        held:
          description: The requested packages that are on hold.
          type: list
          returned: always
        clock_synchronized:
          description: Whether the clock is synchronised, as C(timedatectl) shows it; null where the kernel does not
            report it.
          type: bool
          returned: always
        engine:
          description:
            - The engine's daemon.json (C(config_exists), C(config), C(problem)) and its systemd C(unit).
            - Secrets in it are masked, and carry part of their HMAC by O(digest_key) for comparison.
          type: dict
          returned: always
        firewall:
          description:
            - Which firewall blocks packets (C(active)), which of its rules let the cluster's in (C(ufw), C(iptables),
              C(nftables)), and the C(ephemeral_ports).
            - The ports that anyone may reach (C(open)), by family and protocol, as ranges.
          type: dict
          returned: always
        docker:
          description:
            - Engine, swarm, networks, containers and images. Join tokens are never among them. C(stale_swarm_ports) are
              swarm ports on which an engine that belongs to no swarm still listens.
          type: dict
          returned: always
        host:
          description: The host's name in the inventory, by which facts are matched to it.
          type: str
          returned: always
        run:
          description: O(run).
          type: str
          returned: where it is given
role_vars:
  description: By name, the variables of the roles in O(plan), rendered for this host.
  returned: with O(plan)
  type: dict
"""

import secrets
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.apt.dpkg_io import SystemDpkg
from ..module_utils.apt.dpkg_state import DpkgError, read_state
from ..module_utils.driver.host import gather_driver
from ..module_utils.driver.host_io import SystemDriverIO
from ..module_utils.engine.api_io import SocketEngine
from ..module_utils.engine.state import gather_engine_files
from ..module_utils.engine.state_io import SystemEngineFilesIO, clock_synchronized, held_facts
from ..module_utils.fabric.host_io import SystemFabricIO
from ..module_utils.fabric.interfaces import gather_fabric
from ..module_utils.fabric.reach_io import Beside
from ..module_utils.firewall.state import gather_firewall
from ..module_utils.firewall.state_io import SystemFirewallIO
from ..module_utils.gpu.cdi import gather_cdi
from ..module_utils.gpu.gather import gather_gpu
from ..module_utils.gpu.host_io import SystemGpuIO
from ..module_utils.job.code_facts_io import code_facts
from ..module_utils.node.parsers import changed_files, missing_files
from ..module_utils.node.proxy_io import SystemProxyIO, gather_proxies
from ..module_utils.node.services_io import SystemServicesIO, gather_esp, gather_services
from ..module_utils.node.sockets_io import listening_facts
from ..module_utils.node.system_io import (
    NodeError,
    account_facts,
    disk_facts,
    docker_facts,
    gathered_files,
    group_facts,
    job_facts,
    package_facts,
    sysctl_facts,
    system_facts,
    tree_digests,
)
from ..module_utils.owned.folders_io import OwnedError, SystemFolders
from ..module_utils.owned.ownership import states
from ..module_utils.transfer.assets.facts_io import asset_facts
from ..module_utils.vscode.state import unpacked


def _mistake(requested: dict[str, Any]) -> str | None:
    """Return what is wrong with the options beyond their types, or None."""
    for root, wanted in requested["trees"].items():
        if not isinstance(wanted, dict):
            return f"trees: {root} must have a mapping of relative path to SHA-256, not {wanted!r}."
    seen: dict[str, dict[str, Any]] = {}
    for entry in requested["files"]:
        if entry["secret"] and (entry["content"] or entry["block"]):
            held = f"files: {entry['path']} holds a secret, so neither its text nor a block of it is returned."
            return f"{held} Remove content and block."
        if seen.setdefault(entry["path"], entry) != entry:
            return f"files: {entry['path']} is asked for twice, in different ways. Ask once."
    return None


def _code(requested: dict[str, Any]) -> dict[str, Any]:
    root = requested["code"]
    return code_facts(root, requested["trees"].get(root, {}), requested["jobs"]) if root else {}


def _driver(gpu: dict[str, Any], kernel: str) -> dict[str, Any] | None:
    """Look for a driver only where there is something to drive: it costs a second."""
    if not gpu["present"]:
        return None
    return gather_driver(SystemDriverIO(), kernel, secure_boot=gpu["secure_boot"])


def _folders(wanted: dict[str, Any]) -> dict[str, dict[str, str]]:
    return states(SystemFolders(str(wanted["cluster"])), wanted["root"], wanted["paths"]) if wanted.get("paths") else {}


def main() -> None:
    """Read and return."""
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "list", "elements": "str", "default": []},
            "files": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "path", "required": True},
                    "content": {"type": "bool", "default": False},
                    "block": {"type": "str"},
                    "mark": {"type": "str"},
                    "secret": {"type": "bool", "default": False},
                },
            },
            "digest_key": {"type": "str", "no_log": True},
            "trees": {"type": "dict", "default": {}},
            "tree_sizes": {"type": "dict", "default": {}},
            "disks": {"type": "list", "elements": "path", "default": []},
            "groups": {"type": "list", "elements": "str", "default": []},
            "accounts": {"type": "list", "elements": "str", "default": []},
            "sysctls": {"type": "list", "elements": "str", "default": []},
            "jobs": {"type": "path"},
            "assets": {
                "type": "dict",
                "default": {},
                "options": {"root": {"type": "path"}, "wanted": {"type": "dict", "default": {}}},
            },
            "folders": {
                "type": "dict",
                "default": {},
                "options": {
                    "cluster": {"type": "str"},
                    "root": {"type": "path"},
                    "paths": {"type": "list", "elements": "path", "default": []},
                },
            },
            "vscode": {"type": "path"},
            "code": {"type": "path"},
            "reach": {
                "type": "dict",
                "default": {},
                "options": {
                    "container": {"type": "str"},
                    "hosts": {"type": "dict", "default": {}},
                    "port": {"type": "int"},
                },
            },
            "resolve": {"type": "list", "elements": "str", "default": []},
            "proxies": {"type": "dict", "default": {}, "no_log": True},
            "repositories": {"type": "list", "elements": "str", "default": []},
            "docker_socket": {"type": "path", "default": "/var/run/docker.sock"},
            "driver_kernel": {"type": "str", "default": ""},
            "sysfs_root": {"type": "path", "default": "/sys"},
            "proc_root": {"type": "path", "default": "/proc"},
            # The action plugin keeps these.
            "plan": {"type": "list", "elements": "str", "default": []},
            "run": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    requested = module.params
    # An address without a user is not a secret, and would be made unreadable wherever else it stands.
    module.no_log_values -= {url for url in requested["proxies"].values() if "@" not in str(url)}
    mistake = _mistake(requested)
    if mistake:
        module.fail_json(msg=mistake)
    try:
        # A key that no one else has: nothing can be compared, and nothing guessed.
        key = requested["digest_key"] or secrets.token_hex(32)
        system = system_facts()
        gpu = gather_gpu(SystemGpuIO(requested["sysfs_root"], requested["proc_root"]))
        docker = docker_facts(SocketEngine(requested["docker_socket"]), requested["repositories"])
        reach = Beside(requested["reach"], docker)
        services = SystemServicesIO()
        trees = {
            root: tree_digests(root, list(wanted), requested["tree_sizes"].get(root) or {})
            for root, wanted in requested["trees"].items()
        }
        facts = {
            "system": {**system, "esp": gather_esp(services, system["kernel"])},
            "disk": disk_facts(requested["disks"]),
            "packages": package_facts(requested["packages"]),
            "dpkg": read_state(SystemDpkg()).facts(),
            "files": gathered_files(requested["files"], [*requested["trees"], requested["jobs"] or ""], key),
            "trees": {root: changed_files(requested["trees"][root], found) for root, found in trees.items()},
            "trees_missing": {root: missing_files(found) for root, found in trees.items()},
            "code": _code(requested),
            "groups": group_facts(requested["groups"]),
            "accounts": account_facts(requested["accounts"]),
            "sysctls": sysctl_facts(requested["sysctls"]),
            **job_facts(requested["jobs"], key),
            "listening": listening_facts(),
            "gpu": gpu,
            "cdi": gather_cdi() if gpu["present"] else None,
            "driver": _driver(gpu, requested["driver_kernel"] or system["kernel"]),
            "fabric": gather_fabric(SystemFabricIO(), gpu),
            "services": gather_services(services, requested["resolve"]),
            "proxies": gather_proxies(SystemProxyIO(), services, requested["proxies"]),
            "docker": docker,
            "held": held_facts(requested["packages"]),
            "engine": gather_engine_files(SystemEngineFilesIO(), docker["installed"], key),
            "firewall": gather_firewall(SystemFirewallIO()),
            "clock_synchronized": clock_synchronized(),
            "assets": asset_facts(requested["assets"]),
            "folders": _folders(requested["folders"]),
            "vscode": unpacked(requested["vscode"]) if requested["vscode"] else {},
            "reach": reach.result(),
        }
    except OSError as error:
        module.fail_json(
            msg=f"Cannot gather facts of this node: {error}. May Ansible's account read it (become: true)?"
        )
    except (NodeError, DpkgError, OwnedError) as error:
        module.fail_json(msg=f"Cannot gather facts of this node: {error}")
    module.exit_json(changed=False, ansible_facts={"swarmspeed": facts})


if __name__ == "__main__":
    main()
