"""After teardown drivers, engines and toolkits stay, and nothing keeps them at their versions any more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.gpu_runs import PAIR, begin_with_the_first, gpu, held, sound, versions
from tests.playbook_run import Run, on


@pytest.fixture(scope="module")
def torn_down() -> Run:
    begin_with_the_first()
    assert all(held(host) for host in PAIR)
    return gpu("teardown", tags="")


def test_it_succeeds_twice(torn_down: Run) -> None:
    torn_down.done(change=True, nodes=PAIR)
    gpu("teardown", tags="").done(change=False, nodes=PAIR)


@pytest.mark.parametrize("host", PAIR)
def test_no_hold_and_no_file_of_this_collection_is_left(host: str, torn_down: Run) -> None:
    assert held(host) == set()
    left = on(
        host, "ls /etc/apt/preferences.d /etc/apt/apt.conf.d /etc/apt/sources.list.d | grep swarmspeed; true"
    ).split()
    assert set(left) <= {"swarmspeed-stand-in.sources", "swarmspeed-nvidia-container-toolkit.sources"}
    sound(host)


@pytest.mark.parametrize("host", PAIR)
def test_what_others_may_compute_with_stays(host: str, torn_down: Run) -> None:
    assert "GPU 0: " in on(host, "nvidia-smi -L")
    assert {"nvidia-driver-cuda", "nvidia-container-toolkit"} <= set(versions(host))
    assert on(host, "systemctl is-active docker") == "active"
    assert "blacklist nouveau" in on(host, "modprobe --showconfig").splitlines()
