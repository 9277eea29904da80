"""The password is in no output, no list of processes, no log, no file that others may read, and no image."""

from __future__ import annotations

import base64
import subprocess
import threading

import pytest

from tests.engines import image_ids
from tests.playbook_run import Run, node, on, playbook, site, ssh, variables
from tests.proxy_runs import GIVEN, HOSTS, PASSWORD

LOUD = ("-vvv", "--diff")
CONFIGURED = "/etc/apt/apt.conf.d/80swarmspeed-proxy /etc/xdg/pip/pip.conf"
OTHER = variables(
    training_image_python_packages=["scikit-learn", "tomli"], training_image_repository="swarmspeed/other"
)
"""Another image: all but the last step of its build comes from the engine's cache, and pip goes out for that one."""


def forms() -> list[str]:
    """Return the password as it is, and as base64 has it, at each of the three places that a text can begin at."""
    assert len(PASSWORD) == 24
    shifted = (base64.b64encode(b"-" * shift + PASSWORD.encode()).decode()[4:-4] for shift in range(3))
    return [PASSWORD, *shifted]


def seen(text: str) -> list[str]:
    joined = "".join(text.split())
    return [form for form in forms() if form in joined]


@pytest.fixture(scope="module")
def processes() -> list[str]:
    return []


@pytest.fixture(scope="module")
def busy(processes: list[str]) -> Run:
    """A run that rewrites all files with the password, and builds an image."""
    for name in HOSTS:
        on(name, f"rm {CONFIGURED}")
    ended = threading.Event()

    mine = ["ps", "axww", "-o", "args"]

    def sample() -> None:
        while not ended.wait(0.3):
            processes.extend(node(name).run("ps axww -o args").stdout for name in HOSTS)
            processes.append(subprocess.run(mine, capture_output=True, text=True, check=True).stdout)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        return site("--tags", "host,docker,training_image", *LOUD, *GIVEN, *OTHER)
    finally:
        ended.set()
        sampler.join()


def test_the_busy_run_did_what_it_was_to_do(busy: Run) -> None:
    busy.done(change=True)
    for name in HOSTS:
        assert PASSWORD in on(name, f"cat {CONFIGURED}")
    (image,) = image_ids("lab1", "swarmspeed/other")
    assert "tomli" in on("lab1", f"docker run --rm {image} pip list")


def test_it_printed_no_password(busy: Run) -> None:
    assert "Build the image" in busy.output
    assert seen(busy.output) == []


def test_no_process_showed_it(busy: Run, processes: list[str]) -> None:
    assert sum("pip install" in listed for listed in processes) > 0  # sampled while the image was built
    assert seen("\n".join(processes)) == []


@pytest.mark.parametrize("name", HOSTS)
def test_no_log_of_a_node_has_it(busy: Run, name: str) -> None:
    files = "/var/log/apt/*.log /var/log/dpkg.log /var/log/syslog"
    log = on(name, f"journalctl --no-pager --output cat; cat {files} 2>/dev/null; true")
    assert "ansible" in log
    assert seen(log) == []


@pytest.mark.parametrize("name", HOSTS)
def test_no_file_that_others_may_read_has_it(busy: Run, name: str) -> None:
    """Searched for by another account. Root finds it where it should be, and in containerd's own records of a build."""
    found = "find / /run /tmp -xdev -path /var/lib/docker -prune -o -type f -size -50M -print0 2>/dev/null"
    search = f"{found} | xargs -0 grep -lF {PASSWORD} 2>/dev/null; true"
    assert on(name, f"su nobody -s /bin/sh -c '{search}'") == ""
    closed = set(on(name, search).split())
    assert {*CONFIGURED.split(), "/etc/systemd/system/docker.service.d/swarmspeed-proxy.env"} <= closed


@pytest.mark.parametrize("name", HOSTS)
def test_no_image_and_no_container_has_it(busy: Run, name: str) -> None:
    assert image_ids(name)
    of_all = "docker images --all --quiet | sort -u | xargs --no-run-if-empty"
    reported = on(name, f"{of_all} docker inspect; {of_all} --max-args=1 docker history --no-trunc")
    reported += on(name, "docker ps -aq | xargs --no-run-if-empty docker inspect; docker info; systemctl show docker")
    assert seen(reported) == []


def test_no_layer_has_it(busy: Run) -> None:
    """Also the layers of the stage in which pip ran, which stay in the engine's cache."""
    images = " ".join(image_ids("lab1", dangling=True) | image_ids("lab1", "swarmspeed/other"))
    command = f"docker save {images} | grep --text --count --fixed-strings -e {PASSWORD} -e {forms()[1]}"
    found = subprocess.run(ssh("lab1", command), capture_output=True, text=True, timeout=600, check=False)
    assert (found.stdout.strip(), found.returncode) == ("0", 1), found.stderr


def test_the_idle_run_prints_none_either() -> None:
    run = site(*LOUD, *GIVEN).done(change=False)
    assert seen(run.output) == []
    assert seen(playbook("verify", *LOUD, *GIVEN).done(change=False).output) == []


def test_the_other_image_goes() -> None:
    for name in HOSTS:
        on(name, "docker images -q swarmspeed/other | xargs --no-run-if-empty docker rmi --force")
