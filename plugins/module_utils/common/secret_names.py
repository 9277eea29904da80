# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is secret: the one list of names, and the masks for texts that are shown.

Used on the controller, on nodes, and in containers by the supervisor of a job: standard library, Python 3.8 or
later. Every repetition in a pattern is bounded, as a text may come from a container that wants to keep us busy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Callable

from .secret_spellings import MOST_CHARACTERS, TooManySecretsError, hidden, search_for

Hide = Callable[[str], str]

MASK = "********"
NOT_SHOWN = "(not shown: the job's environment has more secrets than can be searched for)"
NAMED = "SWARMSPEED_SECRETS"
"""A variable of the environment that names others, separated by commas: what they hold is secret, whatever the name."""
MOST_VARIABLES = 4096
"""Variables of an environment that are read."""
SHORTEST = 6
"""Characters of a value from which it is masked wherever it stands: a shorter one would take ordinary words with it."""

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
"""Words of a name: apiKey, API_KEY, api-key and API2KEY are the same two."""

_SECRET = """
    token password passwd passphrase passcode pwd pass pat secret secrets key apikey apikeys privatekey secretkey
    accesskey authkey credential credentials creds auth bearer jwt cookie cookies dsn
"""
_SECRET_WORDS = frozenset(_SECRET.split())
_RUN_TOGETHER = re.compile(
    r".+(?:password|passwd|passphrase|secret|token|apikey|privatekey|secretkey|accesskey|authkey|credentials?)"
)
"""Words that are two without a separator, such as pgpassword; tokenizers is none."""
_PAIRS = frozenset(
    [("connection", "string"), ("connection", "str"), ("conn", "str"), ("conn", "string"), ("webhook", "url")]
)
_BEFORE_TOKEN = "pad eos bos unk cls sep mask eot bot image special layer next per stop first last max num"
_BEFORE_KEY = "public pub primary foreign sort partition experiment"
_BEFORE_PASS = "forward backward first second single multi one two"
_HARMLESS_BEFORE = {
    # Words of tokenizers and of training, not of access.
    "token": frozenset(_BEFORE_TOKEN.split()),
    "key": frozenset(_BEFORE_KEY.split()),
    "pass": frozenset(_BEFORE_PASS.split()),
    "pwd": frozenset(["old"]),
}
_LAST = "file files path paths dir folder sock socket length len size limit count type types"
_HARMLESS_LAST = frozenset(_LAST.split())
"""Names with such an end are about a secret, such as where it is kept: HF_TOKEN_PATH, SSH_AUTH_SOCK."""

_URL = re.compile(r"(?<=://)(?:[^\s/:@?#]{0,128}:(?!\d{1,5}(?:[/?#\s]|$))\S{1,512}(?=@)|[^\s/:@?#]{1,256}(?=@))")
"""User and password, up to the last @: a password that was not percent-encoded may hold '/' and '@' itself. Not the
port of http://localhost:8080/a@b."""
_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{30,128}|gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255}|glpat-[\w-]{20,128}"
    r"|sk-[A-Za-z0-9_-]{32,255}|xox[abprs]-[A-Za-z0-9-]{20,255}|AKIA[0-9A-Z]{16}|SWM(?:TKN|KEY)-[0-9A-Za-z+/=-]{20,255})"
)
"""Tokens of known services, recognised by their form."""
_VALUE = r"(\"[^\"\n]{1,4096}\"|'[^'\n]{1,4096}'|[^\s\"'&;,]{1,4096})"
_ASSIGNED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_.-]{1,80})=" + _VALUE)
_QUOTED = re.compile(
    r"([\"'])((?:--?)?[A-Za-z_][A-Za-z0-9_.-]{1,80})\1\s{0,4}:\s{0,4}(\"[^\"\n]{1,4096}\"|'[^'\n]{1,4096}')"
)
"""``'HF_TOKEN': 'abc'``, as Python and JSON print an environment."""
_SEQUENCE = re.compile(
    r"([\"'])(--?[A-Za-z][A-Za-z0-9_.-]{1,80}|[A-Z][A-Z0-9_]{1,80})\1,\s{0,4}(\"[^\"\n]{1,4096}\"|'[^'\n]{1,4096}')"
)
"""``'--token', 'abc'`` and ``('HF_TOKEN', 'abc')``: options and variables only, as a list of words is prose."""
_LISTED = re.compile(r"(?<![A-Za-z0-9_])([A-Z][A-Z0-9]{0,40}_[A-Z0-9_]{1,80}): {1,4}([^\s\"'&;,]{1,4096})")
"""``HF_TOKEN: abc``. Capitals only: "unexpected token: x" is prose."""
_PLAIN = re.compile(r"[\d.]+|true|false|none|null|yes|no|\*+|<[^<>]{1,40}>", re.IGNORECASE)
"""Values that are no secret, whatever they are assigned to."""


