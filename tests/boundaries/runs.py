# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the scenario boundaries needs for runs with its sets: arguments, and what the greatest values refer to."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.boundaries.values import SETS, given
from tests.engines import engine, image_names
from tests.playbook_run import NODES, ROOT, on, site

CONTROLLER = ROOT / ".cache" / "boundaries"
HIGHEST = given("highest")[0]
IMAGE = str(given("lowest")[0]["training_image_name"])
ACCOUNT = str(HIGHEST["docker_users"][0])


def arguments(name: str) -> tuple[str, str]:
    """Return the arguments that give a run one of the sets."""
    return ("--extra-vars", f"@{SETS[name]}")


def seen(node: str, workspace: str, rank: int) -> dict[str, Any]:
    """Return what a rank of the job found: environment, words of its command line, number of ranks."""
    found: dict[str, Any] = json.loads(on(node, f"cat {shlex.quote(workspace)}/seen/rank-{rank}.json"))
    return found


def prepare_lowest() -> None:
    """Make the training image as other scenarios do, on all nodes, and give it the name of the set."""
    site("--tags", "host,docker,training_image", timeout=1800).done()
    for name in NODES:
        (image,) = image_names(name, "swarmspeed/swarmspeed")
        engine(name).images.get(image).tag(IMAGE, "latest")


def prepare_highest() -> None:
    """Make what the set refers to: on the controller files, on the nodes an account and the image's name."""
    shutil.rmtree(CONTROLLER, ignore_errors=True)
    CONTROLLER.mkdir(parents=True)
    authority, profile = (CONTROLLER / Path(str(HIGHEST[name])).name for name in ("host_ca_certificate", _PROFILE))
    _run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=boundary", "-days", "2",
         "-keyout", str(CONTROLLER / "key"), "-out", str(authority))  # fmt: skip
    profile.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW"}), encoding="utf-8")
    _repository(CONTROLLER / Path(str(HIGHEST["workspace_source"])).name)
    repository, tag = str(HIGHEST["training_image_name"]).rsplit(":", 1)
    for name in NODES:
        on(name, f"id {ACCOUNT} 2>/dev/null || useradd --badname {ACCOUNT}")
        engine(name).images.get(IMAGE).tag(repository, tag)


_PROFILE = "training_container_seccomp_profile"


def _repository(path: Path) -> None:
    """Make a git repository with the job below a folder, at the reference of the set."""
    folder = path / str(HIGHEST["workspace_source_folder"])
    shutil.copytree(ROOT / "molecule" / "boundaries" / "scripts", folder)
    data = folder / Path(str(HIGHEST["deepspeed_launch_data_paths"][0])).name
    data.mkdir()
    (data / "kept").write_text("", encoding="utf-8")
    for excluded in HIGHEST["workspace_exclude"]:
        (folder / str(excluded)).write_text("", encoding="utf-8")
    _run("git", "init", "--quiet", cwd=path)
    _run("git", "add", "--all", cwd=path)
    author = ("-c", "user.name=a", "-c", "user.email=a@a")
    _run("git", *author, "commit", "--quiet", "--message", "a", cwd=path)
    _run("git", "update-ref", f"refs/heads/{HIGHEST['workspace_source_ref']}", "HEAD", cwd=path)


def _run(*command: str, cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)


if __name__ == "__main__":
    prepare_lowest()
