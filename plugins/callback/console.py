# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Shows a run as people read it. Glue: ``plugin_utils/console`` makes the lines, Ansible's own callback the log."""

from __future__ import annotations

DOCUMENTATION = """
name: console
type: stdout
short_description: Show a run in few lines
version_added: 0.1.0
description:
  - Shows a line with a tick for each role, what changed and on which hosts, what is being waited for, and each error
    once. Hosts that say the same share a line.
  - With C(-v), and in plays with another strategy than V(linear), it prints what P(ansible.builtin.default#callback)
    prints. The file of C(log_path) always gets that, so nothing is lost that is not on the screen.
  - Before the first play it parses the YAML files of the inventory. A file with a syntax error ends the run with one
    sentence that names file and line.
  - Results with C(no_log) are not shown, and control characters that a node sends are spelt out.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
requirements:
  - Set as C(stdout_callback) in ansible.cfg.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import Any

from ansible import constants as C
from ansible import context
from ansible.playbook.block import Block
from ansible.plugins.callback.default import CallbackModule as Default
from ansible.utils.display import Display

from ..module_utils.common.reported import visible
from ..plugin_utils.connection.messages import lost
from ..plugin_utils.console.events import Diff, End, Event, Message, Outcome, Play, Result, Retry, Started, Task, Tick
from ..plugin_utils.console.files_io import SYNTAX_ERROR, inventory_problems
from ..plugin_utils.console.results import as_text, diff_for_people, failure
from ..plugin_utils.console.screen import ASCII, SIGNS, Line, Screen

LINEAR = ("linear", "ansible.builtin.linear", "ansible.legacy.linear")
COLOURS = {"ok": "COLOR_OK", "changed": "COLOR_CHANGED", "failed": "COLOR_ERROR", "note": "COLOR_WARN"}
OURS = "swarmspeed.cluster."


display = Display()


class LogOnly:
    """In place of Ansible's display: what the default callback prints goes to the log file. Warnings go everywhere."""

    def __init__(self, display: Any) -> None:
        self._to = display

    def __getattr__(self, name: str) -> Any:
        return getattr(self._to, name)

    def display(self, msg: str, color: str | None = None, caplevel: int | None = None, **where: Any) -> None:
        if not where.get("screen_only"):
            self._to.display(msg, color=color, log_only=True, caplevel=caplevel)

    def banner(self, *args: Any, **kwargs: Any) -> None:
        type(self._to).banner(self, *args, **kwargs)

    def _error(self, *args: Any, **kwargs: Any) -> None:
        type(self._to)._error(self, *args, **kwargs)


