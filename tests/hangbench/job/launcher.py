# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Starts torch once and forks ranks from it: four imports less for each case. Only to verify cases on a busy machine.

Reads one request as JSON on each line of its input and answers with the process id.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

# The modules that the scripts import, so that they are imported once.

NEWNS, NEWNET = 0x00020000, 0x40000000
PRIVATE_RECURSIVE, BIND = 0x44000, 0x1000


def enter(namespace: str, hosts: str) -> None:
    """Enter a network namespace, with its own /etc/hosts."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(namespace).open() as file:
        results = [
            libc.setns(file.fileno(), NEWNET),
            libc.unshare(NEWNS),
            libc.mount(b"none", b"/", None, PRIVATE_RECURSIVE, None),
            libc.mount(hosts.encode(), b"/etc/hosts", None, BIND, None),
        ]
    if any(results):
        raise OSError(f"could not enter {namespace}: {results}")


def become(request: dict[str, Any]) -> None:
    """Run the script of a rank in this forked process."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.environ.update(request["environment"])
    if request["namespace"]:
        enter(request["namespace"], request["hosts"])
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                become(json.loads(line))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                # As at the end of an interpreter: threads that are no daemons are waited for.
                threading._shutdown()  # type: ignore[attr-defined]
                os._exit(code)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
