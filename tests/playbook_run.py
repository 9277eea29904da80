# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the tests of scenarios share: run a playbook as a user does, read a node's state, compare before and after."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import testinfra
from testinfra.host import Host

from tests.preflight_report import reported

ROOT = Path(__file__).parents[1]
INVENTORY = ROOT / "inventories" / "lab"

LAB = os.environ.get("LAB_NAME", "swarmspeed")
NODES = ("lab1", "lab2", "lab3")
CLUSTER_ROOT = "/srv/swarmspeed/swarmspeed"
ETC = f"{CLUSTER_ROOT}/etc"
JOBS = f"{CLUSTER_ROOT}/jobs"
LABEL = "swarmspeed.cluster"
_LEAVE = "docker swarm leave --force"
LEAVE_SWARM = f"timeout 60 {_LEAVE} || {{ systemctl restart docker && {_LEAVE}; }}"

# All that a run may change on a node; times of start show a container or an engine that was touched.
_SNAPSHOT = rf"""
exec 2>/dev/null
find {CLUSTER_ROOT} /etc/docker /etc/apt/apt.conf.d /etc/security/limits.d /etc/sysctl.d /etc/hosts \
  /root/.ssh /root/.swarmspeed* \
  \( -path {JOBS} -o -path '*/checkpoints' \) -prune -o -type f -printf '%p %m %U:%G ' -exec sha256sum '{{}}' ';'
ls -1 {JOBS}
systemctl show docker.service --property=ActiveState,ActiveEnterTimestamp
docker ps --all --no-trunc --format '{{{{.ID}}}} {{{{.Names}}}}'
docker ps --all --quiet | xargs --no-run-if-empty \
  docker inspect --format '{{{{.Name}}}} {{{{.State.Status}}}} {{{{.State.StartedAt}}}}'
docker network ls --no-trunc --format '{{{{.ID}}}} {{{{.Name}}}}'
docker images --no-trunc --format '{{{{.ID}}}} {{{{.Repository}}}}:{{{{.Tag}}}}'
docker info --format '{{{{.Swarm.LocalNodeState}}}} {{{{.Swarm.NodeID}}}}'
"""


@dataclass(frozen=True)
class Run:
    """How a playbook ended. ``text`` is its output with line breaks and indentation made single blanks.

    ``log``: what it has added to its log, where the recap is if the console has none.
    """

    rc: int
    output: str
    log: str = ""

    @property
    def text(self) -> str:
        return " ".join(self.output.split())

    @property
    def changed(self) -> dict[str, int]:
        """Changed tasks by host, from the recap."""
        recap = re.compile(r"^(?:.*INFO\| )?(\S+)\s+: ok=\d+\s+changed=(\d+)", re.MULTILINE)
        return {host: int(count) for host, count in recap.findall(f"{self.output}\n{self.log}")}

    def done(self, change: bool | None = None, nodes: tuple[str, ...] = NODES) -> Run:
        """Assert success on these nodes; with ``change`` also that something, or nothing, was changed."""
        assert self.rc == 0, self.output[-6000:]
        assert set(nodes) <= set(self.changed), self.output[-3000:]
        if change is not None:
            assert any(self.changed.values()) is change, self.output[-6000:]
        return self

    def refused(self, *texts: str) -> Run:
        """Assert failure with these texts, and no traceback of Ansible or this collection."""
        assert self.rc != 0, f"was to be refused:\n{self.output[-3000:]}"
        for text in texts:
            assert text in self.text, f"not said: {text}\n{self.output[-6000:]}"
        # What a job's launcher or script prints stands behind the name of its node.
        ours = [line for line in self.output.splitlines() if not re.search(r"\blab\d(?: rank \d+)?(?: \||:) ", line)]
        assert "Traceback" not in "\n".join(ours), self.output[-6000:]
        return self

    def refused_by(self, *problems: tuple[str, str]) -> Run:
        """Assert that preflight found these problems, each by its check and subject, and no others.

        Hosts as one subject, such as "lab1, lab2", may share a line of the report or have one each.
        """
        assert problems, "name the problems"
        found = [(line.check, line.subject) for line in reported(self.refused().output)]
        wanted, had = (
            sorted((check, subject) for check, subjects in pairs for subject in subjects.split(", "))
            for pairs in (problems, found)
        )
        assert had == wanted, f"found {found}\n{self.output[-6000:]}"
        assert not any(self.changed.values()), self.output[-6000:]
        return self


