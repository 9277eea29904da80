# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One node's part in a network benchmark: runs in a container of its own, and ends by itself in any case.

What to do comes as JSON in the environment (the plan, and ``node``, this node's number); what was found goes to the
standard output as one line. One process a slot; that of slot 0 also tries the pairs. Standard library and torch,
Python 3.8. All meet in torch's TCPStore on the first node, as ranks of a training do.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from .collectives import collectives
from .pairs import Pairs, Store, Trouble, first_line, iperf_version, together

REQUESTED = "SWARMSPEED_BENCH"
LOCAL_RANK = "SWARMSPEED_BENCH_SLOT"
MARK = "SWARMSPEED-BENCH "
ROUND_PATIENCE = 30.0
"""Seconds for the slowest pair of a round, failed connections included."""
SIOCGIFADDR = 0x8915
"""linux/sockios.h: the address of an interface."""
NCCL_LOG = "/tmp/swarmspeed-nccl.log"  # the container's own, which no other process writes
TELLING = ("Using", "NET/IB :", "libibverbs", "NCCL_IB_DISABLE")
"""Parts of NCCL's lines that say which network it took, and why not another one."""
MOST_LINES, LONGEST_LINE = 40, 400


def nccl_lines(path: str) -> list[str]:
    """The lines of NCCL's log that say which network it took; none where there is no log."""
    found: list[str] = []
    with contextlib.suppress(OSError), Path(path).open(encoding="utf-8", errors="replace") as log:
        for line in log:
            if "NCCL INFO" in line and any(part in line for part in TELLING):
                found.append(line.rstrip()[:LONGEST_LINE])
            if len(found) == MOST_LINES:
                break
    return found


def own_address(subnet: str) -> tuple[str, str]:
    """Interface and address of this network namespace within a subnet. Raises Trouble where there is none."""
    network, seen = ipaddress.ip_network(subnet), []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for dummy, name in socket.if_nameindex():
            try:
                reply = fcntl.ioctl(sock.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:  # no IPv4 address
                continue
            address = socket.inet_ntoa(reply[20:24])
            if ipaddress.ip_address(address) in network:
                return name, address
            seen.append(f"{name} {address}")
    raise Trouble(f"no interface of the container is in {subnet}: {', '.join(seen) or 'there is none'}")


class Rank:
    """One process of the benchmark."""

    def __init__(self, requested: dict[str, Any], slot: int) -> None:
        self._requested, self._slot, self._node = requested, slot, int(requested["node"])
        self._names: list[str] = list(requested["nodes"])
        self.doing = "its start"
        """Where it is, for the word of who has to end it."""

    def measure(self) -> dict[str, Any]:
        """Do all there is to do. Only the first process of the first node has the whole answer."""
        requested, first = self._requested, self._node == 0 and self._slot == 0
        interface, address = requested.get("interface", ""), requested.get("address", "")
        if not interface:
            interface, address = own_address(requested["subnet"])
        self._set_environment(interface)
        others = self._start_others() if self._slot == 0 else []
        if requested["backend"] == "nccl" and self._slot == 0:
            # Only so NCCL says which network it took: in a file, as it starts, and in one process of a node.
            os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET,ENV", NCCL_DEBUG_FILE=NCCL_LOG)
        store = self._store(first, address)
        answer: dict[str, Any] = {}
        if self._slot == 0:
            mine = self._pairs(store, address)
            mine.update(interface=interface)
            store.set(f"found/{self._node}", json.dumps(mine))
        self.doing = "the collectives"
        try:
            slots = [int(number) for number in requested["slots"]]
            rank = sum(slots[: self._node]) + self._slot
            answer["collectives"] = collectives(requested, store, rank, self._slot, self._progress)
        except (RuntimeError, OSError, ImportError, Trouble) as error:
            answer["collectives"] = {"measured": [], "error": first_line(error)}
        self.doing = "the end"
        if self._slot == 0:  # the store ends with the first node's process
            store.set(f"nccl/{self._node}", json.dumps(nccl_lines(NCCL_LOG)))
            with contextlib.suppress(Trouble):
                together(store, "the end", self._node, self._names, ROUND_PATIENCE)
        if first:
            answer["nodes"] = [
                {**json.loads(store.get(f"found/{number}")), "nccl": self._nccl(store, number)}
                for number in range(len(self._names))
            ]
        for process in others:
            process.wait()
        return answer

    @staticmethod
    def _nccl(store: Store, number: int) -> list[str]:
        """What a node's NCCL said; nothing of a node that is gone, which is not waited for once more."""
        found: list[str] = json.loads(store.get(f"nccl/{number}")) if store.check([f"nccl/{number}"]) else []
        return found

    def _progress(self, doing: str) -> None:
        self.doing = doing

    def _set_environment(self, interface: str) -> None:
        given = {
            name: str(value).replace("@IFNAME@", interface) for name, value in self._requested["environment"].items()
        }
        os.environ.update(given)
        os.environ.update(GLOO_SOCKET_IFNAME=interface, NCCL_SOCKET_IFNAME=f"={interface}")

    def _start_others(self) -> list[subprocess.Popen[bytes]]:
        slots = range(1, int(self._requested["slots"][self._node]))
        command = [sys.executable, "-B", "-m", f"{__package__}.rank"]
        return [subprocess.Popen(command, env={**os.environ, LOCAL_RANK: str(slot)}) for slot in slots]

    def _store(self, first: bool, address: str) -> Store:
        self.doing = "the start of torch"
        from torch.distributed import TCPStore  # noqa: PLC0415  # after the environment, and not on the controller

        port, patience = int(self._requested["port"]), float(self._requested["gather_seconds"])
        self.doing = "the rendezvous"
        wait = timedelta(seconds=ROUND_PATIENCE)
        if first:
            try:
                store = TCPStore(address, port, None, True, wait, wait_for_workers=False)
            except RuntimeError as error:
                raise Trouble(no_store(port, first_line(error))) from error
        else:
            master = self._requested["master"]
            reached = find_listener(master, port, patience)
            store = TCPStore(reached, port, None, False, wait, wait_for_workers=False)
        if self._slot == 0:
            together(store, "the rendezvous", self._node, self._names, patience)
        found: Store = store
        return found

    def _pairs(self, store: Store, address: str) -> dict[str, Any]:
        requested = self._requested
        pairs = Pairs(self._node, address, store, seconds=requested["pair_seconds"], most=requested["pair_bytes"])
        for what, rounds, meet in (
            ("pairs", requested["rounds"], pairs.meet),
            ("iperf3", requested["floor_rounds"], pairs.meet_iperf),
        ):
            for number, pairing in enumerate(rounds):
                self.doing = f"round {number + 1} of {what}"
                together(store, self.doing, self._node, self._names, ROUND_PATIENCE)
                for one, other in pairing:
                    if self._node in (one, other):
                        meet(other if self._node == one else one, self._node == one)
        pairs.close()
        flat = {
            name: [{"from": pair[0], "to": pair[1], **values} for pair, values in found.items()]
            for name, found in (("pairs", pairs.found), ("floor", pairs.floor))
        }
        return {**flat, "iperf3": iperf_version() if requested["floor_rounds"] else ""}


def no_store(port: int, reported: str) -> str:
    """Why the first node's own store is not there: torch listens, and then connects to it as all others do."""
    what = "does not answer even from this node itself" if "timed out" in reported else "cannot be listened on"
    return f"port {port} {what}: {reported}"


def find_listener(host: str, port: int, patience: float) -> str:
    """The address of a host once its port answers. Names of a new container need a while to be known everywhere."""
    end, reported = time.monotonic() + patience, ""
    while True:
        try:
            address = str(socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
            with socket.create_connection((address, port), 3):
                return address
        except OSError as error:
            reported = str(error.strerror or error)
        if time.monotonic() > end:
            raise Trouble(f"{host} does not answer on port {port} within {patience:g} s: {reported}")
        time.sleep(0.3)


def main() -> int:
    """Measure and print."""
    requested: dict[str, Any] = json.loads(os.environ[REQUESTED])
    slot = int(os.environ.get(LOCAL_RANK, "0"))
    rank: Rank | None = None

    def say(answer: dict[str, Any]) -> None:
        if slot == 0:
            sys.stdout.write(MARK + json.dumps(answer) + "\n")
            sys.stdout.flush()

    def give_up() -> None:
        say({"error": f"{rank.doing if rank else 'its start'} did not end within {requested['limit_seconds']:g} s"})
        os._exit(1)

    watchdog = threading.Timer(float(requested["limit_seconds"]), give_up)
    watchdog.daemon = True
    watchdog.start()
    begun = time.monotonic()
    try:
        rank = Rank(requested, slot)
        say({**rank.measure(), "seconds": time.monotonic() - begun})
    except (Trouble, RuntimeError, OSError, ImportError) as error:
        say({"error": first_line(error)})
        return 1
    finally:
        watchdog.cancel()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
