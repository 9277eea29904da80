"""Accepted values at the boundary of each kind, given to the program that reads them, on a node of the lab."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.boundaries.programs import ON_THE_CONTROLLER, PLACE, SCRIPTS, refused, written
from tests.boundaries.runs import IMAGE
from tests.boundaries.values import DAEMON, HERE, KINDS
from tests.playbook_run import ROOT, on, send, ssh

NODE = "lab1"
NODE_OF = {"published_port": "lab2"}
"""Where the servers leave no room: they have the ports on NODE."""
_LISTENS = "bash -c '</dev/tcp/127.0.0.1/1 && </dev/tcp/127.0.0.1/65535' 2>/dev/null"
WAIT = f'timeout 30 sh -c "until {_LISTENS}; do sleep 0.2; done"'


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the training image; a container of it runs, and the servers of server.py, until the node goes."""
    folder = tmp_path_factory.mktemp("place")
    (wheel,) = (ROOT / ".lab/cache/wheelhouse").glob("einops-*.whl")
    for path in (wheel, HERE / "server.py"):
        (folder / path.name).write_bytes(path.read_bytes())
    on(NODE, f"systemctl stop boundaries 2>/dev/null; docker rm -f boundaries 2>/dev/null; rm -rf {PLACE}")
    # For the values that are addresses of version 6; Docker turns it off in the containers that the nodes are.
    on(NODE, "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.lo.disable_ipv6=0")
    send(folder, NODE, PLACE)
    on(NODE, f"systemd-run --quiet --unit boundaries --working-directory {PLACE} python3 server.py")
    on(NODE, WAIT)
    mount = f"--volume {PLACE}:{PLACE}"
    on(NODE, f"docker run --detach --name boundaries --network host {mount} --entrypoint sleep {IMAGE} infinity")
    return IMAGE


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_program_takes_every_accepted_value(kind: str, image: str, tmp_path: Path) -> None:
    assert kind in {*SCRIPTS, *ON_THE_CONTROLLER}
    assert refused(kind, [written(value) for value in KINDS[kind]], NODE_OF.get(kind, NODE), image, tmp_path) == {}


def test_dockerd_takes_the_ends_of_the_keys_of_its_configuration() -> None:
    """Engine 26.1, of lab2: 20.10 cannot validate a file."""
    rows = [{key: value} for key, values in DAEMON.items() for value in values]
    script = """
import json, subprocess, sys
for row in json.load(sys.stdin):
    with open("/tmp/boundary.json", "w") as file:
        json.dump(row, file)
    command = ["dockerd", "--validate", "--config-file", "/tmp/boundary.json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(row, done.stdout)
"""
    command = ssh("lab2", f"python3 -c '{script}'")
    done = subprocess.run(command, input=json.dumps(rows), capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
