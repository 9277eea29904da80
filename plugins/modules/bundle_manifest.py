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
  bundle:
    description: Folder of the bundle on the controller.
    type: path
    required: true
  collected:
    description: Results of M(swarmspeed.cluster.bundle_collect), one for each system.
    type: list
    elements: dict
    required: true
  image:
    description: Result of M(swarmspeed.cluster.bundle_image), with C(name); empty where there is no image. With
      O(archive), the name alone.
    type: dict
    default: {}
  built:
    description: Whether this collection's own Dockerfile built the image. Then the manifest says what it holds, by
      which a later release of the collection knows whether something is missing.
    type: bool
    default: false
  archive:
    description: Archive of the image on the controller, made by C(docker save), if the image does not come from a host.
    type: path
  wheelhouse:
    description: Folder on the controller with wheels to put into the bundle.
    type: path
  source:
    description: Archive with the source of the workspace, as packed by M(swarmspeed.cluster.workspace_fetch), relative
      to the bundle.
    type: str
    default: ''
  assets:
    description: RV(swarmspeed.cluster.asset_sources#module:collected), models and data sets in the bundle.
    type: list
    elements: dict
    default: []
  accelerator:
    description: What the nodes compute on.
    type: str
    choices: [cuda, cpu]
    required: true
  variables:
    description: The variables that determine what is in the bundle, by name.
    type: dict
    required: true
attributes:
  check_mode:
    support: full
    description: Nothing is written.
  diff_mode:
    support: none
    description: The manifest is long.
  idempotent:
    support: full
    description: Where only the time would differ, the manifest stays as it is.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
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
manifest:
  description: The manifest on the controller.
  returned: success
  type: str
files:
  description: Number of files in the bundle besides the manifest.
  returned: success
  type: int
bytes:
  description: Total size of these files.
  returned: success
  type: int
removed:
  description: What an earlier run had left, and this run removed.
  returned: success
  type: list
  elements: str
"""
