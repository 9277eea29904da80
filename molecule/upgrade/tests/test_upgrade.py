"""From an earlier release to this one while jobs run: nothing restarts but what the changelog says.

The tests depend on each other, in their order.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, os.environ["MOLECULE_PROJECT_DIRECTORY"])

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.role_specs import RENAMED, parse_specs

from tests.earlier_release import installed_in, tree_in
from tests.engines import containers, image_ids, inspect, networks
from tests.image import load
from tests.installed import Installed
from tests.playbook_run import CLUSTER_ROOT, JOBS, NODES, ROOT, Run, container, job, on, snapshot, variables

PLACE = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "upgrade"
WITHOUT_IMAGE = ("--skip-tags", "training_image,training_container")
"""What a site.yml beside a job leaves out: this release builds its image otherwise."""
CONSENT = {
    "assets_remove": True,
    "workspace_remove": True,
    "deepspeed_launch_remove_jobs": True,
    "training_image_remove": True,
}
LEFT = "ls -d /srv/swarmspeed /var/lib/swarmspeed /etc/*/*swarmspeed* /root/.swarmspeed* 2>/dev/null; true"
_PROCESSES = r"""
for id in $(pgrep -f 'train[.]py|supervisor[.]pyz'); do
  echo "$id $(sed 's/.*) //' /proc/$id/stat | cut -d ' ' -f 20) $(tr '\0' ' ' < /proc/$id/cmdline)"
done 2>/dev/null | sort"""

_KILL_A_RANK = r"""
for id in $(grep -lsz '^SWARMSPEED_JOB=/jobs/followed$' /proc/[0-9]*/environ | cut -d / -f 3); do
  if grep -qsz '^RANK=' /proc/$id/environ; then kill -9 $id; fi
done"""


MORE: dict[str, Any] = {
    "assets_sources": [{"name": "small", "folder": str(PLACE / "earlier" / "examples" / "digits")}],
    "docker_daemon_config": {"max-concurrent-downloads": 2},
    "nccl_env_environment": {"HF_TOKEN": "hf_0123456789abcdef"},
    "training_container_environment": {"TOKENIZERS_PARALLELISM": "false"},
}
"""What a user may have set beside the lab's own variables."""


def job_of(name: str, epochs: int, **more: Any) -> tuple[str, str]:
    return variables(
        **MORE,
        deepspeed_launch_name=name,
        deepspeed_launch_args=["--epochs", str(epochs), "--target", "0", "--checkpoints="],
        deepspeed_launch_logs_dir=str(PLACE / "jobs"),
        **more,
    )


DONE = job_of("done", 1)
"""Has succeeded with the earlier release."""
FOLLOWED, STOPPED = (job_of(name, 1_000_000, deepspeed_launch_follow=False) for name in ("followed", "stopped"))
"""Run with its supervisor."""


def runs(name: str) -> dict[str, str]:
    """What of a node no upgrade may restart: its engine, containers, networks, and the processes of jobs."""
    found = {"engine": on(name, "systemctl show docker.service --property=MainPID,ActiveEnterTimestamp")}
    for one in containers(name):
        about = inspect(name, "container", one)
        found[f"container {one}"] = f"{about['Id']} {about['State']['StartedAt']}"
    found["asset"] = on(name, f"cd {CLUSTER_ROOT}/assets && stat -c '%n %i %Y' small/* .swarmspeed/small.json")
    found |= {f"network {one}": str(inspect(name, "network", one)["Id"]) for one in networks(name)}
    return {**found, "processes": on(name, _PROCESSES)}


def log(name: str) -> str:
    return on("lab1", f"cat {JOBS}/{name}/launcher.log 2>/dev/null; true")


