"""The container toolkit: what is refused, a version that does not work, a daemon-reload under a container.

Its packages are stand-ins: the hook and the CDI specification give a container the stand-in nvidia-smi.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.engines import info
from tests.gpu_runs import (
    PAIR,
    REPOSITORY,
    begin_with_the_first,
    condition,
    gpu,
    held,
    key,
    publish,
    sound,
    state_of,
    versions,
)
from tests.playbook_run import Run, on

NAMES = (
    "libnvidia-container-tools",
    "libnvidia-container1",
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
)
GOOD, OLD, BROKEN = "1.18.2", "1.17.8", "1.19.0"
ARGUMENTS = {"lab1": "--gpus all", "lab2": "--device nvidia.com/gpu=all"}


def toolkit(*hosts: str, **values: Any) -> Run:
    return gpu("site", hosts=hosts or PAIR, tags="nvidia_container_toolkit", **values)


def installed(host: str) -> set[str]:
    return {versions(host)[name] for name in NAMES}


@pytest.fixture(scope="module", autouse=True)
def with_everything() -> None:
    begin_with_the_first()
    assert all(installed(host) == {f"{GOOD}-1"} for host in PAIR)
    publish("second")


REFUSED = {
    "a version that is not there": (
        {"nvidia_container_toolkit_version": "9.9"},
        (
            "apt has no version that begins with 9.9 that ",
            "Remedy: set nvidia_container_toolkit_version to one of these.",
        ),
    ),
    "a repository that cannot be reached": (
        {
            "nvidia_container_toolkit_version": OLD,
            "nvidia_container_toolkit_repository_url": "http://127.0.0.1:9/stable/deb",
        },
        ("a repository cannot be read: ", "nvidia_container_toolkit_repository_url to a mirror"),
    ),
    "a key that does not match": (
        {"nvidia_container_toolkit_version": OLD, "nvidia_container_toolkit_repository_key": "OTHER"},
        ("apt does not trust a repository: ", "nvidia_container_toolkit_repository_key"),
    ),
    "CDI on an engine that is too old": (
        {"nvidia_container_toolkit_mode": "cdi"},
        ("nvidia_container_toolkit_mode is cdi, but the engine is 20.10", "CDI needs 25.0 or later"),
    ),
}


@pytest.mark.parametrize(("values", "texts"), REFUSED.values(), ids=REFUSED)
def test_refused_before_any_change(values: dict[str, Any], texts: tuple[str, ...]) -> None:
    before = state_of("lab1")
    requested = {name: key("other") if value == "OTHER" else value for name, value in values.items()}
    toolkit("lab1", **requested).refused("lab1: ", *texts)
    assert state_of("lab1") ^ before == set()


def test_a_package_on_hold_that_we_did_not_hold() -> None:
    record = "/etc/apt/apt.conf.d/52swarmspeed-nvidia-container-toolkit"
    with condition("lab1", f"mv {record} /root/record", f"mv /root/record {record}"):
        before = state_of("lab1")
        toolkit("lab1", nvidia_container_toolkit_version=OLD).refused(
            f"is on hold in version {GOOD}-1, but version {OLD} is requested. Remedy: apt-mark unhold "
        )
        assert state_of("lab1") ^ before == set()


@pytest.mark.parametrize("host", PAIR)
def test_another_version_that_is_asked_for_and_back(host: str) -> None:
    toolkit(host, nvidia_container_toolkit_version=OLD).done(change=True, nodes=(host,))
    assert installed(host) == {f"{OLD}-1"} and set(NAMES) <= held(host)
    toolkit(host, nvidia_container_toolkit_version=OLD).done(change=False, nodes=(host,))
    toolkit(host).done(change=True, nodes=(host,))
    assert installed(host) == {f"{GOOD}-1"}
    sound(host)


@pytest.mark.parametrize("host", PAIR)
def test_a_version_that_does_not_work_gives_way_to_the_former_one(host: str) -> None:
    before = versions(host), held(host)
    toolkit(host, nvidia_container_toolkit_version=BROKEN).refused(
        f"{host}: the container toolkit does not work. ",
        "nvidia-smi in a container of ",
        f"The version that was there before ({GOOD}-1) is back.",
        f'Remedy: try "docker run --rm {ARGUMENTS[host]} IMAGE nvidia-smi" on the node',
    )
    assert (versions(host), held(host)) == before
    sound(host)
    gpu("site", hosts=(host,)).done(nodes=(host,))
    gpu("verify", hosts=(host,)).done(change=False, nodes=(host,))


def test_a_running_container_keeps_its_gpus_over_a_reload_of_systemd() -> None:
    """By CDI they are part of the container's own description. What is shown is the stand-in's mount, not a device."""
    image = "{ echo /bin/sh; echo /usr/bin/sleep; ldd /bin/sh /usr/bin/sleep | grep -o '/[^ :]*'; } | sort -u"
    on("lab2", f"{image} | tar --create --dereference --absolute-names --files-from=- | docker import - stand-in:gpu")
    run = f"docker run --detach --rm --name at-work {ARGUMENTS['lab2']} stand-in:gpu /usr/bin/sleep infinity"
    with condition("lab2", run, "docker rm --force at-work >/dev/null; docker image rm stand-in:gpu >/dev/null"):
        assert "Tesla V100" in on("lab2", "docker exec at-work nvidia-smi -L")
        on("lab2", "systemctl daemon-reload")
        assert "Tesla V100" in on("lab2", "docker exec at-work nvidia-smi -L")


def test_a_description_from_before_the_device_files_is_reported_and_written_again() -> None:
    """Seen after a reboot: the kernel's module makes no /dev/nvidia-uvm. The device file is the stand-in's."""
    remove = "rm -f /dev/nvidia-uvm && sed -i 's#, {path: /dev/nvidia-uvm}##' /var/run/cdi/nvidia.yaml"
    with condition("lab2", remove, "systemctl restart swarmspeed-nvidia-devices"):
        gpu("verify", hosts=("lab2",)).refused(
            "lab2: /var/run/cdi/nvidia.yaml lacks /dev/nvidia-uvm, so CUDA does not start in containers."
        )
        toolkit("lab2").done(change=True, nodes=("lab2",))
        on("lab2", "test -c /dev/nvidia-uvm && grep -q 'path: /dev/nvidia-uvm' /var/run/cdi/nvidia.yaml")
    gpu("verify", hosts=("lab2",)).done(change=False, nodes=("lab2",))


def test_the_default_runtime_by_choice() -> None:
    options = {"nvidia_container_toolkit_default_runtime": True}
    toolkit("lab1", **options).done(change=True, nodes=("lab1",))
    assert info("lab1")["DefaultRuntime"] == "nvidia"
    toolkit("lab1", **options).done(change=False, nodes=("lab1",))


def test_stale_source_files_of_former_instructions_go() -> None:
    stale = "/etc/apt/sources.list.d/nvidia-container-toolkit.list"
    on("lab1", f"echo 'deb [trusted=yes] file:{REPOSITORY}/first/libnvidia-container/stable/deb/amd64 /' >{stale}")
    toolkit("lab1").done(change=True, nodes=("lab1",))
    assert on("lab1", f"ls {stale} 2>/dev/null; true") == ""
