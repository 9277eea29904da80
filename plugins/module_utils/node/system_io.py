# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads a node. Nothing here writes; ``dpkg-query`` is the only command besides those of the gpu and fabric parts."""

from __future__ import annotations

import grp
import os
import platform
import pwd
import shutil
import socket
import stat
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..common.command_io import find_program, run_program
from ..common.digests import CHUNK, Hashed, keyed_digest
from ..common.untrusted_folder import FolderError, UntrustedFolder
from ..engine.api_io import Engine, EngineError
from ..engine.state import engine_settings
from ..job.private import host_jobs_dir
from ..job.record import JOB_NAME, RecordError, check_state
from ..job.resource import ACTIVE
from ..transfer.image.content import image_contents
from .parsers import (
    container_facts,
    image_clusters,
    image_facts,
    managed_block,
    network_facts,
    package_name,
    parse_dpkg,
    parse_meminfo,
    parse_os_release,
    sha256,
    swarm_facts,
)
from .sockets_io import stale_swarm_ports
from .ssh_key import public_half

ATTACHMENTS = quote('{"runtime":["attachment"]}')
"""Filter of GET /tasks: containers that were attached to a network, not those of services."""
COMMAND_TIMEOUT = 20
"""Seconds."""


class NodeError(Exception):
    """The node could not be read; the text says what was tried and what to do."""


