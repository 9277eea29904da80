# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A real sshd whose connection is cut in the middle of a task: how long it takes until its node is named.

The cut is a proxy of this test's that stops to pass anything on, and lets connections stand: as a host does that has
lost its power. Needs a program sshd, in PATH, /usr/sbin or $SSHD, and root; otherwise it is skipped and says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stand_ins import ANSIBLE, newcomer

SSHD = os.environ.get("SSHD") or shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SSHD, reason="no sshd here (openssh-server, or SSHD=/path/to/it)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd lets others than root in only as themselves"),
]
PLAYBOOK = """\
- name: Find
  ansible.builtin.import_playbook: swarmspeed.cluster.find_cluster
- name: Go there
  hosts: cluster
  gather_facts: false
  any_errors_fatal: true
  tasks:
    - name: Say hello
      ansible.builtin.ping:
    - name: Take long
      ansible.builtin.command: sleep 300
    - name: Say hello again
      ansible.builtin.ping:
"""


class Proxy:
    """Passes on what comes to its port, until ``cut``: then nothing, without notice."""

    def __init__(self, target: int) -> None:
        self.target, self.cut, self.kept = target, False, []  # type: ignore[var-annotated]
        self.server = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self.server.accept()[0]
                self.kept.append(client)
                if not self.cut:
                    there = socket.create_connection(("127.0.0.1", self.target))
                    self.kept.append(there)
                    for source, sink in ((client, there), (there, client)):
                        threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.cut:
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, Proxy]]:
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    options = {
        "HostKey": tmp_path / "host",
        "AuthorizedKeysFile": tmp_path / "user.pub",
        "StrictModes": "no",
        "PidFile": "none",
        "UsePAM": "no",
        "PermitRootLogin": "prohibit-password",
        "ListenAddress": f"127.0.0.1:{port}",
    }
    settings: list[str] = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    server = [str(SSHD), "-f", "/dev/null", *settings]
    subprocess.run([*server, "-t"], check=True, timeout=30)
    with subprocess.Popen([*server, "-D"]) as sshd:
        proxy = Proxy(port)
        known = (tmp_path / "host.pub").read_text().split()
        (tmp_path / "known").write_text(f"[127.0.0.1]:{proxy.port} {known[0]} {known[1]}\n")
        (tmp_path / "play.yml").write_text(PLAYBOOK)
        gpu1 = {
            "ansible_host": "127.0.0.1",
            "ansible_port": proxy.port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(tmp_path / "user"),
            "ansible_ssh_common_args": f"-F none -o UserKnownHostsFile={tmp_path / 'known'}",
            "ansible_python_interpreter": sys.executable,
        }
        (tmp_path / "hosts.json").write_text(json.dumps({"cluster": {"hosts": {"gpu1": gpu1}}}))
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield tmp_path, proxy
        proxy.server.close()
        sshd.terminate()


@pytest.mark.parametrize("earlier", [False, True], ids=["alone", "over a connection of an earlier command"])
def test_a_host_that_dies_in_the_middle_of_a_task_is_named_within_the_minute(
    place: tuple[Path, Proxy], earlier: bool
) -> None:
    folder, proxy = place
    if earlier:  # its connection is kept, without our options
        ping = [str(ANSIBLE.with_name("ansible")), "cluster", "-i", "hosts.json", "-m", "ansible.builtin.ping"]
        subprocess.run(ping, cwd=folder, env=newcomer(folder), check=True, timeout=60, stdout=subprocess.DEVNULL)
    command = [str(ANSIBLE), "-i", "hosts.json", "play.yml"]
    output, began = "", 0.0
    with subprocess.Popen(
        command,
        cwd=folder,
        env=newcomer(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as run:
        # All of them: a worker that waits keeps the output open.
        watchdog = threading.Timer(150, lambda: os.killpg(run.pid, signal.SIGKILL))
        watchdog.start()
        assert run.stdout is not None
        for line in run.stdout:
            output += line
            if "[Take long]" in line:
                time.sleep(3)  # the module runs by then
                proxy.cut, began = True, time.monotonic()
        run.wait()
        watchdog.cancel()
    took = time.monotonic() - began
    assert run.returncode == 4, output
    assert "gpu1: stopped responding during 'Take long'" in output
    assert took < 60, f"{took:.0f} s"


def test_a_host_that_is_dead_from_the_beginning(place: tuple[Path, Proxy]) -> None:
    folder, proxy = place
    proxy.cut, began = True, time.monotonic()
    done = subprocess.run(
        [ANSIBLE, "-i", "hosts.json", "play.yml"],
        cwd=folder,
        env=newcomer(folder),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 4, done.stdout
    assert "gpu1: stopped responding during 'Say hello'" in done.stdout
    assert time.monotonic() - began < 40
