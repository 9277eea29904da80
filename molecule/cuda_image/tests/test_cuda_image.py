"""The image for GPU servers is built from wheels alone, starts without compiling, and reaches every node.

Real: the wheels with CUDA, nvcc, the operators that it compiles, both engines. Stand-ins: the GPUs, their driver and
NVIDIA's package repositories (molecule/gpu_host/stand_in). Nothing here computes on a GPU.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines import inspect
from tests.gpu_runs import PAIR, STAND_IN, be, gpu, publish
from tests.image_runs import FABRIC
from tests.playbook_run import INVENTORY, ROOT, Run, network, on

TAGS = "host,nvidia_driver,docker,training_image"
LONG = 3600.0
"""Seconds: three gigabytes of wheels, and two operators compiled."""
PREPARED = r"""
import json, os, shutil
os.environ.update(DS_ACCELERATOR="cuda", TORCH_EXTENSIONS_DIR="/tmp/extensions")
import torch
from deepspeed import git_version_info as built
from deepspeed.ops.op_builder import CPUAdamBuilder, FusedAdamBuilder
found = {
    "cuda": torch.version.cuda,
    "nccl": ".".join(map(str, torch.cuda.nccl.version())),
    "operators": sorted(name for name, there in built.installed_ops.items() if there),
    "accelerator": built.accelerator_name,
    "modules": [FusedAdamBuilder().load().__name__, CPUAdamBuilder().load().__name__],
    "compilers": [name for name in ("gcc", "g++", "cc", "nvcc", "ninja.real") if shutil.which(name)],
    "compiled": os.path.exists("/tmp/extensions") and os.listdir("/tmp/extensions"),
}
print(json.dumps(found))
"""
ABSENT = r"""
import os
os.environ.update(DS_ACCELERATOR="cuda", TORCH_EXTENSIONS_DIR="/tmp/extensions")
from deepspeed.ops.op_builder import CPULionBuilder
CPULionBuilder().load()
"""


def authorities(folder: Path) -> str:
    """Return a file with the certificate authorities that this machine trusts beyond the usual ones; empty for none.

    Behind a proxy that ends TLS the nodes need them for the package index, as a user's servers would.
    """
    texts = [
        path.read_text(encoding="utf-8") for path in sorted(Path("/usr/local/share/ca-certificates").glob("*.crt"))
    ]
    if not texts:
        return ""
    path = folder / "authorities.crt"
    path.write_text("".join(text if text.endswith("\n") else f"{text}\n" for text in texts), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module", name="given")
def _given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    publish("first")
    for name in PAIR:
        # Where the tests run a second time, the driver that is loaded stays.
        if not on(name, f"ls -d {STAND_IN}/machine 2>/dev/null; true"):
            be(name, "h100")
    yield {
        "training_image_base": "swarmspeed-lab/base:bookworm",
        "training_image_base_archive": str(INVENTORY / "../../.lab/cache/base-debian12.tar.gz"),
        "host_ca_certificate": authorities(tmp_path_factory.mktemp("authorities")),
        "nvidia_container_toolkit_source": "keep",
        # The script brings its optimizer: one of both operators, by its own options.
        "deepspeed_launch_ds_config_preset": "zero2_offload",
    }


def prepared(given: dict[str, Any], *arguments: str) -> Run:
    return gpu("site", *arguments, tags=TAGS, timeout=LONG, **given)


def image_of(run: Run) -> str:
    named = set(re.findall(r"Name the training image (\S+)\]", run.output))
    assert len(named) == 1, named
    return str(named.pop())


@pytest.fixture(scope="module", name="built")
def _built(given: dict[str, Any]) -> tuple[str, Run]:
    """The image's name as check mode predicts it, before there is a driver, and the run that builds it."""
    predicted = image_of(prepared(given, "--check").done(nodes=PAIR))
    return predicted, prepared(given).done(nodes=PAIR)


