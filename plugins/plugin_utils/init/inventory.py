# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The inventory hosts.yml: written, read, and given more servers without changing what else is in it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill, indent

import yaml

from .controller import MARK
from .decisions import Choice
from .servers import KNOWN_HOSTS, Server, ansible_ssh_args

INVENTORY_DIR = "{{ inventory_dir }}"


@dataclass(frozen=True)
class Entry:
    """A host of the inventory: its variables, and what is remarkable about it."""

    name: str
    variables: Mapping[str, object]
    remark: str = ""


def entry(server: Server, name: str, remark: str, key: str = "", more: Mapping[str, object] | None = None) -> Entry:
    """Return a server's entry. ``key`` is the file of the private key; ``more`` are variables for all servers."""
    ways = {
        "ansible_host": server.address,
        "ansible_port": server.port,
        "ansible_user": server.user,
        "ansible_ssh_private_key_file": key,
        "ansible_ssh_common_args": ansible_ssh_args(server, f"{INVENTORY_DIR}/{KNOWN_HOSTS}", key),
        **(more or {}),
    }
    return Entry(name, {variable: value for variable, value in ways.items() if value}, remark)


def scalar(value: object) -> str:
    """Return a value as YAML: plain where that reads as the same text, else quoted."""
    text = str(value)
    if isinstance(value, str):
        plain = re.fullmatch(r"[A-Za-z0-9/~][\w./~@-]*", text) is not None
        return text if plain and yaml.safe_load(text) == text else json.dumps(text, ensure_ascii=False)
    return text


def comment(text: str) -> str:
    """Return a text as lines of a comment."""
    words = " ".join(text.split())
    return (
        fill(words, 110, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False)
        + "\n"
    )


def _block(entries: Sequence[Entry], shared: Mapping[str, object]) -> str:
    """Return the hosts as lines from the first column on, without the variables that all share."""
    lines = []
    for one in entries:
        own = {name: value for name, value in one.variables.items() if name == "ansible_host" or name not in shared}
        lines.append(f"{one.name}:" + (f" # {one.remark}" if one.remark else ""))
        lines += [f"  {name}: {scalar(value)}" for name, value in own.items()]
    return "\n".join(lines) + "\n"


def render(entries: Sequence[Entry], managers: Choice, release: str) -> str:
    """Return a new hosts.yml."""
    count = int(managers.value)
    first = entries[0].variables
    # What one host has of its own stays with the hosts.
    shared = {name: value for name, value in first.items() if all(one.variables.get(name) == value for one in entries)}
    if len(entries) == 1:
        shared.pop("ansible_port", None)
    shared.pop("ansible_host", None)
    words = "One manager" if count == 1 else f"{count} managers"
    text = (
        f"# {MARK} {release}; from now on it is yours: init run again adds servers, and changes nothing else.\n"
        "---\n"
        "cluster:\n"
        "  children:\n"
        + indent(comment(f"{words}: {managers.reason}. Rank 0 runs on the first."), "    ")
        + "    # The names are those in the hostfile, in logs and in messages.\n"
        + "    managers:\n      hosts:\n"
        + indent(_block(entries[:count], shared), " " * 8)
    )
    workers = entries[count:]
    text += "    workers:\n      hosts:" + ("\n" + indent(_block(workers, shared), " " * 8) if workers else " {}\n")
    if shared:
        text += "  vars:\n" + "".join(f"    {name}: {scalar(value)}\n" for name, value in shared.items())
    return text


class InventoryError(ValueError):
    """hosts.yml cannot be read; the text says where."""


def _compose(text: str) -> yaml.nodes.Node | None:
    try:
        node: yaml.nodes.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise InventoryError(f"{where}{getattr(error, 'problem', None) or 'is not YAML'}") from None
    return node


def _children(node: yaml.nodes.Node | None) -> dict[str, yaml.nodes.Node]:
    if not isinstance(node, yaml.nodes.MappingNode):
        return {}
    return {str(key.value): value for key, value in node.value}


def _groups(node: yaml.nodes.Node | None) -> Iterator[tuple[str, yaml.nodes.Node]]:
    for name, group in _children(node).items():
        yield name, group
        yield from _groups(_children(group).get("children"))


def _scalars(node: yaml.nodes.Node | None) -> dict[str, str]:
    return {name: child.value for name, child in _children(node).items() if isinstance(child, yaml.nodes.ScalarNode)}


def hosts(text: str) -> dict[str, dict[str, str]]:
    """Return the hosts of an inventory with those variables of theirs that are texts or numbers."""
    found: dict[str, dict[str, str]] = {}
    for dummy, group in _groups(_compose(text)):
        for name, host in _children(_children(group).get("hosts")).items():
            found.setdefault(name, {}).update(_scalars(host))
    return found


def shared_variables(text: str) -> dict[str, str]:
    """Return the variables of the group cluster that are texts or numbers."""
    return next(
        (_scalars(_children(group).get("vars")) for name, group in _groups(_compose(text)) if name == "cluster"), {}
    )


def added(text: str, entries: Sequence[Entry]) -> tuple[str, str]:
    """Return the inventory with these hosts among the workers, and the lines that a user has to add otherwise.

    Where the group workers is written in a way that is not understood, nothing is added.
    """
    shared = shared_variables(text)
    block = _block(
        [
            Entry(
                one.name,
                {k: v for k, v in one.variables.items() if k == "ansible_host" or shared.get(k) != str(v)},
                one.remark,
            )
            for one in entries
        ],
        {},
    )
    group = next((node for name, node in _groups(_compose(text)) if name == "workers"), None)
    place = _children(group).get("hosts")
    if place is None:
        return text, block
    lines = text.splitlines(keepends=True)
    if isinstance(place, yaml.nodes.MappingNode) and place.value and not place.flow_style:
        column = place.value[0][0].start_mark.column
        last = max(node.end_mark.line for node in _leaves(place))
        if not lines[last].endswith("\n"):
            lines[last] += "\n"
        lines.insert(last + 1, indent(block, " " * column))
    elif not place.value and place.start_mark.line == place.end_mark.line:
        line, start, end = place.start_mark.line, place.start_mark.column, place.end_mark.column
        column = len(lines[line]) - len(lines[line].lstrip(" ")) + 2
        before, after = lines[line][:start].rstrip(), lines[line][end:].strip()
        lines[line] = f"{before}{' ' + after if after else ''}\n" + indent(block, " " * column)
    else:
        return text, block
    whole = "".join(lines)
    try:
        there = hosts(whole)
    except InventoryError:
        return text, block
    kept = {**hosts(text), **{one.name: there.get(one.name, {}) for one in entries}}
    return (whole, "") if there == kept and all(there[one.name] for one in entries) else (text, block)


def _leaves(node: yaml.nodes.Node) -> Iterator[yaml.nodes.Node]:
    children = [part for pair in node.value for part in pair] if isinstance(node, yaml.nodes.MappingNode) else []
    children = list(node.value) if isinstance(node, yaml.nodes.SequenceNode) else children
    if not children or getattr(node, "flow_style", False):
        yield node
    for child in children:
        yield from _leaves(child)
