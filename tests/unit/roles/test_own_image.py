# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What goes into an image: its tag, its Dockerfile, and where they come from, as the role's own expressions say.

They use lookups, so they are evaluated in a process of their own, in which Ansible's search for plugins is set up.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.role_values import load, value, variables

ROOT = Path(__file__).parents[3]
KEYS = (
    "_training_image_asked",
    "_training_image_dockerfile",
    "_training_image_dockerfile_path",
    "_training_image_dockerfile_within",
    "_training_image_manifest",
    "_training_image_network",
    "_training_image_paths",
)
GIT = "git+https://h.example/DeepSpeed@v0.19.8"
EVALUATE = """
import json, sys
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader([])
from tests.role_values import value, variables
asked = json.load(sys.stdin)
found = [{key: value(key, variables("training_image", **given)) for key in asked["keys"]} for given in asked["cases"]]
sys.stdout.write(json.dumps(found))
"""


def evaluate(*cases: dict[str, Any], folder: Path = ROOT) -> list[dict[str, Any]]:
    """Return the role's values for each of these settings, as if the playbook were run in the folder."""
    done = subprocess.run(
        [sys.executable, "-c", EVALUATE],
        input=json.dumps({"keys": KEYS, "cases": cases}),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PWD": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def tags(*cases: dict[str, Any]) -> list[str]:
    return [found["_training_image_asked"] for found in evaluate(*cases)]


@pytest.fixture(name="own")
def _own(tmp_path: Path) -> Path:
    """A Dockerfile with a context, as a user has one."""
    folder = tmp_path / "image"
    (folder / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git/index").write_text("1")
    (folder / "src/train.py").write_text("print()\n")
    (folder / "Dockerfile").write_text("FROM debian:12-slim\nRUN echo '{{ not_a_template }}'\n")
    return folder


def test_where_things_are_fetched_from_makes_no_other_image(own: Path) -> None:
    secret = {
        "training_image_pip_index": "https://u:hunter2@m.example/simple",
        "training_image_apt_sources": ["deb http://u:hunter2@m.example/debian bookworm main"],
        "training_image_proxy": "http://u:hunter2@proxy.example:3128",
    }
    mine = {"training_image_dockerfile": str(own / "Dockerfile")}
    plain, fetched, own_plain, own_fetched = evaluate({}, secret, mine, {**mine, **secret})
    assert plain["_training_image_asked"] == fetched["_training_image_asked"]
    assert own_plain["_training_image_asked"] == own_fetched["_training_image_asked"]
    for found in (fetched, own_fetched):
        assert "hunter2" not in found["_training_image_dockerfile"]
        assert found["_training_image_network"].count("hunter2") >= 3


def test_the_index_of_the_hosts_is_that_of_the_build() -> None:
    (found,) = evaluate({"host_pip_index": "https://m.example/simple"})
    assert "export PIP_INDEX_URL=https://m.example/simple\n" in found["_training_image_network"]


def test_what_goes_in_makes_another_image(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("a.txt", "b.txt", "a.zip", "b.zip")}
    for name, path in files.items():
        path.write_bytes(name.encode() + b"\xff")
    for name in ("a.txt", "b.txt"):
        files[name].write_text(f"{name.replace('.', '')}==1\n")
    found = tags(
        {},
        {"training_image_requirements": str(files["a.txt"])},
        {"training_image_requirements": str(files["b.txt"])},
        {"training_image_deepspeed_source": str(files["a.zip"])},
        {"training_image_deepspeed_source": str(files["b.zip"])},
        {"training_image_deepspeed_source": "git+https://h.example/a@v1"},
        {"training_image_deepspeed_source": "git+https://h.example/a@v2"},
    )
    assert len(set(found)) == len(found)
    files["a.txt"].rename(tmp_path / "c.txt")
    assert tags({"training_image_requirements": str(tmp_path / "c.txt")}) == [found[1]]


def test_the_tag_of_ones_own_dockerfile(own: Path) -> None:
    given = {"training_image_dockerfile": str(own / "Dockerfile")}
    before, argument, again = tags(given, {**given, "training_image_build_args": {"A": "1"}}, given)
    assert re.fullmatch(r"swarmspeed/swarmspeed:[0-9a-f]{16}", before)
    assert (argument == before, again == before) == (False, True)
    (own / ".git/index").write_text("2")
    assert tags(given) == [before]
    (own / "src/train.py").write_text("print(1)\n")
    (changed,) = tags(given)
    assert changed not in (before, argument)
    (own / "Dockerfile").write_text("FROM debian:13-slim\n")
    assert tags(given)[0] not in (before, argument, changed)


def test_ones_own_dockerfile_is_taken_as_it_is_and_stays_where_it_stands(own: Path) -> None:
    inside, below, outside, relative = evaluate(
        {"training_image_dockerfile": str(own / "Dockerfile")},
        {"training_image_dockerfile": str(own / "Dockerfile"), "training_image_context": str(own.parent)},
        {"training_image_dockerfile": str(own / "Dockerfile"), "training_image_context": str(own / "src")},
        {"training_image_dockerfile": "image/Dockerfile"},
        folder=own.parent,
    )
    for found in (inside, below, outside, relative):
        assert found["_training_image_dockerfile"] == (own / "Dockerfile").read_text()
    assert sorted(inside["_training_image_manifest"]) == ["Dockerfile", "src/train.py"]
    assert inside["_training_image_dockerfile_path"] == "/srv/swarmspeed/swarmspeed/image/Dockerfile"
    assert below["_training_image_dockerfile_path"] == "/srv/swarmspeed/swarmspeed/image/image/Dockerfile"
    # A build could copy it if it lay in the context.
    assert outside["_training_image_dockerfile_path"] == "/srv/swarmspeed/swarmspeed/image.build/Dockerfile"
    assert sorted(outside["_training_image_manifest"]) == ["train.py"]
    assert [found["_training_image_dockerfile_within"] for found in (inside, below, outside)] == [True, True, False]
    assert relative == inside


@pytest.fixture(name="ours", scope="module")
def _ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """This collection's Dockerfile, as it comes from different sources of DeepSpeed."""
    folder = tmp_path_factory.mktemp("ours")
    (folder / "r.txt").write_text("einops\n")
    (folder / "DeepSpeed 1.tar.gz").touch()
    archive = {
        "training_image_deepspeed_source": str(folder / "DeepSpeed 1.tar.gz"),
        "training_image_wheelhouse": str(folder),
    }
    git = {"training_image_deepspeed_source": GIT, "training_image_requirements": str(folder / "r.txt")}
    found = evaluate({}, git, archive)
    assert {values["_training_image_dockerfile_path"] for values in found} == {
        "/srv/swarmspeed/swarmspeed/image/Dockerfile"
    }
    return dict(
        zip(("index", "git", "archive"), (values["_training_image_dockerfile"] for values in found), strict=True)
    )


def step(text: str, title: str) -> str:
    """Return one RUN with its continued lines."""
    (found,) = [part for part in re.split(r"\n(?=[A-Z#])", text.replace("\\\n", "")) if f": '{title}'" in part]
    return " ".join(found.split())


def test_deepspeed_from_the_index(ours: dict[str, str]) -> None:
    text = ours["index"]
    assert " git" not in step(text, "Install Python and compilers")
    assert step(text, "Compile DeepSpeed").endswith("--wheel-dir /built deepspeed==0.19.8")
    assert "requirements.txt" not in text and "deepspeed_wheel.py" not in text


def test_deepspeed_from_git_and_requirements(ours: dict[str, str]) -> None:
    text = ours["git"]
    assert step(text, "Install Python and compilers").endswith(" git")
    compiled = step(text, "Compile DeepSpeed")
    assert compiled.endswith(f"python /build/deepspeed_wheel.py 0.19.8 {GIT} /built")
    assert "--mount=type=bind,source=deepspeed,target=/build " in compiled
    assert "DS_BUILD_SHM_COMM=1" in compiled
    installed = step(text, "Install DeepSpeed and further packages")
    assert installed.endswith("--constraint /built/constraints.txt /built/*.whl --requirement /build/requirements.txt")


def test_deepspeed_from_an_archive_with_a_wheelhouse(ours: dict[str, str]) -> None:
    text = ours["archive"]
    assert " git" not in step(text, "Install Python and compilers")
    assert step(text, "Compile DeepSpeed").endswith(
        "deepspeed_wheel.py 0.19.8 /build/source.tar.gz /built --no-index --find-links /wheelhouse"
    )


def test_every_step_that_fetches_reads_the_secret_in_both_stages(ours: dict[str, str]) -> None:
    lines = [line for text in ours.values() for line in text.replace("\\\n", "").splitlines()]
    fetching = [line for line in lines if re.match(r"RUN .*(apt-get|pip (install|wheel)|deepspeed_wheel[.]py)", line)]
    assert len(fetching) >= 18
    assert [line for line in fetching if "type=secret,id=network" not in line or ". /run/network" not in line] == []


def tasks(file: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for task in load(file):
        for entry in [task, *task.get("block", []), *task.get("rescue", []), *task.get("always", [])]:
            found[str(entry["name"])] = entry
    return found


def test_what_holds_a_password_is_written_for_root_and_not_shown() -> None:
    task = tasks("training_image/tasks/build.yml")["Write what the build fetches through"]
    assert (task["no_log"], task["ansible.builtin.copy"]["mode"]) == (True, "0600")
    build = tasks("training_image/tasks/build.yml")["Build the image (minutes) as {{ _training_image_ref }}"]
    assert list(build["swarmspeed.cluster.image_build"]["secrets"]) == ["network"]
    assert list(build["swarmspeed.cluster.image_build"]["labels"]) == ["swarmspeed.cluster"]


@pytest.mark.parametrize(
    ("given", "versions", "files"),
    [
        ({}, True, True),
        ({"training_image_dockerfile": "x"}, False, True),
        ({"training_image_source": "pull"}, False, False),
        ({"cluster_bundle": "/srv/bundle"}, True, False),
    ],
)
def test_what_preflight_checks_of_an_image(given: dict[str, Any], versions: bool, files: bool) -> None:
    values = variables(swarmspeed_bare=False, **given)
    assert value("_preflight_builds_image", values) is versions
    assert value("_preflight_reads_image", values) is files