def read_text(path: str) -> str:
    """Return a file's text, empty where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def system_facts() -> dict[str, Any]:
    """Return distribution, kernel, memory, processors and the clock."""
    return {
        **parse_os_release(read_text("/etc/os-release")),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "cpus": os.cpu_count() or 1,
        "memory_bytes": parse_meminfo(read_text("/proc/meminfo")),
        "hostname": socket.gethostname(),
        "systemd": Path("/run/systemd/system").is_dir(),
        "time": time.time(),
    }


def disk_facts(paths: list[str]) -> dict[str, dict[str, int]]:
    """Return free and total bytes where each path is, or will be: of its nearest existing parent."""
    found: dict[str, dict[str, int]] = {}
    for path in paths:
        place = Path(path)
        while not place.exists() and place != place.parent:
            place = place.parent
        usage = shutil.disk_usage(place)
        found[path] = {"free_bytes": usage.free, "total_bytes": usage.total}
    return found


def package_facts(names: list[str]) -> dict[str, str | None]:
    """Return the installed version of each package, or None. Names may have architecture and version, as for apt."""
    program = find_program("dpkg-query")
    if not names or program is None:
        return dict.fromkeys(names)
    form = "${Package}\t${db:Status-Abbrev}\t${Version}\t${Architecture}\n"
    answer = run_program([program, "-W", "-f", form, *map(package_name, names)], COMMAND_TIMEOUT)
    if answer.rc not in (0, 1):  # 1: one of the names is not known; the others are still listed
        raise NodeError(f"dpkg-query ended with status {answer.rc} and printed: {answer.text}. Run it on this host.")
    return parse_dpkg(answer.stdout, names)


_ABSENT: dict[str, Any] = {"exists": False, "sha256": None, "mode": None, "owner": None, "group": None}
"""Facts of a file that is not there."""


def _facts_of(status: os.stat_result) -> dict[str, Any]:
    """Facts of one that is, without its content."""
    return {
        **_ABSENT,
        "exists": True,
        "mode": f"{stat.S_IMODE(status.st_mode):04o}",
        "owner": status.st_uid,
        "group": status.st_gid,
    }


def file_facts(
    path: str, *, content: bool, block: str | None, mark: str | None = None, key: str | None = None
) -> dict[str, Any]:
    """Return existence, SHA-256, mode and owner of a file, a directory, or the managed block inside a file.

    With ``mark``, ``marked`` says whether the file's first line holds that text. With ``key`` the file holds a secret:
    its digest is an HMAC with that key (``keyed``), and its content is never returned; of a private key of OpenSSH, its
    public half is (``public_key``).
    """
    try:
        status = Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return dict(_ABSENT)
    facts = _facts_of(status)
    if not stat.S_ISREG(status.st_mode):
        return facts
    if mark is not None:
        with Path(path).open("rb") as file:
            facts["marked"] = mark.encode() in file.readline(CHUNK)
    if key is not None:
        data = Path(path).read_bytes()
        facts.update(sha256=keyed_digest(data, key), keyed=True)
        public = public_half(data)
        return facts if public is None else {**facts, "public_key": public}
    if block is None and not content:
        facts["sha256"] = file_digest(path)
        return facts
    data = Path(path).read_bytes()
    if block is not None:
        inside = managed_block(data.decode("utf-8", "replace"), block)
        if inside is None:
            return dict(_ABSENT)
        data = inside.encode()
    facts["sha256"] = sha256(data)
    if content:
        facts["content"] = data.decode("utf-8", "replace")
    return facts


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with Path(path).open("rb") as file:
        return Hashed(file).read_all().sha256


def tree_digests(root: str, relative_paths: list[str], sizes: Mapping[str, int] | None = None) -> dict[str, str | None]:
    """Return the SHA-256 of each of these files below root, None where it is missing or no plain file.

    A container can write there: no link is followed, nothing is waited for, and what has another size is not read.
    """
    folder, digests = UntrustedFolder(root), {}
    for relative in relative_paths:
        try:
            digests[relative] = folder.digest(relative, (sizes or {}).get(relative))
        except (OSError, FolderError):
            digests[relative] = None
    return digests


def untrusted_file_facts(root: str, path: str, *, content: bool) -> dict[str, Any]:
    """Return what ``file_facts`` does of a path below a folder that a container can write.

    What is neither a plain file nor a folder counts as absent: neither it nor what lies behind it is ours.
    """
    folder, relative = UntrustedFolder(root), os.path.relpath(path, root)
    try:
        status = folder.status(relative)
        if status is None or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return dict(_ABSENT)
        facts = _facts_of(status)
        if stat.S_ISDIR(status.st_mode):
            return facts
        if not content:
            return {**facts, "sha256": folder.digest(relative)}
        data = folder.read(relative)
    except (OSError, FolderError):
        return dict(_ABSENT)
    if data is None:
        return dict(_ABSENT)
    text = data.decode("utf-8", "replace")
    return {**facts, "sha256": sha256(data), "content": text}


def gathered_files(files: list[dict[str, Any]], untrusted: Iterable[str], key: str) -> dict[str, dict[str, Any]]:
    """Return the facts of each of these files; below one of the folders ``untrusted`` no link is followed.

    ``key``: by which digests of secret files are made.
    """
    folders = [os.path.normpath(folder) for folder in untrusted if folder]
    found = {}
    for entry in files:
        path = os.path.normpath(entry["path"])
        root = next((folder for folder in folders if path.startswith(folder.rstrip("/") + "/")), None)
        plain = entry["block"] is None and entry["mark"] is None and not entry["secret"]
        if root is not None and plain:
            found[entry["path"]] = untrusted_file_facts(root, path, content=entry["content"])
        elif root is not None:
            raise NodeError(f"{entry['path']} lies below {root}, where no block, mark or secret is searched.")
        else:
            found[entry["path"]] = file_facts(
                entry["path"],
                content=entry["content"],
                block=entry["block"],
                mark=entry["mark"],
                key=key if entry["secret"] else None,
            )
    return found


def group_facts(names: list[str]) -> dict[str, list[str] | None]:
    """Return the members of each Unix group, None where it does not exist."""
    members: dict[str, list[str] | None] = {}
    for name in names:
        try:
            members[name] = sorted(grp.getgrnam(name).gr_mem)
        except KeyError:
            members[name] = None
    return members


def account_facts(names: list[str]) -> dict[str, bool]:
    """Return which accounts this host knows, from whatever source it takes them (/etc/passwd, LDAP …)."""
    found: dict[str, bool] = {}
    for name in names:
        try:
            found[name] = pwd.getpwnam(name).pw_name == name
        except (KeyError, ValueError):
            found[name] = False
    return found


def sysctl_facts(names: list[str]) -> dict[str, str | None]:
    """Return kernel parameters as text, None where the kernel has none of that name."""
    found: dict[str, str | None] = {}
    for name in names:
        text = " ".join(read_text("/proc/sys/" + name.replace(".", "/")).split())
        found[name] = text or None
    return found


MOST_JOBS = 10_000
"""Jobs of a folder whose state is read."""
UNLISTED = "more-than-can-be-listed"


def _job_state(found: dict[str, Any], on_host: bool) -> str:
    """The state in a job's file; ``unreadable`` where a job writes no such file, unless it may be one that runs."""
    state = found.get("state")
    if state not in ACTIVE:
        try:
            check_state(found, on_host=on_host)
        except RecordError:
            return "unreadable"
    return str(state)


