# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which servers a host is configured to use: its name servers, and the proxies and mirrors its configuration names.

A container network that took such an address would cut the containers off from it. Pure; IPv4 only, as overlays are.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

_ADDRESS_IN_URL = re.compile(r"(?<=://)(?:[^\s/\"'@]*@)?([0-9]{1,3}(?:\.[0-9]{1,3}){3})(?![0-9.])")
_EXCEPTIONS = re.compile(r"no[-_]proxy", re.IGNORECASE)
"""Lists what is *not* fetched through a proxy."""


def address(text: Any) -> str | None:
    """Return an IPv4 address that is another machine's, or None: not a name, and neither loopback nor 0.0.0.0."""
    try:
        found = ipaddress.IPv4Address(str(text))
    except ValueError:
        return None
    return None if found.is_loopback or found.is_unspecified else str(found)


def nameservers(text: str) -> list[str]:
    """Return the name servers of a resolv.conf (resolv.conf(5)) in its order, without those on the host itself."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver":
            found.append(address(words[1]))
    return [item for item in dict.fromkeys(found) if item]


def named_addresses(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the IPv4 addresses that stand in URLs, each with the first file that names it. ``texts`` is by path."""
    found: dict[str, str] = {}
    for path, text in texts.items():
        for match in _ADDRESS_IN_URL.finditer(text):
            literal = address(match[1])
            if literal:
                found.setdefault(literal, path)
    return found


def url_hosts(values: Any) -> list[str]:
    """Return the host names and addresses in URLs, sorted: only these, never a user, password or path.

    ``values`` is a URL, or lists and mappings of them to any depth. A text without ``://`` counts as ``host:port``;
    what stands under ``no_proxy`` is left out, as are names of the host itself.
    """
    return sorted({host for host in map(_host, _texts(values)) if host and not _own(host)})


def _texts(values: Any) -> Iterable[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        for key, inner in values.items():
            if not _EXCEPTIONS.fullmatch(str(key)):
                yield from _texts(inner)
    elif isinstance(values, (list, tuple)):
        for inner in values:
            yield from _texts(inner)


def _host(text: str) -> str:
    try:
        return urlsplit(text if "://" in text else f"//{text}").hostname or ""
    except ValueError:  # such as http://[::1
        return ""


def _own(host: str) -> bool:
    return host == "localhost" or host.startswith("127.") or ":" in host


def esp_support(modules: str, builtin: str, available: str, config: str) -> bool | None:
    """Return whether a kernel can do ESP, which encrypted overlays need; None where that is not known.

    ``modules`` is /proc/modules; ``builtin`` and ``available`` are modules.builtin and modules.dep of the running
    kernel (modprobe(8)); ``config`` is its configuration, where CONFIG_INET_ESP stands (net/ipv4/Kconfig).
    """
    if re.search(r"^esp4\s", modules, re.MULTILINE) or "/esp4.ko" in builtin or "/esp4.ko" in available:
        return True
    if re.search(r"^CONFIG_INET_ESP=y$", config, re.MULTILINE):
        return True
    if builtin or available or re.search(r"^# CONFIG_INET_ESP is not set$", config, re.MULTILINE):
        return False
    return None
