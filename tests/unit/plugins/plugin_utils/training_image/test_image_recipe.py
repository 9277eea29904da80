# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What goes into an image: its tag, its Dockerfile, and where they come from. The files are real."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.controller import DIGEST, TREE
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.gathered import repository
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.inputs import Trouble
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.recipe import (
    CUDA_SCRIPT,
    WHEEL_SCRIPT,
    files,
    named,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.recipe import recipe as recipe_of
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.holds import (
    FABRIC,
    HOLDS,
    TOOLS,
    missing,
    without_wheel,
)

from tests.image_nodes import CLUSTER, ROLE_VARS, ROOT, VERSIONS, plan, recipe, text

GIT = "git+https://h.example/DeepSpeed@v0.19.8"
CUDA: dict[str, Any] = {
    "accelerator": "cuda",
    "versions": {
        **VERSIONS,
        "torch": "torch==2.9.1",
        "torch_index": "https://download.pytorch.org/whl/cu128",
        "compiler": ["nvidia-cuda-nvcc==13.0.1"],
        "capabilities": ["9.0", "8.0"],
    },
}
CUDA12: dict[str, Any] = {
    **CUDA,
    "versions": {**CUDA["versions"], "compiler": [], "build_base": "nvidia/cuda:12.8.1-devel-ubuntu22.04"},
}


def tags(*cases: dict[str, Any]) -> list[str]:
    return [recipe(**case).reference for case in cases]


@pytest.fixture(name="own")
def _own(tmp_path: Path) -> Path:
    """A Dockerfile with a context, as a user has one."""
    folder = tmp_path / "image"
    (folder / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git/index").write_text("1")
    (folder / "src/train.py").write_text("print()\n")
    (folder / "Dockerfile").write_text("FROM debian:12-slim\nRUN echo '{{ not_a_template }}'\n")
    return folder


PY_SPY = "py_spy-0.4.3-py2.py3-none-manylinux1_x86_64.manylinux_2_5_x86_64.whl"
NAMED: dict[str, Any] = {"training_image_repository": "swarmspeed/swarmspeed", "cluster_name": "swarmspeed"}
OFFLOAD: dict[str, Any] = {"training_image_compiler": True, "deepspeed_launch_ds_config_preset": "zero3_infinity"}
MORE: dict[str, Any] = {
    "training_image_deepspeed_ops": ["async_io", "cpu_adam"],
    "training_image_apt_packages": ["git", "jq"],
    "training_image_python_packages": ["scikit-learn", "a b"],
}
OLDER: dict[str, Any] = {
    "training_image_base": "ubuntu:24.04",
    "training_image_python": "python3.12",
    "training_image_deepspeed_version": "0.18.9",
}


@pytest.mark.parametrize(
    ("cluster", "given", "tag"),
    [
        ({}, {}, "c3d30e058ff8b65b"),
        (CUDA, {}, "1e84f0cb83253211"),
        (CUDA12, {"training_image_compiler": True}, "75b7f312fb37fcaa"),
        (CUDA, OFFLOAD, "e468c10d15860619"),
        ({}, MORE, "119b0a4fd435f5f3"),
        (CUDA, OLDER, "c3b7100d1929cbbc"),
    ],
)
def test_an_image_is_built_again_only_where_the_dockerfile_changed(
    cluster: dict[str, Any], given: dict[str, Any], tag: str
) -> None:
    """Whoever changes the Dockerfile changes these tags, knowingly: every user builds again."""
    assert recipe(cluster, **NAMED, **given).reference == f"swarmspeed/swarmspeed:{tag}"


def test_where_things_are_fetched_from_makes_no_other_image(own: Path) -> None:
    secret: dict[str, Any] = {
        "training_image_pip_index": "https://u:hunter2@m.example/simple",
        "training_image_apt_sources": ["deb http://u:hunter2@m.example/debian bookworm main"],
        "training_image_proxy": "http://u:hunter2@proxy.example:3128",
    }
    mine: dict[str, Any] = {"training_image_dockerfile": str(own / "Dockerfile")}
    assert recipe().reference == recipe(**secret).reference
    assert recipe(**mine).reference == recipe(**mine, **secret).reference
    for found in (recipe(**secret), recipe(**mine, **secret)):
        assert "hunter2" not in found.dockerfile
        assert found.network.count("hunter2") >= 3 and found.task_input()["network"] == found.network


def test_the_authority_of_the_hosts_is_that_of_the_build(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n", encoding="utf-8")
    found = recipe(host_ca_certificate=str(tmp_path / "ca.pem"))
    assert "COPY ca.crt" in found.dockerfile and "BEGIN CERTIFICATE" in found.network
    assert {"path": "ca.crt", "content": "-----BEGIN CERTIFICATE-----\n", "mode": "0644"} in found.task_input()["texts"]
    assert "COPY ca.crt" not in recipe().dockerfile


def test_what_goes_in_makes_another_image(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("a.txt", "b.txt", "a.zip", "b.zip")}
    for name, path in files.items():
        path.write_bytes(name.encode() + b"\xff")
    for name in ("a.txt", "b.txt"):
        files[name].write_text(f"{name.replace('.', '')}==1\n")
    found = tags(
        {},
        {"training_image_requirements": str(files["a.txt"])},
        {"training_image_requirements": str(files["b.txt"])},
        {"training_image_deepspeed_source": str(files["a.zip"])},
        {"training_image_deepspeed_source": str(files["b.zip"])},
        {"training_image_deepspeed_source": "git+https://h.example/a@v1"},
        {"training_image_deepspeed_source": "git+https://h.example/a@v2"},
    )
    assert len(set(found)) == len(found)
    files["a.txt"].rename(tmp_path / "c.txt")
    assert tags({"training_image_requirements": str(tmp_path / "c.txt")}) == [found[1]]


def test_the_tag_of_ones_own_dockerfile(own: Path) -> None:
    given: dict[str, Any] = {"training_image_dockerfile": str(own / "Dockerfile")}
    before, argument, again = tags(given, {**given, "training_image_build_args": {"A": "1"}}, given)
    assert re.fullmatch(r"swarmspeed/lab:[0-9a-f]{16}", before)
    assert (argument == before, again == before) == (False, True)
    (own / ".git/index").write_text("2")
    assert tags(given) == [before]
    (own / "src/train.py").write_text("print(1)\n")
    (changed,) = tags(given)
    assert changed not in (before, argument)
    (own / "Dockerfile").write_text("FROM debian:13-slim\n")
    assert tags(given)[0] not in (before, argument, changed)


def test_ones_own_dockerfile_is_taken_as_it_is_and_stays_where_it_stands(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PWD", str(own.parent))
    inside, below, outside, relative = (
        recipe(training_image_dockerfile=str(own / "Dockerfile")),
        recipe(training_image_dockerfile=str(own / "Dockerfile"), training_image_context=str(own.parent)),
        recipe(training_image_dockerfile=str(own / "Dockerfile"), training_image_context=str(own / "src")),
        recipe(training_image_dockerfile="image/Dockerfile"),
    )
    for found in (inside, below, outside, relative):
        assert found.dockerfile == (own / "Dockerfile").read_text()
        assert found.task_input()["text"] == ("" if found.within else found.dockerfile)
    assert [found.task_input()["own"] for found in (inside, below, outside)] == [
        str(own),
        str(own.parent),
        str(own / "src"),
    ]
    assert inside.task_input()["dockerfile"] == f"{ROOT}/image/Dockerfile"
    assert below.task_input()["dockerfile"] == f"{ROOT}/image/image/Dockerfile"
    # A build could copy it if it lay in the context.
    assert outside.task_input()["dockerfile"] == f"{ROOT}/image.build/Dockerfile"
    assert [found.within for found in (inside, below, outside)] == [True, True, False]
    assert relative.task_input() == inside.task_input() and relative.reference == inside.reference


@pytest.fixture(name="ours", scope="module")
def _ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """This collection's Dockerfile, as it comes from different sources of DeepSpeed."""
    folder = tmp_path_factory.mktemp("ours")
    (folder / "r.txt").write_text("einops\n")
    (folder / "DeepSpeed 1.tar.gz").touch()
    (folder / PY_SPY).touch()
    archive: dict[str, Any] = {
        "training_image_deepspeed_source": str(folder / "DeepSpeed 1.tar.gz"),
        "training_image_wheelhouse": str(folder),
    }
    git: dict[str, Any] = {"training_image_deepspeed_source": GIT, "training_image_requirements": str(folder / "r.txt")}
    found = [recipe(), recipe(**git), recipe(**archive)]
    assert {one.task_input()["dockerfile"] for one in found} == {f"{ROOT}/image/Dockerfile"}
    return dict(zip(("index", "git", "archive"), (one.dockerfile for one in found), strict=True))


def step(text: str, title: str) -> str:
    """Return one RUN with its continued lines."""
    (found,) = [part for part in re.split(r"\n(?=[A-Z#])", text.replace("\\\n", "")) if f": '{title}'" in part]
    return " ".join(found.split())


def test_deepspeed_from_the_index(ours: dict[str, str]) -> None:
    text = ours["index"]
    assert " git" not in step(text, "Install Python and compilers")
    assert step(text, "Compile DeepSpeed").endswith("--wheel-dir /built deepspeed==0.19.8")
    assert "requirements.txt" not in text and "deepspeed_wheel.py" not in text


def test_deepspeed_from_git_and_requirements(ours: dict[str, str]) -> None:
    text = ours["git"]
    assert step(text, "Install Python and compilers").endswith(" git")
    compiled = step(text, "Compile DeepSpeed")
    assert compiled.endswith(f"python /build/deepspeed_wheel.py 0.19.8 {GIT} /built")
    assert "--mount=type=bind,source=deepspeed,target=/build " in compiled
    assert "DS_BUILD_SHM_COMM=1" in compiled
    installed = step(text, "Install DeepSpeed and further packages")
    assert installed.endswith("--constraint /built/constraints.txt /built/*.whl --requirement /build/requirements.txt")


def test_deepspeed_from_an_archive_with_a_wheelhouse(ours: dict[str, str]) -> None:
    text = ours["archive"]
    assert " git" not in step(text, "Install Python and compilers")
    assert step(text, "Compile DeepSpeed").endswith(
        "deepspeed_wheel.py 0.19.8 /build/source.tar.gz /built --no-index --find-links /wheelhouse"
    )


def test_every_step_that_fetches_reads_the_secret_in_both_stages(ours: dict[str, str]) -> None:
    lines = [line for text in ours.values() for line in text.replace("\\\n", "").splitlines()]
    fetching = [line for line in lines if re.match(r"RUN .*(apt-get|pip (install|wheel)|deepspeed_wheel[.]py)", line)]
    assert len(fetching) >= 18
    assert [line for line in fetching if "type=secret,id=network" not in line or ". /run/network" not in line] == []


def test_the_image_has_what_nccl_opens_for_infiniband_and_what_examines_hangs(ours: dict[str, str]) -> None:
    """On CPUs and without a fabric, too: a cluster that gets HCAs later does not build again."""
    for made in (*ours.values(), recipe(CUDA).dockerfile):
        assert {"libibverbs1", "ibverbs-providers"} <= {*step(made, "Install sshd, Python and tools").split()}
        assert step(made, "Install what DeepSpeed needs").endswith(" tqdm py-spy==0.4.3")
        assert "libibverbs" not in made.partition("\n# libibverbs")[0]  # the build stage
    for held in (*FABRIC, *TOOLS):
        assert held in HOLDS and held in recipe().dockerfile


@pytest.mark.parametrize(
    ("held", "lacks"),
    [
        ("", ["libibverbs1", "ibverbs-providers", "py-spy"]),
        ("libibverbs1 py-spy==0.4.2", ["ibverbs-providers"]),
        (" ".join(HOLDS), []),
        ("libibverbs1-dbg libibverbs1\nibverbs-providers", ["py-spy"]),
    ],
)
def test_what_an_image_of_an_earlier_release_lacks(held: str, lacks: list[str]) -> None:
    assert missing(held) == lacks


@pytest.mark.parametrize(
    ("names", "lacks"),
    [
        ([PY_SPY], []),
        (["py_spy-0.4.3-py2.py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.whl"], []),
        ([], list(TOOLS)),
        (["py_spy-0.4.30-py3-none-any.whl", "py_spy-0.4.3.tar.gz", "spy-0.4.3-py3-none-any.whl"], list(TOOLS)),
    ],
)
def test_a_wheelhouse_without_py_spy_is_refused_before_the_build(
    names: list[str], lacks: list[str], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).touch()
    assert without_wheel(names) == lacks
    made = plan(training_image_wheelhouse=str(tmp_path))
    assert [one.sentence for one in made.refusals] == [
        f"training_image_wheelhouse {tmp_path} holds no wheel of py-spy==0.4.3, which the image has for examining jobs "
        f"that hang. Remedy: pip download --no-deps --only-binary=:all: --dest {tmp_path} py-spy==0.4.3, with "
        "--platform where the nodes have another one"
        for _tool in lacks
    ]


# What the build copies


def test_what_our_dockerfile_copies_is_sent(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("einops\n", encoding="utf-8")
    (tmp_path / "DeepSpeed.zip").touch()
    (tmp_path / "a-1.whl").touch()
    (tmp_path / PY_SPY).touch()

    def sent(**desired: Any) -> list[str]:
        return [entry["path"] for entry in recipe(CUDA, **desired).task_input()["texts"]]

    wheel = "deepspeed/deepspeed_wheel.py"
    assert sent() == ["cuda_home.py"]
    assert sent(training_image_requirements=f"{tmp_path}/r.txt") == ["cuda_home.py", "requirements.txt"]
    assert sent(training_image_deepspeed_source=GIT) == ["cuda_home.py", wheel]
    task_input = recipe(
        training_image_deepspeed_source=f"{tmp_path}/DeepSpeed.zip", training_image_wheelhouse=str(tmp_path)
    ).task_input()
    assert task_input["archive"] == {"source": f"{tmp_path}/DeepSpeed.zip", "path": "deepspeed/source.zip"}
    assert (task_input["wheelhouse"], task_input["wheels"]) == (
        str(tmp_path),
        ["DeepSpeed.zip", "a-1.whl", PY_SPY, "r.txt"],
    )
    (script,) = task_input["texts"]
    assert script == {"path": wheel, "content": f"{text(WHEEL_SCRIPT).rstrip()}\n", "mode": "0644"}
    assert recipe(CUDA).task_input()["texts"][0]["content"] == f"{text(CUDA_SCRIPT).rstrip()}\n"


def test_arguments_are_for_ones_own_dockerfile(own: Path) -> None:
    arguments = {"A": "1", "B": 2}
    assert recipe(training_image_build_args=arguments).task_input()["arguments"] == {}
    mine = recipe(training_image_dockerfile=str(own / "Dockerfile"), training_image_build_args=arguments).task_input()
    assert mine["arguments"] == arguments
    assert (mine["texts"], mine["archive"], mine["wheelhouse"], mine["text"]) == ([], {}, "", "")


def test_a_base_image_of_an_archive_is_the_small_one() -> None:
    assert recipe(CUDA12).task_input()["base"] == "nvidia/cuda:12.8.1-base-ubuntu22.04"
    assert recipe().task_input()["base"] == "debian:12-slim"
    given = recipe(CUDA12, training_image_base="ubuntu:24.04", training_image_base_archive="/b.tar").task_input()
    assert (given["base"], given["base_archive"]) == ("ubuntu:24.04", "/b.tar")


def test_a_name_that_is_known_is_not_worked_out_again(own: Path, tmp_path: Path) -> None:
    """A context can hold gigabytes, and a run plans as often as a role has changed something."""
    (tmp_path / "x.zip").touch()
    cases: list[dict[str, Any]] = [
        {"training_image_dockerfile": str(own / "Dockerfile")},
        {"training_image_deepspeed_source": f"{tmp_path}/x.zip"},
    ]
    for given in cases:
        first = recipe(**given)
        again = recipe(**given, swarmspeed_image=first.reference)
        assert again.reference == first.reference
        assert [name for name in again.files if name.startswith((TREE, DIGEST))] == []
        assert again.task_input() == first.task_input()


@pytest.mark.parametrize(
    ("name", "repo", "wanted"),
    [
        ("debian", "debian", "debian:latest"),
        ("h:5000/a/b", "h:5000/a/b", "h:5000/a/b:latest"),
        ("h:5000/a/b:c", "h:5000/a/b", "h:5000/a/b:c"),
    ],
)
def test_an_image_that_is_not_built_has_the_name_that_is_given(name: str, repo: str, wanted: str) -> None:
    role_vars = {**ROLE_VARS, "training_image_source": "pull", "training_image_name": name}
    assert (named(role_vars), repository(role_vars)) == (wanted, repo)
    assert repository(ROLE_VARS) == "swarmspeed/lab"


def test_a_source_of_deepspeed_that_is_none_is_trouble() -> None:
    role_vars = {**ROLE_VARS, "training_image_deepspeed_source": "nonsense"}
    found = recipe_of(role_vars, Inputs(CLUSTER, {name: text(name) for name in files(role_vars)}))
    assert isinstance(found, Trouble) and found.subject == "training_image_deepspeed_source"
