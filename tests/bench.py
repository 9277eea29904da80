# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Time a second site.yml against ``ansible -m setup`` on the same nodes, in turn, in one run. Prints; judges nothing.

Usage: python tests/bench.py [rounds]. The lab is up; a first, uncounted site.yml brings its nodes there.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time

INVENTORY = "inventories/lab"
SITE = ["ansible-playbook", "site.yml", "-i", INVENTORY]
SETUP = ["ansible", "cluster", "-i", INVENTORY, "-m", "ansible.builtin.setup"]


def timed(command: list[str]) -> tuple[float, str]:
    """Return the seconds a command took and what it printed; end with that when it fails."""
    begin = time.monotonic()
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    if answer.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{answer.stdout[-4000:]}{answer.stderr[-2000:]}")
    return seconds, answer.stdout


def changes(output: str) -> int:
    """Return the sum of ``changed=`` over all hosts of a recap."""
    return sum(int(count) for count in re.findall(r"changed=(\d+)", output))


def spread(name: str, values: list[float]) -> str:
    """Return one line of the table."""
    return f"{name:<28} {min(values):7.2f} {statistics.median(values):7.2f} {max(values):7.2f}"


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    first = timed(SITE)[0]
    print(f"site.yml, to bring the nodes there: {first:.1f} s")
    site: list[float] = []
    setup: list[float] = []
    for dummy in range(rounds):
        seconds, output = timed(SITE)
        if changes(output):
            sys.exit(f"a repeated site.yml changed something:\n{output[-4000:]}")
        site.append(seconds)
        setup.append(timed(SETUP)[0])
    print(f"{'seconds, ' + str(rounds) + ' rounds in turn':<28} {'min':>7} {'median':>7} {'max':>7}")
    print(spread("site.yml, nothing to change", site))
    print(spread("ansible -m setup", setup))
    print(f"ratio of the medians: {statistics.median(site) / statistics.median(setup):.1f}")


if __name__ == "__main__":
    main()