def words_of(name: str) -> list[str]:
    """The words of a name, in small letters."""
    return [word.lower() for word in _WORDS.findall(name)]


def is_secret_name(name: Any) -> bool:
    """Whether the value under this name is a secret: a word of the name says so."""
    words = words_of(str(name)[:256])
    if not words or words[-1] in _HARMLESS_LAST or words == ["pwd"]:
        return False
    before = ["", *words[:-1]]
    for earlier, word in zip(before, words):
        if (earlier, word) in _PAIRS or (word == "authorization" and word == words[-1]):
            return True
        if word in _SECRET_WORDS and earlier not in _HARMLESS_BEFORE.get(word, frozenset()):
            return True
        if _RUN_TOGETHER.fullmatch(word):
            return True
    return False


def is_secret(name: Any, value: Any) -> bool:
    """Whether a variable holds a secret: by its name, or by user and password in an address."""
    return bool(value) and (is_secret_name(name) or mask_urls(str(value)) != str(value))


def _named(environment: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(str(environment.get(NAMED) or "").split(","))


def secret_variables(environment: Mapping[str, Any]) -> list[str]:
    """Names, in order, of the variables that hold a secret."""
    named = _named(environment)
    return sorted(str(name) for name, value in environment.items() if name in named or is_secret(name, value))


def mask_urls(text: str) -> str:
    """A text without user and password in addresses."""
    return _URL.sub(MASK, text) if "://" in text else text


def mask_text(text: str) -> str:
    """A text without what looks like a secret: by its address, its name or its shape."""
    text = _SHAPES.sub(MASK, mask_urls(text))
    text = _ASSIGNED.sub(lambda found: _masked(found, 1, 2), text) if "=" in text else text
    if ":" in text or "," in text:
        text = _QUOTED.sub(lambda found: _masked(found, 2, 3), text)
        text = _SEQUENCE.sub(lambda found: _masked(found, 2, 3), text)
        text = _LISTED.sub(lambda found: _masked(found, 1, 2), text)
    return text


def _masked(found: Any, name: int, value: int) -> str:
    """What was found, its value masked where the name suggests a secret. A bare ``key=`` means nothing in a text."""
    whole, inner = str(found.group(0)), str(found.group(value))
    quote = inner[0] if inner[0] in "\"'" else ""
    plain = inner.strip("\"'")
    if not plain or _PLAIN.fullmatch(plain) or words_of(found.group(name)) == ["key"]:
        return whole
    if not is_secret_name(found.group(name)):
        return whole
    return whole[: found.start(value) - found.start(0)] + quote + MASK + quote


def mask_arguments(words: Iterable[Any]) -> list[str]:
    """The words of a command line, without the value behind an option whose name suggests a secret."""
    shown: list[str] = []
    behind = False
    for word in map(str, words):
        shown.append(MASK if behind and not word.startswith("-") else mask_text(word))
        behind = word.startswith("-") and "=" not in word and is_secret_name(word)
    return shown


def secret_values(environment: Mapping[str, Any]) -> set[str]:
    """What must not be shown of an environment. Raises ``TooManySecretsError``."""
    found: set[str] = set()
    if len(environment) > MOST_VARIABLES or sum(len(str(value)) for value in environment.values()) > MOST_CHARACTERS:
        raise TooManySecretsError
    named = _named(environment)
    for name, value in environment.items():
        text = str(value)
        if name in named or is_secret_name(name):
            # A key of several lines is printed line by line.
            found |= {text, *text.splitlines()}
        for one in _URL.findall(text):
            found |= {one, one.partition(":")[2]}
    return {one for one in found if one}


def hider(environment: Mapping[str, Any]) -> Hide:
    """A function that hides the secrets of an environment in a text, in every form in which programs print them.

    Where there are more than can be searched for, as whoever is root in a container may name any, it shows no text.
    """
    try:
        known = search_for(secret_values(environment), SHORTEST)
    except TooManySecretsError:
        return lambda text: NOT_SHOWN if text else text
    if known is None:
        return mask_text
    search = known
    return lambda text: mask_text(hidden(text, search, MASK))
