# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that asks a proxy, from the host that is to go through it."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import Any, Protocol

from .proxy import Proxy, first_source, parse, schemes
from .services_io import ServicesIO

SOURCES = ("etc/apt/sources.list", "etc/apt/sources.list.d/*")
TIMEOUT = 5.0
"""Seconds for a proxy that is there to answer, where whom it asks in turn is slow."""


class ProxyIO(Protocol):
    """What is read from a proxy; tests hand in a fake."""

    def head(self, proxy: Proxy, target: str) -> tuple[int, list[str]]:
        """Ask for the head of a page; return the status and the values of Proxy-Authenticate. Raises ``OSError``."""


class SystemProxyIO:
    """Real proxies."""

    def head(self, proxy: Proxy, target: str) -> tuple[int, list[str]]:
        headers = {"Proxy-Authorization": f"Basic {proxy.credentials}"} if proxy.credentials else {}
        connection = http.client.HTTPConnection(proxy.host, proxy.port, timeout=TIMEOUT)
        try:
            connection.request("HEAD", target, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get_all("Proxy-Authenticate") or []
        except http.client.HTTPException as error:
            raise OSError(f"it does not answer in HTTP ({type(error).__name__})") from error
        finally:
            connection.close()


def gather_proxies(io: ProxyIO, files: ServicesIO, requested: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what each proxy answers, by the variable that names it. A URL that several variables hold is queried once.

    What is requested is one of apt's own sources: a proxy may answer otherwise for what no one fetches.
    """
    if not requested:
        return {}
    source = first_source(files.files(SOURCES))
    answers: dict[str, dict[str, Any] | None] = {}
    for url in dict.fromkeys(map(str, requested.values())):
        proxy = parse(url)
        answers[url] = _ask(io, proxy, source or f"http://{proxy.host}/") if proxy else None
    found = {variable: answers[str(url)] for variable, url in requested.items()}
    return {variable: answer for variable, answer in found.items() if answer}


def _ask(io: ProxyIO, proxy: Proxy, target: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"address": proxy.address, "given": bool(proxy.credentials), "status": None, "error": ""}
    try:
        status, offered = io.head(proxy, target)
    except OSError as error:
        return {**answer, "error": " ".join(str(error).split()) or type(error).__name__}
    return {**answer, "status": status, "schemes": schemes(offered)}
