# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Spares a scenario the build of the training image: takes it from the archive of an earlier one, or leaves it there.

Usage: python -m tests.image load|keep
Prints what it did. An archive that is out of date does no harm: the image's tag is a hash of what goes in.
"""

from __future__ import annotations

import subprocess
import sys

from tests.engines import has_image, inspect
from tests.playbook_run import LAB, container, image_archive, kept_image, site, ssh


def load() -> str:
    """Give lab1 the image, and all nodes their engines; nothing where there is no archive."""
    image = kept_image()
    if not image:
        return ""
    site("--tags", "host,docker").done()
    if has_image("lab1", image):
        return ""
    with image_archive().open("rb") as archive:
        subprocess.run(ssh("lab1", "docker load"), stdin=archive, check=True, timeout=600)
    return f"loaded {image}"


def keep() -> str:
    """Leave the image of lab1's container for other scenarios; nothing where it is there."""
    image = str(inspect("lab1", "container", container("lab1"))["Config"]["Image"])
    if kept_image() == image:  # the tag is a hash of what is inside
        return ""
    archive = image_archive()
    archive.parent.mkdir(exist_ok=True)
    part = archive.with_name(f"{archive.name}.{LAB}")  # labs that keep theirs at the same time
    with part.open("wb") as file:
        subprocess.run(ssh("lab1", f"docker save {image}"), stdout=file, check=True, timeout=300)
    part.replace(archive)
    return f"kept {image}"


if __name__ == "__main__":
    print({"load": load, "keep": keep}[sys.argv[1]]())
