# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What travels to a machine with a GPU."""

from __future__ import annotations

import pytest
import yaml

from tests.documents import text
from tests.gpu_proof.paths import REQUIREMENTS, ProofError
from tests.gpu_proof.requirements import wanted
from tests.gpu_proof.wheels import LIMIT, judge_size, platforms

TEXT = """# a comment

one
two==1.2; python_version >= "3.12"
two==1.0; python_version < "3.12"
"""


@pytest.mark.parametrize(
    ("python", "names"),
    [((3, 11), ["one", "two==1.0"]), ((3, 12), ["one", "two==1.2"]), ((3, 13), ["one", "two==1.2"])],
)
def test_requirements_of_a_python(python: tuple[int, int], names: list[str]) -> None:
    assert wanted(TEXT, python) == names


@pytest.mark.parametrize("line", ["one>=2", "--index-url x", "one; python_version == '3.12'", "git+https://x"])
def test_a_line_that_is_no_requirement(line: str) -> None:
    with pytest.raises(ValueError, match=r"^line 2 is not NAME, NAME==VERSION or one of them with a python_version: "):
        wanted(f"# first\n{line}\n", (3, 12))


@pytest.mark.parametrize("python", [(3, 11), (3, 12)])
def test_releases_are_those_of_the_collection(python: tuple[int, int]) -> None:
    ours = REQUIREMENTS.read_text(encoding="utf-8")
    deepspeed = yaml.safe_load(text("roles/training_image/defaults/main.yml"))["training_image_deepspeed_version"]
    core = [line for line in wanted(text("requirements.txt"), python) if line.startswith("ansible-core==")]
    assert f"deepspeed=={deepspeed}" in wanted(ours, python)
    assert [line for line in wanted(ours, python) if line.startswith("ansible-core==")] == core
    assert not {"torch", "numpy"} & {line.partition("==")[0] for line in wanted(ours, python)}


def test_the_folder_is_small_enough_to_travel() -> None:
    judge_size(LIMIT)
    with pytest.raises(ProofError) as caught:
        judge_size(LIMIT + 1024**2)
    assert str(caught.value) == (
        ".cache/gpu_proof/wheels would be 61.0 MiB, 60 MiB are allowed. "
        "Remedy: leave out of tests/gpu_proof/requirements.txt what machines with torch have."
    )


def test_pip_is_passed_each_platform() -> None:
    assert platforms()[:2] == ["--platform", "manylinux_2_28_x86_64"]
    assert platforms("aarch64")[1::2] == [name.replace("x86_64", "aarch64") for name in platforms()[1::2]]
