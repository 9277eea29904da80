# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The keys of a cluster: which are there, which are generated, and what a node's are changed to. Pure.

A private key is known by a digest alone. A key that exists is never regenerated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.common.reported import accept, ssh_public_key
from ..plan.changes import Changes, Sealed, Unknown
from ..plan.files import fact_after, found_file, name_of
from ..plan.managed_file import ManagedFile
from ..plan.text import KNOWN_AFTER
from .files import Request, public_part

_PRIVATE = {"mode": "0600", "owner": 0, "group": 0}
_GENERATED = Unknown("a key pair that is generated")
_DERIVED = Unknown("the public part of the private key")


@dataclass(frozen=True)
class Pair:
    """A key pair on a host, as ``node_facts`` found it.

    ``public`` is None where it is still to be made. Where the file holds that of another pair it is ``foreign``, and
    ``public`` is what belongs there.
    """

    private: Mapping[str, Any]
    public: str | None
    foreign: bool = False

    @property
    def exists(self) -> bool:
        return self.private.get("exists") is True


def pair(host: str, files: Mapping[str, Any], path: str, comment: str = "") -> Pair:
    """Return a key pair. Raises ``ReportedError`` where what a host says of its public key is none.

    ``comment`` ends the public key where that is written again.
    """
    private, public = found_file(files, path), found_file(files, f"{path}.pub")
    content = public.get("content") if public.get("exists") is True and private.get("exists") is True else None
    if content is not None and content != KNOWN_AFTER:
        # It becomes a line of known_hosts or authorized_keys of all.
        accept(host, f"{path}.pub", content, ssh_public_key)
        half = private.get("public_key")
        if half is not None and str(content).split()[:2] != str(half).split():
            accept(host, f"{path}: public_key", half, ssh_public_key)
            return Pair(private, f"{half} {comment}".strip(), foreign=True)
    return Pair(private, content)


def add_pair(changes: Changes, path: str, found: Pair, files: Mapping[str, Any]) -> bool:
    """Add what changes of a pair that this host makes itself, and return whether something does."""
    if found.exists and found.public is not None:
        return _add_attributes(changes, path, found)
    if found.exists:
        _add_attributes(changes, path, found)
    else:
        changes.add(path, None, _GENERATED)
    there = found_file(files, f"{path}.pub")
    before = str(there.get("content") or "").strip() or "(not a key)"
    changes.add(f"{path}.pub", before if there.get("exists") is True else None, _DERIVED)
    return True


def add_copy(changes: Changes, requested: Request, found: Pair, of_first: Pair) -> bool:
    """Add what changes of the cluster's private key on a host that gets it from the first one."""
    digest = found.private.get("sha256")
    if found.exists and of_first.exists and digest == of_first.private.get("sha256"):
        return _add_attributes(changes, requested.cluster_key, found)
    after = Sealed(str(of_first.private.get("sha256"))) if of_first.exists else _GENERATED
    why = f"the cluster's key, of {requested.first}"
    changes.add(requested.cluster_key, Sealed(str(digest)) if found.exists else None, after, why)
    return True


def _add_attributes(changes: Changes, path: str, found: Pair) -> bool:
    there = {name: found.private.get(name) for name in _PRIVATE}
    if there == _PRIVATE:
        return False
    before, after = (", ".join(f"{name} {value}" for name, value in side.items()) for side in (there, _PRIVATE))
    changes.add(path, before, after)
    return True


def private_after(found: Pair, of_first: Pair | None = None) -> dict[str, Any]:
    """Return the fact of a private key afterwards; ``of_first`` where it is a copy."""
    source = of_first or found
    digest = source.private.get("sha256") if source.exists else KNOWN_AFTER
    half = source.private.get("public_key")
    return {**found.private, **_PRIVATE, "exists": True, "sha256": digest, "keyed": True, "public_key": half}


def public_after(path: str, found: Pair, there: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fact of a public key afterwards; ``there`` is what it is."""
    if found.foreign:
        item = public_part(path, found.public or "")
        return {**fact_after(item, ""), "content": item.text}
    if found.public is not None:
        return dict(there)
    return {"exists": True, "content": KNOWN_AFTER, "sha256": KNOWN_AFTER, "mode": "0644", "owner": 0, "group": 0}


def is_of_another_key(there: Mapping[str, Any], of_first: Pair) -> bool:
    """Whether a public key lies beside the copied private one that is not its own: ssh would offer that one."""
    parts = str(there.get("content") or "").split()[:2]
    return there.get("exists") is True and parts != str(of_first.public or "").split()[:2]


def add_unknown(changes: Changes, item: ManagedFile, known: Mapping[str, Any]) -> None:
    """Add the change of a file whose text holds a key that is still to be made."""
    found = found_file(known, item.path)
    before = str(found.get("content") or f"SHA-256 {found.get('sha256')}") if found.get("exists") is True else None
    changes.add(name_of(item), before, Unknown("the public part of a key that is generated"))
