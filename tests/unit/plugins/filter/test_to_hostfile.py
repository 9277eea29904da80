# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""to_hostfile: what it makes of inventory hosts and gpu_info's results, and the words for everything else."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.filter import hostfile
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.gather import gather_gpu
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.host_io import SystemGpuIO
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile.text import check

from tests.effort import examples

to_hostfile = hostfile.FilterModule().filters()["to_hostfile"]

OR_SLOTS = (
    "or give its slots, as slots={'HOST': 8} or as the host variable gpu_slots (1 to train on its CPUs, 0 to leave it"
    " out)."
)
RUN = "Remedy: run swarmspeed.cluster.gpu_info there before, with register: gpu_info"


NO_GPU = gather_gpu(SystemGpuIO("/nowhere/sys", "/nowhere/proc", "/nowhere"))


def found(slots: Any, **more: Any) -> dict[str, Any]:
    """What ``register: gpu_info`` keeps."""
    return {"gpu_info": {**NO_GPU, "changed": False, "failed": False, "present": True, "slots": slots, **more}}


HOSTVARS = {"gpu2": found(4), "gpu1": found(8), "head": {"ansible_host": "10.0.0.1"}}


def refused(*arguments: Any, **named: Any) -> str:
    with pytest.raises(AnsibleFilterError) as caught:
        to_hostfile(*arguments, **named)
    assert "\nTraceback" not in str(caught.value)
    return str(caught.value)


def test_hosts_in_the_order_of_the_input_with_their_gpus() -> None:
    entries = to_hostfile(["gpu2", "gpu1"], HOSTVARS)
    assert entries == [{"name": "gpu2", "slots": 4}, {"name": "gpu1", "slots": 8}]
    assert [host.name for host in check(entries).hosts] == ["gpu2", "gpu1"]
    assert to_hostfile(["gpu1"], HOSTVARS) == [{"name": "gpu1", "slots": 8}]


def test_an_input_that_can_be_read_only_once() -> None:
    assert to_hostfile((name for name in ["gpu1"]), HOSTVARS) == [{"name": "gpu1", "slots": 8}]


def test_facts_of_the_whole_collection() -> None:
    hostvars = {"a": {"ansible_facts": {"swarmspeed": {"gpu": {"slots": 2, "problems": []}}}}}
    assert to_hostfile(["a"], hostvars, gpu_info="ansible_facts.swarmspeed.gpu") == [{"name": "a", "slots": 2}]


def test_slots_from_outside() -> None:
    def slots(**named: Any) -> list[int]:
        hostvars = {**HOSTVARS, "gpu2": {**HOSTVARS["gpu2"], "gpu_slots": "3"}}
        return [entry["slots"] for entry in to_hostfile(["gpu1", "gpu2"], hostvars, **named)]

    assert slots() == [8, 3]
    assert slots(slots=2) == [2, 2]
    assert slots(slots={"gpu1": "7"}) == [7, 3]
    assert slots(slots={"gpu1": 0, "gpu2": 1}) == [0, 1]
    # Of a host of the inventory that is not asked for, and empty values, as unset variables give them.
    assert slots(slots={"head": 1, "gpu1": "", "gpu2": None}) == [8, 3]
    assert slots(slots="") == [8, 3]


def test_slots_from_outside_need_no_gpu() -> None:
    assert to_hostfile(["head"], HOSTVARS, {"head": 1}) == [{"name": "head", "slots": 1}]


def test_names() -> None:
    def names(given: Any) -> list[str]:
        return [entry["name"] for entry in to_hostfile(["gpu1", "gpu2"], HOSTVARS, names=given)]

    assert names(None) == names("") == names({}) == ["gpu1", "gpu2"]
    assert names("train-") == ["train-gpu1", "train-gpu2"]
    assert names({"gpu1": "10.0.5.1"}) == ["10.0.5.1", "gpu2"]


