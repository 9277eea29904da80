# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Checks a node of a job from where its ranks will run, just before it starts: prints one line of JSON.

The module job_precheck hands the sources of this file and of those beside it that it imports to the Python of the
container, or of the host, over standard input; so they import nothing else and need Python 3.8. It judges
nothing: what it found is compared with the other nodes' on the controller (plugin_utils/launch/checks.py). It removes
only locks of torch's extension cache that no one holds, for which every rank would wait for ever.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import re
import resource
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Callable

from .locks import extension_roots, locks, port_holder, read_text
from .operators import operators

MARK = "SWARMSPEED_PROBE "
"""Begins the line with the answer: a sitecustomize of the user's may print, too."""
PATIENCE = 10.0
"""Seconds for names and ssh. A name is asked for again in that time: the overlay learns new containers by gossip."""
SMI_PATIENCE = 30.0
"""Seconds for nvidia-smi, which wakes every GPU first where persistence mode is off."""
IPC_LOCK = 14
"""Number of the capability with which memory is locked without a limit."""
MOST_BYTES = 1 << 26
"""A file longer than this is not read whole to compare it."""
EXPORTS = ".deepspeed_env"
"""Unless DS_ENV_FILE says otherwise: what DeepSpeed's runner exports to all nodes (deepspeed/launcher/runner.py)."""
PER_NODE = ("GLOO_SOCKET_IFNAME", "NCCL_IB_GID_INDEX", "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME")
"""What each node has a value of its own for."""


class Parallel:
    """Work that waits for others, each in a thread: the slowest counts, not the sum. A late one is left behind."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Any] = {}
        self._threads: list[threading.Thread] = []

    def add(self, kind: str, name: str, work: Callable[[], Any]) -> None:
        def run() -> None:
            self._found[(kind, name)] = work()

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def wait(self, until: float) -> None:
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def get(self, kind: str, name: str, otherwise: Any) -> Any:
        return self._found.get((kind, name), otherwise)


def resolve(host: str, until: float) -> dict[str, Any]:
    """IPv4 addresses of a name, asked for until there are some or the time is over."""
    while True:
        try:
            found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)}
            return {"host": host, "addresses": sorted(found), "error": ""}
        except (OSError, UnicodeError) as error:
            if time.monotonic() + 1.0 > until:
                return {"host": host, "addresses": [], "error": getattr(error, "strerror", None) or str(error)}
        time.sleep(0.5)


def try_ssh(name: str, config: str, seconds: float) -> str:
    """Empty where ``ssh name true`` works, else the words of ssh."""
    command = ["ssh", "-n", *(["-F", config] if config else [])]
    # Shorter than our own patience, so that it is ssh that says why. No shared connection: it would outlive us.
    limit = max(1, int(seconds) - 2)
    for option in (
        "BatchMode=yes",
        f"ConnectTimeout={limit}",
        "ConnectionAttempts=1",
        "ControlMaster=no",
        "ControlPath=none",
    ):
        command += ["-o", option]
    answer = run([*command, "--", name, "true"], seconds)
    return "" if answer["rc"] == 0 else (last_lines(answer["err"]) or f"ssh ended with exit code {answer['rc']}")


def run(command: list[str], seconds: float) -> dict[str, Any]:
    """What a command answers; ``rc`` 127 where it is not there, 124 where it does not end."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, env=environment, check=False
        )
    except subprocess.TimeoutExpired as error:
        err = (error.stderr or b"").decode("utf-8", "replace")
        return {"rc": 124, "out": "", "err": f"{err}\nno answer within {seconds:g} s".strip()}
    except OSError as error:
        return {"rc": 127, "out": "", "err": f"{command[0]}: {error.strerror}"}
    return {
        "rc": done.returncode,
        "out": done.stdout.decode("utf-8", "replace")[:65536],
        "err": done.stderr.decode("utf-8", "replace")[-4096:],
    }


def last_lines(text: str) -> str:
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip() and "Permanently added" not in line]
    return "; ".join(lines[-3:])[-500:]


def versions(packages: list[str]) -> dict[str, Any]:
    """Versions as installed, without importing anything of them; null where one is not there."""
    found: dict[str, Any] = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except Exception:  # damaged metadata raises all kinds
            found[name] = None
    return found


def local_addresses(text: str) -> list[str]:
    """The IPv4 addresses of this network namespace, from /proc/net/fib_trie; ``ip`` is not in every image."""
    found, last = [], ""
    for line in text.splitlines():
        if "|-- " in line:
            last = line.split("|-- ")[1].strip()
        elif "/32 host LOCAL" in line and last and last not in found:
            found.append(last)
    return found


