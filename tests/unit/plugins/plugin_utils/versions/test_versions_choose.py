# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The choice of versions, and each sentence on what forbids one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.versions import VERSION_CHECKS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.candidate import Candidate
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.choose import Choice, choose
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.hosts import Host
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.numbers import key, major, runs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.refuse import without_code
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.requested import parse_requested
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.table import load_table
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

TABLE = load_table()
WHL = "https://download.pytorch.org/whl"
CU13 = "cuda-toolkit[nvcc,cccl,crt,nvvm,cudart,curand,cublas,cusparse,cusolver]"
NEW = Host("new", ("9.0",), driver="580.95.05", branch=580, source="cuda_repository", usual=580)
OLD_DRIVER = replace(NEW, name="kept", driver="550.163.01")
VOLTA = replace(NEW, name="volta", capabilities=("7.0",))
PASCAL = replace(NEW, name="pascal", capabilities=("6.1",))
BLACKWELL = replace(NEW, name="blackwell", capabilities=("12.0",))
GH200 = replace(NEW, name="gh200", architecture="aarch64")
GH200_OLD = replace(GH200, driver="550.163.01")
NEAREST = "and leave training_image_torch and training_image_torch_index empty, the nearest row that works"


def chosen(*hosts: Host, **requested: Any) -> Choice:
    return choose(hosts, parse_requested(requested), TABLE)


def reported(*hosts: Host, **requested: Any) -> list[str]:
    return [str(problem) for problem in chosen(*hosts, **requested).problems]


# Nothing set


@pytest.mark.parametrize(
    ("hosts", "stack", "torch", "index"),
    [
        ((NEW,), "cu130", "torch==2.12.1", ""),
        ((NEW, BLACKWELL), "cu130", "torch==2.12.1", ""),
        ((OLD_DRIVER,), "cu128", "torch==2.10.0", ""),
        ((NEW, OLD_DRIVER), "cu128", "torch==2.10.0", ""),
        ((VOLTA,), "cu128", "torch==2.10.0", ""),
        ((VOLTA, BLACKWELL), "cu128", "torch==2.10.0", ""),
        ((PASCAL,), "cu126", "torch==2.12.1", f"{WHL}/cu126"),
        ((PASCAL, NEW), "cu126", "torch==2.12.1", f"{WHL}/cu126"),
        ((replace(NEW, driver=""),), "cu130", "torch==2.12.1", ""),
    ],
)
def test_the_first_row_that_every_gpu_and_driver_runs(
    hosts: tuple[Host, ...], stack: str, torch: str, index: str
) -> None:
    found = chosen(*hosts)
    assert (found.stack, found.torch, found.torch_index, found.problems) == (stack, torch, index, ())


def test_all_of_a_choice() -> None:
    found = chosen(NEW, replace(BLACKWELL, driver="580"))
    assert found.as_dict() == {
        "stack": "cu130",
        "cuda": "13.0",
        "torch": "torch==2.12.1",
        "torch_index": "",
        "compiler": [f"{CU13}==13.0.2"],
        "cuda_home": "cu13",
        "build_base": "",
        "nccl": "2.29.7",
        "driver_min": "580",
        "capabilities": ["9.0", "12.0"],
        "hosts": {
            "new": {"driver_branch": 580, "driver_source": "cuda_repository", "capabilities": ["9.0"]},
            "blackwell": {"driver_branch": 580, "driver_source": "cuda_repository", "capabilities": ["12.0"]},
        },
        "problems": [],
        "notes": [
            "The training image gets torch==2.12.1 from the ordinary package index, CUDA 13.0.",
            "The GPUs have compute capability 9.0 (new) and 12.0 (blackwell): the image is built for all of them, and "
            "what a job may use is planned for the oldest, 9.0.",
        ],
    }


def test_no_wheel_has_the_compiler_of_cuda_12_and_that_is_reported() -> None:
    found = chosen(OLD_DRIVER)
    assert (found.compiler, found.cuda_home) == ((), "base")
    assert found.build_base == "nvidia/cuda:12.8.1-devel-ubuntu24.04"
    assert found.notes == (
        "The training image gets torch==2.10.0 from the ordinary package index, CUDA 12.8, as the driver of kept is "
        "older than 580, which CUDA 13.0 needs (nvidia_driver_branch: 580 changes that).",
        "No Python package contains nvcc for CUDA 12.8: the image is built in nvidia/cuda:12.8.1-devel-ubuntu24.04, "
        "and begins with the -base- image of the same name.",
    )
    assert len(chosen(OLD_DRIVER, base="nvidia/cuda:12.8.1-devel-ubuntu24.04").notes) == 1


