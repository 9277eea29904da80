# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""HTTP proxies as variables name them, and what they answer. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy. ``credentials`` is what goes into Proxy-Authorization (RFC 7617), empty for none."""

    host: str
    port: int
    credentials: str = ""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


def parse(url: str) -> Proxy | None:
    """Return the proxy that a URL names; None for one that is not spoken to in plain HTTP, and for what is no URL."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or 80
    except ValueError:
        return None
    if parts.scheme != "http" or not parts.hostname:
        return None
    user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return Proxy(parts.hostname, port, "" if user == ":" else base64.b64encode(user.encode()).decode())


def first_source(files: Mapping[str, str]) -> str:
    """Return the first plain HTTP address in apt's sources (sources.list(5)), empty where there is none."""
    for text in files.values():
        for line in text.splitlines():
            found = re.search(r"\bhttp://[^\s\]]+", line.partition("#")[0])
            if found:
                return found[0]
    return ""


def schemes(headers: list[str]) -> list[str]:
    """Return the names of the schemes in the values of Proxy-Authenticate, one a header as proxies send them."""
    return [words[0] for words in map(str.split, headers) if words]
