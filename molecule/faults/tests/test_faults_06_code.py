"""A second job with another source, on other nodes and on the same ones: the first one does not notice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault_runs import STEPS, launch, wait
from tests.playbook_run import CLUSTER_ROOT, JOBS, NODES, on, playbook, variables

WORKSPACE = f"{CLUSTER_ROOT}/workspace"
SCRIPT = """
import os, sys, time
from pathlib import Path

steps, name = int(sys.argv[1]), sys.argv[2]
rank = os.environ.get("RANK", os.environ.get("NODE_RANK"))
Path("fresh").mkdir(exist_ok=True)
for step in range(1, steps + 1):
    Path(f"fresh/{name}-{rank}").write_text(str(step))
    Path(f"data/{name}-{rank}").write_text(str(step))
    print(f"step {step}/{steps} reads {Path('a.txt').read_text()}", flush=True)
    time.sleep(1)
    if Path("END").exists():
        break
import late
print(f"late is of {late.NAME}", flush=True)
try:
    import lost
    print("lost is there", flush=True)
except ImportError:
    print("lost is gone", flush=True)
"""
ARRANGED = {"deepspeed_launch_launcher": "per_node", "deepspeed_launch_follow": True}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / name / "data").mkdir(parents=True)
        for file, text in {"run.py": SCRIPT, "a.txt": name, "late.py": f"NAME = '{name}'", "data/README": name}.items():
            (tmp_path / name / file).write_text(text)
    (tmp_path / "one" / "lost.py").write_text("")
    return tmp_path


@pytest.fixture(autouse=True)
def clean_workspaces() -> Iterator[None]:
    yield
    for job in ("first", "second", "third"):
        playbook("stop", *variables(deepspeed_launch_name=job))
    for name in NODES:
        on(name, f"rm -rf {WORKSPACE}/fresh {WORKSPACE}/END {JOBS}/first {JOBS}/second {JOBS}/third")


def job(sources: Path, source: str, name: str, include: str, steps: int, **more: object) -> dict[str, object]:
    return {
        **STEPS,
        **ARRANGED,
        "workspace_source": str(sources / source),
        "deepspeed_launch_name": name,
        "deepspeed_launch_script": "run.py",
        "deepspeed_launch_args": [str(steps), source],
        "deepspeed_launch_include": include,
        **more,
    }


def log(name: str, node: str = "lab1") -> str:
    return on(node, f"cat {JOBS}/{name}/launcher.log 2>/dev/null; true")


def test_a_second_job_changes_nothing_of_a_running_one(sources: Path) -> None:
    first = job(sources, "one", "first", "lab1@lab2", 3000, deepspeed_launch_follow=False)
    launch(**first).done(change=True)
    wait(lambda: "lab2: step 3/" in log("first"), 120)
    launch(**job(sources, "two", "second", "lab3", 5)).done(change=True)
    launch(**job(sources, "two", "third", "lab1@lab2", 5, deepspeed_launch_launcher="torchrun")).done(change=True)
    assert "late is of two" in log("third")
    assert on("lab1", f"cat {WORKSPACE}/a.txt") == "two"
    # What it makes is in the workspace while it runs, and verify compares its code with what it was started from.
    wait(lambda: on("lab1", f"cat {WORKSPACE}/fresh/one-0") == on("lab1", f"cat {WORKSPACE}/data/one-0"), 30)
    playbook("verify", "--tags", "workspace,deepspeed_launch", *variables(**first)).done(change=False)
    for name in ("lab1", "lab2"):
        on(name, f"touch {WORKSPACE}/END")
    wait(lambda: '"state": "succeeded"' in on("lab1", f"cat {JOBS}/first/state.json"), 60)
    lines = [line for line in log("first").splitlines() if " reads " in line]
    assert len(lines) > 100
    assert [line for line in lines if not line.endswith(" reads one")] == []
    assert log("first").count("late is of one") == 2
    assert log("first").count("lost is there") == 2
    for rank, name in enumerate(("lab1", "lab2")):
        kinds = on(name, f"cd {WORKSPACE} && stat -c %F fresh data fresh/one-{rank} data/one-{rank}").splitlines()
        assert kinds == ["directory", "directory", "regular file", "regular file"]
        assert on(name, f"ls {WORKSPACE}/.swarmspeed/runs") == ""
    digests = json.loads(on("lab1", f"cat {JOBS}/first/summary.json"))["digests"]
    assert digests["code"] in on("lab1", f"ls {WORKSPACE}/.swarmspeed/code").split()
    assert digests["environment"].startswith("hmac-sha256:")


def test_a_file_that_was_removed_from_the_source_is_gone_in_the_next_run(sources: Path) -> None:
    launch(**job(sources, "one", "first", "lab1@lab2", 1)).done(change=True)
    assert log("first").count("lost is there") == 2
    (sources / "one" / "lost.py").unlink()
    launch(**job(sources, "one", "first", "lab1@lab2", 1)).done(change=True)
    assert log("first").count("lost is gone") == 2
    assert on("lab1", f"ls {WORKSPACE}/lost.py 2>/dev/null; true") == ""


def test_code_that_was_forged_on_a_node_is_written_again_before_a_run(sources: Path) -> None:
    wanted = job(sources, "one", "first", "lab1@lab2", 1)
    launch(**wanted).done(change=True)
    on("lab2", f"for file in {WORKSPACE}/.swarmspeed/code/*/a.txt; do echo forged > $file; done")
    launch(**wanted, deepspeed_launch_rerun=True).done(change=True)
    assert log("first").count("reads one") == 2