@pytest.mark.parametrize(
    ("hosts", "requested", "note"),
    [
        ((VOLTA,), {}, "CUDA 12.8, as CUDA 13.0 has no code for the GPUs of volta."),
        (
            (replace(OLD_DRIVER, ended="2026-02"),),
            {},
            "Driver 550.163.01 (kept) has had no security updates since 2026-02: nvidia_driver_branch: 580 replaces "
            "it.",
        ),
        (
            (NEW,),
            {"torch": "torch==2.8.0"},
            "NCCL 2.27.3 of this PyTorch is known to be bad: asking its RAS service for the state can crash the job "
            "(https://github.com/NVIDIA/nccl/issues/1762).",
        ),
        (
            (NEW,),
            {"torch": "torch==2.5.1"},
            "torch==2.5.1 is not in the table of versions, so it is unknown whether it works with CUDA 13.0; "
            "training_image_cuda says which CUDA it has.",
        ),
    ],
)
def test_what_is_worth_knowing_is_reported(hosts: tuple[Host, ...], requested: dict[str, Any], note: str) -> None:
    notes = chosen(*hosts, **requested).notes
    assert any(one.endswith(note) for one in notes), notes


def test_many_hosts_are_reported_in_short() -> None:
    many = [replace(OLD_DRIVER, name=f"gpu{number}") for number in range(8)]
    assert "the driver of gpu0, gpu1, gpu2, gpu3, gpu4 and 3 more is older" in chosen(*many).notes[0]


# What the user sets wins


@pytest.mark.parametrize(
    ("requested", "cuda", "torch", "index", "compiler"),
    [
        ({"cuda": "12.8"}, "12.8", "torch==2.10.0", "", ()),
        ({"cuda": 13.0}, "13.0", "torch==2.12.1", "", (f"{CU13}==13.0.2",)),
        ({"cuda": "13.2"}, "13.2", "torch==2.15.0", "", (f"{CU13}==13.2.2",)),
        ({"torch": "torch==2.13.0"}, "13.0", "torch==2.13.0", "", (f"{CU13}==13.0.3",)),
        ({"torch": "torch===2.13.0"}, "13.0", "torch===2.13.0", "", (f"{CU13}==13.0.3",)),
        ({"torch": "torch==2.9.1"}, "12.8", "torch==2.9.1", "", ()),
        ({"torch": "torch==2.6.0 torchvision"}, "12.4", "torch==2.6.0 torchvision", "", ()),
        ({"torch": "torch==2.13.0", "cuda": "12.6"}, "12.6", "torch==2.13.0", f"{WHL}/cu126", ()),
        ({"torch_index": f"{WHL}/cu126"}, "12.6", "torch==2.12.1", f"{WHL}/cu126", ()),
        ({"torch_index": f"{WHL}/cu130/"}, "13.0", "torch==2.12.1", f"{WHL}/cu130/", (f"{CU13}==13.0.2",)),
        (
            {"torch": "torch==2.9.1+cu130", "torch_index": f"{WHL}/cu130"},
            "13.0",
            "torch==2.9.1+cu130",
            f"{WHL}/cu130",
            (f"{CU13}==13.0.2",),
        ),
        (
            {"torch_index": "https://mirror.example/simple"},
            "13.0",
            "torch==2.12.1",
            "https://mirror.example/simple",
            (f"{CU13}==13.0.2",),
        ),
        ({"torch": "einops"}, "13.0", "einops", "", (f"{CU13}==13.0.2",)),
        # An older DeepSpeed with what it compiles with.
        ({"deepspeed_version": "0.16.9"}, "13.0", "torch==2.12.1", "", (f"{CU13}==13.0.2",)),
    ],
)
def test_what_the_user_sets_is_taken_and_the_rest_follows(
    requested: dict[str, Any], cuda: str, torch: str, index: str, compiler: tuple[str, ...]
) -> None:
    found = chosen(NEW, **requested)
    assert (found.cuda, found.torch, found.torch_index, found.compiler) == (cuda, torch, index, compiler)
    assert found.problems == ()


