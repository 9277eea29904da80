# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One end of all pairs: answers the other nodes and tries them, in a container or on the host, for a limited time.

The module network_mesh_test hands the source of this file, and of those that it imports, over standard input; they
need Python 3.8. It reads commands, one line of JSON each, and prints answers in the same way:

- ``pairs`` tries the others, one after the other in the order given, which is that of pair_rounds.py;
- ``collective`` runs two seconds of all-reduce with the other nodes (collective.py, in a process of its own);
- ``end`` says which datagrams came in. The end of the input, or of its time, ends it, too.

It judges nothing (plugin_utils/fabric/checks.py does, on the controller), writes no file and changes nothing.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable

from ..job.probe import Parallel, local_addresses, resolve, try_ssh, versions
from .answers import CONNECT, Listener, Responder, ask, datagram, listen
from .ping import largest

MARK = "SWARMSPEED_FABRIC "
"""Begins each line of an answer: a sitecustomize of the user's may print, too."""
TELLING = ("Using", "Bootstrap", "NET/IB :", "libibverbs", "NCCL_IB_DISABLE")
"""Parts of NCCL's lines that say which network it took, and why not another one."""
HURRY, TIRED = 1.0, 3
"""Seconds for a connection after that many did not come about: one node may be cut off from many."""
NO_ANSWER = "no answer"
SSH = 12.0
"""Seconds for ssh, which shares the node with all others that try."""
NAMES = 75.0
"""Seconds for names: after a restart of its daemon the overlay's DNS was seen to take 50 s."""
DATAGRAMS = 2
"""Sent to each port: one may be lost on a busy network. The engine logs each that comes to its own."""


def say(kind: str, **values: Any) -> None:
    sys.stdout.write(f"\n{MARK}{json.dumps({'kind': kind, **values})}\n")
    sys.stdout.flush()


def interface_in(subnet: str, routes: str) -> str:
    """The interface with a route to this very subnet, from /proc/net/route; ``ip`` is not in every image.

    Of a /32, which is the node's own address, that with the narrowest subnet around it.
    """
    network = ipaddress.ip_network(subnet, strict=False)
    around = {}
    for line in routes.splitlines()[1:]:
        words = line.split()
        # Addresses stand there as the machine has them in memory.
        found, gateway, mask = (
            str(ipaddress.IPv4Address(struct.pack("=I", int(words[place], 16)))) for place in (1, 2, 7)
        )
        one = ipaddress.ip_network(f"{found}/{mask}", strict=False)
        if one == network:
            return words[0]
        if network.prefixlen == 32 and gateway == "0.0.0.0" and one.prefixlen and network.network_address in one:
            around[one.prefixlen] = words[0]
    return around[max(around)] if around else ""


