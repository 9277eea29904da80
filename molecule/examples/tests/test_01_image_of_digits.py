"""The examples that run in the image of digits: each trains, and leaves what its README says where it says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.example_runs import CHECKPOINTS, extra, python, succeeded, trained
from tests.playbook_run import CLUSTER_ROOT, JOBS, NODES, ROOT, Run, inside, on, playbook, variables


@pytest.fixture(scope="module")
def torchrun_single() -> Run:
    return trained("torchrun_single")


@pytest.fixture(scope="module")
def gdgpt_pipeline() -> Run:
    return trained("gdgpt_pipeline")


def test_torchrun_single(torchrun_single: Run) -> None:
    succeeded(torchrun_single, "torchrun_single", 2, 1, r"accuracy on held-out digits 0\.9\d+, target 0.95 reached")


@pytest.mark.usefixtures("torchrun_single")
def test_torchrun_leaves_its_checkpoint_on_the_one_node_it_uses() -> None:
    code = f'import torch; print(torch.load("{CHECKPOINTS}/torchrun_single/last.pt", weights_only=True)["epoch"])'
    assert python("lab1", code) == 10
    for name in NODES[1:]:
        assert on(name, f"ls {CLUSTER_ROOT}/workspace/checkpoints/torchrun_single 2>/dev/null; true") == ""


@pytest.mark.usefixtures("torchrun_single")
@pytest.mark.parametrize("start", ["launch", "spawn"])
def test_the_other_starts_of_the_write_ups(start: str) -> None:
    name = f"torchrun_single_{start}"
    on("lab1", f"rm -rf {JOBS}/{name} {CLUSTER_ROOT}/workspace/checkpoints/torchrun_single")
    values = (*extra("torchrun_single"), "-e", f"@examples/torchrun_single/vars.{start}.yml")
    run = playbook("launch", *values).done(change=True)
    assert f"Job {name} succeeded: its command ended well on 1 node(s)." in run.text
    assert "torchrun_single: 2 ranks, backend gloo, 32 pictures a rank and step, from epoch 1" in run.text
    assert re.search(r"accuracy on held-out digits 0\.9\d+, target 0.95 reached", run.text), run.output[-4000:]
    playbook("launch", *values).done(change=False)


@pytest.mark.usefixtures("torchrun_single")
def test_a_spawned_rank_that_misses_its_target_fails_the_job() -> None:
    short = {
        "deepspeed_launch_name": "missed",
        "deepspeed_launch_args": ["--epochs", "1", "--target", "1.1", "--checkpoint="],
    }
    values = ("-e", "@examples/torchrun_single/vars.spawn.yml", *variables(**short))
    run = playbook("launch", *extra("torchrun_single"), *values)
    assert run.rc != 0 and "target 1.1 MISSED" in run.text


def test_gdgpt_pipeline(gdgpt_pipeline: Run) -> None:
    succeeded(gdgpt_pipeline, "gdgpt_pipeline", 3, 3, r"held-out loss 5\.\d+ -> [12]\.\d+, target 3.0 reached")


@pytest.mark.usefixtures("gdgpt_pipeline")
def test_each_node_keeps_the_layers_of_its_stage_and_training_goes_on_from_there() -> None:
    layers = {name: inside(name, f"ls {CHECKPOINTS}/gdgpt_pipeline/step00060").split() for name in NODES}
    kept = {name: {int(file[6:8]) for file in files if file.startswith("layer_")} for name, files in layers.items()}
    assert set.union(*kept.values()) == set(range(8))  # an embedding, six blocks and a head
    assert sum(map(len, kept.values())) == 8
    run = playbook("launch", *extra("gdgpt_pipeline", deepspeed_launch_args=["--target", "3.0", "--resume"]))
    run.done(change=True)
    assert re.search(r"gpt, 3 ranks, 3 stages, backend gloo, \d+ bytes of text, from step 60", run.text)


@pytest.mark.usefixtures("gdgpt_pipeline")
@pytest.mark.parametrize("kind", ["bloom", "llama"])
def test_the_layers_of_bloom_and_of_llama(kind: str) -> None:
    name = f"gdgpt_pipeline_{kind}"
    on("lab1", f"rm -rf {JOBS}/{name}")
    values = (*extra("gdgpt_pipeline"), "-e", f"@examples/gdgpt_pipeline/vars.{kind}.yml")
    run = playbook("launch", *values).done(change=True)
    assert f"Job {name} succeeded: 3 rank(s) on 3 node(s)." in run.text
    assert re.search(rf"gdgpt: {kind}, 3 ranks, 3 stages, backend gloo", run.text)
    assert re.search(r"held-out loss [56]\.\d+ -> [12]\.\d+, target 3.0 reached", run.text), run.output[-4000:]
    files = inside("lab1", f"ls {CHECKPOINTS}/{name}/step00060").split()
    assert any(file.startswith("layer_") for file in files), files


def git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    done = subprocess.run(["git", "-C", str(folder), *own, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_program_of_a_git_repository(tmp_path: Path) -> None:
    """A stand-in for a repository of examples: a small program in a folder of it, reached by file://.

    The lab reaches no git server; the controller fetches in the same way.
    """
    repository, name = tmp_path / "Examples", "from_git"
    shutil.copytree(ROOT / "examples" / "torchrun_single", repository / "training" / "small")
    (repository / "training" / "small" / "outside").symlink_to("/etc/hostname")
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(repository))
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message=x")
    git(repository, "tag", "v1")
    commit = git(repository, "rev-parse", "HEAD")
    on("lab1", f"rm -rf {JOBS}/{name}")
    source = {"workspace_source": f"file://{repository}", "workspace_source_folder": "training/small"}
    job = {
        "deepspeed_launch_name": name,
        "deepspeed_launch_args": ["--epochs", "3", "--target", "0.8", "--checkpoint="],
    }
    given = (*extra("torchrun_single", **source, **job), *variables(workspace_source_ref="v1"))
    run = playbook("site", *given).done(change=True)
    assert f"Workspace: file://{repository} at v1 (commit {commit[:12]}), folder training/small." in run.text
    assert "links that lead out of it are left out: training/small/outside" in run.text
    assert f"Job {name} succeeded: 2 rank(s) on 1 node(s)." in run.text
    playbook("site", *given).done(change=False)
    playbook("verify", *given).done(change=False)
    # A branch that moves is planned, by the name of each file that differs.
    (repository / "training" / "small" / "new.py").write_text("", encoding="utf-8")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message=y")
    branch = (*extra("torchrun_single", **source, **job), *variables(workspace_source_ref="main"))
    moved = git(repository, "rev-parse", "HEAD")
    plan = playbook("plan", *branch).done(change=False)
    assert f"/workspace/new.py: as in file://{repository} at main (commit {moved[:12]})" in plan.text
    # A commit that was fetched needs neither the repository nor a network.
    repository.rename(tmp_path / "gone")
    pinned = (*extra("torchrun_single", **source, **job), *variables(workspace_source_ref=commit))
    playbook("site", *pinned).done(change=False)
    run = playbook("plan", *extra("torchrun_single", **source), *variables(workspace_source_ref="v2"))
    run.refused_by(("files", "workspace_source"))


@pytest.mark.usefixtures("torchrun_single")
def test_its_image_has_no_tensorboard_which_is_said_in_a_sentence() -> None:
    playbook("tensorboard").refused("TensorBoard does not run in the training image", "[tensorboard], and site.yml.")