@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        (["9.0", "8.0"], ("8.0", "9.0")),
        ("10.0;9.0", ("9.0", "10.0")),
        ([9.0], ("9.0",)),
        ("9.0 8.0+PTX", ("8.0+PTX", "9.0")),
    ],
)
def test_the_users_compute_capabilities(given_value: Any, expected: tuple[str, ...]) -> None:
    found = chosen(NEW, compute_capabilities=given_value)
    assert (found.capabilities, found.problems) == (expected, ())


def test_a_gpu_that_nothing_knows_needs_the_variable_and_then_passes() -> None:
    rubin = replace(NEW, capabilities=(), unknown=("0x3000 at 0000:01:00.0",))
    assert reported(rubin) == [
        "new: the compute capability of 0x3000 at 0000:01:00.0 is unknown, and no driver reports it. Remedy: set "
        'training_image_compute_capabilities to those of all GPUs of the cluster, such as ["9.0"] '
        "(developer.nvidia.com/cuda-gpus)."
    ]
    assert chosen(rubin, compute_capabilities=["12.0"]).problems == ()


def test_on_cpus_nothing_is_asked_of_gpus() -> None:
    found = choose([], parse_requested({}), TABLE, "cpu")
    assert (found.stack, found.torch, found.torch_index) == ("cpu", "torch==2.13.0", f"{WHL}/cpu")
    assert (found.compiler, found.cuda_home, found.driver_min, found.problems) == ((), "", "", ())
    own = choose([], parse_requested({"torch": "torch==2.9.1", "torch_index": "https://mirror.example"}), TABLE, "cpu")
    assert (own.torch, own.torch_index) == ("torch==2.9.1", "https://mirror.example")


# What forbids it


