# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""An apt for the tests of drivers: versions as Debian 12 and Ubuntu 24.04 had them in November 2026."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.apt_failures import Goal
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.packages import (
    DISTRIBUTION,
    Kernel,
    Place,
    choices,
    fabric_packages,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.preview import (
    gather,
    pinned_version,
    upstream,
)

DEBIAN_12 = {
    "nvidia-kernel-dkms": ["535.309.01-0+deb12u1", "535.261.03-1"],
    "nvidia-open-kernel-dkms": ["535.261.03-1"],
    "libcuda1": ["535.309.01-0+deb12u1", "535.261.03-1"],
    "libnvidia-ml1": ["535.309.01-0+deb12u1", "535.261.03-1"],
    "libnvidia-cfg1": ["535.309.01-0+deb12u1", "535.261.03-1"],
    "nvidia-smi": ["535.309.01-0+deb12u1", "535.261.03-1"],
    "nvidia-persistenced": ["535.171.04-1~deb12u1"],
    "dkms": ["3.0.10-8+deb12u1"],
    "linux-headers-6.1.0-56-amd64": ["6.1.192-2"],
    "linux-headers-amd64": ["6.1.192-2"],
}
NOBLE_KERNEL = "6.8.0-151-generic"
V580, V570 = "580.178.04-0ubuntu0.24.04.1", "570.211.01-0ubuntu1.24.04.1"
NOBLE = {
    "nvidia-headless-no-dkms-580-server-open": [V580],
    "nvidia-utils-580-server": [V580],
    "nvidia-dkms-580-server-open": [V580],
    f"linux-modules-nvidia-580-server-open-{NOBLE_KERNEL}": ["6.8.0-151.151"],
    "linux-modules-nvidia-580-server-open-generic": ["6.8.0-152.152"],
    f"linux-headers-{NOBLE_KERNEL}": ["6.8.0-151.151"],
    "nvidia-fabricmanager-580": [V580],
    "nvidia-headless-no-dkms-570-server-open": [V570],
    "nvidia-utils-570-server": [V570],
    f"linux-modules-nvidia-570-server-open-{NOBLE_KERNEL}": ["6.8.0-110.110"],
}


class FakeApt:
    """An apt that offers these versions and installs what it is asked for, in the pinned version where it can."""

    def __init__(
        self,
        offered: Mapping[str, Sequence[str]],
        update: CommandResult | None = None,
        simulate: Callable[[Sequence[str]], CommandResult] | None = None,
        held: Sequence[str] = (),
    ) -> None:
        self._offered, self._update, self._simulate, self._held = offered, update, simulate, held
        self.pins: list[str] = []

    def update(self) -> CommandResult:
        return self._update or CommandResult(0)

    def policy(self, names: Sequence[str]) -> str:
        lines = []
        for name in names:
            lines += [f"{name}:", "  Installed: (none)", "  Version table:"]
            for version in self._offered.get(name, ()):
                lines += [f"     {version} 500", "        500 http://x.example/ x/main amd64 Packages"]
        return "\n".join(lines) + "\n"

    def pin(self, text: str) -> None:
        self.pins.append(text)

    def simulate(self, names: Sequence[str]) -> CommandResult:
        if self._simulate:
            return self._simulate(names)
        return CommandResult(0, "".join(f"Inst {name} ({self._version(name)} x [amd64])\n" for name in names))

    def _version(self, name: str) -> str:
        pinned = pinned_version(self.pins[-1])
        return next((item for item in self._offered[name] if upstream(item) == pinned), self._offered[name][0])

    def held(self) -> list[str]:
        return list(self._held)


def debian_12(flavour: str) -> Goal:
    kernel = Kernel("6.1.0-56-amd64", ("amd64",))
    return Goal(choices(Place(DISTRIBUTION, "debian", "12"), 535, flavour, kernel), 535)


def noble(branch: int, flavour: str = "open", *, fabric: bool = False) -> Goal:
    place = Place(DISTRIBUTION, "ubuntu", "24.04")
    sets = choices(place, branch, flavour, Kernel(NOBLE_KERNEL, ("generic",)))
    return Goal(sets, branch, fabric_packages(place, branch) if fabric else ())


def troubles(io: FakeApt, goal: Goal) -> list[str]:
    return [trouble.text for trouble in gather(io, goal, "http://nosuch.invalid/x/").troubles]
