#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin bundle_image."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bundle_image
short_description: Copy a training image from a host's engine into an offline bundle
version_added: 0.1.0
description:
  - Saves an image of a host's engine to C(image/) in the bundle on the controller. Where the archive there is complete
    and of the same image, nothing is sent.
  - Implemented as an action plugin; it runs C(docker image inspect) and C(docker save) on the host.
options:
  bundle: {type: path, required: true, description: Folder of the bundle on the controller.}
  name: {type: str, required: true, description: Name and tag of the image.}
attributes:
  check_mode: {support: full, description: "Checks, and saves nothing."}
  diff_mode: {support: none, description: An image is not shown as a diff.}
  idempotent: {support: full, description: Compares the image's id and the digest of the archive.}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Copy the training image into the bundle
  swarmspeed.cluster.bundle_image:
    bundle: /srv/bundle
    name: swarmspeed/lab:53b6d27c603ba499
"""

RETURN = r"""
id: {returned: success, type: str, description: The image's id.}
path: {returned: success, type: str, description: "The archive, relative to the bundle."}
"""
