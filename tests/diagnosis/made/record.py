# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Run train.py with two ranks, and write down what they print in its order, and how they end.

Usage: python -m tests.diagnosis.made.record MODE FILE [--python P] [--prefix 'ulimit -v 1; '] [--only 1] [NAME=VALUE…]

Each rank stands for a node of its own (gpu1, gpu2), as the supervisor of a job without ssh starts them. ``--prefix`` is
shell that runs before the rank that ``--only`` names, or before both. With ``--launcher torchrun`` or ``deepspeed`` a
launcher starts both, and its output is written as it comes. What is left after a failure gets SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

SCRIPT = Path(__file__).with_name("train.py")
PORT = 29541
GRACE = 4.0
"""Seconds between the first failure and SIGTERM to the rest."""


def cleaned(line: str, folder: str, venv: str, packages: str) -> str:
    """``line`` with the paths of a training container."""
    line = line.replace(packages, f"{venv}/lib/python3.11/site-packages") if packages else line
    line = line.replace(str(SCRIPT), "/workspace/train.py").replace(folder, "/checkpoints").replace(venv, "/opt/venv")
    return re.sub(r"/\S+/versions/3\.\d+\.\d+/lib/", "/usr/lib/", line)


def command(options: argparse.Namespace, venv: str) -> list[str]:
    """What starts a rank, or both of them."""
    python, script = options.python, [str(SCRIPT), options.mode]
    if options.launcher == "torchrun":
        launch = [python, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(PORT)]
        return [*launch, *script]
    if options.launcher == "deepspeed":
        launch = [f"{venv}/bin/deepspeed", "--num_accelerators", "2", "--master_port", str(PORT)]
        return [*launch, "--no_local_rank", *script]
    return [python, "-u", *script]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mode")
    parser.add_argument("file")
    parser.add_argument("--python", default="/opt/venv/bin/python")
    parser.add_argument("--prefix", default="")
    parser.add_argument("--tmpfs", default="", help="FOLDER:SIZE, a small file system in its place")
    parser.add_argument("--only", type=int)
    parser.add_argument("--packages", default="", help="folder of packages that go before those of the environment")
    parser.add_argument("--launcher", default="")
    parser.add_argument("--send", default="", help="SIGNAL:SECONDS to the launcher")
    parser.add_argument("environment", nargs="*")
    return parser.parse_intermixed_args()


def main() -> None:
    """Run the script once."""
    options = arguments()
    venv = str(Path(options.python).parents[1])
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(PORT), "WORLD_SIZE": "2"}
        environment.update(CHECKPOINTS=folder, OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1", LOCAL_RANK="0")
        environment.update(PATH=f"{venv}/bin:{environment['PATH']}", DS_ACCELERATOR="cpu")
        environment["PYTHONPATH"] = options.packages
        environment.update(pair.split("=", 1) for pair in options.environment)
        lines: list[str] = []
        ends: list[tuple[int, int]] = []
        lock = threading.Lock()

        def follow(rank: int, process: subprocess.Popen[str]) -> None:
            assert process.stdout
            for line in process.stdout:
                with lock:
                    head = "" if options.launcher else f"gpu{rank + 1}: rank {rank}: "
                    lines.append(head + cleaned(line.rstrip("\n"), folder, venv, options.packages))
            code = process.wait()
            with lock:
                ends.append((rank, code))

        inner = command(options, venv)
        running = []
        for rank in range(1 if options.launcher else 2):
            shell = f"exec {shlex.join(inner)}"
            if options.only in {None, rank}:
                shell = f"{options.prefix} {shell}"
                place, dummy, size = options.tmpfs.partition(":")
                shell = f"mount -t tmpfs -o size={size} tmpfs {place}; {shell}" if place else shell
            process = subprocess.Popen(
                [*(["unshare", "-m"] if options.tmpfs else []), "bash", "-c", shell],
                env={**environment, "RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                cwd=folder,
                start_new_session=True,
            )
            thread = threading.Thread(target=follow, args=(rank, process))
            thread.start()
            running.append((process, thread))
        if options.send:
            name, seconds = options.send.split(":")
            time.sleep(float(seconds))
            running[0][0].send_signal(getattr(signal, name))
        failed_at = 0.0
        while any(thread.is_alive() for dummy, thread in running):
            time.sleep(0.05)
            if any(code for dummy, code in ends) and not failed_at:
                failed_at = time.monotonic()
            if failed_at and time.monotonic() - failed_at > GRACE:
                for process, dummy in running:
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGTERM)
                failed_at += 1e9
        Path(options.file).write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(options.mode, "lines", len(lines), "ends (rank, code):", ends)


if __name__ == "__main__":
    main()
