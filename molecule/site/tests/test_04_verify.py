"""verify.yml passes on a whole cluster, and names node and remedy on one that is not."""

from __future__ import annotations

import json
from pathlib import Path

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import PLANNED

from tests.engines import inspect
from tests.playbook_run import NODES, container, on, playbook, site, variables, whole


def test_a_whole_cluster_passes_and_stays_as_it_is() -> None:
    playbook("verify").done(change=False)


def test_the_plan_of_a_whole_cluster_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    run = playbook("plan", *variables(cluster_plan_file=str(path))).done(change=False)
    assert "No changes." in run.text and "Not part of the plan yet" not in run.text
    found = json.loads(path.read_text(encoding="utf-8"))
    assert (found["hosts"], found["changes"], found["refusals"]) == (list(NODES), [], [])
    assert found["roles"] == list(PLANNED)
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_sshd_that_was_killed() -> None:
    # PID 1 is the init that Docker gives: without sshd the container ends, and its restart policy brings it back.
    started = inspect("lab3", "container", container("lab3"))["State"]["StartedAt"]
    on(
        "lab3",
        f"docker update --restart no {container('lab3')} && docker exec {container('lab3')} pkill -KILL -o -x "
        f"sshd; timeout 60 docker wait {container('lab3')}",
    )
    try:
        playbook("verify", "--tags", "training_container").refused(
            "lab3: role training_container: container swarmspeed-lab3 is exited, but should be running",
            "Remedy: ansible-playbook site.yml --tags training_container",
        )
    finally:
        site("--tags", "training_container").done(change=True)
        on("lab3", f"docker update --restart unless-stopped {container('lab3')}")
    assert inspect("lab3", "container", container("lab3"))["State"]["StartedAt"] != started


def test_a_node_that_does_not_answer_the_others() -> None:
    device = on(
        "lab3", f"docker exec {container('lab3')} sh -c 'sed -n s/^GLOO_SOCKET_IFNAME=//p /root/.ssh/environment'"
    )
    pid = inspect("lab3", "container", container("lab3"))["State"]["Pid"]
    on("lab3", f"nsenter --target {pid} --net iptables -A INPUT -i {device} -p tcp --dport 2222 -j DROP")
    try:
        run = playbook("verify", "--tags", "training_container")
    finally:
        on("lab3", f"nsenter --target {pid} --net iptables -D INPUT -i {device} -p tcp --dport 2222 -j DROP")
    run.refused(
        "lab1, lab2 -> lab3: ssh: ssh: connect to host swarmspeed-lab3 port 2222: Connection timed out. "
        "Most likely: port closed: 2222/tcp is dropped on the network path.",
    )


def test_an_image_that_differs() -> None:
    reference = inspect("lab1", "container", container("lab1"))["Config"]["Image"]
    right = inspect("lab1", "image", reference)["Id"]
    on("lab2", f"docker tag bystander:mine {reference}")
    try:
        wrong = inspect("lab2", "image", reference)["Id"]
        assert wrong != right
        run = playbook("verify", "--tags", "training_image").refused(
            f"lab2: role training_image: content of image {reference} is sha256:",
            "Remedy: ansible-playbook site.yml --tags training_image",
        )
        # Ids differ between kinds of image stores: it is the content that is compared.
        assert wrong not in run.text and right not in run.text
    finally:
        on("lab2", f"docker tag {right} {reference}")


def test_all_is_whole_again() -> None:
    whole()
    assert [inspect(name, "container", container(name))["HostConfig"]["RestartPolicy"]["Name"] for name in NODES] == [
        "unless-stopped"
    ] * 3
