# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the scenarios that send images between nodes share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.engines import has_image, image_ids
from tests.playbook_run import CLUSTER_ROOT, Run, on, playbook, variables

SPOOL = f"{CLUSTER_ROOT}/transfer"
FABRIC = r"""
import ctypes, glob, json, re, subprocess
# As NCCL does it, and as libibverbs loads the drivers that /etc/libibverbs.d names.
ctypes.CDLL("libibverbs.so.1")
named = {line.split()[1] for path in glob.glob("/etc/libibverbs.d/*.driver") for line in open(path)}
drivers = glob.glob("/usr/lib/*/libibverbs/lib*-rdmav*.so")
for path in drivers:
    ctypes.CDLL(path)
loaded = {re.search(r"/lib(\w+)-rdmav", path)[1] for path in drivers}
tool = subprocess.run(["py-spy", "--version"], capture_output=True, text=True).stdout.split()
print(json.dumps({"missing": sorted(named - loaded), "drivers": sorted(loaded), "py-spy": tool[-1:]}))
"""
"""Loads what NCCL opens for HCAs, and finds the program that examines ranks. Run by the python3 of an image."""
REPOSITORY = "distribution/test"
FOLDER = "/root/distribution"


def build(tag: str, name: str = "lab1", **layers: int) -> str:
    """Make an image on a node, with a file a layer, of that many random MiB. The same name is the same layer."""
    copies = "\\n".join(f"COPY {layer} /{layer}" for layer in layers)
    files = "".join(
        f"test -e {layer} || dd if=/dev/urandom of={layer} bs=1M count={size} status=none; "
        for layer, size in layers.items()
    )
    dockerfile = f"printf 'FROM scratch\\n{copies}\\nLABEL made={tag}\\nCMD [\"/none\"]\\n' > Dockerfile"
    # Without BuildKit, which is a package of its own.
    make = f"DOCKER_BUILDKIT=0 docker build -q -t {REPOSITORY}:{tag} ."
    on(name, f"mkdir -p {FOLDER} && cd {FOLDER} && {files} {dockerfile} && {make}")
    return f"{REPOSITORY}:{tag}"


def remove(*names: str) -> None:
    """Remove these images from nodes, by name: by id, a graph driver keeps one that another was built from."""
    for name in names:
        on(name, f"docker images --format '{{{{.Repository}}}}:{{{{.Tag}}}}' {REPOSITORY} | xargs -r docker rmi -f")


def given(image: str, **more: Any) -> tuple[str, ...]:
    """Return the arguments that request an image that one of the nodes has: the archive is never read."""
    archive = str(Path(__file__))
    requested = variables(
        training_image_source="archive", training_image_name=image, training_image_archive=archive, **more
    )
    return ("--tags", "training_image", *requested)


def distribute(image: str, **more: Any) -> Run:
    return playbook("site", *given(image, **more))


def has(name: str, image: str) -> bool:
    return has_image(name, image)


def left(name: str) -> list[str]:
    """What a transfer has left on a node, the parts of an image aside."""
    found = on(
        name,
        f"ls -d {SPOOL}/key {SPOOL}/part 2>/dev/null; grep swarmspeed-transfer /root/.ssh/authorized_keys; "
        # Quoted: the shell would put the file's name there, and the transfer would take pgrep for a reader.
        f"pgrep -f '{SPOOL}/[s]erve.py'; true",
    ).splitlines()
    return [*found, *image_ids(name, label="swarmspeed.transfer")]


def transfer_line(run: Run, name: str) -> str:
    """Return the line on what was transferred to a node."""
    found = re.search(rf"{name}: \d+ MiB in [^']*", run.text)
    assert found, run.output[-3000:]
    return found[0]
