"""Each role by itself, from the installed tarball, in a play that knows nothing else of the collection; twice."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, os.environ["MOLECULE_PROJECT_DIRECTORY"])

from tests.engines import container_state, image_names, info, networks, swarm_state
from tests.installed import Installed
from tests.playbook_run import INVENTORY, NODES, ROOT, Run, container, from_archive, inside, on, variables

PAGE = ROOT / "docs" / "roles.md"


@dataclass(frozen=True)
class Alone:
    """One role: what is found on a node once it was applied. On nodes without a GPU some have nothing to change."""

    role: str
    found: Callable[[str], str | Collection[str]]
    wanted: str
    changes: bool = True


def printed(command: str) -> Callable[[str], str]:
    return lambda name: on(name, command)


def package_of_the_engine(name: str) -> str:
    """Return docker.io where the engine that answers is of that package: 20.10 on Debian 12, 26.1 on Debian 13."""
    version = str(info(name)["ServerVersion"])
    installed = on(name, "dpkg-query --show --showformat '${Version}' docker.io")
    return "docker.io" if installed.startswith(version) else f"an engine {version}, and docker.io {installed}"


# In the order in which one needs another.
ROLES = (
    Alone("host", printed("ls /etc/security/limits.d"), "swarmspeed"),
    Alone("nvidia_driver", printed("ls /proc/driver/nvidia 2>/dev/null; echo none"), "none", changes=False),
    # The play of the page has installed it.
    Alone("docker", package_of_the_engine, "docker.io", changes=False),
    Alone("nvidia_container_toolkit", printed("command -v nvidia-ctk; echo none"), "none", changes=False),
    Alone("swarm", lambda name: [swarm_state(name)], "active"),
    Alone("overlay_network", lambda name: networks(name).values(), "overlay"),
    Alone("training_image", lambda name: [tag.partition(":")[0] for tag in image_names(name)], "swarmspeed/swarmspeed"),
    Alone("ssh_trust", printed("ls /srv/swarmspeed/swarmspeed/etc/ssh"), "id_ed25519"),
    Alone("nccl_env", printed("ls /srv/swarmspeed/swarmspeed/etc"), "nccl.conf"),
    Alone("workspace", printed("ls /srv/swarmspeed/swarmspeed/workspace"), "train.py"),
    Alone("assets", printed("ls /srv/swarmspeed/swarmspeed/assets/mine"), "train.py"),
    Alone("training_container", lambda name: [container_state(name, container(name))], "running"),
    Alone("deepspeed_launch", printed("cat /srv/swarmspeed/swarmspeed/etc/hostfile"), "slots=1"),
)


@pytest.fixture(scope="module")
def installed() -> Installed:
    """Return what converge.yml has installed."""
    return Installed(Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "alone")


def play(installed: Installed, folder: Path, roles: list[str], *arguments: str) -> Run:
    """Run a play of a user's own that has these roles and nothing else of the collection."""
    names = [f"swarmspeed.cluster.{role}" for role in roles]
    own = [{"name": "A play of my own", "hosts": "managers:workers", "become": True, "roles": names}]
    path = folder / "own.yml"
    path.write_text(yaml.safe_dump(own, sort_keys=False), encoding="utf-8")
    return installed.run("ansible-playbook", str(path), "-i", str(INVENTORY), *arguments)


def given(role: str) -> tuple[str, ...]:
    """Return the arguments that a role needs beside the inventory: what it cannot know by itself."""
    if role == "training_image":
        return from_archive()
    if role == "assets":
        return variables(assets_sources=[{"name": "mine", "folder": str(ROOT / "examples" / "digits")}])
    if role == "training_container":
        (image,) = image_names("lab1", "swarmspeed/swarmspeed")
        return variables(swarmspeed_image=image)
    # Alone it keeps the hostfile: for a job there is launch.yml.
    return variables(deepspeed_launch_script="") if role == "deepspeed_launch" else ()


def test_the_play_of_the_page_on_bare_nodes(installed: Installed, tmp_path: Path) -> None:
    (own,) = re.findall(r"```yaml\n# engine.yml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "engine.yml"
    path.write_text(own, encoding="utf-8")

    def run(*arguments: str) -> Run:
        return installed.run("ansible-playbook", str(path), "-i", str(INVENTORY), *arguments)

    predicted = run("--check", "--diff").done(change=True)
    assert "+ /etc/docker/daemon.json log-driver: local" in predicted.text
    for name in NODES:
        assert on(name, "command -v dockerd || echo none").strip() == "none"
    run().done(change=True)
    for name in NODES:
        assert info(name)["LoggingDriver"] == "local"
    run().done(change=False)


@pytest.mark.parametrize("alone", ROLES, ids=lambda alone: str(alone.role))
def test_a_role_alone_does_its_part_and_again_changes_nothing(
    installed: Installed, tmp_path: Path, alone: Alone
) -> None:
    first = play(installed, tmp_path, [alone.role], *given(alone.role)).done(change=alone.changes)
    for name in NODES:
        assert alone.wanted in alone.found(name), first.output[-3000:]
    play(installed, tmp_path, [alone.role], *given(alone.role)).done(change=False)


def test_every_role_is_tried() -> None:
    assert {alone.role for alone in ROLES} == {
        path.parent.parent.name for path in ROOT.glob("roles/*/tasks/main.yml")
    } - {"preflight"}


@pytest.mark.parametrize("role", [alone.role for alone in ROLES if alone.changes])
def test_check_mode_of_a_role_alone_finds_nothing_to_do(installed: Installed, tmp_path: Path, role: str) -> None:
    play(installed, tmp_path, [role], "--check", "--diff", *given(role)).done(change=False)


@pytest.mark.parametrize(
    "role", ["swarm", "overlay_network", "training_image", "ssh_trust", "assets", "deepspeed_launch"]
)
def test_a_role_of_the_whole_group_refuses_a_part_of_it(installed: Installed, tmp_path: Path, role: str) -> None:
    refused = play(installed, tmp_path, [role], "--limit", "lab1", *given(role)).refused("Remedy: ")
    assert role in refused.text and not any(refused.changed.values()), refused.output[-3000:]


def test_several_roles_of_the_users_choice_in_one_play(installed: Installed, tmp_path: Path) -> None:
    play(installed, tmp_path, ["docker", "swarm", "overlay_network"]).done(change=False)


def test_containers_reach_each_other() -> None:
    for name in NODES:
        assert inside(name, "ssh -o BatchMode=yes lab2 hostname").strip() == container("lab2")


def test_a_job_alone_is_refused_in_a_sentence(installed: Installed, tmp_path: Path) -> None:
    refused = play(installed, tmp_path, ["deepspeed_launch"]).refused("launch.yml")
    assert not any(refused.changed.values()), refused.output[-3000:]


def test_the_modules_of_the_page_in_a_play_of_a_users_own(installed: Installed, tmp_path: Path) -> None:
    (own,) = re.findall(r"```yaml\n(- hosts: localhost\n.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "own.yml"
    path.write_text(own.replace("path: /tmp/", f"path: {tmp_path}/"), encoding="utf-8")
    installed.run("ansible-playbook", str(path)).done(change=True, nodes=("localhost",))
    assert (tmp_path / "hostfile").read_text(encoding="utf-8").splitlines()[-2:] == ["gpu1 slots=8", "gpu2 slots=8"]
    written = json.loads((tmp_path / "ds_config.json").read_text(encoding="utf-8"))
    assert written["train_batch_size"] == 256 and written["zero_optimization"]["stage"] == 2
    installed.run("ansible-playbook", str(path)).done(change=False, nodes=("localhost",))