def test_the_address_that_ansible_uses_is_no_name() -> None:
    hostvars = {"gpu1": {**found(1), "ansible_host": "192.0.2.1", "ansible_ssh_host": "192.0.2.1"}}
    assert to_hostfile(["gpu1"], hostvars) == [{"name": "gpu1", "slots": 1}]


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        (
            {},
            f"GPUs not known, as there is no variable gpu_info. {RUN}, or name the variable that holds its result, as"
            f" gpu_info='NAME', {OR_SLOTS}",
        ),
        (
            {"gpu_info": {"skipped": True, "changed": False}},
            f"GPUs not known, as gpu_info holds no number of slots, the task having been skipped. {RUN}, not in a loop,"
            f" {OR_SLOTS}",
        ),
        (
            {"gpu_info": {"unreachable": True, "msg": "no route"}},
            "GPUs not known, as gpu_info holds no number of slots, the host having been unreachable."
            f" {RUN}, not in a loop, {OR_SLOTS}",
        ),
        (
            {"gpu_info": {"failed": True, "msg": "No space left"}},
            "GPUs not known, as gpu_info holds no number of slots, the task having failed: 'No space left'."
            f" {RUN}, not in a loop, {OR_SLOTS}",
        ),
        (
            {"gpu_info": {"results": [], "changed": False}},
            f"GPUs not known, as gpu_info holds no number of slots. {RUN}, not in a loop, {OR_SLOTS}",
        ),
        ({"gpu_info": NO_GPU}, f"no NVIDIA GPU was found. Remedy: take it out of the list, {OR_SLOTS}"),
        (
            found(0, problems=["NVIDIA's kernel module is not loaded. Install the driver.", "And more."]),
            "no GPU can be used. NVIDIA's kernel module is not loaded. Install the driver. Remedy: fix that,"
            f" {OR_SLOTS}",
        ),
        (
            {**found(8), "gpu_slots": -1},
            "gpu_slots must be a whole number from 1 to 1024, the processes on that host, one a GPU, or 0 to leave the"
            " host out, not -1",
        ),
    ],
)
def test_hosts_whose_slots_are_not_known(variables: dict[str, Any], text: str) -> None:
    assert refused(["x", "gpu1", "y"], {**HOSTVARS, "x": variables, "y": variables}) == f"to_hostfile: x, y: {text}"


@pytest.mark.parametrize(
    ("arguments", "named", "text"),
    [
        (
            (["gpu1"],),
            {},
            "hostvars: must be given, as in groups['cluster'] | swarmspeed.cluster.to_hostfile(hostvars)",
        ),
        (("gpu1", HOSTVARS), {}, "the input must be a list of inventory hosts, such as groups['cluster'], not 'gpu1'"),
        ((None, HOSTVARS), {}, "the input must be a list of inventory hosts, such as groups['cluster'], not nothing"),
        (([5], HOSTVARS), {}, "the input must be a list of inventory hosts, such as groups['cluster'], not [5]"),
        (([], HOSTVARS), {}, "there is no host in the input; is the group empty, or its name another one?"),
        (
            (["gpu1"], {"gpu1": ["gpu_info"]}),
            {},
            "gpu1: hostvars holds no variables of it; pass Ansible's hostvars as it is",
        ),
        ((["gpu3"], HOSTVARS), {}, "gpu3: is not a host of the inventory"),
        ((["gpu1", "gpu1"], HOSTVARS), {}, "gpu1: is in the list twice"),
        (
            (["gpu1"], HOSTVARS),
            {"slots": {"gpu3": 1}},
            "slots: 'gpu3' is not a host of the inventory, perhaps 'gpu1' is meant",
        ),
        (
            (["gpu1"], HOSTVARS),
            {"slots": [8]},
            "gpu1: slots must be a whole number from 1 to 1024, the processes on that host, one a GPU, or 0 to leave"
            " the host out, not [8]",
        ),
        ((["gpu1"], HOSTVARS), {"names": 5}, "names: must be a mapping of host to name, or a prefix for all, not 5"),
        ((["gpu1"], HOSTVARS), {"names": {"x": "y"}}, "names: 'x' is not a host of the inventory"),
        (
            (["gpu1"], HOSTVARS),
            {"names": {"gpu1": "fe80::1"}},
            "gpu1: its name in the hostfile: 'fe80::1' looks like an IPv6 address, which DeepSpeed cannot read; give a"
            " name that resolves to it. Remedy: give another one, as names={'gpu1': 'NAME'}",
        ),
        (
            (["gpu1", "gpu2"], HOSTVARS),
            {"names": {"gpu1": "GPU2"}},
            "gpu2: its name in the hostfile would be 'gpu2', which is that of gpu1 (letter case does not count)",
        ),
        ((["gpu1"], HOSTVARS), {"gpu_info": None}, "gpu_info: must name a variable, such as gpu_info, not nothing"),
    ],
)
def test_what_is_refused(arguments: tuple[Any, ...], named: dict[str, Any], text: str) -> None:
    assert refused(*arguments, **named) == f"to_hostfile: {text}"


