"""Options of the training container on real engines: seccomp, PID mode, published ports, devices, groups."""

from __future__ import annotations

import json
import sys
from pathlib import Path

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.engines import inspect
from tests.playbook_run import container, inside, on, playbook, site, variables

ROLES = ("--tags", "training_container")
PORT = 18888
SERVE = f"mkdir -p /tmp/served; nohup python3 -m http.server {PORT} --directory /tmp/served >/dev/null 2>&1 & sleep 3"
READ = "import urllib.request as web; print(web.urlopen('http://127.0.0.1:{}/', timeout=20).status)"


def test_each_option_reaches_the_engine_and_what_runs_inside(tmp_path: Path) -> None:
    profile = tmp_path / "seccomp.json"
    # Everything but the calls of mkfifo.
    denied = {"names": ["mknod", "mknodat"], "action": "SCMP_ACT_ERRNO"}
    profile.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [denied]}, indent=2))
    given = variables(
        training_container_seccomp_profile=str(profile),
        training_container_pid_mode="host",
        training_container_published_ports=[f"127.0.0.1:{PORT}:{PORT}"],
        training_container_devices=["/dev/null:/dev/swarmspeed-null:r"],
        training_container_groups=["4242"],
        training_container_sysctls={"net.ipv4.tcp_keepalive_time": 300, "kernel.sem": "250 32000 100 128"},
    )
    try:
        site(*ROLES, *given).done(change=True)
        site(*ROLES, *given).done(change=False)
        playbook("verify", *ROLES, *given).done(change=False)
        assert inspect("lab2", "container", container("lab2"))["HostConfig"]["PidMode"] == "host"
        assert "4242" in inside("lab2", "id -G").split()
        assert inside("lab2", "cat /proc/sys/net/ipv4/tcp_keepalive_time /proc/sys/kernel/sem").split() == [
            *("300", "250", "32000", "100", "128")
        ]
        assert inside("lab2", "ls -l /dev/swarmspeed-null").startswith("c")
        assert inside("lab2", "mkfifo /tmp/denied 2>&1 || true").strip().endswith("Operation not permitted")
        assert inside("lab2", "cat /proc/1/comm").strip() == "systemd"  # the node's own
        inside("lab2", SERVE)
        assert on("lab2", f'python3 -c "{READ.format(PORT)}"').strip() == "200"
        assert on("lab2", f"ss -Hltn 'sport = :{PORT}' | awk '{{print $4}}'").split() == [f"127.0.0.1:{PORT}"]
        # Its own sshd reads new keys, and not the node's.
        hangups = "journalctl -u ssh | grep -c 'Received SIGHUP' || true"
        before = on("lab2", hangups)
        inside("lab2", "sh /etc/swarmspeed/entrypoint.sh reload")
        assert on("lab2", hangups) == before
        assert inside("lab1", "ssh lab2 hostname").strip() == container("lab2")
    finally:
        site(*ROLES).done(change=True)
    assert inspect("lab2", "container", container("lab2"))["HostConfig"]["PidMode"] == ""


def test_what_is_wrong_on_any_host_is_refused_before_any_connection() -> None:
    wrong = variables(training_container_published_ports=["8888"])
    site(*ROLES, *wrong).refused("training_container_published_ports[0]: '8888' is not [ADDRESS:]PORT:PORT")


def test_what_only_a_host_can_show_is_refused_before_anything_is_changed() -> None:
    wrong = variables(
        training_container_devices=["/dev/none"],
        training_container_volumes=["/data/imagenet:/data:ro"],
        training_container_shm_size="900g",
    )
    run = site(*ROLES, *wrong).refused(
        "there is no /dev/none on this host",
        "/data/imagenet does not exist on this host",
        "900g is more than the memory of this host",
    )
    assert not any(run.changed.values())
    assert on("lab2", "ls -d /data/imagenet 2>&1 || true").strip().endswith("No such file or directory")