def command(name: str, *arguments: str | Path, inventory: Path | None = INVENTORY) -> list[str]:
    """Return the command line of one of the collection's playbooks, of this very environment."""
    where = ["--inventory", str(inventory)] if inventory else []
    return [str(Path(sys.executable).with_name("ansible-playbook")), f"{name}.yml", *where, *map(str, arguments)]


def environment() -> dict[str, str]:
    """Return the environment of a user who sits in the checkout: nothing of the test runner's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "MOLECULE_"))}
    kept.pop("RECORD_CHANGES", None)
    return {**kept, "ANSIBLE_NOCOLOR": "1", "PYTHONUNBUFFERED": "1"}


def playbook(name: str, *arguments: str | Path, inventory: Path | None = INVENTORY, timeout: float = 900) -> Run:
    """Run one of the collection's playbooks from the checkout, for at most ``timeout`` seconds."""
    answer = subprocess.run(
        command(name, *arguments, inventory=inventory),
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Run(answer.returncode, answer.stdout)


def site(*arguments: str | Path, timeout: float = 900) -> Run:
    return playbook("site", *arguments, timeout=timeout)


def start(name: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start a playbook in a process group of its own, for tests that kill it."""
    return subprocess.Popen(
        command(name, *arguments),
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def as_the_readme_says(example: str) -> Run:
    """Run the playbook by the line in an example's README; it must end well. Those that build an image take long."""
    readme = (ROOT / "examples" / example / "README.md").read_text(encoding="utf-8")
    ((name, given),) = re.findall(r"^ansible-playbook (\w+)\.yml -i inventories/lab -e (@\S+)$", readme, re.M)
    process = start(name, "-e", given)
    output = process.communicate(timeout=2400)[0]
    return Run(process.returncode, output).done()


def tags_alone(tags: Sequence[str], *arguments: str | Path) -> dict[str, Run]:
    """Run site.yml with each tag alone, side by side: for a cluster on which none of them is to change anything."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        return dict(zip(tags, pool.map(lambda tag: site("--tags", tag, *arguments), tags)))


def whole() -> None:
    """Assert that nothing is left to repair anywhere, by what check mode predicts."""
    site("--check", "--diff").done(change=False)


@cache
def node(name: str) -> Host:
    """Return a lab node to run commands on, over ssh as its inventory says, all over one connection."""
    values = lab_inventory()["_meta"]["hostvars"][name]
    return testinfra.get_host(
        f"ssh://{values['ansible_user']}@{values['ansible_host']}",
        ssh_identity_file=values["ansible_ssh_private_key_file"],
        ssh_extra_args=values["ansible_ssh_common_args"],
        controlpath=f"{tempfile.mkdtemp(prefix='nodes-')}/{name}",
    )


def ssh(name: str, command: str) -> list[str]:
    """Return the words that run a shell command on a node, as its inventory says, over a connection of its own."""
    return ["ssh", *login(name), command]


def login(name: str) -> list[str]:
    """Return ssh's options for a node, as its inventory says, and the node."""
    values = lab_inventory()["_meta"]["hostvars"][name]
    options = shlex.split(values["ansible_ssh_common_args"])
    where = f"{values['ansible_user']}@{values['ansible_host']}"
    return ["-i", values["ansible_ssh_private_key_file"], *options, where]


def on(name: str, command: str) -> str:
    """Run a shell command on a node that must succeed; return what it printed."""
    return str(node(name).check_output(command))


@contextmanager
def condition(name: str, begin: str, end: str) -> Iterator[None]:
    """Make something true on a node for a while."""
    on(name, begin)
    try:
        yield
    finally:
        on(name, end)


def leave_swarm(name: str) -> None:
    """Have a node leave its swarm by hand. Engine 20.10 sometimes hangs there, its container still attached."""
    on(name, LEAVE_SWARM)


def inside(name: str, command: str) -> str:
    """Run a shell command in a node's training container that must succeed; return what it printed."""
    return str(node(name).check_output("docker exec %s sh -c %s", container(name), command))


def container(name: str) -> str:
    return f"swarmspeed-{name}"


def image_archive() -> Path:
    """Return where scenarios leave the lab's training image for others, of any lab of this checkout."""
    return ROOT / ".cache" / "training-image.tar"


def kept_image() -> str:
    """Return the name of the image in that archive; empty where there is none."""
    if not image_archive().exists():
        return ""
    with tarfile.open(image_archive()) as tar:
        manifest = tar.extractfile("manifest.json")
        assert manifest is not None
        (name,) = json.load(manifest)[0]["RepoTags"]
    return str(name)


def from_archive() -> tuple[str, ...]:
    """Return the arguments that take the image from the archive; none where there is no archive, and it is built."""
    name = kept_image()
    if not name:
        return ()
    source = {"training_image_source": "archive", "training_image_archive": str(image_archive())}
    return variables(**source, training_image_name=name)


def send(folder: Path, name: str, place: str) -> None:
    """Copy a folder of the controller's to a node, as ``place``."""
    packed = subprocess.run(["tar", "-c", "-C", str(folder), "."], stdout=subprocess.PIPE, check=True).stdout
    command = ssh(name, f"mkdir -p {place} && tar -x --no-same-owner -C {place}")
    subprocess.run(command, input=packed, check=True, timeout=60)


def snapshot() -> dict[str, list[str]]:
    """Return all that a run might change, by node: files, modes, digests, engine, containers, networks, images."""
    taken = {name: sorted(node(name).run(_SNAPSHOT).stdout.splitlines()) for name in NODES}
    # An empty one would be equal to any other empty one.
    assert all(
        any(part in line for line in lines)
        for lines in taken.values()
        for part in (ETC, "/etc/hosts", "ActiveState=active", "swarmspeed/swarmspeed:")
    )
    return taken


def lab_inventory() -> dict[str, Any]:
    """Return the lab's inventory as its script prints it."""
    answer = subprocess.run(
        [sys.executable, INVENTORY / "lab.py", "--list"], capture_output=True, text=True, check=True
    )
    inventory: dict[str, Any] = json.loads(answer.stdout)
    return inventory


def write_inventory(path: Path, managers: list[str], workers: list[str]) -> Path:
    """Write an inventory with the lab's nodes in other groups, and none of the lab's variables."""
    variables = lab_inventory()["_meta"]["hostvars"]

    def hosts(names: list[str]) -> dict[str, Any]:
        return {"hosts": {name: variables[name] for name in names}}

    groups = {"managers": hosts(managers), "workers": hosts(workers)}
    path.write_text(json.dumps({"cluster": {"children": groups}}), encoding="utf-8")
    return path


def network(action: str, *addresses: str) -> str:
    """Cut the lab off from everything but itself and these addresses of it, count what tried to leave, or restore."""
    script = ROOT / "molecule" / "default" / "network"
    done = subprocess.run([script, action, LAB, *addresses], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def variables(**values: Any) -> tuple[str, str]:
    """Return the arguments that set extra variables."""
    return ("--extra-vars", json.dumps(values))


def job(name: str = "digits", folder: str = JOBS) -> dict[str, Any]:
    """Return a job's state file. One that runs on the hosts themselves lies in another folder."""
    state: dict[str, Any] = json.loads(on("lab1", f"cat {shlex.quote(folder)}/{name}/state.json"))
    return state