def in_the_image(node: str, image: str, program: str) -> str:
    return on(node, f"docker run --rm --network none {image} python3 -c {shlex.quote(program)}")


def test_the_image_has_what_nccl_opens_for_infiniband_and_roce(built: tuple[str, Run]) -> None:
    found = json.loads(in_the_image(PAIR[0], built[0], FABRIC))
    assert (found["missing"], found["py-spy"]) == ([], ["0.4.3"])
    assert {"mlx5", "efa", "bnxt_re", "irdma"} <= set(found["drivers"])


def test_the_name_is_the_same_in_check_mode_and_with_a_driver(built: tuple[str, Run], given: dict[str, Any]) -> None:
    predicted, run = built
    assert image_of(run) == predicted
    assert image_of(prepared(given).done(change=False, nodes=PAIR)) == predicted


def test_the_build_reports_its_steps(built: tuple[str, Run]) -> None:
    reported = re.search(r"lab1: built in (\d+) s: (.*)\.", built[1].text)
    assert reported, built[1].output[-3000:]
    # What an earlier build has left in the engine's cache has no time.
    assert re.search(r"Compile DeepSpeed \d+ s", reported[2]), reported[2]


@pytest.mark.parametrize("node", PAIR)
def test_it_starts_without_compiling(node: str, built: tuple[str, Run]) -> None:
    found = json.loads(in_the_image(node, built[0], PREPARED).splitlines()[-1])
    assert found["cuda"].startswith("13.")
    assert found["nccl"].startswith("2.")
    assert (found["operators"], found["accelerator"]) == (["cpu_adam", "fused_adam"], "cuda")
    assert found["modules"] == ["deepspeed.ops.adam.fused_adam_op", "deepspeed.ops.adam.cpu_adam_op"]
    assert (found["compilers"], found["compiled"]) == ([], False)


def test_an_operator_that_is_not_in_it_cannot_be_had(built: tuple[str, Run]) -> None:
    # What every job with DeepSpeed's Adam would end with, if that had not been compiled into the image.
    with pytest.raises(AssertionError, match=r"lion|ninja|c\+\+|CUDA_HOME"):
        in_the_image("lab1", built[0], ABSENT)


def test_wheels_and_compilers_are_in_no_layer(built: tuple[str, Run]) -> None:
    search = "find / -xdev '(' -name '*.whl' -not -path '/usr/share/*' -o -name nvcc -o -name cc1plus ')'"
    found = on("lab1", f"docker run --rm --network none {built[0]} {search}")
    assert found == ""
    environment = inspect("lab1", "image", built[0])["Config"]["Env"]
    assert "NVIDIA_VISIBLE_DEVICES=all" in environment
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in environment


def test_the_same_from_a_bundle_without_a_network(built: tuple[str, Run], given: dict[str, Any]) -> None:
    # On the disk of the checkout: five gigabytes are too many for a place in memory.
    folder = Path(tempfile.mkdtemp(prefix="cuda-bundle", dir=ROOT / ".cache")) / "bundle"
    values = {
        **given,
        "nvidia_driver_source": "keep",  # nothing of a driver in the bundle: packages of it are named by their user
        "training_image_compute_capabilities": ["9.0"],
        "cluster_accelerator": "cuda",
        "cluster_bundle": str(folder),
    }
    gpu("bundle", tags="", timeout=LONG, **values).done(nodes=("lab1",))
    for name in PAIR:
        on(name, f"docker rmi {built[0]}")
    network("cut")
    try:
        run = gpu("site", tags="training_image", timeout=LONG, **values)
        run.done(change=True, nodes=PAIR)
        assert network("count") == "0"
    finally:
        network("restore")
        shutil.rmtree(folder.parent)
    for name in PAIR:
        assert json.loads(in_the_image(name, built[0], PREPARED).splitlines()[-1])["operators"] == [
            "cpu_adam",
            "fused_adam",
        ]
