"""A driver that works now: does it after the next reboot, and have the GPUs joined the fabric?

Stand-ins are the GPUs, their driver and fabric manager, and the kernel that boots next, which is two files. What waits,
reports and repairs is the role.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.gpu_runs import STAND_IN, begin_with_the_first, condition, driver, gpu, state_of
from tests.playbook_run import on

KERNEL = "99.0.0-1-generic"
BOOTS = (
    f"mkdir -p /lib/modules/{KERNEL} && touch /lib/modules/{KERNEL}/modules.dep /boot/vmlinuz-{KERNEL}",
    f"rm -r /lib/modules/{KERNEL} /boot/vmlinuz-{KERNEL}",
)
WHY = f"kernel {KERNEL}, which boots next, has no nvidia module, so after a reboot no program could use the GPUs"
EXCLUSION = "/etc/apt/apt.conf.d/52swarmspeed-nvidia"
REPORT = f"{STAND_IN}/machine/q.xml"
ON_TIME = "--timer-property=AccuracySec=1s"
"""Without it a timer fires up to a minute late."""


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    begin_with_the_first()


def test_a_kernel_without_the_driver_fails_verify_and_is_reported_by_a_run() -> None:
    with condition("lab2", *BOOTS):
        before = state_of("lab2")
        gpu("verify", hosts=("lab2",), tags="nvidia_driver").refused(
            f"lab2: {WHY}. Remedy: apt-get install linux-headers-{KERNEL}, then dkms autoinstall -k {KERNEL}"
        )
        assert WHY in driver("lab2").done(change=False, nodes=("lab2",)).text
        assert state_of("lab2") ^ before == set()
    gpu("verify", hosts=("lab2",), tags="nvidia_driver").done(change=False, nodes=("lab2",))


def test_the_line_that_kept_the_next_kernels_module_away_is_named_and_taken_out() -> None:
    on("lab2", f"sed -i '/cuda-drivers/i \\  \"linux-modules-nvidia-\";' {EXCLUSION}")
    assert "linux-modules-nvidia-" in on("lab2", "apt-config dump Unattended-Upgrade::Package-Blacklist")
    gpu("verify", hosts=("lab2",), tags="nvidia_driver").refused(f"{EXCLUSION} has other content")
    driver("lab2").done(change=True, nodes=("lab2",))
    assert "linux-modules-nvidia-" not in on("lab2", f"apt-config dump && cat {EXCLUSION}")
    driver("lab2").done(change=False, nodes=("lab2",))


@pytest.mark.parametrize("seconds", [8, 60], ids=["while facts are gathered", "while the role waits"])
def test_gpus_that_join_the_fabric_meanwhile_are_no_fault(seconds: int) -> None:
    joins = f"systemd-run --quiet --unit=joins --on-active={seconds} {ON_TIME} cp {REPORT}.kept {REPORT}"
    begin = f"cp {REPORT} {REPORT}.kept && sed -i 's/<state>Completed/<state>In Progress/' {REPORT} && {joins}"
    with condition("lab1", begin, f"systemctl stop joins.timer 2>/dev/null || true; mv {REPORT}.kept {REPORT}"):
        run = driver("lab1").done(change=False, nodes=("lab1",))
    waited = re.search(r"Wait until the GPUs have joined the NVLink fabric", run.output) is not None
    assert waited is (seconds == 60)
