# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The table of versions: its form, what it may not contradict, and that nothing taken unasked has ended."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.driver.packages import FIRST_BRANCH
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.pci import GENERATIONS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.requested import DISTRIBUTIONS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.drivers import offers
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.lifetimes import ACCEPTED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.numbers import (
    in_order,
    is_capability,
    key,
    minor,
    runs,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.table import (
    FILE,
    TableError,
    cited,
    load_table,
    parse_table,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

ROOT = Path(__file__).parents[5]
TABLE = load_table()


def document() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return copy.deepcopy(read)


def defaults(role: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / f"roles/{role}/defaults/main.yml").read_text(encoding="utf-8"))
    return read


def test_no_driver_that_is_taken_unasked_was_past_its_end_of_life_when_the_table_was_read() -> None:
    places = {(row.distribution, row.release) for row in TABLE.drivers}
    assert len(places) == 5
    for place in places:
        supported = [row for row in TABLE.drivers_of(*place) if not TABLE.has_ended(row)]
        assert supported, place


def test_debians_own_drivers_have_ended_and_so_the_rule_is_tried() -> None:
    ended = {(row.distribution, row.release) for row in TABLE.drivers if TABLE.has_ended(row)}
    assert ended == {("debian", "12"), ("debian", "13")}
    assert [row["ended"] for row in offers()["debian 12"]] == ["2026-06", ""]


def test_what_the_roles_install_unasked_is_what_the_table_says() -> None:
    assert defaults("training_image")["training_image_deepspeed_version"] == TABLE.deepspeed
    toolkit = next(part for part in TABLE.parts if part.name == "nvidia_container_toolkit")
    assert defaults("nvidia_container_toolkit")["nvidia_container_toolkit_version"] == toolkit.default
    assert all(toolkit.default not in bad.versions.split() for bad in toolkit.bad)


def test_preflight_accepts_the_hosts_that_the_table_accepts() -> None:
    accepted: dict[str, list[str]] = {}
    for row in TABLE.systems:
        if row.state in ACCEPTED:
            accepted.setdefault(row.distribution, []).append(row.release)
    assert {name: list(releases) for name, releases in DISTRIBUTIONS.items()} == accepted


def test_what_is_said_of_aarch64_fits_the_wheels() -> None:
    """F7: up to 2.10 the wheels of the ordinary index have CUDA for x86_64 alone."""
    for row in TABLE.torch:
        assert (row.aarch64 == "cuda") is (key(row.release) >= (2, 11)), row.release
    for cuda in TABLE.cuda:
        assert set(cuda.aarch64) <= set(cuda.compiles) and cuda.aarch64 == in_order(cuda.aarch64)


def test_no_default_is_known_to_be_bad() -> None:
    bad = {entry.versions for part in TABLE.parts if part.name == "nccl" for entry in part.bad}
    for stack in TABLE.gpu_stacks():
        torch = TABLE.torch_row(stack.torch)
        assert torch is not None and torch.nccl not in bad
        for pair in TABLE.deepspeed_pairs:
            assert key(TABLE.deepspeed) >= key(pair.before) or minor(stack.torch) < key(pair.torch)


def test_every_driver_of_the_table_runs_the_first_stack() -> None:
    row = TABLE.cuda_row(TABLE.gpu_stacks()[0].cuda)
    assert row is not None
    assert all(driver.branch >= row.driver for driver in TABLE.drivers if not TABLE.has_ended(driver))


def test_every_generation_that_the_newest_drivers_know_has_a_stack() -> None:
    oldest = {"Maxwell": "5.0", "Pascal": "6.0", "Volta": "7.0", "Turing": "7.5", "Ampere": "8.0", "Ada": "8.9"}
    oldest |= {"Hopper": "9.0", "Grace Hopper": "9.0", "Blackwell": "10.0"}
    assert set(oldest) | {"Kepler", "Rubin"} == set(GENERATIONS)
    for name, capability in oldest.items():
        kernels = [code for stack in TABLE.gpu_stacks() for code in _kernels(stack.cuda)]
        assert any(runs(code, capability) for code in kernels), name
    assert FIRST_BRANCH["Blackwell"] <= 580


def _kernels(cuda: str) -> list[str]:
    row = TABLE.cuda_row(cuda)
    assert row is not None
    return list(row.kernels)


def test_numbers_of_the_table_are_numbers_and_in_order() -> None:
    for row in TABLE.cuda:
        assert all(is_capability(name) for name in (*row.kernels, *row.compiles))
        assert list(row.kernels) == list(in_order(row.kernels)) and row.compiles == in_order(row.compiles)
        assert set(row.kernels) <= set(row.compiles)
    releases = [key(row.release) for row in TABLE.torch]
    assert releases == sorted(releases, reverse=True)


def test_each_source_is_cited_and_each_row_has_one() -> None:
    assert set(TABLE.sources) <= cited(TABLE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda given: given.pop("torch"), "'torch' is missing."),
        (lambda given: given.update(more=1), "'more' is not known."),
        (lambda given: given["stacks"][0].pop("cuda"), "stacks[0]: 'cuda' is missing."),
        (lambda given: given["stacks"][0].update(cudas=1), "stacks[0]: 'cudas' is not known."),
        (lambda given: given["stacks"][0].update(cuda=13.0), "stacks[0].cuda: 13.0 is not of the type str."),
        (lambda given: given["stacks"][0].update(cuda="11.8"), "stacks: cu130 has CUDA 11.8, which has no row."),
        (lambda given: given["stacks"][0].update(torch="1.0"), "stacks: cu130 has PyTorch 1.0, which has no row."),
        (
            lambda given: given["stacks"][0].update(cuda="12.8"),
            "stacks: cu130 has CUDA 12.8, and PyTorch 2.12.1 brings 13.0.",
        ),
        (lambda given: given["torch"][1].update(cuda="9.9"), "torch: 2.14.1 brings CUDA 9.9, which has no row."),
        (
            lambda given: given["torch"][0].update(aarch64="gpu"),
            "torch: 2.15.0 has 'gpu' for aarch64, which is neither cuda nor cpu.",
        ),
        (
            lambda given: given["systems"][0].update(state="old"),
            "systems: Debian 11 is 'old', which is none of tried, accepted, untried, refused.",
        ),
        (
            lambda given: given["systems"][0].update(end="2027-01-01"),
            "systems: Debian 11 ends on '2027-01-01' and '2026-08-31', which are not days in order.",
        ),
        (lambda given: given["engines"][0].update(end="2023-10"), "engines: '2023-10' is not a day."),
        (lambda given: given["torch"][0].update(python=["3.11"]), "torch: 2.15.0 needs the first and the last Python."),
        (
            lambda given: given["torch"][0].update(source="hearsay"),
            "sources: 'hearsay' is cited and is not among them.",
        ),
        (lambda given: given["drivers"][0].update(end="June"), "drivers: 'June' is not a month."),
        (
            lambda given: given["drivers"][0].update(key="x"),
            "drivers: debian 12 of distribution has a key, or lacks one.",
        ),
        (lambda given: given.update(cuda={}), "cuda: is not a list of rows."),
        (lambda given: given.update(cuda=["13.0"]), "cuda[0]: is not a mapping."),
        (lambda given: given["parts"][0]["bad"][0].pop("why"), "parts[0].bad[0]: 'why' is missing."),
    ],
)
def test_a_table_that_is_not_of_its_form_is_an_error_that_names_the_row(change: Any, words: str) -> None:
    given = document()
    change(given)
    with pytest.raises(TableError) as error:
        parse_table(given)
    assert str(error.value) == words


@pytest.mark.parametrize(
    ("code", "capability", "expected"),
    [
        ("8.0", "8.0", True),
        ("8.0", "8.9", True),
        ("8.6", "8.0", False),
        ("8.0", "9.0", False),
        ("8.0+PTX", "9.0", True),
        ("9.0a", "9.0", True),
        ("9.0a", "10.0", False),
        ("10.0", "10.3", True),
        ("10.0f", "10.3", False),
        ("12.0+PTX", "9.0", False),
    ],
)
def test_which_gpus_run_which_code(code: str, capability: str, *, expected: bool) -> None:
    assert runs(code, capability) is expected


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(st.text(max_size=12), st.text(max_size=12))
def test_junk_never_raises(code: str, capability: str) -> None:
    is_capability(code)
    runs(code, capability)
    in_order([code, capability])