@pytest.mark.parametrize(
    ("hosts", "requested", "words"),
    [
        (
            (OLD_DRIVER,),
            {"cuda": "13.0"},
            "kept: driver 550.163.01 does not run CUDA 13.0, which needs 580 or later. Remedy: set "
            'nvidia_driver_branch: 580 to have a newer driver installed; or set training_image_cuda: "12.8" '
            f"{NEAREST} (cu128 of docs/versions.md).",
        ),
        (
            (replace(BLACKWELL, capabilities=("10.3",), driver="575.57.08"),),
            {},
            "blackwell: driver 575.57.08 does not run CUDA 13.0, which needs 580 or later. Remedy: set "
            "nvidia_driver_branch: 580 to have a newer driver installed.",
        ),
        (
            (PASCAL,),
            {"torch": "torch==2.12.1"},
            "pascal: PyTorch for CUDA 13.0 no longer has code for compute capability 6.1. Remedy: set "
            f'training_image_cuda: "12.6" {NEAREST} (cu126 of docs/versions.md).',
        ),
        (
            (VOLTA,),
            {"torch": "torch==2.11.0", "torch_index": f"{WHL}/cu128"},
            "volta: PyTorch for CUDA 12.8 no longer has code for compute capability 7.0. Remedy: set "
            f'training_image_cuda: "12.8" {NEAREST} (cu128 of docs/versions.md).',
        ),
        (
            (BLACKWELL,),
            {"cuda": "12.6"},
            "blackwell: PyTorch for CUDA 12.6 has no code for compute capability 12.0. Remedy: set "
            f'training_image_cuda: "13.0" {NEAREST} (cu130 of docs/versions.md).',
        ),
        (
            (PASCAL, BLACKWELL),
            {},
            "pascal: PyTorch for CUDA 13.0 no longer has code for compute capability 6.1. Remedy: no row of "
            "docs/versions.md has code for all GPUs of this cluster: take the host out of the inventory, or set "
            "gpu_slots: 0 for it.",
        ),
        (
            (NEW,),
            {"compute_capabilities": ["8.0"]},
            "new: the GPUs have compute capability 9.0, but an image for 8.0 has no operators for them. Remedy: add "
            "it to training_image_compute_capabilities, or leave that empty to have it read from the GPUs.",
        ),
        (
            (NEW,),
            {"compute_capabilities": ["9.0", "6.0"], "cuda": "13.0"},
            "training_image_compute_capabilities: PyTorch for CUDA 13.0 no longer has code for compute capability "
            f'6.0. Remedy: set training_image_cuda: "12.6" {NEAREST} (cu126 of docs/versions.md).',
        ),
        (
            (NEW,),
            {"torch": "torch==2.13.0", "torch_index": f"{WHL}/cu128"},
            f"training_image_torch_index: {WHL}/cu128 has PyTorch 2.7 to 2.11, but 2.13.0 is requested "
            "(https://github.com/pytorch/pytorch/issues/178665). Remedy: set training_image_torch: torch==2.10.0, "
            "which it has.",
        ),
        (
            (NEW,),
            {"torch": "torch==2.15.0", "cuda": "12.6"},
            f"training_image_torch: {WHL}/cu126 has PyTorch 2.6 to 2.14, but 2.15.0 is requested "
            "(https://github.com/pytorch/pytorch/issues/190385). Remedy: leave training_image_torch and "
            "training_image_torch_index empty to have both chosen.",
        ),
        (
            (NEW,),
            {"torch_index": f"{WHL}/cpu"},
            f"training_image_torch_index: {WHL}/cpu has PyTorch without CUDA, but this cluster computes on GPUs. "
            "Remedy: leave training_image_torch_index empty, or set cluster_accelerator: cpu.",
        ),
        (
            (NEW,),
            {"torch": "torch==2.9.1+cu128"},
            "training_image_torch: the ordinary package index has no builds such as +cu128. Remedy: leave +cu128 out, "
            "or set training_image_torch_index to the index that has them.",
        ),
        (
            (NEW,),
            {"torch": "torch==2.15.0", "base": "ubuntu:22.04"},
            "training_image_python: PyTorch 2.15.0 has wheels for Python 3.11 to 3.15, but the image has Python 3.10. "
            "Remedy: choose another training_image_base, or set training_image_torch: torch==2.14.1, the newest for "
            "it.",
        ),
        (
            (NEW,),
            {"torch": "torch==2.15.0", "deepspeed_version": "0.18.9"},
            "training_image_deepspeed_version: DeepSpeed 0.18.9 does not compile its operators with PyTorch 2.15.0, "
            "as it passes -std=c++17 to nvcc, and this PyTorch's headers need C++20 "
            "(https://github.com/deepspeedai/DeepSpeed/pull/8422). Remedy: set training_image_deepspeed_version: "
            "0.19.7 or later, or training_image_torch: torch==2.13.0 or older.",
        ),
        (
            (NEW,),
            {"cuda": "11.8"},
            "training_image_cuda: CUDA '11.8' is not in the table of versions. Remedy: set one of 13.2, 13.0, 12.8, "
            "12.6, 12.4, or leave it empty to have one chosen.",
        ),
        (
            (NEW,),
            {"compute_capabilities": ["sm_90"]},
            "training_image_compute_capabilities: not a compute capability: sm_90. Remedy: write a list such as "
            '["8.0", "9.0"], or leave it empty to have the GPUs of the cluster asked.',
        ),
        (
            (NEW,),
            {"compute_capabilities": ["9.0a"]},
            "training_image_compute_capabilities: DeepSpeed reads no architecture with a letter (9.0a), but its "
            "operators need none. Remedy: write 9.0 instead, for the same GPUs.",
        ),
        (
            (NEW,),
            {"compute_capabilities": "8.0 9.0a 10.0f+PTX 9.0a+PTX"},
            "training_image_compute_capabilities: DeepSpeed reads no architecture with a letter (9.0a, 10.0f+PTX, "
            "9.0a+PTX), but its operators need none. Remedy: write 9.0, 10.0+PTX, 9.0+PTX instead, for the same GPUs.",
        ),
        (
            (NEW,),
            {"cuda": "13.0", "torch_index": f"{WHL}/cu126"},
            "training_image_cuda, training_image_torch_index: they name different releases of CUDA "
            "(training_image_cuda: 13.0, training_image_torch_index: 12.6). Remedy: name one release in all of them, "
            "or leave training_image_cuda empty.",
        ),
    ],
)
def test_a_combination_that_does_not_work_is_one_sentence_with_what_does(
    hosts: tuple[Host, ...], requested: dict[str, Any], words: str
) -> None:
    assert reported(*hosts, **requested) == [words]


