# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files of the roles that are broken by hand on one node of the lab, and how to see that they are repaired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.playbook_run import CLUSTER_ROOT, ETC, container, inside, on

SSH = f"{ETC}/ssh"


@dataclass(frozen=True)
class Damage:
    """Something broken by hand on one node; ``repaired`` tells whether it is right again."""

    tag: str
    node: str
    command: str
    repaired: Callable[[], bool]


def _content(name: str, path: str) -> str:
    return on(name, f"cat {path} 2>/dev/null; true")


def _mode(name: str, path: str) -> str:
    return on(name, f"stat -c %a {path} 2>/dev/null; true")


DAMAGES = {
    "a node without names": Damage(
        "host",
        "lab2",
        "sed -i '/BEGIN swarmspeed/,/END swarmspeed/d' /etc/hosts",
        lambda: on("lab2", "getent hosts lab3").split()[-1:] == ["lab3"],
    ),
    "the cluster key is gone": Damage(
        "ssh_trust",
        "lab2",
        f"rm {SSH}/id_ed25519",
        lambda: on("lab2", f"sha256sum < {SSH}/id_ed25519") == on("lab1", f"sha256sum < {SSH}/id_ed25519"),
    ),
    "the cluster key can be read by others": Damage(
        "ssh_trust", "lab3", f"chmod 0644 {SSH}/id_ed25519", lambda: _mode("lab3", f"{SSH}/id_ed25519") == "600"
    ),
    "a host key is gone": Damage(
        "ssh_trust",
        "lab3",
        f"rm {SSH}/ssh_host_ed25519_key {SSH}/ssh_host_ed25519_key.pub",
        lambda: inside("lab1", "ssh lab3 hostname") == container("lab3"),
    ),
    "nccl.conf is gone": Damage(
        "nccl_env",
        "lab1",
        f"rm {ETC}/nccl.conf && docker exec {container('lab1')} rm /etc/nccl.conf",
        lambda: "NCCL_SOCKET_IFNAME==eth" in inside("lab1", "cat /etc/nccl.conf"),
    ),
    "code differs on a node": Damage(
        "workspace",
        "lab2",
        f"echo '# mine' >> {CLUSTER_ROOT}/workspace/train.py",
        lambda: "# mine" not in _content("lab2", f"{CLUSTER_ROOT}/workspace/train.py"),
    ),
    "a hostfile is gone": Damage(
        "hostfile", "lab3", f"rm {ETC}/hostfile", lambda: _content("lab3", f"{ETC}/hostfile").count("slots=1") == 3
    ),
    "ds_config.json was edited": Damage(
        "ds_config",
        "lab1",
        f"echo '{{}}' > {ETC}/ds_config.json",
        lambda: "train_micro_batch_size_per_gpu" in _content("lab1", f"{ETC}/ds_config.json"),
    ),
}
