# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The secret that a step of a build reads before it fetches: proxies, indexes, apt's sources, an authority. Pure.

A shell script, so that one mount is enough for all of them, also in a Dockerfile of the user's own. What has to be a
file is written below /dev/shm: a tmpfs in each step of BuildKit, of which no layer keeps anything (seen with the
engine 20.10).
"""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

from .inputs import apt_sources_text, is_deb822
from .repositories import Repository

MEMORY = "/dev/shm/swarmspeed"
PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
"""Where Debian and Ubuntu keep the authorities that they trust."""
TRUST = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
KEYS = ("proxy", "no_proxy", "torch_index", "pip_index", "apt_sources", "repositories", "certificate")


def network_script(given: Mapping[str, Any], memory: str = MEMORY) -> str:
    """Return the script. It is never empty: BuildKit leaves an empty secret out."""
    values = {key: given.get(key) or "" for key in KEYS}
    lines = ["# Read by the steps of the build that fetch something."]
    if values["proxy"]:
        lines += [_export(name, values["proxy"]) for name in PROXIES]
        if values["no_proxy"]:
            lines += [_export(name, values["no_proxy"]) for name in ("no_proxy", "NO_PROXY")]
    lines.append(_export("TORCH_INDEX", values["torch_index"]))
    if values["pip_index"]:
        lines.append(_export("PIP_INDEX_URL", values["pip_index"]))
    sources, further = apt_sources_text(values["apt_sources"]), list(values["repositories"] or [])
    if sources or further or values["certificate"]:
        lines.append(f"mkdir -p -m 0755 {memory}")
    if values["certificate"]:
        lines += _authorities(values["certificate"], memory)
        lines += [_export(name, f"{memory}/authorities.crt") for name in TRUST]
    if sources or further:
        lines += _apt(sources, bool(further), bool(values["certificate"]), memory)
    if further:
        lines += _further(further, values["certificate"], memory)
    return "\n".join(lines) + "\n"


def _authorities(certificate: Any, memory: str) -> list[str]:
    bundle = f"{memory}/authorities.crt"
    # apt reads it as the user _apt.
    return [f"{{ cat {CERTIFICATES} 2>/dev/null || :; {_print(certificate)}; }} > {bundle}", f"chmod 0644 {bundle}"]


def _apt(sources: str, further: bool, certificate: bool, memory: str) -> list[str]:
    """Have apt use these sources, or those of the image, and a folder for further ones."""
    # apt distinguishes the two forms by the end of the name.
    path, parts = f"{memory}/apt.{'sources' if is_deb822(sources) else 'list'}", f"{memory}/parts"
    lines = [f"mkdir -p -m 0755 {parts}"] if further else []
    settings = [f'Dir::Etc::sourceparts "{parts if further else f"{memory}/none"}";']
    if sources:
        settings.insert(0, f'Dir::Etc::sourcelist "{path}";')
        lines.append(f"(umask 077; {_print(sources)} > {path})")
    else:
        lines.append(f"cp -a /etc/apt/sources.list.d/. {parts}/ 2>/dev/null || :")
    if certificate:
        settings.append(f'Acquire::https::CAInfo "{memory}/authorities.crt";')
    lines.append(f"{_print(chr(10).join(settings))} > {memory}/apt.conf")
    return [*lines, _export("APT_CONFIG", f"{memory}/apt.conf")]


def _further(further: list[Repository], certificate: Any, memory: str) -> list[str]:
    """Add repositories to the sources. Slim images know no authority, which a repository over HTTPS needs first."""
    lines = []
    if any(one.encrypted for one in further):
        packages = "apt-get update && apt-get install -y --no-install-recommends ca-certificates"
        lines.append(f"[ -s {CERTIFICATES} ] || {{ {packages}; }} || :")
        lines += _authorities(certificate, memory) if certificate else []
    for number, one in enumerate(further, 1):
        key, path = f"{memory}/repository-{number}.asc", f"{memory}/parts/swarmspeed-{number}.{one.suffix}"
        if one.key:
            # gpgv reads it as the user _apt.
            lines += [f"{_print(one.key)} > {key}", f"chmod 0644 {key}"]
        lines.append(f"(umask 077; {_print(one.signed_by(key))} > {path})")
    return lines


def _export(name: str, value: Any) -> str:
    return f"export {name}={quote(str(value))}"


def _print(text: Any) -> str:
    return f"printf '%s\\n' {quote(str(text).rstrip(chr(10)))}"