@pytest.mark.parametrize(
    ("requested", "python"),
    [
        ({}, ""),
        ({"python": "python3"}, ""),
        ({"python": "python3.12"}, "3.12"),
        ({"python": "/usr/local/bin/python3.12", "base": "debian:12"}, "3.12"),
        ({"base": "debian:12"}, "3.11"),
        ({"base": "registry.example/library/debian:13-slim"}, "3.13"),
        ({"base": "debian:bookworm-slim"}, "3.11"),
        ({"base": "nvidia/cuda:12.8.1-devel-ubuntu24.04"}, "3.12"),
        ({"base": "ubuntu:jammy"}, "3.10"),
        ({"base": "mine:latest"}, ""),
    ],
)
def test_the_python_of_an_image(requested: dict[str, Any], python: str) -> None:
    assert parse_requested(requested).python_of(TABLE) == python


def test_a_wheelhouse_is_its_owners() -> None:
    assert reported(NEW, torch="torch==2.13.0", torch_index=f"{WHL}/cu128", wheelhouse="wheels") == []


# Properties

CAPABILITIES = sorted({code for row in TABLE.cuda for code in row.compiles}, key=key)
HOSTS = st.lists(
    st.builds(
        lambda name, capabilities, driver: replace(NEW, name=name, capabilities=tuple(capabilities), driver=driver),
        st.sampled_from(["a", "b", "c"]),
        st.lists(st.sampled_from(CAPABILITIES), max_size=2, unique=True),
        st.sampled_from(["", "470.1", "535.1", "575.1", "580", "610.1"]),
    ),
    max_size=3,
)
REQUESTED = st.fixed_dictionaries(
    {},
    optional={
        "torch": st.sampled_from(["", "torch", "torch==2.12.1", "torch==2.6.0", "torch==2.15.0", "torch==9.9", "x y"]),
        "torch_index": st.sampled_from(["", f"{WHL}/cu126", f"{WHL}/cu128", f"{WHL}/cpu", "https://m.example/simple"]),
        "cuda": st.sampled_from(["", "13.2", "13.0", "12.8", "12.6", "12.4", "x"]),
        "compute_capabilities": st.lists(st.sampled_from([*CAPABILITIES, "9.0a", "x"]), max_size=2),
        "deepspeed_version": st.sampled_from(["", "0.19.8", "0.18.9", "main"]),
        "base": st.sampled_from(["", "debian:12", "x"]),
    },
)


@settings(deadline=None, derandomize=True, max_examples=examples(400))
@given(HOSTS, REQUESTED)
def test_what_is_chosen_without_a_problem_runs_everywhere(hosts: list[Host], requested: dict[str, Any]) -> None:
    found = choose(hosts, parse_requested(requested), TABLE)
    for problem in found.problems:
        assert problem.check in VERSION_CHECKS
        assert problem.subjects and problem.text and problem.remedy
        assert not problem.text.endswith(".") and not problem.remedy.endswith(".")
    assert all(note.endswith(".") for note in found.notes)
    if requested.get("torch"):
        assert found.torch == requested["torch"]
    if requested.get("torch_index"):
        assert found.torch_index == requested["torch_index"]
    row = TABLE.cuda_row(found.cuda)
    if found.problems or row is None:
        return
    for host in hosts:
        assert not host.driver or major(host.driver) >= row.driver
        assert all(any(runs(code, has) for code in row.kernels) for has in host.capabilities)
    assert bool(found.compiler) is (found.cuda_home == "cu13")


@settings(deadline=None, derandomize=True, max_examples=examples(100))
@given(HOSTS)
def test_a_choice_does_not_depend_on_the_order_of_hosts(hosts: list[Host]) -> None:
    one, other = choose(hosts, parse_requested({}), TABLE), choose(hosts[::-1], parse_requested({}), TABLE)
    assert (one.stack, one.capabilities, one.compiler) == (other.stack, other.capabilities, other.compiler)


