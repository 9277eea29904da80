# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Run this collection's own parts on a machine with an NVIDIA GPU, and keep what they did: docs/gpu_hosts.md.

Usage: python -m tests.gpu_proof wheels
       python -m tests.gpu_proof run [--accelerator cpu]
       python -m tests.gpu_proof table [--check]
"""

from __future__ import annotations

import argparse
import sys

from tests.gpu_proof.paths import ProofError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu_proof")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("wheels", help="make the folder of wheels that travels, where a package index is reached")
    parser.parse_args()
    from tests.gpu_proof.wheels import make  # noqa: PLC0415

    try:
        print(make())
    except ProofError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
