# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Measure designs side by side on the lab: what is compared is done in turn, in one run. Prints; judges nothing.

Usage: python -m tests.bench [--rounds 5] [MEASUREMENT...]. The lab is up; a site.yml that is not counted comes first.
"""

from __future__ import annotations

import argparse
import importlib
import time

from tests.bench.registry import REGISTRY, Row, keep, table
from tests.journey import ROOT, site

# Importing them registers what they measure.
for module in ("playbooks", "launch", "verify", "network", "distribution"):
    importlib.import_module(f"tests.bench.{module}")

RESULT = ROOT / ".cache" / "bench.json"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("measurements", nargs="*", help=f"of {', '.join(REGISTRY.known)}; all without")
    asked = parser.parse_args()
    try:
        chosen = REGISTRY.chosen(asked.measurements)
    except ValueError as error:
        parser.error(str(error))
    began = time.monotonic()
    site().done()
    print(f"site.yml, to bring the nodes there: {time.monotonic() - began:.1f} s", flush=True)
    found: dict[str, list[Row]] = {}
    for name, measure in chosen.items():
        found[name] = measure(asked.rounds)
        print("\n".join(table(name, found[name])), flush=True)
        keep(RESULT, asked.rounds, {name: found[name]})
    print(f"Seconds unless said otherwise, {asked.rounds} rounds in turn. All values: {RESULT}")


if __name__ == "__main__":
    main()