def shared_memory(path: str) -> dict[str, Any]:
    """Size and free space of /dev/shm, and what fills it where little is free."""
    try:
        seen = os.statvfs(path)
    except OSError as error:
        return {"size": 0, "free": 0, "error": error.strerror, "largest": []}
    size, free = seen.f_blocks * seen.f_frsize, seen.f_bavail * seen.f_frsize
    largest: list[tuple[int, str]] = []
    if free < size // 2:
        with contextlib.suppress(OSError):
            for entry in os.scandir(path):
                with contextlib.suppress(OSError):
                    largest.append((entry.stat(follow_symlinks=False).st_blocks * 512, entry.name))
    names = [name for dummy, name in sorted(largest, reverse=True)[:3]]
    return {"size": size, "free": free, "error": "", "largest": names}


def locked_memory(status: str, uid_map: str) -> dict[str, Any]:
    """Limit of locked memory in bytes (null: none), and whether the kernel exempts this process when RDMA registers."""
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    capable = bool(found and int(found.group(1), 16) >> IPC_LOCK & 1)
    # The kernel asks for the capability in the first user namespace: with remapped users it does not count.
    return {
        "limit": None if soft == resource.RLIM_INFINITY else soft,
        "exempt": capable and uid_map.split()[:2] == ["0", "0"],
    }


def check_file(path: str) -> dict[str, Any]:
    """Whether a file can be read, and its SHA-256."""
    answer: dict[str, Any] = {"path": path, "sha256": "", "error": ""}
    try:
        seen = Path(path).stat()
        if not stat.S_ISREG(seen.st_mode):
            answer["error"] = "is not a file"
        elif seen.st_size <= MOST_BYTES:
            answer["sha256"] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        elif not os.access(path, os.R_OK):
            answer["error"] = "may not be read"
    except OSError as error:
        answer["error"] = _why(error)
    return answer


def check_path(path: str) -> str:
    """Empty where a file or folder is there and may be read, else why not."""
    try:
        Path(path).stat()
    except OSError as error:
        return _why(error)
    return "" if os.access(path, os.R_OK) else "may not be read"


