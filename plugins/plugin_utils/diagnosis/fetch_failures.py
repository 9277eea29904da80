# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Why apt, pip or the engine could not fetch something, in one sentence with the remedy. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...module_utils.common.secret_names import mask_urls

LAST = 12
"""Lines that are shown of a text in which no cause is known."""
_SERVERS = (
    re.compile(r"://(?:[^\s/@\"']*@)?([^\s/\"'\\?]+)"),
    re.compile(r"host='([^']+)', port=(\d+)"),
)


@dataclass(frozen=True)
class Cause:
    """``pattern`` finds it in a line; ``text`` and ``remedy`` describe it, with {server}, {proxy} and {source}."""

    pattern: re.Pattern[str]
    text: str
    remedy: str


def _cause(pattern: str, text: str, remedy: str) -> Cause:
    return Cause(re.compile(pattern, re.IGNORECASE), text, remedy)


CAUSES = (
    _cause(
        r"buildx component is missing or broken|buildx.* is not a docker command",
        "the client of the engine has no BuildKit",
        "install it on that node (apt-get install docker-buildx, or docker-buildx-plugin of Docker's repository)",
    ),
    _cause(
        r"\b407\b|proxy authentication required",
        "the proxy does not accept user and password, or was given none (407)",
        "correct {proxy}: http://USER:PASSWORD@HOST:PORT, with %40 for an @ in either and so on",
    ),
    # Of Go (the engine), OpenSSL (pip) and GnuTLS (apt).
    _cause(
        r"certificate signed by unknown authority|CERTIFICATE_VERIFY_FAILED\]? .*(local issuer|self.signed)"
        r"|certificate issuer is unknown|certificate is NOT trusted",
        "the certificate of {server} is by an authority that is not known there, mostly the company's own",
        "give that authority's certificate in host_ca_certificate",
    ),
    # Of Go's JSON, Docker's manifests, apt's signatures, and pages in whole.
    _cause(
        r"invalid character '<'|text/html|<!doctype html|<html|got 'NOSPLIT'",
        "{server} answers with a web page (HTML), as a login page or a wrong address does",
        "check what it answers (curl --location --head), and correct {source}",
    ),
    _cause(
        r"server gave HTTP response to HTTPS client",
        "{server} speaks plain HTTP, and the engine wants TLS",
        "give it a certificate, or name it under insecure-registries in docker_daemon_config",
    ),
    _cause(
        r"proxyconnect tcp|cannot connect to proxy",
        "the proxy does not answer",
        "restore it, or correct {proxy}",
    ),
    _cause(
        r"could not find a version that satisfies the requirement .*from versions: none",
        "the package index has nothing under that name, as a wrong address or a login page has",
        "correct {source}",
    ),
    _cause(
        r"could not resolve|no such host|name or service not known|temporary failure (in name|resolving)"
        r"|network is unreachable|could not connect|unable to connect|i/o timeout|connection (refused|timed out)"
        r"|client\.timeout|deadline exceeded|not known to us",
        "{server} cannot be reached from there",
        "set or correct {proxy}, or {source}",
    ),
)


def explain(text: str, proxy: str, source: str) -> str:
    """Return a sentence with its remedy; where no cause is known, the end of the text, without passwords.

    ``proxy`` and ``source`` are the variables that name the proxy and where is fetched from.
    """
    # A build's log comes as a list that was made text.
    lines = [line.strip() for line in mask_urls(text).replace("\\n", "\n").splitlines() if line.strip(" ',[]\"")]
    for cause in CAUSES:
        at = [number for number, line in enumerate(lines) if cause.pattern.search(line)]
        if at:
            server = _server(lines, at)
            words = {"server": server, "proxy": proxy, "source": source}
            return f"{cause.text.format(**words)}. Remedy: {cause.remedy.format(**words)}."
    shown = " ".join(lines[-LAST:]).rstrip(". ") or "nothing was printed"
    return f"{shown}. Remedy: resolve the error above and run again."


def _server(lines: Sequence[str], at: Sequence[int]) -> str:
    """The server that such a line names, or the line before it, as apt does."""
    for number in [*at, *(number - 1 for number in at if number)]:
        for pattern in _SERVERS:
            found = pattern.search(lines[number])
            if found:
                return ":".join(found.groups()).rstrip(":,.)")
    return "the server"
