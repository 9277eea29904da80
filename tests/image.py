# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Spares a scenario the build of the training image: takes it from the archive of an earlier one, or leaves it there.

Usage: python -m tests.image load|keep
Prints what it did. An archive that is out of date does no harm: the image's tag is a hash of what goes in.
"""

from __future__ import annotations

import subprocess
import sys

from tests.journey import image_archive, keep_image, kept_image, node, site, ssh


def load() -> str:
    """Give lab1 the image, and all nodes their engines; nothing where there is no archive."""
    image = kept_image()
    if not image:
        return ""
    site("--tags", "host,docker").done()
    if node("lab1").run("docker image inspect %s", image).rc == 0:
        return ""
    with image_archive().open("rb") as archive:
        subprocess.run(ssh("lab1", "docker load"), stdin=archive, check=True, timeout=600)
    return f"loaded {image}"


def keep() -> str:
    """Leave the image of lab1's container for other scenarios; nothing where it is there."""
    before = kept_image()
    keep_image()
    return f"kept {kept_image()}" if kept_image() != before else ""


if __name__ == "__main__":
    print({"load": load, "keep": keep}[sys.argv[1]]())
