# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What of the engine's configuration must not be shown: credentials in URLs, and values whose names say so."""

from __future__ import annotations

import re
from typing import Any

from ..common import secret_names
from ..common.secret_names import MASK, is_secret_name

_ALL = re.compile(r".+", re.DOTALL)
_PROXY_NAME = re.compile(r"proxy|proxies", re.IGNORECASE)
# Greedy up to the last @: a password that no one percent-encoded may itself hold '/', '@' or a space.
_IN_URL = re.compile(r"(?<=://).+(?=@)", re.DOTALL)
_BEFORE_AT = re.compile(r"^.+(?=@)", re.DOTALL)
_ASSIGNED = re.compile(r"(?<==).+", re.DOTALL)
_NAMED = re.compile(r"([^=\s&?,;]{1,128})=")
# In a message other words stand around it.
_URL_IN_TEXT = re.compile(r"(?<=://)\S+(?=@)")


def mask(value: Any, path: tuple[str, ...] = ()) -> Any:
    """A copy of a configuration, or of a part that stands at ``path``, to show: secrets are replaced by ``MASK``.

    Masked are, in any text, what stands between ``://`` and ``@`` and what is assigned to a name that suggests a
    secret; under keys with such a name, everything; and in proxies also a user and password without ``://``.
    """
    if isinstance(value, dict):
        return {printable(str(key)): mask(inner, (*path, str(key))) for key, inner in value.items()}
    if isinstance(value, list):
        return [mask(inner, path) for inner in value]
    pattern = _pattern(value, path)
    if isinstance(value, str):
        return printable(value if pattern is None else pattern.sub(MASK, value))
    return value if pattern is None else MASK


def printable(text: str) -> str:
    """Text that UTF-8 can hold: JSON can escape half a surrogate pair, and Ansible takes no result that has one."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def secrets(value: Any, path: tuple[str, ...] = ()) -> set[str]:
    """Every secret of a configuration, as text. Of a user and password in a URL, both together and the password."""
    if isinstance(value, dict):
        return {secret for key, inner in value.items() for secret in secrets(inner, (*path, str(key)))}
    if isinstance(value, list):
        return {secret for inner in value for secret in secrets(inner, path)}
    pattern = _pattern(value, path)
    if pattern is None:
        return set()
    collected = {found.group() for found in pattern.finditer(str(value))}
    if pattern in (_IN_URL, _BEFORE_AT):
        collected |= {secret.partition(":")[2] for secret in collected}
    return collected - {"", MASK}


def mask_text(text: str, known: set[str]) -> str:
    """A message without the known secrets, and without what looks like one."""
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return secret_names.mask_text(_URL_IN_TEXT.sub(MASK, text))


def _pattern(value: Any, path: tuple[str, ...]) -> re.Pattern[str] | None:
    """What matches the secret in one plain value; ``None`` where there is none."""
    if value is None or isinstance(value, bool) or value == "":
        return None
    if any(is_secret_name(name) for name in path):
        return _ALL
    if not isinstance(value, str):
        return None
    url, named = _IN_URL.search(value), any(is_secret_name(found[1]) for found in _NAMED.finditer(value))
    if url or named:
        # Where a URL also assigns a secret, such as ?token=…, nothing of it is shown.
        return _IN_URL if not named else _ALL if "://" in value else _ASSIGNED
    return _BEFORE_AT if "@" in value and any(_PROXY_NAME.search(name) for name in path) else None
