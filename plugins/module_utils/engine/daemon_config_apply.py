# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""From keys that are requested to an engine that runs with them, or to everything as it was.

Everything is judged before the first change: the keys, the clash with the unit's flags, the consent to a restart, and,
where the engine can, its own verdict on the whole file. What fails after the file is in place is rolled back.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..common.problems import Problem, summary
from ..common.text_file import TextFileError
from .api_io import EngineError
from .daemon_config import (
    DaemonConfigError,
    changed_keys,
    decode,
    doubled,
    merge,
    parse,
    render,
    same,
    too_deep,
    wanted_problems,
)
from .daemon_config_io import PRIVATE, PUBLIC, File, ForeignEditError, Host, unbroken
from .daemon_config_keys import check, needs_restart, parse_version, swarm_problems, unknown_keys
from .daemon_config_pools import overlap_problems
from .daemon_config_secrets import mask, mask_text, printable, secrets
from .daemon_config_unit import Unit, conflicts, engine_words, other_file, parse_properties, parse_unit, program_name

QUERY_TIMEOUT = 30.0
"""Seconds within which systemd, the journal, ``dockerd --validate`` and a running engine must answer a question."""
RELOAD = 15.0
"""Seconds within which a running engine must have taken a reloaded file over."""
POLL = 0.25
"""Seconds between two questions to an engine that is starting."""
MAX_NAMES = 20


@dataclass(frozen=True)
class Request:
    """What the module was asked for. ``timeout`` is in seconds."""

    config: dict[str, Any]
    restart: str = "if_idle"
    service: str = "docker.service"
    timeout: float = 120.0
    validate: bool = True
    swarm: bool = False
    check_mode: bool = False
    folder: str | None = None
    """Where a candidate may be written in check mode."""
    backup: Callable[[], str] | None = None


@dataclass
class Outcome:
    """What was done, or in check mode would be."""

    changed: bool = False
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    changed_keys: list[str] = field(default_factory=list)
    validated: bool = False
    reloaded: bool = False
    restarted: bool = False
    restart_needed: bool = False
    rolled_back: bool = False
    engine_version: str | None = None
    backup_file: str | None = None
    warnings: list[str] = field(default_factory=list)
    known_secrets: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Engine:
    """The engine as it was found. ``info`` is ``None`` where it does not answer."""

    running: bool = False
    managed: bool = False
    unit: Unit = field(default_factory=Unit)
    info: dict[str, Any] | None = None
    version: str | None = None


class _FailedError(Exception):
    """The engine did not take the configuration over."""


