#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin bundle_manifest."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bundle_manifest
short_description: Finish an offline bundle with its manifest
version_added: 0.1.0
description:
  - Computes the digest of every file, copies wheels, removes what an earlier run left, and writes C(manifest.json)
    atomically. A bundle without a manifest is not finished.
  - Implemented as an action plugin; nothing is sent to any node. Meant for C(run_once).
options:
  bundle: {type: path, required: true, description: Folder of the bundle on the controller.}
  collected: {type: list, elements: dict, required: true, description: "Results of M(swarmspeed.cluster.bundle_collect),
      one for each system."}
  image: {type: dict, default: {}, description: "Result of M(swarmspeed.cluster.bundle_image), with C(name); empty where
      there is no image. With O(archive), the name alone."}
  built: {type: bool, default: false, description: "Whether this collection's own Dockerfile built the image. Then the
      manifest says what it holds, by which a later release of the collection knows whether something is missing."}
  archive: {type: path, description: "Archive of the image on the controller, made by C(docker save), if the image does
      not come from a host."}
  wheelhouse: {type: path, description: Folder on the controller with wheels to put into the bundle.}
  source: {type: str, default: '', description: "Archive with the source of the workspace, as packed by
      M(swarmspeed.cluster.workspace_fetch), relative to the bundle."}
  assets: {type: list, elements: dict, default: [], description: "RV(swarmspeed.cluster.asset_sources#module:collected),
      models and data sets in the bundle."}
  accelerator: {type: str, choices: [cuda, cpu], required: true, description: What the nodes compute on.}
  variables: {type: dict, required: true, description: "The variables that determine what is in the bundle, by name."}
attributes:
  check_mode: {support: full, description: Nothing is written.}
  diff_mode: {support: none, description: The manifest is long.}
  idempotent: {support: full, description: "Where only the time would differ, the manifest stays as it is."}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Finish the bundle
  swarmspeed.cluster.bundle_manifest:
    bundle: /srv/bundle
    collected: ["{{ packages_of_debian_12 }}"]
    accelerator: cpu
    variables: {docker_source: distribution}
  run_once: true
"""

RETURN = r"""
manifest: {returned: success, type: str, description: The manifest on the controller.}
files: {returned: success, type: int, description: Number of files in the bundle besides the manifest.}
bytes: {returned: success, type: int, description: Total size of these files.}
removed: {returned: success, type: list, elements: str, description: "What an earlier run had left, and this run
    removed."}
"""
