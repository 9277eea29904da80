# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a variable may be, as ``roles/<role>/meta/constraints.yml`` says beside its argument spec. Pure.

A constraint is the name of a kind, or a mapping with ``kind`` (one or several) and, as needed:

``min``, ``max``, ``unit``, ``except``     the range of a number, what it counts, and numbers that are not taken
``prefix``                                the longest prefix of a network
``or``, ``empty``                         words, or the empty text, that are taken beside the kind
``pattern``, ``what``, ``example``        of the kind ``pattern``: the expression, and what it stands for
``names``, ``values``, ``keys``           of a mapping: constraints of its keys, of its values, and by key
``needs``, ``one_of``                     of a mapping: keys that must be there, and keys of which exactly one must be
``distinct``, ``some``                    of a list: items are not repeated, and there is one at least
``differs_from``                          another variable of the host, which must have another value
``shell``                                 of a list: a text is split into words as a shell does, not at commas
``secret``                                the value is never shown
``free_text``                             instead of all: why any value is taken here, or what reads it

It holds for each item of a list. Types and choices are those of the argument spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ...module_utils.common.reported import shown
from ...module_utils.common.secret_names import is_secret_name, mask_text
from .kinds import KINDS, Kind
from .role_specs import type_of
from .shell_words import WordsError, words_of

_KNOWN = frozenset(
    {
        *("kind", "min", "max", "unit", "except", "prefix", "or", "empty", "pattern", "what", "example"),
        *("names", "values", "keys", "needs", "one_of", "distinct", "some", "differs_from"),
        *("shell", "secret", "free_text"),
    }
)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Place = tuple[Any, ...]
"""Keys and numbers of items, which lead to a part of a value."""


class ConstraintError(Exception):
    """A constraints.yml is not what this module reads; the text names the variable."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a value: ``text`` and ``remedy`` are clauses without a full stop, ``place`` leads into it."""

    text: str
    remedy: str
    place: Place = ()

    @property
    def suffix(self) -> str:
        """Return the place as people write it: ``[2].name``."""
        return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.place)


@dataclass(frozen=True)
class Rule:
    """One constraint, read."""

    kinds: tuple[Kind, ...] = ()
    least: float | None = None
    most: float | None = None
    unit: str = ""
    barred: tuple[Any, ...] = ()
    prefix: int | None = None
    words: tuple[Any, ...] = ()
    empty: bool = False
    example: Any = None
    names: Rule | None = None
    values: Rule | None = None
    keys: Mapping[str, Rule] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    distinct: bool = False
    some: bool = False
    differs_from: tuple[str, ...] = ()
    shell: bool = False
    secret: bool = False
    free_text: str = ""

    @property
    def allowed(self) -> str:
        """Return what is allowed, to continue "is not …"."""
        parts = [kind.what for kind in self.kinds]
        if self.unit:
            parts[0] += f" of {self.unit}"
        if self.least is not None and self.most is not None:
            parts[0] += f" from {self.least} to {self.most}"
        elif self.least is not None:
            parts[0] += f" of at least {self.least}"
        elif self.most is not None:
            parts[0] += f" of at most {self.most}"
        if self.barred:
            parts[0] += f" other than {', '.join(map(str, self.barred))}"
        if self.prefix is not None:
            parts[0] += f", /{self.prefix} or larger"
        return " or ".join([*parts, *map(str, self.words)])

    def accepts(self, value: Any) -> bool:
        """Whether a value that is not a collection is allowed."""
        if value in self.words or (value == "" and self.empty):
            return True
        if not any(kind.accepts(value) for kind in self.kinds) or value in self.barred:
            return False
        if self.prefix is not None and int(str(value).partition("/")[2] or 0) > self.prefix:
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def remedy(self, value: Any) -> str:
        meant = next((kind.meant(value) for kind in self.kinds if isinstance(value, str) and kind.meant(value)), "")
        if meant and self.accepts(meant):
            return f"write {meant}"
        example = self.example if self.example is not None else self.kinds[0].example
        fits = self.accepts(example) and example != ""
        return f"write a value such as {example}" if fits else "correct it"


def read_rule(document: Any, name: str) -> Rule:
    """Return the rule that a constraint says. Raises ``ConstraintError``."""
    found: Any = {"kind": document} if isinstance(document, (str, list)) else document
    if not isinstance(found, Mapping) or set(found) - _KNOWN:
        raise ConstraintError(f"{name}: its constraint is neither a kind nor a mapping of known keys.")
    if found.get("free_text"):
        return Rule(free_text=str(found["free_text"]), secret=bool(found.get("secret")))
    given = found.get("kind", "mapping" if found.keys() & {"names", "values", "keys"} else None)
    named = given if isinstance(given, list) else [given]
    if not named or not all(kind in KINDS for kind in named):
        raise ConstraintError(f"{name}: {given!r} is not a kind.")
    kinds = [KINDS[kind] for kind in named]
    if named == ["pattern"]:
        kinds = [Kind(str(found["what"]), found.get("example", ""), pattern=str(found["pattern"]))]
    least, most = found.get("min"), found.get("max")
    if named == ["port"]:
        least, most = (1 if least is None else least), (65535 if most is None else most)
    return Rule(
        kinds=tuple(kinds),
        least=least,
        most=most,
        unit=str(found.get("unit", "")),
        barred=tuple(found.get("except", ())),
        prefix=found.get("prefix"),
        words=tuple(found.get("or", ())),
        empty=bool(found.get("empty")),
        example=found.get("example"),
        names=read_rule(found["names"], f"{name}.names") if "names" in found else None,
        values=read_rule(found["values"], f"{name}.values") if "values" in found else None,
        keys={str(key): read_rule(part, f"{name}.{key}") for key, part in (found.get("keys") or {}).items()},
        needs=tuple(found.get("needs", ())),
        one_of=tuple(found.get("one_of", ())),
        distinct=bool(found.get("distinct")),
        some=bool(found.get("some")),
        differs_from=tuple(found.get("differs_from", ())),
        shell=bool(found.get("shell")),
        secret=bool(found.get("secret")),
    )