class Run:
    """One call of the module. ``outcome`` says how far it came, also when ``converge`` raises."""

    def __init__(self, file: File, host: Host, request: Request) -> None:
        self.file = file
        self.host = host
        self.request = request
        self.outcome = Outcome(known_secrets=set() if too_deep(request.config) else secrets(request.config))

    def converge(self) -> None:
        """Do it; raises ``DaemonConfigError`` or ``TextFileError``, whose texts hold no secret."""
        try:
            self._converge()
        except ForeignEditError:
            raise DaemonConfigError(
                f"{self.file.path} was changed by another program at the same time, so nothing was written. Find out "
                "what"
                " else writes it, and run this again"
            ) from None
        except (DaemonConfigError, TextFileError) as error:
            raise type(error)(printable(mask_text(str(error), self.outcome.known_secrets))) from None

    def _converge(self) -> None:
        request, outcome, path = self.request, self.outcome, self.file.path
        self._refuse(wanted_problems(request.config))
        content = self.file.read()
        text = decode(content, path) if content is not None else ""
        found = outcome.before = outcome.after = parse(text, path)
        outcome.known_secrets |= secrets(found)
        double = doubled(text)
        if double:
            outcome.warnings.append(
                f"{path}: {printable(double)}. The engine uses the last value; a file that is written here has that "
                "one alone"
            )
        wanted = outcome.after = merge(found, request.config)
        swarm = swarm_problems(wanted) if request.swarm else []
        if same(found, wanted) and (content is not None or not wanted):
            self._refuse(check(request.config, wanted, None) + swarm)
            return
        engine = self._gather()
        outcome.engine_version = engine.version
        version = parse_version(engine.version)
        if request.swarm or _in_swarm(engine.info):
            swarm = swarm_problems(wanted, version)
        together = conflicts(engine.unit, wanted) + overlap_problems(found, wanted)
        self._refuse(check(request.config, wanted, version) + swarm + together)
        elsewhere = other_file(engine.unit, path)
        if elsewhere:
            raise DaemonConfigError(f"Nothing was written: {elsewhere}")
        unknown = unknown_keys({key: wanted[key] for key in wanted if key not in request.config}, version)
        if unknown:
            outcome.warnings.append(
                f"{path} holds keys that were there before and that the engine may refuse:"
                f" {', '.join(map(printable, unknown))}"
            )
        how = self._way(engine, found, wanted)
        self._apply(engine, how, content, render(wanted, text))

    # What is there

    def _gather(self) -> Engine:
        service = self.request.service
        managed, unit, active = False, Unit(), ""
        if self.host.systemd():
            names = ("LoadState", "ActiveState", "SubState")
            answer = self.host.run(["systemctl", "show", f"--property={','.join(names)}", service], QUERY_TIMEOUT)
            if answer.rc:
                raise DaemonConfigError(f"Nothing was written: systemctl show {service} failed: {answer.text}")
            state = parse_properties(answer.stdout)
            managed = state.get("LoadState") == "loaded"
            if managed:
                unit = parse_unit(self.host.run(["systemctl", "cat", service], QUERY_TIMEOUT).stdout, self.host.text)
                # After a start that failed, systemd waits in this state before it tries again.
                waiting = state.get("SubState") == "auto-restart"
                active = "" if waiting else state.get("ActiveState", "")
        if managed and active not in ("active", "reloading", "activating", "deactivating"):
            # Not asked: a question to the socket of a stopped engine starts it.
            return Engine(managed=True, unit=unit, version=self._installed_version())
        try:
            info = self.host.ask("/info", QUERY_TIMEOUT)
        except EngineError as error:
            if managed and self.request.restart == "if_idle":
                raise DaemonConfigError(
                    f"Nothing was written: {service} runs, but its engine does not answer ({error}), so which"
                    f" containers run cannot be queried. Check: journalctl -u {service}; or allow a restart "
                    "nevertheless with restart: always"
                ) from None
            return Engine(running=managed, managed=managed, unit=unit, version=self._installed_version())
        info = info if isinstance(info, dict) else {}
        version = info.get("ServerVersion")
        return Engine(True, managed, unit, info, str(version) if version else None)

    def _installed_version(self) -> str | None:
        program = self.host.program("dockerd")
        if program is None:
            return None
        answer = self.host.run([program, "--version"], QUERY_TIMEOUT)
        words = answer.stdout.split("version ", 1)
        return words[1].split(",")[0].strip() if answer.rc == 0 and len(words) == 2 else None

    # What to do

    def _way(self, engine: Engine, before: dict[str, Any], after: dict[str, Any]) -> str:
        """``reload``, ``restart``, or nothing; raises where it needs consent that is not given."""
        request = self.request
        self.outcome.changed_keys = list(map(printable, changed_keys(before, after)))
        if not engine.running:
            return ""  # it reads the file when it starts
        keys = needs_restart(before, after)
        if request.restart == "never":
            self.outcome.restart_needed = True
            return ""
        if not engine.managed:
            raise DaemonConfigError(
                f"Nothing was written: an engine runs on this host, but systemd has no {request.service} that could "
                "be restarted. Name its unit with service, or set restart: never to write the file alone and restart"
                " the engine yourself"
            )
        if not keys and engine.unit.can_reload and engine.info is not None:
            return "reload"
        names = self._containers() if request.restart == "if_idle" else []
        if names:
            more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
            why = ", ".join(keys) or ", ".join(self.outcome.changed_keys)
            raise DaemonConfigError(
                f"Nothing was written: the engine reads {why} only when it starts, and a restart stops these running"
                f" containers: {', '.join(names[:MAX_NAMES])}{more}. Stop them first, or allow the restart with"
                " restart: always"
            )
        return "restart"

    def _containers(self) -> list[str]:
        try:
            running = self.host.ask("/containers/json", QUERY_TIMEOUT)
        except EngineError as error:
            raise DaemonConfigError(f"Nothing was written: which containers run cannot be queried: {error}") from None
        names = [item.get("Names") or [item.get("Id", "?")[:12]] for item in running or []]
        return sorted(name[0].lstrip("/") for name in names)

    def _validate(self, engine: Engine, candidate: str) -> None:
        """Have the engine's program judge the whole file, where it can (23.0 and later)."""
        program = engine.unit.program if program_name(engine.unit) == "dockerd" else self.host.program("dockerd")
        if not self.request.validate or not program:
            return
        answer = self.host.run([program, "--validate", "--config-file", candidate], QUERY_TIMEOUT)
        if answer.rc and "unknown flag: --validate" in answer.text:
            return
        if answer.rc:
            words = engine_words(answer.text).replace(candidate, self.file.path)
            raise DaemonConfigError(f"Nothing was written: the engine refuses the new {self.file.path}: {words}")
        self.outcome.validated = True

    # Doing it

    def _apply(self, engine: Engine, how: str, content: bytes | None, new: bytes) -> None:
        request, outcome, file = self.request, self.outcome, self.file
        mode = PRIVATE if secrets(outcome.after) else PUBLIC
        candidate = file.stage(new, request.folder if request.check_mode else None, mode)
        kept = None
        try:
            self._validate(engine, candidate)
            if request.check_mode:
                outcome.changed, outcome.reloaded, outcome.restarted = True, how == "reload", how == "restart"
                return
            with unbroken():
                kept = file.keep()
                if request.backup is not None and content is not None:
                    outcome.backup_file = request.backup()
                file.commit(candidate, content)
                outcome.changed = True
                if how:
                    self._take_over(how, kept, new)
        finally:
            file.discard(candidate)
            if kept is not None:
                file.discard(kept)

    def _take_over(self, how: str, kept: str | None, new: bytes) -> None:
        """Have the engine use the new file, or put the former one back and raise."""
        since = self.host.now()
        try:
            self._systemctl(how)
            if how == "reload":
                self._wait_reloaded(since)
            self._wait_answer()
        except _FailedError as failure:
            journal = ["journalctl", f"--unit={self.request.service}", f"--since=@{int(since)}"]
            shown = self.host.run([*journal, "--lines=100", "--no-pager", "--output=cat"], QUERY_TIMEOUT)
            words = engine_words(shown.stdout)
            raise DaemonConfigError(
                f"The engine did not apply the new {self.file.path}: {failure}."
                + (f" It reported: {words}." if words else "")
                + f" {self._roll_back(how, kept, new)}"
            ) from None
        self.outcome.reloaded, self.outcome.restarted = how == "reload", how == "restart"

    def _roll_back(self, how: str, kept: str | None, new: bytes) -> str:
        """Put the former file back and have the engine use it; returns in words how that went."""
        path, service = self.file.path, self.request.service
        try:
            if kept is None:
                self.file.remove(new)
            else:
                self.file.commit(kept, new)
        except ForeignEditError:
            return f"{path} was changed by another program since, so the previous one was not restored. Fix it by hand"
        except TextFileError as error:
            return f"The previous one could not be restored: {error}. Fix it by hand"
        self.outcome.changed, self.outcome.rolled_back = False, True
        try:
            if how == "restart":
                # Else systemd counts the starts that failed, and soon refuses any.
                self.host.run(["systemctl", "reset-failed", service], QUERY_TIMEOUT)
            self._systemctl(how)
            self._wait_answer()
        except _FailedError as failure:
            return (
                f"The previous one was restored, but the engine also fails with it: {failure}."
                f" Check: journalctl -u {service}"
            )
        return "The previous configuration is in force again"

    def _systemctl(self, how: str) -> None:
        answer = self.host.run(["systemctl", how, self.request.service], self.request.timeout)
        if answer.rc:
            lines = answer.text.splitlines() or [f"status {answer.rc}"]
            raise _FailedError(f"systemctl {how} {self.request.service} failed: {lines[0].rstrip('.')}")

    def _wait_reloaded(self, since: float) -> None:
        """An engine that refuses a file at SIGHUP only logs it; one that took it over sends an event."""
        filters = urllib.parse.quote(json.dumps({"type": ["daemon"], "event": ["reload"]}))
        until = self.host.monotonic() + min(RELOAD, self.request.timeout)
        while True:
            try:
                now = self.host.now()
                if (
                    self.host.ask(f"/events?since={since:.9f}&until={now:.9f}&filters={filters}", QUERY_TIMEOUT)
                    is not None
                ):
                    return
            except EngineError as error:
                # The events come one a line, so of two or more the answer as a whole is not JSON.
                if isinstance(error.__cause__, json.JSONDecodeError):
                    return
            if self.host.monotonic() >= until:
                raise _FailedError("it was asked to reload it and did not")
            self.host.sleep(POLL)

    def _wait_answer(self) -> None:
        until = self.host.monotonic() + self.request.timeout
        while True:
            left = until - self.host.monotonic()
            try:
                self.host.ask("/info", max(1.0, min(QUERY_TIMEOUT, left)))
                return
            except EngineError as error:
                if left <= 0:
                    raise _FailedError(f"it does not answer within {self.request.timeout:g} seconds: {error}") from None
            self.host.sleep(POLL)

    def _refuse(self, problems: list[Problem]) -> None:
        if problems:
            raise DaemonConfigError(summary(f"{self.file.path} was left as it is", problems))


def shown_diff(path: str, outcome: Outcome) -> dict[str, str]:
    """Ansible's diff of the file, secrets masked."""
    before, after = (render(mask(config)).decode() if config else "" for config in (outcome.before, outcome.after))
    header = f"{path} (a masked value differs)" if before == after and outcome.changed else path
    return {"before_header": path, "after_header": header, "before": before, "after": after}


def _in_swarm(info: dict[str, Any] | None) -> bool:
    swarm = (info or {}).get("Swarm")
    return isinstance(swarm, dict) and swarm.get("LocalNodeState") in ("active", "pending", "locked", "error")
