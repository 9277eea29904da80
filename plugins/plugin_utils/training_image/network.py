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

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.inputs import (
    apt_sources_text,
    is_deb822,
)

MEMORY = "/dev/shm/swarmspeed"
PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
"""Where Debian and Ubuntu keep the authorities that they trust."""
TRUST = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
KEYS = ("proxy", "torch_index", "pip_index", "apt_sources", "certificate")


def network_script(given: Mapping[str, Any], memory: str = MEMORY) -> str:
    """Return the script. It is never empty: BuildKit leaves an empty secret out."""
    values = {key: given.get(key) or "" for key in KEYS}
    lines = ["# Read by the steps of the build that fetch something."]
    if values["proxy"]:
        lines += [_export(name, values["proxy"]) for name in PROXIES]
    lines.append(_export("TORCH_INDEX", values["torch_index"]))
    if values["pip_index"]:
        lines.append(_export("PIP_INDEX_URL", values["pip_index"]))
    sources = apt_sources_text(values["apt_sources"])
    if sources or values["certificate"]:
        lines.append(f"mkdir -p -m 0755 {memory}")
    if values["certificate"]:
        bundle = f"{memory}/authorities.crt"
        lines.append(f"{{ cat {CERTIFICATES} 2>/dev/null || :; {_print(values['certificate'])}; }} > {bundle}")
        # apt reads it as the user _apt.
        lines.append(f"chmod 0644 {bundle}")
        lines += [_export(name, bundle) for name in TRUST]
    if sources:
        # apt distinguishes the two forms by the end of the name.
        path = f"{memory}/apt.{'sources' if is_deb822(sources) else 'list'}"
        settings = [f'Dir::Etc::sourcelist "{path}";', f'Dir::Etc::sourceparts "{memory}/none";']
        if values["certificate"]:
            settings.append(f'Acquire::https::CAInfo "{memory}/authorities.crt";')
        lines.append(f"(umask 077; {_print(sources)} > {path})")
        lines.append(f"{_print(chr(10).join(settings))} > {memory}/apt.conf")
        lines.append(_export("APT_CONFIG", f"{memory}/apt.conf"))
    return "\n".join(lines) + "\n"


def _export(name: str, value: Any) -> str:
    return f"export {name}={quote(str(value))}"


def _print(text: Any) -> str:
    return f"printf '%s\\n' {quote(str(text).rstrip(chr(10)))}"
