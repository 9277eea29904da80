# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Tries from a container whether it finds the others by name and reaches them; prints one line of JSON.

The module overlay_reach hands the source of this file to the container's Python, so it imports nothing of this
collection and needs Python 3.8.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from typing import Any

MARK = "SWARMSPEED_REACH "
"""Begins the line with the answer: a sitecustomize of the user's may print, too."""


def attempt(host: str, port: int, seconds: float) -> dict[str, str]:
    """How far it gets to a port: ``stage`` is name, connect, or done; ``error`` says why not further."""
    until = time.monotonic() + seconds
    try:
        found = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return {"stage": "name", "error": getattr(error, "strerror", None) or str(error)}
    address = str(found[0][4][0])
    try:
        with socket.create_connection((address, port), timeout=max(0.5, until - time.monotonic())):
            return {"stage": "done", "error": ""}
    except OSError as error:
        words = error.strerror or str(error)
        # Whoever refuses was reached: this is about the network, not about what listens.
        stage = "done" if isinstance(error, ConnectionRefusedError) else "connect"
        return {"stage": stage, "error": "" if stage == "done" else words}


def reach(requested: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Try all at once: the slowest counts, not the sum."""
    seconds = float(requested["seconds"])
    found = {name: {"stage": "name", "error": f"no answer within {seconds:g} s"} for name in requested["hosts"]}

    def one(name: str, host: str) -> None:
        found[name] = attempt(host, requested["port"], seconds)

    threads = [threading.Thread(target=one, args=entry, daemon=True) for entry in requested["hosts"].items()]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds + 0.5
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(found)


def main(requested: dict[str, Any]) -> None:
    sys.stdout.write(f"\n{MARK}{json.dumps(reach(requested))}\n")
    sys.stdout.flush()
    os._exit(0)  # a thread that still waits for a name must not hold the node
