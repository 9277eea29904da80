# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Lists the files of models and data sets on the controller, and fetches those that a node lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils.assets.bundled import collect
from ..plugin_utils.assets.cache_io import Cache
from ..plugin_utils.assets.http_io import Http
from ..plugin_utils.assets.manifest import Manifest, size_text
from ..plugin_utils.assets.sources import AssetError, Source, sources
from ..plugin_utils.bundle.manifest import BundleError
from ..plugin_utils.connection.following import say
from ..plugin_utils.core.values import plain
from ..plugin_utils.plan.controller import here

SPEC: dict[str, Any] = {
    "sources": {"type": "list", "elements": "dict", "required": True},
    "cache": {"type": "str", "required": True},
    "endpoint": {"type": "str", "default": "https://huggingface.co"},
    "token": {"type": "str", "default": "", "no_log": True},
    "proxy": {"type": "str", "default": "", "no_log": True},
    "refresh": {"type": "bool", "default": False},
    "fetch": {"type": "list", "elements": "str", "default": []},
    "bundled": {"type": "bool", "default": False},
    "bundle": {"type": "str", "default": ""},
}
SHOWN = 64 << 20
"""Bytes from which on a file that is fetched is printed."""


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Runs on the controller only."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        dummy, checked = self.validate_argument_spec(argument_spec=SPEC)
        arguments = plain(checked)
        endpoint, token = str(arguments["endpoint"]), str(arguments["token"])
        try:
            listed = sources(arguments["sources"], endpoint)
            http = Http(endpoint, token, str(arguments["proxy"]))
            cache = Cache(here(arguments["cache"]), http, token=bool(token), bundled=arguments["bundled"])
            found = [(source, cache.resolve(source, refresh=arguments["refresh"])) for source in listed]
            into = str(arguments["bundle"]) if not self._task.check_mode else ""
            every = [file[2] for dummy, one in found for file in one.files] if into else []
            fetched = _fetch(cache, found, every or arguments["fetch"])
            collected = collect(cache, found, here(into)) if into else []
        except AssetError as error:
            raise AnsibleActionFail(f"{error}.") from None
        except BundleError as error:
            raise AnsibleActionFail(f"{into}: {error}.") from None
        except OSError as error:
            raise AnsibleActionFail(
                f"assets_cache: {error}. Remedy: set it to a folder of the controller that this account can write."
            ) from None
        result.update(
            changed=bool(fetched),
            assets={
                source.name: {"from": one.source, "digest": one.digest, "bytes": one.size} for source, one in found
            },
            fetched=fetched,
            collected=collected,
        )
        return result


def _fetch(cache: Cache, found: Sequence[tuple[Source, Manifest]], wanted: Sequence[str]) -> list[str]:
    """Fetch the wanted files, by SHA-256, that are not there. Return their names."""
    lacking = [(source, one, file) for source, one in found for file in cache.lacking(one, wanted)]
    if lacking:
        cache.room(sum(file[1] for dummy, one, file in lacking))
    names = []
    for source, one, file in lacking:
        names.append(f"{source.name}/{file[0]}")
        if file[1] >= SHOWN:
            say(f"Fetching {names[-1]}, {size_text(file[1])}, from {source.title}")
        cache.fetch(source, one, file)
    return names