def wait(what: Callable[[], bool], seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(1)


def trains_on(name: str) -> None:
    """Wait until the job has done more than now."""
    before = log(name).count("epoch ")
    wait(lambda: log(name).count("epoch ") > before + 1)
    assert job(name)["state"] == "running"


@pytest.fixture(scope="module")
def deployed() -> dict[str, dict[str, str]]:
    """Return what runs on each node of the earlier release's cluster, two jobs among it."""
    earlier = installed_in(PLACE)
    earlier.play("site", *DONE).done(change=True)
    for name, given in (("followed", FOLLOWED), ("stopped", STOPPED)):
        earlier.play("launch", *given).done(change=True)
        trains_on(name)
    found = {name: runs(name) for name in NODES}
    assert all(one["processes"].count("supervisor.pyz") == 2 for one in found.values()), found
    return found


@pytest.fixture(scope="module")
def upgraded(deployed: dict[str, dict[str, str]]) -> Installed:
    """Return this release, installed in place of the earlier one, with the user's inventory as it was."""
    installed = installed_in(PLACE)
    installed.install_from(ROOT)
    return installed


def options(tree: Path) -> dict[str, Any]:
    found = {path.parts[-3]: yaml.safe_load(path.read_text()) for path in tree.glob("roles/*/meta/argument_specs.yml")}
    return dict(parse_specs(found).options)


def test_variables_of_the_earlier_release_are_known_or_named_with_their_names_of_today() -> None:
    now = options(ROOT)
    gone = {name: RENAMED.get(name) for name in options(tree_in(PLACE)) if name not in now}
    assert all(new in now for new in gone.values()), gone


def test_plan_names_the_image_and_touches_nothing(upgraded: Installed, deployed: dict[str, dict[str, str]]) -> None:
    before = snapshot()
    assert "built here, in place of swarmspeed/swarmspeed:" in upgraded.play("plan", *DONE).done(change=False).text
    assert snapshot() == before
    assert {name: runs(name) for name in NODES} == deployed


def test_site_is_refused_while_jobs_run_and_touches_nothing(
    upgraded: Installed, deployed: dict[str, dict[str, str]]
) -> None:
    before = snapshot()
    refused = upgraded.play("site", *DONE).refused_by(*[("consents", "lab1, lab2, lab3")] * 2)
    assert "while job followed, stopped runs" in refused.text
    assert (
        "Remedy: set training_container_allow_recreate: true to allow it, or wait for the job, or stop it"
        in refused.text
    )
    assert snapshot() == before
    assert {name: runs(name) for name in NODES} == deployed


def test_the_rest_is_upgraded_beside_the_jobs(upgraded: Installed, deployed: dict[str, dict[str, str]]) -> None:
    predicted = upgraded.play("site", "--check", *DONE, *WITHOUT_IMAGE).done(change=True)
    made = upgraded.play("site", *DONE, *WITHOUT_IMAGE).done(change=True)
    assert {host for host, count in predicted.changed.items() if count} == {
        host for host, count in made.changed.items() if count
    }
    kept(made)
    upgraded.play("site", *DONE, *WITHOUT_IMAGE).done(change=False)
    upgraded.play("verify", *DONE, *WITHOUT_IMAGE).done(change=False)
    assert {name: runs(name) for name in NODES} == deployed
    for name in ("followed", "stopped"):
        trains_on(name)


def kept(run: Run) -> None:
    """Assert that the job of the earlier release counts, and was not started again."""
    assert "Job done was started by another release of this collection" in run.text
    assert "not started again" in run.text
    assert job("done")["run"] == 1


def test_status_shows_the_jobs(upgraded: Installed) -> None:
    text = upgraded.play("status").done(change=False).text
    assert all(word in text for word in ("followed", "stopped", "done", "running", "succeeded")), text


def test_launch_follows_a_job_and_says_why_it_failed(upgraded: Installed) -> None:
    following = job_of("followed", 1_000_000)
    with upgraded.start("launch", *following) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if " epoch " in line:
                break
        on("lab2", _KILL_A_RANK)
        rest = process.communicate(timeout=180)[0]
    output = "".join(lines) + rest
    assert "Job followed is running since" in output
    Run(process.returncode, output).refused("Training job followed failed", "SIGKILL")
    assert job("followed")["failed_node"] == "lab2"


def test_stop_ends_the_other_job(upgraded: Installed) -> None:
    given = variables(deepspeed_launch_name="stopped")
    stopped = upgraded.play("stop", *given).done(change=True).text
    assert "Stopped:" in stopped and "stopped, running on lab1 (rank 0), lab2, lab3." in stopped, stopped[-3000:]
    assert job("stopped")["state"] == "stopped"
    assert [on(name, _PROCESSES) for name in NODES] == [""] * 3
    upgraded.play("stop", *given).done(change=False)


def test_site_then_replaces_image_and_containers_alone(
    upgraded: Installed, deployed: dict[str, dict[str, str]]
) -> None:
    load()
    kept(upgraded.play("site", *DONE).done(change=True))
    upgraded.play("site", *DONE).done(change=False)
    upgraded.play("verify", *DONE).done(change=False)
    for name in NODES:
        now, before = runs(name), deployed[name]
        own = f"container {container(name)}"
        assert {key for key in before if now.get(key) != before[key]} == {own, "processes"}
        assert set(now) == set(before)
    upgraded.play("launch", *job_of("new", 1)).done(change=True)


def test_teardown_leaves_nothing_of_either_release(upgraded: Installed) -> None:
    given = variables(**MORE, **CONSENT)
    upgraded.play("teardown", *given).done(change=True)
    for name in NODES:
        assert containers(name, "swarmspeed.cluster") == {}
        assert image_ids(name, "swarmspeed/swarmspeed") == set()
        assert on(name, LEFT) == ""
    upgraded.play("teardown", *given).done(change=False)
