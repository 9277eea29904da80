# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Run this collection's own parts on a machine with an NVIDIA GPU, and keep what they did: docs/gpu_hosts.md.

Usage: python -m tests.gpu_proof wheels
       python -m tests.gpu_proof run [--accelerator cpu] [--python /path/to/python]
       python -m tests.gpu_proof table
"""

from __future__ import annotations

import argparse
import sys

from tests.gpu_proof.paths import ROOT, ProofError

LEAST = (3, 11)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu_proof")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("wheels", help="make the folder of wheels that travels, where a package index is reached")
    run = commands.add_parser("run", help="run the proof on this machine")
    run.add_argument("--accelerator", choices=("cuda", "cpu"), default="cuda", help="cpu is a rehearsal")
    run.add_argument("--only", default="", help="a regular expression for names of parts")
    run.add_argument("--python", help="a Python that has torch; else it is searched for")
    commands.add_parser("table", help="write the results into docs/gpu_hosts.md")
    requested = parser.parse_args()
    if sys.version_info < LEAST:
        print(
            f"Python {sys.version.split()[0]} is too old: ansible-core needs 3.11. Remedy: use another.",
            file=sys.stderr,
        )
        return 1
    # this checkout's own modules, also where no Ansible is installed
    sys.path.insert(0, str(ROOT / "collections"))
    try:
        return _obey(requested)
    except ProofError as error:
        print(f"gpu-proof: {error}", file=sys.stderr)
        return 1


def _obey(requested: argparse.Namespace) -> int:
    # each needs what the others' machines may lack
    if requested.command == "wheels":
        from tests.gpu_proof.wheels import make  # noqa: PLC0415

        print(make())
        return 0
    from tests.gpu_proof.table import write  # noqa: PLC0415

    if requested.command == "table":
        write()
        return 0
    from tests.gpu_proof.run import proof  # noqa: PLC0415

    code = proof(requested.accelerator, requested.python, requested.only)
    if requested.accelerator == "cuda":
        write()
    return code


if __name__ == "__main__":
    sys.exit(main())