@settings(deadline=None, derandomize=True, max_examples=examples(100))
@given(st.dictionaries(st.sampled_from(["torch", "torch_index", "cuda", "compute_capabilities", "base"]), st.text()))
def test_junk_never_raises(requested: dict[str, str]) -> None:
    choose([NEW], parse_requested(requested), TABLE)


def test_a_row_that_the_table_does_not_know_has_nothing_to_judge() -> None:
    assert not without_code(Candidate("x", "99", "torch", "", "", "", "", None), "9.0")


# aarch64 (F7), CUDA 13.2 and Ubuntu 26.04


@pytest.mark.parametrize(
    ("hosts", "requested", "stack", "torch", "index"),
    [
        ((GH200,), {}, "cu130", "torch==2.12.1", ""),
        # The ordinary index has torch 2.10 for CPUs alone there, which would end the build after minutes.
        ((GH200_OLD,), {}, "cu128", "torch==2.10.0", f"{WHL}/cu128"),
        ((OLD_DRIVER,), {}, "cu128", "torch==2.10.0", ""),
        ((GH200_OLD,), {"torch": "torch==2.9.1"}, "cu128", "torch==2.9.1", f"{WHL}/cu128"),
        ((GH200_OLD,), {"torch": "torch==2.7.1"}, "cu126", "torch==2.7.1", f"{WHL}/cu126"),
        # An index of the user's own stays.
        ((GH200_OLD,), {"torch_index": "https://p.example.com/simple"}, "cu128", "torch==2.10.0", None),
        ((NEW,), {"cuda": "13.2"}, "cu132", "torch==2.15.0", ""),
        ((NEW,), {"torch": "torch==2.15.0"}, "cu132", "torch==2.15.0", ""),
        ((NEW,), {"base": "ubuntu:26.04"}, "cu132", "torch==2.15.0", ""),
        ((NEW,), {"base": "docker.io/library/ubuntu:resolute"}, "cu132", "torch==2.15.0", ""),
    ],
)
def test_what_is_chosen_there(
    hosts: tuple[Host, ...], requested: dict[str, Any], stack: str, torch: str, index: str | None
) -> None:
    found = chosen(*hosts, **requested)
    expected = requested.get("torch_index") if index is None else index
    assert (found.stack, found.torch, found.torch_index, found.problems) == (stack, torch, expected, ())


def test_a_release_without_cuda_for_aarch64_anywhere_is_refused_with_what_works() -> None:
    assert reported(GH200_OLD, torch="torch==2.6.0") == [
        "gh200: PyTorch for CUDA 12.4 on aarch64 has no code for compute capability 9.0. Remedy: set "
        f'training_image_cuda: "12.8" {NEAREST} (cu128 of docs/versions.md).',
        "gh200: PyTorch 2.6.0 of the ordinary package index has no CUDA for aarch64. Remedy: leave "
        "training_image_torch empty, or set torch==2.11.0 or later, or set training_image_torch_index to an index "
        "that has it.",
    ]
    assert reported(OLD_DRIVER, torch="torch==2.6.0") == []


def test_wheels_for_aarch64_have_code_for_fewer_gpus() -> None:
    turing = replace(GH200, name="arm-t4", capabilities=("7.5",))
    (found,) = reported(turing)
    assert found.startswith("arm-t4: PyTorch for CUDA 13.0 on aarch64 has no code for compute capability 7.5. Remedy: ")
    assert "no row of docs/versions.md has code for all GPUs of this cluster" in found


def test_nvcc_that_does_not_compile_with_the_base_is_refused() -> None:
    assert reported(NEW, base="ubuntu:26.04", cuda="13.0") == [
        "training_image_base: nvcc of CUDA 13.0 does not compile with the C library of ubuntu:26.04, which needs CUDA "
        "13.2 or later (https://github.com/ggml-org/llama.cpp/issues/23205). Remedy: set training_image_cuda: "
        '"13.2", or another training_image_base.'
    ]


def test_pytorch_2_14_is_the_last_for_maxwell_to_volta() -> None:
    assert reported(PASCAL, torch="torch==2.14.1", torch_index=f"{WHL}/cu126") == []
    (found,) = reported(PASCAL, torch="torch==2.15.0", torch_index=f"{WHL}/cu126")
    assert "/cu126 has PyTorch 2.6 to 2.14, but 2.15.0 is requested" in found
