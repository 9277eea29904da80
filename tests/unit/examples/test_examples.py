# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What all examples have in common: a README with one line to run them, wheels for the lab, a row in the table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
SHARE_AN_IMAGE = ("cifar10", "deepspeed_chat_sft", "lightning_ddp", "trainer_full")

every_example = pytest.mark.parametrize("name", NAMES)


def variables(name: str) -> dict[str, Any]:
    found = yaml.safe_load((EXAMPLES / name / "vars.yml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def wheels(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def test_all_are_there() -> None:
    seven = {"bare_hosts", "cifar10", "deepspeed_chat_sft", "gdgpt_pipeline", "lightning_ddp", "llama_factory_sft"}
    assert set(NAMES) == seven | {"torchrun_single", "trainer_full", "digits"}


@every_example
def test_one_line_runs_it(name: str) -> None:
    command = f"ansible-playbook site.yml -i inventories/lab -e @examples/{name}/vars.yml"
    readme = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^ansible-playbook .*", readme, re.M) == [command]
    if name != "digits":  # for any inventory
        assert command in (EXAMPLES / name / "vars.yml").read_text(encoding="utf-8")
    row = next(row for row in (EXAMPLES / "README.md").read_text(encoding="utf-8").splitlines() if f"({name}/" in row)
    assert f"`{command}`" in row


@every_example
def test_the_readme_says_what_is_not_proven(name: str) -> None:
    readme = " ".join((EXAMPLES / name / "README.md").read_text(encoding="utf-8").split())
    assert re.search("not tried on (any )?GPUs", readme)
    assert name in ("digits", "bare_hosts") or "tand-in" in readme


@every_example
def test_what_the_lab_has_no_index_for_is_among_the_wheels(name: str) -> None:
    found = variables(name)
    house = Path(found.get("training_image_wheelhouse", "wheelhouse")).name
    base = {re.split("[=+]", line)[0] for line in wheels(ROOT / "molecule/default/wheelhouse.txt")}
    requested = [word for word in found.get("training_image_python_packages", []) if not word.startswith("-")]
    if house == "wheelhouse":
        assert set(requested) <= base
    else:
        folder = EXAMPLES if house == "wheelhouse-examples" else EXAMPLES / name
        assert house in ("wheelhouse-examples", f"wheelhouse-{name}")
        assert [word for word in requested if word not in wheels(folder / "wheels.txt")] == []
        assert f"make_house {house.removeprefix('wheelhouse-')} " in (
            ROOT / "molecule/default/example_wheels"
        ).read_text(encoding="utf-8")
        assert "make example-wheels" in (EXAMPLES / name / "README.md").read_text(encoding="utf-8")


def test_four_share_one_image() -> None:
    keys = ("training_image_python_packages", "training_image_wheelhouse", "training_image_deepspeed_version")
    images = [{key: variables(name).get(key) for key in keys} for name in SHARE_AN_IMAGE]
    assert images.count(images[0]) == len(SHARE_AN_IMAGE)
