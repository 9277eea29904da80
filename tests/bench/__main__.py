# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Measure designs side by side on the lab: what is compared is done in turn, in one run. Prints; judges nothing.

Usage: python -m tests.bench [--rounds 5] [--release] [MEASUREMENT...]. The lab is up; a site.yml that is not counted
comes first, except where nodes may be bare (first, controller). With --release the figures also go into the history,
docs/bench/VERSION.json.
"""

from __future__ import annotations

import argparse
import importlib
import time

import yaml

from tests.bench.registry import REGISTRY, Row, keep, table
from tests.playbook_run import ROOT, lab_inventory, site

# Importing them registers what they measure.
for module in ("playbooks", "launch", "verify", "network", "distribution", "assets"):
    importlib.import_module(f"tests.bench.{module}")

RESULT = ROOT / ".cache" / "bench.json"
VERSION = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
HISTORY = ROOT / "docs" / "bench" / f"{VERSION}.json"
FIRST_TIMEOUT = 3600.0
"""Seconds: the nodes of a lab unpack the image onto one disk, twelve of them for half an hour."""


def main() -> None:
    known, optional = ", ".join(REGISTRY.known), " and ".join(sorted(REGISTRY.on_request))
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--release", action="store_true", help=f"keep them in {HISTORY.relative_to(ROOT)} as well")
    parser.add_argument("measurements", nargs="*", help=f"of {known}; without, all but {optional}")
    requested = parser.parse_args()
    try:
        chosen = REGISTRY.chosen(requested.measurements)
    except ValueError as error:
        parser.error(str(error))
    if not set(chosen) & REGISTRY.on_request:
        began = time.monotonic()
        site(timeout=FIRST_TIMEOUT).done()
        print(f"site.yml, to bring the nodes there: {time.monotonic() - began:.1f} s", flush=True)
    found: dict[str, list[Row]] = {}
    for name, measure in chosen.items():
        found[name] = measure(requested.rounds)
        print("\n".join(table(name, found[name])), flush=True)
        nodes = len(lab_inventory()["_meta"]["hostvars"])
        for path in (RESULT, HISTORY) if requested.release else (RESULT,):
            keep(path, requested.rounds, nodes, {name: found[name]})
    print(f"Seconds unless said otherwise, {requested.rounds} rounds in turn. All values: {RESULT}")


if __name__ == "__main__":
    main()
