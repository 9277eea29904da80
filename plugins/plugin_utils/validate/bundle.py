# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a host that is asked for packages returned, before files of the controller get their names."""

from __future__ import annotations

from typing import Any

from ...module_utils.apt.bundle_packages import Deb, DebError, parse_deb, stanzas
from ...module_utils.common.reported import ReportedError, UnfitError, accept, lines
from .shape import listing, mapping

_STANZA = lines(1 << 18)


def _deb(value: Any) -> Any:
    # Read again here: the entry's other fields are what the host made of its stanza, or says so.
    stanza = _STANZA(value)
    try:
        # A blank line would begin the stanza of another package.
        if len(list(stanzas(stanza))) != 1 or "\r" in stanza or "\0" in stanza:
            raise DebError("it is not one paragraph")
        return parse_deb(stanza)
    except DebError:
        raise UnfitError(value, "the paragraph of one package, with a plain file name, size and SHA-256") from None


_DEBS = listing(mapping({"stanza": _deb}), 100_000)


def reported(host: str, debs: Any) -> list[Deb]:
    """Return the packages; raises ``ReportedError``."""
    found: list[Deb] = [entry["stanza"] for entry in accept(host, "bundle_collect.debs", debs, _DEBS)]
    files: dict[str, Deb] = {}
    for deb in found:
        if files.setdefault(deb.file, deb).sha256 != deb.sha256:
            raise ReportedError(
                f"{host}: bundle_collect.debs has two files named {deb.file}. Remedy: check its package sources."
            )
    return list(files.values())
