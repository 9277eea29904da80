#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin asset_sources."""

from __future__ import annotations

DOCUMENTATION = r"""
module: asset_sources
short_description: List the files of models and data sets, and fetch them to the controller
version_added: 0.1.0
description:
  - Determines which files belong to each model and data set, with sizes and SHA-256. A branch on a hub is resolved to
    its current commit, which stays the same until O(refresh); what is known about a source stays in O(cache).
  - Fetches the files of O(fetch) into O(cache), resuming interrupted downloads. A file counts only if it has its
    SHA-256.
  - Implemented as an action plugin that runs on the controller only.
options:
  sources: {type: list, elements: dict, required: true, description: "Models and data sets, as C(assets_sources) of role
      P(swarmspeed.cluster.assets#role)."}
  cache: {type: str, required: true, description: Folder on the controller. It is created for this account alone.}
  endpoint: {type: str, default: 'https://huggingface.co', description: Address of the hub.}
  token: {type: str, default: '', description: Token for the hub. It is sent to no other server.}
  proxy: {type: str, default: '', description: "HTTP proxy of the controller. When empty, that of the environment, if
      any."}
  refresh: {type: bool, default: false, description: Whether to query again what a branch or a URL holds now.}
  fetch: {type: list, elements: str, default: [], description: "SHA-256 of files to fetch, where they are not on the
      controller yet."}
  bundled: {type: bool, default: false, description: "Whether O(cache) is part of an offline bundle. If so, nothing is
      queried, and what it lacks is an error."}
  bundle: {type: str, default: '', description: "Folder of an offline bundle on the controller. When given, all files
      are fetched and copied there."}
attributes:
  check_mode: {support: partial, description: The cache is written in check mode too., details: "Without the lists of
      files, nothing could be predicted. Small files for which the hub has no SHA-256 are fetched with the lists. Large
      ones are fetched only where O(fetch) names them."}
  diff_mode: {support: none, description: Models are not text.}
  idempotent: {support: full, description: Files that are already there are not fetched again.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: List the files of a model
  swarmspeed.cluster.asset_sources:
    sources:
      - name: qwen
        huggingface:
          repository: Qwen/Qwen3-0.6B
          revision: main
    cache: ~/.cache/swarmspeed/assets
  run_once: true
"""

RETURN = r"""
assets: {returned: always, type: dict, sample: {qwen: {from: huggingface.co/Qwen/Qwen3-0.6B at c1899de289a0, digest:
    9f86d0…, bytes: 1519194112}}, description: "By name, the origin, the digest of the list of files, and the size in
    bytes."}
collected: {returned: always, type: list, elements: dict, description: "Files in O(bundle), as
    M(swarmspeed.cluster.bundle_manifest) takes them."}
fetched: {returned: always, type: list, elements: str, description: Files that were fetched.}
"""
