# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Images of one's own, on the cluster that the tests before have deployed: a Dockerfile, and an archive without a tag.

They begin with the image of the collection, as the lab reaches no registry.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.content import content_of_image

from tests.engines import has_image, image_names, inspect
from tests.image_runs import FOLDER, REPOSITORY, build
from tests.playbook_run import NODES, Run, container, inside, job, on, playbook, ssh, variables

VARIABLES = yaml.safe_load((Path(__file__).parents[1] / "vars" / "variables.yml").read_text(encoding="utf-8"))
DOCKERFILE = """\
FROM {base}
ARG RELEASE
COPY note /opt/note
RUN --mount=type=secret,id=network,target=/run/network . /run/network && echo "$RELEASE" >/opt/release && {more}
"""


def of_the_container(name: str) -> str:
    return str(inspect(name, "container", container(name))["Config"]["Image"])


@pytest.fixture(scope="module")
def base() -> str:
    """The image that the cluster has, by a name that no role removes."""
    on("lab1", f"docker tag {of_the_container('lab1')} own/base:1")
    return "own/base:1"


def site(folder: Path, base: str, more: str, *arguments: str) -> Run:
    (folder / "note").write_text("ours\n", encoding="utf-8")
    (folder / "Dockerfile").write_text(DOCKERFILE.format(base=base, more=more), encoding="utf-8")
    requested = {
        "training_image_dockerfile": f"{folder}/Dockerfile",
        "training_image_build_args": {"RELEASE": "2026.11"},
    }
    # Of the lab's inventory, for the collection's own Dockerfile: refused beside one of one's own.
    unset = {"training_image_python_packages": [], "training_image_wheelhouse": "", "training_image_deepspeed_ops": []}
    return playbook("site", *variables(**VARIABLES, **requested, **unset), *arguments)


def test_what_an_image_lacks_is_named_before_a_container_is_made_of_it(tmp_path: Path, base: str) -> None:
    before = {name: inspect(name, "container", container(name))["Id"] for name in NODES}
    site(tmp_path, base, "rm /usr/sbin/sshd").refused(
        "lacks /usr/sbin/sshd (is the container's process)", "Remedy: apt-get install openssh-server, in its Dockerfile"
    )
    assert {name: inspect(name, "container", container(name))["Id"] for name in NODES} == before


def test_a_dockerfile_of_ones_own_is_built_sent_to_all_and_trains(tmp_path: Path, base: str) -> None:
    site(tmp_path, base, "true").done(change=True)
    assert len({content_of_image(inspect(name, "image", of_the_container(name))) for name in NODES}) == 1
    for name in NODES:
        assert inside(name, "cat /opt/release /opt/note").split() == ["2026.11", "ours"]
    assert job()["state"] == "succeeded"
    site(tmp_path, base, "true").done(change=False)
    # The context counts for the tag.
    made = of_the_container("lab1")
    (tmp_path / "more").write_text("1\n", encoding="utf-8")
    predicted = site(tmp_path, base, "true", "--tags", "training_image", "--check").done(change=True)
    named = re.search(r"preflight : Name the training image (\S+)\]", predicted.text)
    assert named and named[1] != made


def test_an_archive_without_a_tag_gets_the_name_that_is_requested(tmp_path: Path) -> None:
    image = build("untagged", low=4)
    archive = tmp_path / "image.tar"
    with archive.open("wb") as file:
        command = ssh("lab1", f"docker save {inspect('lab1', 'image', image)['Id']}")
        subprocess.run(command, stdout=file, check=True, timeout=120)
    on("lab1", f"docker rmi -f {image}")
    requested = variables(
        **VARIABLES,
        training_image_source="archive",
        training_image_archive=str(archive),
        training_image_name="own/archive:1",
    )
    playbook("site", "--tags", "training_image", *requested).done(change=True)
    assert [has_image(name, "own/archive:1") for name in NODES] == [True] * len(NODES)
    playbook("site", "--tags", "training_image", *requested).done(change=False)
    for name in NODES:
        on(name, f"docker rmi -f own/archive:1; docker rmi own/base:1; rm -rf {FOLDER}; true")
    assert {name: image_names(name, REPOSITORY) for name in NODES} == {name: set() for name in NODES}
