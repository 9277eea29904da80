# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The command that starts a job, for each launcher and way of starting it.

An argument ``@name@`` stands for what differs between nodes and attempts; the job's supervisors fill it in
(module_utils/job/supervisor/base.py, ``fill``). Options are those of deepspeed/launcher/runner.py (0.14.5 and
later; ``--no_ssh`` came with that release) and of torch/distributed/run.py (2.x).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .program import COMMAND, MODULE, Program, ProgramError, program

LAUNCHERS = ("deepspeed", "torchrun", "per_node")
TRANSPORTS = ("direct", "pdsh")


@dataclass(frozen=True)
class Launch:
    """What is started.

    ``etc`` is where hostfile and ds_config.json are, ``prefix`` runs a command with the environment of a login.
    """

    launcher: str
    transport: str
    script: str
    master: str
    nodes: int
    etc: str
    args: list[str] = field(default_factory=list)
    launcher_args: list[str] = field(default_factory=list)
    prefix: list[str] = field(default_factory=list)
    include: str = ""
    config_argument: str = ""
    shrink: bool = False
    """Whether nodes may be left out later: then their number and files are filled in, too."""


class LaunchError(Exception):
    """No command can be made of it. The text says why, and what to do."""


def command(launch: Launch) -> list[str]:
    """The command and all its arguments, the same for every node."""
    if launch.launcher not in LAUNCHERS:
        raise LaunchError(
            f"deepspeed_launch_launcher: {launch.launcher!r} is none of {', '.join(LAUNCHERS)}. Choose one of them."
        )
    if launch.transport not in TRANSPORTS:
        raise LaunchError(
            f"deepspeed_launch_transport: {launch.transport!r} is none of {', '.join(TRANSPORTS)}. Choose one of them."
        )
    if launch.transport == "pdsh" and launch.launcher != "deepspeed":
        raise LaunchError(
            "deepspeed_launch_transport: pdsh starts only DeepSpeed's launcher, but deepspeed_launch_launcher is "
            f"{launch.launcher}. Set the transport to direct."
        )
    try:
        started = program(launch.script, launch.launcher_args)
    except ProgramError as error:
        raise LaunchError(str(error)) from None
    script = [started.name, *launch.args]
    if launch.config_argument:
        script += [launch.config_argument, "@ds_config@" if launch.shrink else f"{launch.etc}/ds_config.json"]
    start = {"deepspeed": _deepspeed, "torchrun": _torchrun, "per_node": _per_node}[launch.launcher]
    return [*launch.prefix, *start(launch), *_kind(launch.launcher, started), *script]


def given_words(started: Sequence[str]) -> list[str]:
    """Return what of a command the user gave: the launcher's further arguments, the script and its arguments."""
    last = {"deepspeed": "--enable_each_rank_log", "torchrun": "--redirects"}.get(started[0]) if started else None
    if last not in started:
        return list(started)
    rest = list(started[started.index(last) + 2 :])
    return [started[0], *(rest[2:] if rest[:1] == ["--include"] else rest)]


def _kind(launcher: str, started: Program) -> list[str]:
    """Return the options that say what the launcher starts, last before its name."""
    if started.given or launcher == "per_node":
        return []
    if started.kind == MODULE:
        return ["--module"]
    if started.kind == COMMAND:
        # DeepSpeed's would put --local_rank before the first word of a command, which can say what it is to do.
        return ["--no_python", "--no_local_rank"] if launcher == "deepspeed" else ["--no-python"]
    return []


def _deepspeed(launch: Launch) -> list[str]:
    how = ["--no_ssh", "--node_rank", "@node_rank@"] if launch.transport == "direct" else ["--launcher", "pdsh"]
    hostfile = "@hostfile@" if launch.shrink else f"{launch.etc}/hostfile"
    include = "@include@" if launch.shrink else launch.include
    return [
        *("deepspeed", "--hostfile", hostfile, *how),
        # Always given: DeepSpeed would take the first word of `hostname -I`, which can be the gateway bridge.
        *("--master_addr", launch.master, "--master_port", "@master_port@", "--enable_each_rank_log", "@logs@"),
        *(["--include", include] if include else []),
        *launch.launcher_args,
    ]


def _torchrun(launch: Launch) -> list[str]:
    nodes = "@nodes@" if launch.shrink else str(launch.nodes)
    return [
        *("torchrun", "--nnodes", nodes, "--node-rank", "@node_rank@", "--nproc-per-node", "@slots@"),
        *("--master-addr", launch.master, "--master-port", "@master_port@", "--log-dir", "@logs@", "--redirects", "3"),
        *launch.launcher_args,
    ]


def _per_node(launch: Launch) -> list[str]:
    started = program(launch.script, launch.launcher_args)
    if started.kind == MODULE and not started.given:
        return [*launch.launcher_args, "python3", "-u", "-m"]
    return [*launch.launcher_args, *(["python3", "-u"] if launch.script.endswith(".py") else [])]
