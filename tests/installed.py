# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The built tarball, installed where nothing of the checkout is in reach: its playbooks are run by their full names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.playbook_run import INVENTORY, ROOT, Run
from tests.release.stand_in import Galaxy, Signer
from tests.release.tarball import build, commit_time

_BIN = Path(sys.executable).parent


class Installed:
    """The collection as ``ansible-galaxy`` builds and installs it, in a folder that has nothing else."""

    def __init__(self, place: Path, inventory: Path = INVENTORY) -> None:
        self.place, self.inventory = place, inventory
        self.empty = place / "empty"
        self.collections = place / "collections"
        self.root = self.collections / "ansible_collections" / "swarmspeed" / "cluster"

    def install(self) -> None:
        """Build the tarball from the checkout and install it into an empty folder."""
        self.make_empty()
        self.install_from(ROOT)

    def make_empty(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        self.empty.mkdir(parents=True)
        # Molecule names the checkout's own configuration in the environment; this one sets nothing.
        (self.empty / "ansible.cfg").write_text("[defaults]\n", encoding="utf-8")

    def install_from(self, tree: Path) -> None:
        """Build the tarball from this tree and install it, in place of what is installed."""
        with tempfile.TemporaryDirectory(dir=self.place) as built:
            self.run("ansible-galaxy", "collection", "build", "--output-path", built, str(tree)).done(nodes=())
            (tarball,) = Path(built).glob("*.tar.gz")
            # --offline: the collections it depends on come with the package ansible.
            where = ("--offline", "--collections-path", str(self.collections), *(["--force"] * self.root.exists()))
            self.run("ansible-galaxy", "collection", "install", *where, str(tarball)).done(nodes=())

    def install_signed(self) -> None:
        """Install what `make tarball` makes by its name, signed, from a stand-in for a Galaxy server, and verify it."""
        self.make_empty()
        tarball = build(ROOT, self.place, commit_time(ROOT))
        server = Galaxy().begin()
        with tempfile.TemporaryDirectory() as folder:
            signer = Signer(Path(folder))
            server.publish(tarball, [signer.sign(tarball)])
            trusted = ("--server", server.address, "--keyring", str(signer.keyring))
            where = ("--required-valid-signature-count", "+1", "--collections-path", str(self.collections))
            for what, end in (("install", "was installed successfully"), ("verify", "match the remote collection")):
                done = self.run("ansible-galaxy", "collection", what, "swarmspeed.cluster", *trusted, *where)
                assert end in done.done(nodes=()).text
            signer.close()
        server.close()
        # What Ansible asks of a collection: it works without whatever is in no other folder (docs/checklist.md).
        for path in self.root.iterdir():
            if path.name not in ("meta", "playbooks", "plugins", "roles"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def environment(self) -> dict[str, str]:
        """Return an environment in which there is the installed collection alone."""
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "LAB_NAME", "LANG") if name in os.environ}
        environment.update(
            ANSIBLE_CONFIG=str(self.empty / "ansible.cfg"),
            ANSIBLE_COLLECTIONS_PATH=str(self.collections),
            ANSIBLE_NOCOLOR="1",
        )
        return environment

    def run(self, *command: str) -> Run:
        """Run a command of Ansible's with the installed collection alone."""
        answer = subprocess.run(
            [str(_BIN / command[0]), *command[1:]],
            cwd=self.empty,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
            check=False,
        )
        return Run(answer.returncode, answer.stdout)

    def play(self, name: str, *arguments: str) -> Run:
        """Run a playbook of the collection by its full name on the lab."""
        return self.run("ansible-playbook", f"swarmspeed.cluster.{name}", "-i", str(self.inventory), *arguments)

    def start(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a playbook of the collection by its full name on the lab, for tests that watch it."""
        words = ["ansible-playbook", f"swarmspeed.cluster.{name}", "-i", str(self.inventory), *arguments]
        return subprocess.Popen(
            [str(_BIN / words[0]), *words[1:]],
            cwd=self.empty,
            env={**self.environment(), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


if __name__ == "__main__":
    installed = Installed(Path(sys.argv[1]))
    if "--signed" in sys.argv:
        installed.install_signed()
    else:
        installed.install()