class CallbackModule(Default):  # type: ignore[misc]  # ansible-core has no types
    """Ansible calls it from two threads, and a third lets time pass."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "swarmspeed.cluster.console"

    def __init__(self) -> None:
        super().__init__()
        self._real: Any = display
        self._log = LogOnly(display)
        self._lock = threading.RLock()
        self._as_default = bool(self._real.verbosity)
        terminal = sys.stdout.isatty()
        utf8 = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "") == "utf8"
        width = shutil.get_terminal_size().columns if terminal else 0
        self._screen = Screen(width, SIGNS if utf8 else ASCII)
        self._item_errors: dict[str, list[str]] = {}
        self._ended = threading.Event()

    # What Ansible calls

    def v2_playbook_on_start(self, playbook: Any) -> None:
        problems = inventory_problems(context.CLIARGS.get("inventory") or ())
        for problem in problems:
            self._real.error(problem, wrap_text=False)
        if problems:
            raise SystemExit(SYNTAX_ERROR)
        self._default("v2_playbook_on_start", playbook)
        threading.Thread(target=self._let_time_pass, daemon=True).start()

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._feed(Play(""))  # ends the one before, which was perhaps shown in the other way
        self._as_default = bool(self._real.verbosity) or play.strategy not in LINEAR
        self._default("v2_playbook_on_play_start", play)
        self._feed(Play(visible(play.get_name().strip()), _hosts(play), tuple(_roles(play))))

    def v2_playbook_on_no_hosts_matched(self) -> None:
        self._default("v2_playbook_on_no_hosts_matched")
        self._show([Line("No host matches.", "note")])

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        self._default("v2_playbook_on_no_hosts_remaining")

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self._default("v2_playbook_on_task_start", task, is_conditional)
        self._begin(task)

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        self._default("v2_playbook_on_handler_task_start", task)
        self._begin(task)

    def v2_playbook_on_include(self, included_file: Any) -> None:
        self._default("v2_playbook_on_include", included_file)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        self._default("v2_runner_on_start", host, task)
        self._feed(Started(host.get_name()))

    def v2_runner_on_ok(self, result: Any) -> None:
        host, changed = result.host.get_name(), result.result.get("changed", False)
        events: list[Event] = [Result(host, Outcome.CHANGED if changed else Outcome.OK)]
        if not (result.task.loop and "results" in result.result):
            events = [*self._messages_of(result), *events]
        self._default("v2_runner_on_ok", result)
        self._feed(*events)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        events = self._messages_of(result)
        self._default("v2_runner_item_on_ok", result)
        self._feed(*events)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        host, task = result.host.get_name(), result.task
        outcome = Outcome.IGNORED if ignore_errors else Outcome.RESCUED if _rescued(task) else Outcome.FAILED
        items = self._item_errors.pop(host, [])
        text = "\n".join(items) if items else self._why(result)
        self._default("v2_runner_on_failed", result, ignore_errors)
        self._feed(Result(host, outcome, text))

    def v2_runner_item_on_failed(self, result: Any) -> None:
        host = result.host.get_name()
        text = self._why(result)
        label = visible(str(self._get_item_label(result.result)))
        self._item_errors.setdefault(host, []).append(f"{label}: {text}")
        self._default("v2_runner_item_on_failed", result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._default("v2_runner_on_skipped", result)
        self._feed(Result(result.host.get_name(), Outcome.SKIPPED))

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        self._default("v2_runner_item_on_skipped", result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        host, task = result.host.get_name(), result.task
        text = visible(lost(host, task.get_name(), str(result.result.get("msg", ""))))
        self._hide(result)
        self._default("v2_runner_on_unreachable", result)
        # A playbook that goes on reports the host itself.
        self._feed(Result(host, Outcome.SKIPPED if task.ignore_unreachable else Outcome.UNREACHABLE, text))

    def v2_runner_retry(self, result: Any) -> None:
        found = result.result
        self._default("v2_runner_retry", result)
        self._feed(Retry(result.host.get_name(), int(found.get("attempts", 0)), int(found.get("retries", 0))))

    def v2_runner_on_async_poll(self, result: Any) -> None:
        self._default("v2_runner_on_async_poll", result)

    def v2_runner_on_async_ok(self, result: Any) -> None:
        self._default("v2_runner_on_async_ok", result)

    def v2_runner_on_async_failed(self, result: Any) -> None:
        self._default("v2_runner_on_async_failed", result)

    def v2_on_file_diff(self, result: Any) -> None:
        found = result.result
        each = found["results"] if result.task.loop and "results" in found else [found]
        texts = [
            self._get_diff(diff_for_people(one["diff"]))
            for one in each
            if one.get("diff") and one.get("changed", False)
        ]
        self._default("v2_on_file_diff", result)
        if any(texts):
            self._feed(Diff(result.host.get_name(), "".join(texts)))

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._ended.set()
        hosts = tuple(sorted(stats.processed))
        end = End(
            hosts,
            stats.failures,
            stats.dark,
            bool(context.CLIARGS.get("check")),
            f"All output: {C.DEFAULT_LOG_PATH}" if C.DEFAULT_LOG_PATH else "All output: run it with -v.",
        )
        self._feed(Play(""))
        self._as_default = bool(self._real.verbosity)
        self._default("v2_playbook_on_stats", stats)
        self._feed(end)

    # How it is shown

    def _default(self, method: str, *args: Any) -> None:
        """Have Ansible's own callback print to the log, or also to the screen where it is to do so."""
        self._display = self._real if self._as_default else self._log
        try:
            getattr(super(), method)(*args)
        finally:
            self._display = self._real

    def _feed(self, *events: Event) -> None:
        with self._lock:
            self._show([line for event in events for line in self._screen.feed(event, time.monotonic())])

    def _show(self, lines: list[Line]) -> None:
        if not self._as_default:
            for line in lines:
                colour = getattr(C, COLOURS[line.style]) if line.style in COLOURS else None
                self._real.display(line.text, color=colour, screen_only=True)
            sys.stdout.flush()

    def _begin(self, task: Any) -> None:
        self._item_errors.clear()
        role = _role(task)
        name = visible(task.get_name().strip()).removeprefix(f"{OURS}{role} : ").removeprefix(f"{role} : ")
        once = task.run_once is True
        self._feed(Task(name, role, once, prompts=task.action in ("pause", "ansible.builtin.pause")))

    @staticmethod
    def _hide(result: Any) -> None:
        """With no_log, hide the error, too: ansible-core leaves its text to callbacks."""
        if "censored" in result.result:
            result.result.pop("exception", None)

    def _why(self, result: Any) -> str:
        text = failure(result.host.get_name(), result.task.get_name(), result.result)
        self._hide(result)
        place = _template_place(result) if "censored" not in result.result else ""
        return f"{text}\nat {place}" if place else text

    def _messages_of(self, result: Any) -> list[Event]:
        """What ``debug`` shows."""
        found = dict(result.result)
        if result.task.action not in C._ACTION_DEBUG or "censored" in found or not self._run_is_verbose(result):
            return []
        message = found.get("msg")
        lines = isinstance(message, list) and all(isinstance(part, str) for part in message)
        if isinstance(message, str) or lines:
            text = as_text(message)
        else:
            self._clean_results(found, result.task.action)
            text = textwrap.dedent(self._dump_results(found)).strip()
        return [Message(result.host.get_name(), visible(text))]

    def _let_time_pass(self) -> None:
        while not self._ended.wait(1.0):
            self._feed(Tick())