def _why(error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "is not there"
    return "may not be read" if error.errno == errno.EACCES else f"cannot be read ({error.strerror})"


def exports(folders: list[str], name: str) -> dict[str, list[str]]:
    """Return which of ``PER_NODE`` the runner would export, by the file that sets them; of values nothing."""
    found: dict[str, list[str]] = {}
    for folder in folders:
        with contextlib.suppress(OSError, RuntimeError):  # the latter without a home folder
            path = Path(folder, name).expanduser()
            if path.is_file():
                with path.open(encoding="utf-8", errors="replace") as file:
                    names = {line.partition("=")[0].strip() for line in file.read(1 << 16).splitlines()}
                if names.intersection(PER_NODE):
                    found[str(path)] = sorted(names.intersection(PER_NODE))
    return found


def check_space(path: str) -> dict[str, Any]:
    """Free bytes for a folder, which need not exist yet, and whether it can be written to."""
    there = Path(path)
    while not there.is_dir() and there != there.parent:
        there = there.parent
    try:
        seen = os.statvfs(there)
    except OSError as error:
        return {"path": path, "at": str(there), "free": 0, "writable": False, "error": error.strerror}
    free, writable = seen.f_bavail * seen.f_frsize, os.access(there, os.W_OK)
    return {"path": path, "at": str(there), "free": free, "writable": writable, "error": ""}


def missing_module(name: str, folders: list[str]) -> str:
    """Which part of a module's name Python does not find, empty where it can be run. Nothing of it is imported.

    ``folders`` are where it is started, which comes first on its path.
    """
    first, *rest = name.split(".")
    sys.path[:0] = folders
    try:
        found = importlib.util.find_spec(first)
        known = first
        for part in rest:
            if found is None or found.submodule_search_locations is None:
                return known if found is None else f"{known}.{part}"
            known = f"{known}.{part}"
            found = importlib.machinery.PathFinder.find_spec(known, list(found.submodule_search_locations))
        if found is not None and found.submodule_search_locations is not None:
            known = f"{known}.__main__"
            found = importlib.machinery.PathFinder.find_spec(known, list(found.submodule_search_locations))
    except (ImportError, KeyError, ValueError):
        return ""  # what only an import could say
    finally:
        del sys.path[: len(folders)]
    return "" if found is not None else known


def check_port(port: int, proc: Path = Path("/proc")) -> dict[str, Any]:
    """Whether a port can be listened on as torch's store does: on every address, IPv6 where there is any."""
    answer: dict[str, Any] = {"port": port, "error": "", "holder": ""}
    for family, address in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                tried.bind((address, port))
                return answer
        except OSError as error:
            answer["error"] = error.strerror or str(error)
            if family == socket.AF_INET6 and error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                answer["error"] = ""
                continue  # no IPv6 here
            break
    if answer["error"]:
        answer["holder"] = port_holder(port, proc)
    return answer


def probe(requested: dict[str, Any]) -> dict[str, Any]:
    """Check everything that is requested; what has to wait for others waits side by side."""
    began = time.monotonic()
    until = began + requested.get("patience", PATIENCE)
    waiting = Parallel()
    for name in requested["ssh"]:
        waiting.add("ssh", name, partial(try_ssh, name, requested["ssh_config"], until - began))
    for name, host in requested["names"].items():
        waiting.add("name", name, partial(resolve, host, until))
    smi = {
        "list": ["-L"],
        "gpus": ["--query-gpu=index,uuid,memory.used,memory.total,compute_mode", "--format=csv,noheader,nounits"],
        "apps": ["--query-compute-apps=gpu_uuid,pid,used_memory,process_name", "--format=csv,noheader,nounits"],
    }
    for name, words in smi.items() if requested["smi"] else ():
        waiting.add("smi", name, partial(run, ["nvidia-smi", *words], SMI_PATIENCE))

    chdir = Path(requested["chdir"] or Path.cwd())
    # Where a run starts, the source is seen together with the rest of the workspace, and wins.
    code = [chdir / requested["code"]] if requested.get("code") else []

    def inside(path: str) -> str:
        relative = os.path.relpath(path, chdir) if path.startswith(f"{chdir}/") else path
        return str(next((own / relative for own in code if (own / relative).exists()), chdir / path))

    roots = extension_roots(requested["torch_extensions"], os.environ)
    answer: dict[str, Any] = {
        "python": ".".join(map(str, sys.version_info[:3])),
        "versions": versions(requested["packages"]),
        "programs": {name: shutil.which(inside(name) if "/" in name else name) for name in requested["programs"]},
        "modules": {name: missing_module(name, [*map(str, code), str(chdir)]) for name in requested.get("modules", [])},
        "addresses": local_addresses(read_text(Path("/proc/net/fib_trie"))),
        "shm": shared_memory("/dev/shm"),
        "memlock": locked_memory(read_text(Path("/proc/self/status")), read_text(Path("/proc/self/uid_map"))),
        "infiniband": any(Path("/dev/infiniband").glob("uverbs*")),
        "locks": locks(roots, requested["remove_locks"], requested["sees_all"]),
        "operators": operators(requested["operators"], requested["accelerator"], roots, os.environ),
        "chdir": check_path(str(chdir)),
        "exports": exports(["~", *map(str, code), str(chdir)], os.environ.get("DS_ENV_FILE", EXPORTS))
        if requested["ssh"]
        else {},
        "script": check_file(inside(requested["script"])) if requested["script"] else None,
        "ds_config": check_file(inside(requested["ds_config"])) if requested["ds_config"] else None,
        "hostfile": check_file(inside(requested["hostfile"])) if requested["hostfile"] else None,
        "paths": {path: check_path(inside(path)) for path in requested["data_paths"]},
        "checkpoints": check_space(inside(requested["checkpoints"])) if requested["checkpoints"] else None,
        "port": check_port(requested["master_port"]) if requested["master_port"] else None,
    }
    waiting.wait(began + SMI_PATIENCE + 2 if requested["smi"] else until + 1)
    late = f"no answer within {until - began:g} s"
    unnamed = {name: {"host": host, "addresses": [], "error": late} for name, host in requested["names"].items()}
    answer["names"] = {name: waiting.get("name", name, unnamed[name]) for name in requested["names"]}
    answer["ssh"] = {name: waiting.get("ssh", name, late) for name in requested["ssh"]}
    unsaid = {"rc": 124, "out": "", "err": f"no answer within {SMI_PATIENCE:g} s"}
    answer["smi"] = {name: waiting.get("smi", name, unsaid) for name in smi} if requested["smi"] else None
    answer["seconds"] = round(time.monotonic() - began, 3)
    return answer


def main(requested: dict[str, Any]) -> None:
    answer = probe(requested)
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()
    os._exit(0)  # a thread that still waits for a name must not hold the node
