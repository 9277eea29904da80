#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin workspace_fetch."""

from __future__ import annotations

DOCUMENTATION = r"""
module: workspace_fetch
short_description: Fetch the source of the workspace from a git repository
version_added: 0.1.0
description:
  - Fetches one reference of a git repository into a cache on the controller, and returns the folder with its files.
    Without O(reference), O(source) is a folder on the controller and is returned as it is.
  - A tag or a branch is resolved to a commit each time; where the repository cannot be reached, the commit fetched
    before is used, with a warning. Submodules, Git LFS and links that lead out are left out, with a warning.
  - Git runs with the user's own configuration (proxies, keys, credential helpers), but never prompts. Credentials in
    the URL are passed to git in its environment, and appear in no message.
  - Implemented as an action plugin; nothing is sent to any node.
options:
  source: {type: str, required: true, description: "URL of the repository (V(https://), V(ssh://), V(file://),
      V(git@host:path), with a commit also V(http://) and V(git://)), or its absolute path on the controller; a folder
      where O(reference) is empty."}
  reference: {type: str, default: '', description: "Tag, branch, or commit of 40 characters."}
  folder: {type: str, default: '', description: "Folder in the repository, relative to its root."}
  cache: {type: path, description: "Where repositories are kept. When empty, C(swarmspeed/sources) below
      C($XDG_CACHE_HOME) or C(~/.cache)."}
  bundle: {type: str, default: '', description: "Offline bundle to take the files from; nothing is then fetched, and git
      is not needed."}
  pack: {type: str, default: '', description: "Offline bundle to put the files of the commit into, as RV(packed)."}
  collect: {type: bool, default: false, description: "Whether to return a problem in RV(problems), for
      M(swarmspeed.cluster.preflight) to report with others, instead of failing."}
attributes:
  check_mode: {support: full, description: "Fetches in check mode too. The cache is not part of any host, and without it
      nothing could be predicted."}
  diff_mode: {support: N/A, description: No host is changed.}
  idempotent: {support: full, description: "Reports no change, as it changes nothing but its cache."}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Fetch DeepSpeed-Chat's programs
  swarmspeed.cluster.workspace_fetch:
    source: https://github.com/deepspeedai/DeepSpeedExamples.git
    reference: 0123456789abcdef0123456789abcdef01234567
    folder: applications/DeepSpeed-Chat
  register: fetched
  run_once: true
"""

RETURN = r"""
folder: {returned: success, type: str, description: The folder with the files; empty where there are RV(problems).}
name: {returned: success, type: str, sample: 'https://example.com/train.git at v1.2 (commit 0123456789ab)', description:
    "What the source is called in messages, with the commit."}
commit: {returned: success, type: str, description: "The commit, empty where O(source) is a folder."}
packed: {returned: success, type: str, description: "With O(pack), the archive, relative to the bundle; empty without it
    and in check mode."}
notes: {returned: success, type: list, elements: str, description: "Parts of the repository that were not fetched, in
    sentences."}
problems: {returned: success, type: list, elements: dict, description: "With O(collect), why the source cannot be used,
    as C(subject) (a variable), C(text) and C(remedy)."}
"""