def _template_place(result: Any) -> str:
    """Return file, line and column of the value that an error is about, where that is not the task as a whole."""
    event: Any = getattr(result.exception, "event", None)
    while getattr(event, "chain", None) is not None:
        event = event.chain.event
    context = str(getattr(event, "formatted_source_context", None) or "")
    origin = context.partition("\n")[0].removeprefix("Origin: ")
    return "" if origin.startswith("<") or origin.rpartition(":")[0] == str(result.task.get_path()) else visible(origin)


def _role(task: Any) -> str:
    """Return the outermost role that a task belongs to, one of this collection by its short name."""
    name, part = "", task
    while part is not None:
        role = getattr(part, "_role", None)
        name = role.get_name() if role is not None else name
        part = getattr(part, "_parent", None)
    return str(name).removeprefix(OURS)


def _rescued(task: Any) -> bool:
    """Whether a task is in a block that has a rescue, and not in the rescue itself."""
    part, parent = task, task._parent
    while parent is not None:
        if isinstance(parent, Block) and parent.rescue and any(part._uuid == one._uuid for one in parent.block):
            return True
        part, parent = parent, parent._parent
    return False


def _tasks(block: Any) -> Iterator[Any]:
    for part in [*block.block, *block.rescue, *block.always]:
        yield from _tasks(part) if isinstance(part, Block) else [part]


def _roles(play: Any) -> list[str]:
    """Return the roles of a play in order, of which the tags select something."""
    only, skip = context.CLIARGS.get("tags") or ["all"], context.CLIARGS.get("skip_tags") or []
    found: dict[str, None] = {}
    for block in play.compile():
        for task in _tasks(block):
            role = _role(task)
            if role and role not in found and not task.implicit and task.evaluate_tags(only, skip, {}):
                found[role] = None
    return list(found)


def _hosts(play: Any) -> tuple[str, ...]:
    """Return the hosts of a play, of one batch where it has ``serial``."""
    manager = play.get_variable_manager()
    inventory = getattr(manager, "_inventory", None)
    return tuple(host.get_name() for host in inventory.get_hosts(play.hosts, order=play.order)) if inventory else ()