def test_all_problems_come_at_once_and_hosts_alike_in_one_line() -> None:
    lines = refused([f"node{number}" for number in range(100)], {f"node{number}": {} for number in range(99)}, {"z": 1})
    head, slots, unknown, absent = lines.splitlines()
    assert head == "to_hostfile: 3 problems"
    assert slots == "- slots: 'z' is not a host of the inventory"
    assert unknown.startswith("- node0, node1, ") and " and 79 more: GPUs not known" in unknown
    assert absent == "- node99: is not a host of the inventory"


def test_any_input_is_taken_or_refused_in_words() -> None:
    values: list[Any] = [
        None,
        True,
        0,
        -1,
        3,
        1.5,
        "",
        "gpu1",
        "gpu\n1",
        [],
        ["gpu1"],
        ["gpu1", "gpu2"],
        [["gpu1"]],
        {},
        HOSTVARS,
    ]
    odd: list[Any] = [None, True, 2, "4", "x", [], {"slots": 3}, {"gpu_slots": 2}]
    values += [{"gpu1": variables} for variables in odd]
    values += [{"gpu1": found(slots)} for slots in (True, 2, "4", None, [1], 10**40)]
    dice = random.Random("to_hostfile")
    taken, inputs = 0, examples(10_000)
    for dummy in range(inputs):
        hosts = dice.choice(values if dice.random() < 0.3 else [["gpu1"], ["gpu1", "gpu2"]])
        hostvars = dice.choice(values) if dice.random() < 0.3 else HOSTVARS
        named = {key: dice.choice(values) for key in ("slots", "names", "gpu_info") if dice.random() < 0.2}
        try:
            entries = to_hostfile(hosts, hostvars, **named)
        except AnsibleFilterError as error:
            assert len(str(error)) < 3000
        else:
            taken += 1
            assert [set(entry) for entry in entries] == [{"name", "slots"}] * len(list(hosts))
    assert inputs * 0.1 < taken < inputs * 0.9


def test_every_filter_has_its_page() -> None:
    page = Path(hostfile.__file__).with_name("to_hostfile.yml")
    documented = from_yaml(page.read_text(encoding="utf-8"))["DOCUMENTATION"]
    assert documented["name"] == "to_hostfile"
    assert {"_input", *documented["positional"].split(", ")} == set(documented["options"])
    assert documented["options"]["gpu_info"]["default"] == "gpu_info"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], "no host"),
        (["gpu1", "gpu2"], "gpu1, gpu2"),
        ([f"g{number}" for number in range(64)], ", ".join(f"g{number}" for number in range(20)) + " and 44 more"),
    ],
)
def test_names_in_a_message(names: list[str], text: str) -> None:
    assert hostfile.FilterModule().filters()["names_shown"](names) == text