def read_yaml(path: Path) -> Any:
    """Return a YAML file of this collection, with libyaml where it is there. It holds no tags of Ansible's."""
    with path.open("rb") as file:
        return yaml.load(file, Loader=_LOADER)


def read_constraints(documents: Mapping[str, Any]) -> dict[str, Rule]:
    """Return the rules by variable, of documents by role."""
    found: dict[str, Rule] = {}
    for role in sorted(documents):
        document = documents[role]
        if not isinstance(document, Mapping):
            raise ConstraintError(
                f"role {role}: meta/constraints.yml is not a mapping. Remedy: reinstall the collection."
            )
        found.update({str(name): read_rule(part, str(name)) for name, part in document.items()})
    return found


def converted(name: str, option: Mapping[str, Any], value: Any) -> tuple[Any, bool]:
    """Return the value as its argument spec converts it, and whether it has the type.

    A path stays as it is written: ``~`` would be the home of whoever runs the playbook, not of the host's account.
    """
    spec = type_of(option)
    if spec.get("type") == "path":
        spec["type"] = "str"
    result = ArgumentSpecValidator({name: spec}).validate({name: value})
    return result.validated_parameters.get(name), not result.error_messages


def judge(name: str, rule: Rule, option: Mapping[str, Any], value: Any) -> Fault | None:
    """Return the first thing that is wrong with a variable's value, or None; None too where its type is wrong."""
    if value is None or rule.free_text:
        return None
    try:
        typed, right = converted(name, option, words_of(value) if rule.shell else value)
    except WordsError:
        return None
    if not right:
        return None
    secret = bool(option.get("no_log")) or is_secret_name(name)
    if option.get("type") == "list":
        return next(_items(rule, typed, secret), None)
    return next(_faults(rule, typed, (), secret), None)


def _items(rule: Rule, items: Sequence[Any], secret: bool) -> Iterator[Fault]:
    if rule.some and not items:
        yield Fault("is empty", "name one at least, or remove it")
    for number, item in enumerate(items):
        yield from _faults(rule, item, (number,), secret)
        if rule.distinct and item in items[:number]:
            yield Fault(f"{_seen(rule, item, secret)} is listed twice", "remove one of them", (number,))


def _faults(rule: Rule, value: Any, place: Place, secret: bool) -> Iterator[Fault]:
    secret = secret or rule.secret
    if rule.free_text:
        return
    if isinstance(value, Mapping) and (rule.names or rule.values or rule.keys):
        yield from _of_mapping(rule, value, place, secret)
    elif rule.names or rule.values or rule.keys or not rule.accepts(value):
        yield Fault(f"{_seen(rule, value, secret)} is not {rule.allowed}", rule.remedy(value), place)


def _of_mapping(rule: Rule, value: Mapping[Any, Any], place: Place, secret: bool) -> Iterator[Fault]:
    for key in rule.needs:
        if not value.get(key):
            yield Fault(f"has no {key}", f"add {key}", place)
    there = [key for key in rule.one_of if value.get(key)]
    if rule.one_of and len(there) != 1:
        listed = ", ".join(rule.one_of)
        yield Fault(f"has {' and '.join(there) or 'none'} of {listed}", f"give exactly one of {listed}", place)
    for key, part in value.items():
        below = (*place, str(key))
        hidden = secret or is_secret_name(key)
        if rule.keys and key not in rule.keys and not rule.names:
            yield Fault(
                f"unknown key {shown(key)}; known keys are {', '.join(rule.keys)}", "correct or remove it", place
            )
        elif rule.names:
            for fault in _faults(rule.names, key, place, secret=False):
                yield Fault(fault.text, fault.remedy, place)
        inner = rule.keys.get(str(key)) or rule.values
        if inner is None or (part is None and inner is not rule.values):
            continue
        if inner is not rule.values and isinstance(part, (list, tuple)):  # its type is in no argument spec
            for number, item in enumerate(part):
                yield from _faults(inner, item, (*below, number), hidden)
        else:
            yield from _faults(inner, part, below, hidden)


def _seen(rule: Rule, value: Any, secret: bool) -> str:
    """Return a value for a message: not where it is a secret, or an address with a user and perhaps a password."""
    address = any(kind.address for kind in rule.kinds) and "@" in str(value)
    return "its value" if secret or address else mask_text(shown(value))


def check_relations(rules: Mapping[str, Rule], values: Mapping[str, Any]) -> Iterator[tuple[str, Fault]]:
    """Yield what is wrong among the variables of one host, by variable."""
    for name, rule in rules.items():
        for other in rule.differs_from:
            mine, theirs = values.get(name), values.get(other)
            if mine is not None and str(mine) == str(theirs):
                yield name, Fault(f"{shown(mine)} is also the value of {other}", "give one of them another value")
