# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What preflight says of proxies and of a company's certificate authority. Pure.

Only a refusal (407, RFC 9110 section 15.5.8) is an error: a proxy that is down keeps no one from a run that fetches
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.problems import Problem
from ..core.values import mapping, texts

CERTIFICATE = "host_ca_certificate"
REFUSED = 407
_FORM = "http://USER:PASSWORD@HOST:PORT, with %40 for an @ in either and so on"


def check_certificate(path: str, text: str) -> Iterator[Problem]:
    """An authority's file holds certificates in PEM form, and no key: all accounts on the nodes may read it."""
    if "PRIVATE KEY-----" in text:
        yield Problem(
            CERTIFICATE,
            f"{path} contains a private key, which every account on the nodes could then read",
            "leave the key where it was created, and name a file that contains only the certificate",
        )
    elif "-----BEGIN CERTIFICATE-----" not in text:
        yield Problem(
            CERTIFICATE,
            f"{path} contains no certificate in PEM form (-----BEGIN CERTIFICATE-----)",
            "give the right file, or convert it: openssl x509 -inform der -in FILE -out FILE.crt",
        )


def check_proxies(sections: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """Every proxy lets each host through. ``sections`` are, by host, the answers by the variable that names a proxy."""
    for host, answers in sections.items():
        reported: dict[tuple[str, str, bool], list[str]] = {}
        for variable, answer in answers.items():
            trouble = _trouble(mapping(answer))
            if trouble:
                reported.setdefault(trouble, []).append(str(variable))
        for (text, remedy, fatal), variables in reported.items():
            yield Problem(host, f"{', '.join(variables)}: {text}", remedy, fatal=fatal)


def _trouble(answer: Mapping[str, Any]) -> tuple[str, str, bool] | None:
    address, offered = answer.get("address"), texts(answer.get("schemes"))
    if answer.get("error"):
        remedy = "restore it, or correct the address, before anything must be downloaded"
        return f"the proxy {address} does not answer: {answer['error']}", remedy, False
    if answer.get("status") != REFUSED:
        return None
    if offered and "basic" not in map(str.lower, offered):
        spoken = ", ".join(offered)
        remedy = "run a proxy that does, such as cntlm, in between, and use its address"
        return (
            f"the proxy {address} requires {spoken} authentication (407), which apt, pip and Docker do not support",
            remedy,
            True,
        )
    if answer.get("given"):
        return f"the proxy {address} does not accept this user and password (407)", f"correct them: {_FORM}", True
    remedy = f"write them into the address, {_FORM}, in a file of ansible-vault or one that you alone can read"
    return f"the proxy {address} requires a user and a password (407), but none is set", remedy, True
