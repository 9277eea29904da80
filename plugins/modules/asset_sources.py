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
  - Determines which files belong to each model and data set, with sizes and SHA-256. A branch of a repository on a
    Hugging Face hub is resolved to its current commit, which stays the same until O(refresh).
  - What is known about a source stays in O(cache), so a second run does not query the hub again. A folder on the
    controller is listed each time; only files that were touched since are read.
  - Fetches the files of O(fetch) into O(cache), resuming the downloads of an interrupted run. A file counts only if it
    has its SHA-256.
  - Implemented as an action plugin that runs on the controller only.
options:
  sources:
    description: Models and data sets, as C(assets_sources) of role P(swarmspeed.cluster.assets#role).
    type: list
    elements: dict
    required: true
  cache:
    description: Folder on the controller. It is created for this account alone.
    type: str
    required: true
  endpoint:
    description: Address of the hub.
    type: str
    default: https://huggingface.co
  token:
    description: Token for the hub. It is sent to no other server.
    type: str
    default: ''
  proxy:
    description: HTTP proxy of the controller. When empty, that of the environment, if any.
    type: str
    default: ''
  refresh:
    description: Whether to query again what a branch or a URL holds now.
    type: bool
    default: false
  fetch:
    description: SHA-256 of files to fetch, where they are not on the controller yet.
    type: list
    elements: str
    default: []
  bundled:
    description: Whether O(cache) is part of an offline bundle. If so, nothing is queried, and what it lacks is an
      error.
    type: bool
    default: false
  bundle:
    description: Folder of an offline bundle on the controller. When given, all files are fetched and copied there.
    type: str
    default: ''
attributes:
  check_mode:
    support: partial
    description: The cache is written in check mode too.
    details:
      - Without the lists of files, nothing could be predicted. Small files for which the hub has no SHA-256 are fetched
        with the lists. Large ones are fetched only where O(fetch) names them.
  diff_mode:
    support: none
    description: Models are not text.
  idempotent:
    support: full
    description: Files that are already there are not fetched again.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
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
assets:
  description: By name, the origin, the digest of the list of files, and the size in bytes.
  returned: always
  type: dict
  sample: {qwen: {from: huggingface.co/Qwen/Qwen3-0.6B at c1899de289a0, digest: 9f86d0…, bytes: 1519194112}}
collected:
  description: Files in O(bundle), as M(swarmspeed.cluster.bundle_manifest) takes them.
  returned: always
  type: list
  elements: dict
fetched:
  description: Files that were fetched.
  returned: always
  type: list
  elements: str
"""