def job_facts(folder: str | None, key: str) -> dict[str, dict[str, Any]]:
    """Return the last written state of each job below a folder, by name; also of those that run on the host itself.

    Where not all can be listed, one of the name ``UNLISTED`` stands for the others: what is unknown may run.
    Of jobs that succeeded also when, and an HMAC by ``key`` of what they were, in which secrets may be.
    """
    states: dict[str, str] = {}
    succeeded: dict[str, dict[str, str]] = {}
    for place in (folder, host_jobs_dir(folder)) if folder else ():  # the host's word goes before a container's
        jobs = UntrustedFolder(place, NodeError)
        try:
            names, whole = jobs.folders(MOST_JOBS, JOB_NAME.fullmatch)
        except NodeError:
            names, whole = [], False
        if not whole:
            states[UNLISTED] = "unknown"
        for name in names:
            try:
                found = jobs.read_json(f"{name}/state.json")
            except NodeError:
                found = {}
            if found is None:
                continue
            states[name] = _job_state(found, on_host=place != folder)
            succeeded.pop(name, None)
            digest, finished = found.get("spec_hash"), found.get("finished_at")
            if states[name] == "succeeded" and isinstance(digest, str) and isinstance(finished, str):
                succeeded[name] = {
                    "spec": keyed_digest(digest.encode("utf-8", "replace"), key),
                    "finished_at": finished,
                }
    return {"jobs": dict(sorted(states.items())), "jobs_succeeded": dict(sorted(succeeded.items()))}


def docker_facts(engine: Engine, repositories: Iterable[str] = ()) -> dict[str, Any]:
    """Return the engine's state; an engine that is absent or stopped is a fact, not an error.

    Images in ``repositories`` come with the digest of their content.
    """
    facts: dict[str, Any] = {
        "installed": find_program("dockerd") is not None,
        "running": False,
        "version": None,
        "root": "/var/lib/docker",
        "error": None,
        "runtimes": [],
        "settings": engine_settings({}),
        "swarm": swarm_facts({}, None, None),
        "networks": {},
        "containers": {},
        "images": {},
        "image_contents": {},
        "image_clusters": {},
        "stale_swarm_ports": [],
    }
    try:
        info = engine.call("GET", "/info")
        facts.update(
            running=True,
            version=info.get("ServerVersion"),
            root=info.get("DockerRootDir"),
            runtimes=sorted(info.get("Runtimes") or {}),
            settings=engine_settings(info),
            swarm=swarm_facts(info, None, None),
        )
        facts["stale_swarm_ports"] = stale_swarm_ports(facts["swarm"]["state"])
        facts["containers"] = container_facts(engine.call("GET", "/containers/json?all=1"))
        images = engine.call("GET", "/images/json")
        facts["images"], facts["image_clusters"] = image_facts(images), image_clusters(images)
        facts["image_contents"] = image_contents(engine, facts["images"], repositories)
        facts["networks"] = network_facts(engine.call("GET", "/networks"))
        if facts["swarm"]["manager"]:
            attached = engine.call("GET", f"/tasks?filters={ATTACHMENTS}")
            facts["swarm"] = swarm_facts(info, engine.call("GET", "/swarm"), engine.call("GET", "/nodes"), attached)
    except EngineError as error:
        # A manager without quorum answers /info but not /nodes: what was read so far stays.
        facts["error"] = str(error)
    return facts
