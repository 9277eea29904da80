"""The installed tarball alone, no checkout and no ansible.cfg in reach, does what the checkout does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

PROJECT = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"])
sys.path.insert(0, str(PROJECT))

from tests.journey import NODES, image_archive, on

PLACE = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "galaxy"
INSTALLED = PLACE / "collections" / "ansible_collections" / "swarmspeed" / "cluster"


def run(*command: str) -> str:
    """Run a command in an empty folder with the installed collection only; return what it prints."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LAB_NAME", "LANG") if name in os.environ}
    environment.update(
        ANSIBLE_CONFIG=str(PLACE / "empty" / "ansible.cfg"), ANSIBLE_COLLECTIONS_PATH=str(PLACE / "collections")
    )
    answer = subprocess.run(
        command, cwd=PLACE / "empty", env=environment, capture_output=True, text=True, check=False, timeout=1800
    )
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-2000:]
    return answer.stdout


def play(name: str, *arguments: str) -> str:
    return run("ansible-playbook", f"swarmspeed.cluster.{name}", "-i", str(PROJECT / "inventories" / "lab"), *arguments)


def image() -> list[str]:
    """Return the variables that take the image from the archive of the scenario site; without one it is built."""
    archive = image_archive()
    if not archive.exists():
        return []
    with tarfile.open(archive) as tar:
        manifest = tar.extractfile("manifest.json")
        assert manifest is not None
        (name,) = json.load(manifest)[0]["RepoTags"]
    values = {"training_image_source": "archive", "training_image_archive": str(archive), "training_image_name": name}
    return ["--extra-vars", json.dumps(values)]


def changes(output: str) -> list[int]:
    return [int(count) for count in re.findall(r"changed=(\d+)", output)]


def test_modules_come_from_the_installed_collection() -> None:
    described = json.loads(run("ansible-doc", "--json", "swarmspeed.cluster.training_job"))
    assert described["swarmspeed.cluster.training_job"]["doc"]["filename"].startswith(str(INSTALLED))


def test_nothing_of_the_workshop_is_inside() -> None:
    top = {path.name for path in INSTALLED.iterdir()}
    assert {"playbooks", "roles", "plugins", "meta", "README.md", "LICENSE", "examples"} <= top
    assert not top & {".lab", ".git", ".venv", ".cache", ".ci", "collections", "molecule", "tests"}
    assert not [path for path in INSTALLED.rglob("*") if path.name.startswith("id_ed25519")]


def test_site_by_name_brings_the_nodes_up_and_again_changes_nothing() -> None:
    first = play("site", *image())
    assert "target 0.95 reached" in first
    again = play("site", *image())
    assert changes(again) == [0] * len(changes(again)), again
    assert "not started again" in again


def test_verify_by_name() -> None:
    output = play("verify", *image())
    assert changes(output) == [0] * len(changes(output))


def test_teardown_by_name() -> None:
    consent = {"workspace_remove": True, "deepspeed_launch_remove_jobs": True, "training_image_remove": True}
    output = play("teardown", "--extra-vars", json.dumps(consent))
    assert any(changes(output))
    for name in NODES:
        assert on(name, "docker ps --all --quiet --filter label=swarmspeed.cluster") == ""
        assert on(name, "docker images --quiet swarmspeed/swarmspeed") == ""
        assert on(name, "ls -d /srv/swarmspeed/swarmspeed 2>/dev/null; true") == ""
    image_archive().unlink(missing_ok=True)