def mtu_of(interface: str) -> int:
    """Bytes of the largest packet an interface takes; 0 where it cannot be read."""
    try:
        return int(Path(f"/sys/class/net/{interface}/mtu").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


class Peer:
    """This end. ``requested`` is what the module asks for, see its ``request``."""

    def __init__(self, requested: dict[str, Any]) -> None:
        self.requested = requested
        self.node, self.token = requested["node"], requested["token"]
        self.late = 0
        self.responder: Responder | None = None
        self.listener: Listener | None = None
        self.collective: subprocess.Popen[str] | None = None
        self.results: list[dict[str, Any]] = []

    def ready(self) -> dict[str, Any]:
        """Begin to answer; say where."""
        found = local_addresses(Path("/proc/net/fib_trie").read_text(encoding="ascii"))
        network = ipaddress.ip_network(self.requested["subnet"], strict=False)
        own = [address for address in found if ipaddress.ip_address(address) in network]
        # A second address in the subnet can be a virtual one that moves: the node's own is requested by the module.
        address = self.requested["address"] if self.requested["address"] in own else (own or [""])[0]
        interface = interface_in(self.requested["subnet"], Path("/proc/net/route").read_text(encoding="ascii"))
        reported: dict[str, Any] = {"address": address, "interface": interface, "mtu": mtu_of(interface), "port": 0}
        if not address:
            return {
                **reported,
                "error": f"it has no address in {self.requested['subnet']}; its own: {', '.join(found)}",
            }
        if self.requested["ports"]:
            self.responder = Responder(self.node, self.token, address, self.requested["ports"])
            reported["port"] = self.responder.port
        if self.requested["udp"]:
            try:
                self.listener = Listener(self.node, self.token, self.requested["udp"])
            except OSError as error:
                reported["deaf"] = error.strerror
        if self.requested["backend"]:
            self._warm(reported)
        reported["versions"] = {
            "python": ".".join(map(str, sys.version_info[:3])),
            **versions(self.requested["packages"]),
        }
        return reported

    def _warm(self, reported: dict[str, Any]) -> None:
        """Have torch imported while pairs are tried: that takes seconds."""
        with listen(reported["address"], self.requested["ports"]) as found:
            reported["store_port"] = found.getsockname()[1]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        environment.update(read_environment(self.requested["env_file"]))
        if self.requested["backend"] == "nccl":
            environment.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET,ENV")
        self.collective = subprocess.Popen(
            [sys.executable, "-B", "-u", "-c", self.requested["collective"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            errors="replace",
        )

    def pairs(self, peers: dict[str, Any], order: list[str]) -> None:
        """Try the others, and say what was found. ``peers`` are their answers to ``ready``."""
        began = time.monotonic()
        names = self._names(peers) if self.requested["names"] else {}
        for name in order:
            if name in names:
                self._note(name, "name", **names[name])
            reached = self._connect(name, peers[name]) if self.requested["tcp"] else self._ask(name, peers[name])
            if reached:
                self._ping(name, peers[name])
                self._ssh(name, names)
            for port in self.requested["udp"]:
                self._send(name, peers[name], port)
        say("pairs", results=self.results, seconds=round(time.monotonic() - began, 3))

    def _names(self, peers: dict[str, Any]) -> dict[str, Any]:
        """Look for all names, side by side, until they are found: an overlay's DNS may still be converging."""
        began = time.monotonic()
        waiting = Parallel()

        def look_up(name: str) -> dict[str, Any]:
            host, address, found = self.requested["names"][name], peers[name]["address"], {"addresses": [], "error": ""}
            while True:
                found = resolve(host, time.monotonic() + 1.0)
                over = time.monotonic() - began > NAMES
                if address in found["addresses"] or over:
                    break
                time.sleep(0.5)
            waited = round(time.monotonic() - began, 1)
            seen = ", ".join(found["addresses"])
            reported = f"{host} resolves to {seen}" if seen else f"{host}: {found['error']}"
            if seen and address not in found["addresses"]:
                reported += f", but its address is {address}"
            return {"ok": address in found["addresses"], "value": waited, "reported": reported}

        wanted = [name for name in self.requested["names"] if name in peers]
        for name in wanted:
            waiting.add("name", name, partial(look_up, name))
        waiting.wait(began + NAMES + 10)
        late = {"ok": False, "value": NAMES, "reported": "the lookup of its name does not finish"}
        return {name: waiting.get("name", name, late) for name in wanted}

    def _note(self, to: str, check: str, ok: bool, value: float | None, reported: str, **more: Any) -> None:
        self.results.append({"to": to, "check": check, "ok": ok, "value": value, "said": reported, **more})

    def _within(self, work: Callable[[float], Any]) -> Any:
        """Run what connects; an error is returned as its words."""
        try:
            return work(HURRY if self.late >= TIRED else CONNECT)
        except socket.timeout:
            self.late += 1
            return NO_ANSWER
        except OSError as error:
            return error.strerror or str(error)

    def _ask(self, name: str, peer: dict[str, Any]) -> bool:
        address, port = peer["address"], peer["port"]
        found = self._within(lambda seconds: ask(address, port, name, self.token, seconds))
        where = f"{address} port {port}"
        if isinstance(found, str):
            self._note(name, "tcp", ok=False, value=None, reported=f"{where}: {found}")
            return False
        self._note(name, "tcp", ok=True, value=found["ms"], reported=where)
        self._note(name, "clock", ok=True, value=found["offset"], reported="")
        return True

    def _connect(self, name: str, peer: dict[str, Any]) -> bool:
        """The ports of services that are there anyway: only that they can be connected to is seen."""
        slowest = 0.0
        for port in self.requested["tcp"][name]:
            began = time.monotonic()

            def work(seconds: float, port: int = port) -> str:
                socket.create_connection((peer["address"], port), timeout=seconds).close()
                return ""

            words = str(self._within(work))
            slowest = max(slowest, time.monotonic() - began)
            if words:
                self._note(
                    name, "tcp", ok=False, value=None, reported=f"{peer['address']} port {port}: {words}", port=port
                )
                return words != NO_ANSWER
        ports = ", ".join(map(str, self.requested["tcp"][name]))
        self._note(name, "tcp", ok=True, value=round(slowest * 1000, 3), reported=f"{peer['address']} port {ports}")
        return True

    def _ping(self, name: str, peer: dict[str, Any]) -> None:
        """The largest packet that passes whole, of those that both ends' interfaces take."""
        wanted = min(mtu_of(self.requested["interface"]), peer["mtu"])
        if not wanted:
            return
        found = largest(peer["address"], wanted)
        more = {"wanted": wanted}
        if isinstance(found, str):
            self._note(name, "mtu", ok=True, value=None, reported=found, **more)
        elif found == 0:
            self._note(
                name, "mtu", ok=True, value=None, reported="not measured: it does not answer pings, not even small ones"
            )
        elif found < wanted:
            words = f"packets of {wanted} bytes do not arrive unfragmented, those of {found} do"
            self._note(name, "mtu", ok=False, value=found, reported=words, **more)
        else:
            self._note(name, "mtu", ok=True, value=found, reported=f"{found} bytes pass whole", **more)

    def _ssh(self, name: str, names: dict[str, Any]) -> None:
        if not self.requested["ssh"]:
            return
        if not names.get(name, {"ok": True})["ok"]:
            self._note(name, "ssh", ok=False, value=None, reported="not tried: its name is not found", follows="name")
            return
        began = time.monotonic()
        words = try_ssh(name, "", SSH)
        self._note(name, "ssh", ok=not words, value=round((time.monotonic() - began) * 1000), reported=words)

    def _send(self, name: str, peer: dict[str, Any], port: int) -> None:
        payload = datagram(self.token, self.node, name, port)
        error = ""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _turn in range(DATAGRAMS):
                try:
                    sender.sendto(payload, (peer["address"], port))
                except OSError as caught:
                    error = caught.strerror or str(caught)
                time.sleep(0.02)
        # Whether it came in is known at the other end.
        self._note(name, f"udp {port}", ok=not error, value=None, reported=error)

    def reduce(self, command: dict[str, Any]) -> None:
        """Two seconds of all-reduce; the process that is there for it says how it went."""
        process = self.collective
        if process is None or process.stdin is None or process.stdout is None:
            say("collective", ok=False, said="was not requested")
            return
        with contextlib.suppress(OSError):
            process.stdin.write(json.dumps(command) + "\n")
            process.stdin.flush()
        lines: list[str] = []
        answer: dict[str, Any] = {}
        for line in process.stdout:
            if line.startswith(MARK):
                answer = json.loads(line[len(MARK) :])
            elif len(lines) < 2000 and line.strip():
                lines.append(line.rstrip()[:400])
        process.wait()
        keep = [line for line in lines if "NCCL INFO" in line and any(part in line for part in TELLING)]
        if not answer:
            last = [line for line in lines if "NCCL INFO" not in line][-1:] or [f"exit code {process.returncode}"]
            answer = {"ok": False, "said": last[0]}
        say("collective", **answer, log=keep[:40], warnings=[line for line in lines if "NCCL WARN" in line][:5])

    def end(self) -> None:
        say("ended", seen=self.listener.seen if self.listener else {})
        self.stop()

    def stop(self) -> None:
        if self.collective:
            with contextlib.suppress(OSError):
                self.collective.kill()


def read_environment(path: str) -> dict[str, str]:
    """``KEY=VALUE`` lines of a file; nothing where there is none."""
    try:
        text = Path(path).read_text(encoding="utf-8") if path else ""
    except OSError:
        text = ""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))


def main(requested: dict[str, Any]) -> None:
    """Answer and obey until the input ends, ``end`` is received or the time is over."""
    peer = Peer(requested)

    def over() -> None:
        peer.stop()
        os._exit(0)

    timer = threading.Timer(requested["life"], over)
    timer.daemon = True
    timer.start()
    reported = peer.ready()
    requested["interface"] = reported["interface"]
    say("ready", **reported)
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "pairs":
            threading.Thread(target=peer.pairs, args=(command["peers"], command["order"]), daemon=True).start()
        elif command["do"] == "collective":
            threading.Thread(target=peer.reduce, args=(command,), daemon=True).start()
        else:
            peer.end()
            break
    over()
