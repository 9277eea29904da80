# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What several roles need of apt: a version that is requested, a hold with its record, and a source as deb822.

Pure. The record of a hold is a comment in the file that keeps unattended-upgrades from the packages: a hold that is not
recorded is somebody else's, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..driver.sources import Source, folded, render

_RECORD = re.compile(r"^// Held: (.*)$", re.MULTILINE)
KEY_BEGIN = "-----BEGIN PGP PUBLIC KEY BLOCK-----"


def satisfies(version: str | None, pin: str) -> bool:
    """Return whether a package's version is the one that is requested: it, or one that begins with it.

    ``27.5`` is satisfied by ``5:27.5.1-1~debian.12~bookworm``, not by ``27.50``; an epoch counts where it is given.
    Without a pin any version will do.
    """
    if not version or not pin:
        return bool(version)
    plain = version if ":" in pin else version.rpartition(":")[2]
    return plain.startswith(pin) and not plain[len(pin) :][:1].isdecimal()


def newest(versions: Iterable[str], pin: str) -> str | None:
    """Return the first version that satisfies the pin; apt lists the newest first."""
    return next((version for version in versions if satisfies(version, pin)), None)


def exclusion(role: str, held: Iterable[str]) -> str:
    """Return apt's configuration that keeps unattended-upgrades from these packages, with the record of the hold."""
    names = sorted(held)
    patterns = "".join(f'    "^{re.escape(name)}$";\n' for name in names)
    return (
        f"// Kept by swarmspeed.cluster ({role})\n// Held: {' '.join(names)}\n"
        f"Unattended-Upgrade::Package-Blacklist {{\n{patterns}}};\n"
    )


def recorded(files: Any, path: str) -> list[str]:
    """Return the packages that our own record says are held."""
    entry = files.get(path) if isinstance(files, Mapping) else None
    match = _RECORD.search(str(entry.get("content") or "")) if isinstance(entry, Mapping) else None
    return match[1].split() if match else []


def source_text(role: str, uri: str, suite: str, components: tuple[str, ...], key: str) -> str:
    """Return a deb822 file with the key in it: sources.list(5)."""
    source = Source("", uri, suite, components, (("Signed-By", folded(key)),))
    return render([source], f"Kept by swarmspeed.cluster ({role})")


def source_problems(prefix: str, uri: str, key: str) -> list[str]:
    """Return what is wrong with the address or the key of a repository."""
    problems = []
    if not re.fullmatch(r"(https?|file|copy|mirror\+https?)://?[^\s]+", uri):
        problems.append(f"{prefix}_repository_url is not an address such as https://mirror.example.com/debian")
    elif "@" in uri.partition("://")[2].partition("/")[0]:
        problems.append(
            f"{prefix}_repository_url holds a password, which everyone could read in apt's sources; write it into "
            "/etc/apt/auth.conf.d on the hosts (apt_auth.conf(5)) and leave it out here"
        )
    if not key.lstrip().startswith(KEY_BEGIN):
        problems.append(f"{prefix}_repository_key is not a public key as text (which begins with {KEY_BEGIN})")
    return problems


def names(value: Any) -> list[str]:
    """Return the texts of a list of the facts."""
    return [str(name) for name in value] if isinstance(value, list) else []
