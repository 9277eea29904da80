# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the result of a task says about its host: lost, hanging, or cut off in the middle; and one sentence for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

DENIED = re.compile(r"Permission denied|Host key verification|IDENTIFICATION HAS CHANGED|Too many authentication")
LOST = "check that the host is up and answers ssh, then run the playbook again: it resumes from what is there. "
TRACEBACK = "Traceback (most recent call last)"
WITHOUT = "To go on without the host, take it out of the inventory"
HANGS = (
    "look on the host for what hangs (systemctl status docker; apt or dpkg; a network file system: "
    "ps -eo pid,stat,args | grep ' D'), end it, and run the playbook again"
)
_PROMPT = re.compile(r"waiting for privilege escalation prompt")
PASSWORD = (
    "check that sudo accepts the password there (ansible_become_password); where sudo is sudo-rs, as on Ubuntu 26.04, "
    "ansible-core up to 2.21.3 does not recognise its prompt (ansible/ansible#87423): set ansible_become_exe: sudo.ws"
)
_COMPLAINT = re.compile(r"not found|No such file|denied|password is required|[Ee]rror")
# What Ansible put in the host's /tmp for the module was removed while it ran; seen while systemd shut a host down.
_REMOVED = re.compile(r"No such file or directory: '[^']*/ansible_[^']*_payload")
_NOISE = re.compile(r"^(Shared connection to .* closed\.|Connection to .* closed\.|mux_client_.*|Warning: .*|\**)\s*$")


def reason(message: str) -> str:
    """Return ssh's last message, in one line, without Ansible's words around it and what it says of its own sharing."""
    if TRACEBACK in message:  # of a module, the last that came before ssh ended
        return "its connection was closed while a module ran there"
    text = re.sub(r"^(Task failed:|Data could not be sent to remote host \S+\.)\s*", "", message.strip())
    text = re.sub(r"^.*?via ssh:\s*", "", text, count=1, flags=re.DOTALL)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    lines = [line for line in lines if line and not _NOISE.match(line)]
    return lines[-1].rstrip(".")[:300] if lines else "its connection was closed"


def waits_for_sudo(message: str) -> bool:
    """Return whether ssh works and sudo on the host never asked for the password as Ansible expects it."""
    return _PROMPT.search(message) is not None


def lost(node: str, task: str, message: str) -> str:
    """A host that ssh could not reach, or no longer could."""
    why = reason(message)
    if DENIED.search(message):
        return (
            f'{node}: refused the connection during {task!r} ({why}). Remedy: make "ansible {node} -m ping" succeed: '
            "ansible_user, key, known_hosts."
        )
    if waits_for_sudo(message):
        return f"{node}: sudo gave no prompt that Ansible knows during {task!r} ({why}). Remedy: {PASSWORD}."
    return f"{node}: stopped responding during {task!r} ({why}). Remedy: {LOST}{WITHOUT}."


def hung(node: str, task: str, seconds: Any) -> str:
    """A host that accepts connections and does not finish."""
    return f"{node}: {task!r} did not finish within {seconds} s, although the host is reachable. Remedy: {HANGS}."


def cut(node: str, what: str, result: Mapping[str, Any]) -> str:
    """A module that ended without a result."""
    status = result.get("rc")
    ended = f" (exit status {status})" if status is not None else ""
    begin = f"{node}: {what} was cut off before it returned a result{ended}"
    if _REMOVED.search(str(result.get("module_stderr", ""))):
        why = "its files were removed from the host's /tmp, as when the host shuts down"
        return f"{begin}: {why}. Remedy: {LOST}If the host is up, find out what clears /tmp."
    return (
        f"{begin}: its connection was lost, or the process was killed there. Remedy: {LOST}If the host is up, "
        '"journalctl -k" there names what the kernel has killed.'
    )


def was_cut(result: Mapping[str, Any]) -> bool:
    """Whether a module ended without any result: nothing of its own is on standard output, and no error of Python's."""
    if not result.get("failed") or "module_stdout" not in result:
        return False
    printed = [line for line in str(result["module_stdout"]).splitlines() if not _NOISE.match(line.strip())]
    errors = str(result.get("module_stderr", ""))
    if _REMOVED.search(errors):
        return not printed
    return not printed and not re.search(r"Traceback|not found|No such file|sudo:|[Pp]assword", errors)


def complaint(result: Mapping[str, Any]) -> str:
    """Return the line that says why a module's process has no result: of a shell, of sudo; not of Python."""
    text = f"{result.get('module_stdout', '')}\n{result.get('module_stderr', '')}"
    lines = [" ".join(line.split()) for line in text.splitlines() if not _NOISE.match(line.strip())]
    lines = [line for line in lines if line]
    if not lines or "Traceback" in text:
        return ""
    # A shim of Python, for one, goes on with advice.
    return next(filter(_COMPLAINT.search, lines), lines[-1]).rstrip(".")[:300]


def explained(node: str, what: str, result: Mapping[str, Any]) -> str:
    """Return the sentence for a result that is none; empty where there is one, or Python's own error says enough."""
    if was_cut(result):
        return cut(node, what, result)
    words = complaint(result) if result.get("failed") and "module_stdout" in result else ""
    return words and (
        f"{node}: {what} could not run (exit status {result.get('rc')}): {words}. Remedy: make "
        f'"ansible {node} --become -m ping" succeed: python3 there, sudo and its password.'
    )


def sentence(node: str, task: str, result: Mapping[str, Any], unreachable: bool) -> str:
    """The sentence for a result that ended its host's part in a playbook; empty where it says enough itself."""
    message = str(result.get("msg", ""))
    if unreachable:
        return lost(node, task, message)
    if isinstance(result.get("timedout"), Mapping):
        return hung(node, task, result["timedout"].get("period"))
    if was_cut(result) and "was cut off before" not in message:
        return cut(node, repr(task), result)
    return ""
