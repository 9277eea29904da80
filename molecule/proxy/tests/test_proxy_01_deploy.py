"""From bare nodes to a finished job, with nothing but a proxy to the outside."""

from __future__ import annotations

import pytest

from tests.engines import image_names, info, inspect
from tests.playbook_run import JOBS, job, network, node, on, playbook, site
from tests.proxy_runs import ADDRESSES, GIVEN, HOSTS, OUTSIDE, PROXY, entries


def test_no_node_tried_to_leave() -> None:
    """Neither a question to a name server nor anything else: names are asked for by the proxy."""
    assert network("count") == "0"


def test_the_cut_is_real_and_counts() -> None:
    for name in HOSTS:
        assert node(name).run("timeout 5 bash -c 'echo > /dev/tcp/192.0.2.1/80'").rc != 0
        assert node(name).run(f"timeout 5 bash -c 'echo > /dev/tcp/{OUTSIDE}/8443'").rc != 0
    assert int(network("count")) >= 2 * len(HOSTS)
    network("cut", PROXY)
    assert network("count") == "0"


@pytest.mark.parametrize("name", HOSTS)
def test_apt_of_every_node_fetched_docker_through_the_proxy(name: str) -> None:
    fetched = [entry for entry in entries() if entry.client == ADDRESSES[name] and entry.method == "GET"]
    assert any("/docker.io_" in entry.url and entry.status == 200 for entry in fetched)


def test_pip_of_the_build_fetched_through_the_proxy() -> None:
    tunnels = [entry for entry in entries() if entry.method == "CONNECT" and entry.client == ADDRESSES["lab1"]]
    assert any(entry.url == f"{OUTSIDE}:8443" and entry.status == 200 for entry in tunnels)
    # The index that pip asks of its own accord, whatever its name, and where its files are.
    assert any(not entry.url.startswith(OUTSIDE) and entry.status == 200 for entry in tunnels)
    assert "scikit-learn" in on("lab1", "docker exec swarmspeed-lab1 pip list")


def test_no_one_passed_without_the_users_name() -> None:
    passed = [entry for entry in entries() if 200 <= entry.status < 400]
    assert len(passed) > 50
    assert {entry.user for entry in passed} == {"trainer"}


def test_the_job_was_trained_by_all_nodes() -> None:
    assert (job()["state"], job()["world_size_seen"]) == ("succeeded", len(HOSTS))
    assert "target 0.95 reached" in on("lab1", f"cat {JOBS}/digits/launcher.log")


@pytest.mark.parametrize("name", HOSTS)
def test_the_engine_uses_the_proxy(name: str) -> None:
    shown = info(name)
    assert [f"@{PROXY}:3128" in shown[key] for key in ("HttpProxy", "HttpsProxy")] == [True, True]


def test_the_build_left_no_proxy_in_the_image() -> None:
    (image,) = image_names("lab1", "swarmspeed/swarmspeed")
    config = inspect("lab1", "image", image)["Config"]
    assert not [value for value in config["Env"] if "proxy" in value.lower()]
    # Nor does the authority stay: what trusts it is the build, and the hosts.
    assert "swarmspeed.crt" not in on("lab1", "docker exec swarmspeed-lab1 ls /usr/local/share/ca-certificates || true")


def test_a_second_run_changes_nothing_and_verify_agrees() -> None:
    site(*GIVEN).done(change=False, nodes=HOSTS)
    playbook("verify", *GIVEN).done(change=False, nodes=HOSTS)
    assert network("count") == "0"
