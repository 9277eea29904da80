# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A requirements.txt beside the script goes into the image; what the image cannot have is refused before a build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image import recipe as recipes
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.inputs import Trouble
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.requirements import pins_of

from tests.image_nodes import CLUSTER, ROLE_VARS, plan, recipe, text


@pytest.fixture(name="source")
def _source(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "train.py").write_text("import torch\n")
    return folder


def job(source: Path, script: str = "src/train.py", **more: Any) -> dict[str, Any]:
    return {"workspace_source": str(source), "deepspeed_launch_script": script, **more}


def trouble(**desired: Any) -> str:
    role_vars = {**ROLE_VARS, **desired}
    found = recipes.recipe(role_vars, Inputs(CLUSTER, {name: text(name) for name in recipes.files(role_vars)}))
    assert isinstance(found, Trouble)
    return str(found)


@pytest.mark.parametrize("place", ["src/requirements.txt", "requirements.txt"])
@pytest.mark.parametrize("script", ["src/train.py", "/workspace/src/train.py", "./src/train.py"])
def test_the_nearest_file_goes_into_the_image(source: Path, place: str, script: str) -> None:
    without = recipe(**job(source, script))
    (source / "requirements.txt").write_text("far\n")
    (source / place).write_text("near\n")
    found = recipe(**job(source, script))
    assert found.requirements.path == place and found.requirements.text == "near\n"
    assert found.reference != without.reference and "--requirement" in found.dockerfile
    sent = {one["path"]: one["content"] for one in found.task_input()["texts"]}
    assert sent["requirements.txt"] == "near\n" and "requirements.txt" not in without.dockerfile


@pytest.mark.parametrize("script", ["", "-m my.train", "train"])
def test_where_no_file_is_named_that_of_the_source_counts(source: Path, script: str) -> None:
    (source / "requirements.txt").write_text("a\n")
    (source / "src" / "requirements.txt").write_text("b\n")
    assert recipe(**job(source, script)).requirements.text == "a\n"


def test_it_can_be_left_out_or_replaced(source: Path, tmp_path: Path) -> None:
    without = recipe(**job(source)).reference
    (source / "requirements.txt").write_text("a\n")
    (tmp_path / "other.txt").write_text("b\n")
    assert recipe(**job(source), training_image_requirements="").reference == without
    named = recipe(**job(source), training_image_requirements=f"{tmp_path}/other.txt")
    assert (named.requirements.text, named.requirements.auto) == ("b\n", False)


def test_none_above_the_source_is_read(source: Path) -> None:
    (source.parent / "requirements.txt").write_text("a\n")
    assert recipe(**job(source)).requirements.path == ""
    assert recipe(**job(source, "../train.py")).requirements.path == ""


def test_a_repository_that_is_not_fetched_has_none(source: Path) -> None:
    (source / "requirements.txt").write_text("a\n")
    given = job(source, workspace_source_ref="main")
    assert recipe(**given).requirements.path == ""
    fetched = {"folder": str(source), "name": "x at main"}
    assert recipe(**given, swarmspeed_source=fetched).requirements.path == "requirements.txt"


def test_the_plan_says_which_file(source: Path) -> None:
    (source / "requirements.txt").write_text("a\n")
    change = next(one for one in plan(**job(source)).changes if one.before is None)
    assert change.why == "built here with the packages of requirements.txt"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "accelerate\ntorch==2.5.1 # as in the paper\n",
            "requirements.txt requires torch==2.5.1, and the image has torch 2.13.0, for which DeepSpeed's operators "
            "are compiled. Remedy: take the line out of the file, or set training_image_torch to a release that it "
            "allows, or set training_image_requirements: ''.",
        ),
        ("DeepSpeed<0.10\n", "requirements.txt requires DeepSpeed<0.10, and the image has deepspeed "),
        ("-e .\n", "requirements.txt names files or folders, but the build gets only this file: -e .. Remedy: "),
    ],
)
def test_what_the_image_cannot_have(source: Path, content: str, message: str) -> None:
    (source / "requirements.txt").write_text(content)
    assert trouble(**job(source)).startswith(f"training_image_requirements: {message}")
    named = job(source, training_image_requirements=str(source / "requirements.txt"))
    if not content.startswith("-e"):  # else preflight has refused it before any connection
        assert "set training_image_requirements: ''" not in trouble(**named)


@pytest.mark.parametrize(
    "line", ["torch", "torch>=2.0", "torch==2.13.0", "deepspeed", "# torch==1", "--pre", "torch @ x"]
)
def test_what_it_can_have(source: Path, line: str) -> None:
    (source / "requirements.txt").write_text(f"{line}\n")
    assert recipe(**job(source)).requirements.text == f"{line}\n"


def test_a_file_that_leads_out_of_the_source_is_not_read(source: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("password\n")
    (source / "requirements.txt").symlink_to(tmp_path / "secret")
    assert "it leads out of workspace_source" in trouble(**job(source))
    (source / "requirements.txt").unlink()
    (source / "requirements.txt").mkdir()
    assert "it is not a plain file" in trouble(**job(source)) or "it cannot be read" in trouble(**job(source))


@pytest.mark.parametrize(
    ("torch", "wanted"),
    [
        ("torch==2.13.0", {"torch": "2.13.0"}),
        ("torch==2.9.1+cu128 torchvision==0.24", {"torch": "2.9.1", "torchvision": "0.24"}),
        ("torch>=2", {}),
        ("torch==2.*", {}),
        ("", {}),
    ],
)
def test_releases_that_are_chosen(torch: str, wanted: dict[str, str]) -> None:
    assert pins_of(torch, "") == wanted and pins_of(torch, "0.19.8")["deepspeed"] == "0.19.8"
