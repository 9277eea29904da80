# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Any input ends in success or in one short message, and more hosts cost no more than their number."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile.filters import plan
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile.text import (
    MAX_SHOWN,
    HostfileError,
    HostsError,
    parse,
    render,
)
from ansible_collections.swarmspeed.cluster.plugins.modules import hostfile

from tests.effort import examples
from tests.growth import assert_growth

INPUTS = examples(10_000)
HOSTS = 64
"""What the product is made for."""
KEYS = ("hosts", "include", "exclude", "first_host")
NAMES = ["gpu1", "gpu2", "GPU1", "10.0.0.1", "a-b_c.d", "spare", "x"]
TEXTS = ["", " ", "@", ":", ",", "gpu1:", "gpu1:0", "gpu1:0,1@gpu2", "gpu1:0-3", "gpu2@gpu2:1", "fe80::1", "u@h"]
TEXTS += ["\x00", "\n", "gpu1\n", "gpu1 slots=4", "#", "é", "\u0664", "gpu1:\u0664", "\ud800", "\ufeff", "x" * 300]
TEXTS += ["@" * 500, "gpu1:" + "1," * 500, "gpu1:" + "9" * 5000, "[]", '{"gpu1": 1}', "8", "08", "-1", "1e3", "None"]
NUMBERS = [0, 1, 2, 8, 1024, 1025, -1, 2**31, 2**63, 10**30, 10**400, 0.0, 1.0, 1.5, -0.5, 1e308]
NOT_NUMBERS = [float("nan"), float("inf"), float("-inf")]


def value(dice: random.Random, depth: int = 3) -> Any:
    """Anything that JSON can hold, and what Python's reader of JSON takes besides."""
    kind = dice.randrange(9 if depth else 6)
    if kind == 0:
        return dice.choice([None, True, False])
    if kind == 1:
        return dice.choice(NUMBERS + NOT_NUMBERS)
    if kind in (2, 3):
        return dice.choice(NAMES)
    if kind in (4, 5):
        return dice.choice(TEXTS)
    if kind == 6:
        return [value(dice, depth - 1) for dummy in range(dice.randrange(4))]
    keys = ["name", "slots", "port", *NAMES, *TEXTS] if kind == 7 else ["name", "slots"]
    return {dice.choice(keys): value(dice, depth - 1) for dummy in range(dice.randrange(4))}


def sound(dice: random.Random) -> dict[str, Any]:
    """Options as somebody would write them, which are mostly accepted."""
    names = dice.sample(["gpu1", "gpu2", "gpu3", "10.0.0.1"], dice.randint(1, 4))
    slots = [dice.choice([1, 2, 4, "4", 8.0, 0]) for dummy in names]
    listed = [{"name": name, "slots": number} for name, number in zip(names, slots)]
    options: dict[str, Any] = {"hosts": dice.choice([listed, dict(zip(names, slots))])}
    if dice.random() < 0.5:
        some = dice.sample(names, dice.randint(1, len(names)))
        specs = [dice.choice([name, f"{name}:0", f"{name}:0,1"]) for name in some]
        options[dice.choice(["include", "exclude"])] = "@".join(specs)
    if dice.random() < 0.3:
        options["first_host"] = dice.choice(names)
    return options


def spoilt(dice: random.Random) -> dict[str, Any]:
    """A sound input in which up to two places hold something else."""
    options = sound(dice)
    for dummy in range(dice.randrange(3)):
        places: list[tuple[Any, Any]] = [(options, key) for key in KEYS]
        hosts = options.get("hosts")
        if isinstance(hosts, (dict, list)):
            places += [(hosts, key) for key in (hosts if isinstance(hosts, dict) else range(len(hosts)))]
        if isinstance(hosts, list):
            places += [(host, key) for host in hosts if isinstance(host, dict) for key in ("name", "slots", "port")]
        holder, key = dice.choice(places)
        holder[key] = value(dice)
    return options


def inputs(seed: str, count: int) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    return [
        {key: value(dice) for key in KEYS if dice.random() < 0.7} if dice.random() < 0.3 else spoilt(dice)
        for dummy in range(count)
    ]


def test_any_input_ends_in_success_or_in_one_short_message() -> None:
    accepted = refused = 0
    for options in inputs("logic", INPUTS):
        requested = copy.deepcopy(options)
        try:
            planned = plan(*(options.get(key) for key in KEYS))
        except HostsError as error:
            refused += 1
            assert error.problems
            for problem in error.problems:
                assert problem.path.startswith(KEYS) and problem.message
                assert "\n" not in str(problem) and len(str(problem)) < 500
            assert len(str(error).splitlines()) <= MAX_SHOWN + 2
        else:
            accepted += 1
            assert parse(render(planned.hosts)) == planned.hosts
            slots = {host.name: host.slots for host in planned.hosts}
            assert [host.name for host in planned.chosen] == [name for name in slots if name in dict(_pairs(planned))]
            assert all(set(numbers) <= set(range(slots[name])) and numbers for name, numbers in _pairs(planned))
            assert planned.world_size == sum(len(numbers) for dummy, numbers in _pairs(planned)) > 0
            assert options.get("first_host") in (None, "", planned.first_host)
        assert repr(options) == repr(requested), "an input was changed"
    assert accepted + refused == INPUTS
    assert accepted > INPUTS / 10 and refused > INPUTS / 10


def _pairs(planned: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(host.name, host.slots) for host in planned.chosen]


def test_any_input_to_the_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostfile"
    accepted, count = 0, examples(1000)
    for options in inputs("module", count):
        # Surrogates cannot reach a module: Ansible sends it UTF-8.
        given = json.loads(json.dumps({"path": str(path), **options}).replace("\\ud800", "?"))
        with patch_module_args(given), pytest.raises(SystemExit):
            hostfile.main()
        result = json.loads(capsys.readouterr().out)
        if result.get("failed"):
            assert 10 < len(result["msg"]) < 500 * (MAX_SHOWN + 2), options
            assert "Traceback" not in result["msg"]
            assert path.exists() is (accepted > 0)
        else:
            accepted += 1
            assert path.read_text() == "".join(f"{host['name']} slots={host['slots']}\n" for host in result["hosts"])
            assert parse(path.read_text())
    assert count * 0.1 < accepted < count * 0.9


def test_any_file_is_read_or_refused_in_words() -> None:
    dice = random.Random("files")
    pieces = [
        "w0",
        "w1",
        " ",
        "\t",
        "slots=",
        "4",
        "0",
        "-1",
        "\n",
        "\r\n",
        "\r",
        "#",
        "\ufeff",
        "\x1c",
        "\u2028",
        "=",
        "é",
    ]
    read = 0
    for dummy in range(INPUTS):
        text = "".join(dice.choice([*pieces, "w0 slots=2\n", "w2 slots=1\n"]) for dummy in range(dice.randrange(8)))
        try:
            read += bool(parse(text))
        except HostfileError as error:
            assert 0 < len(str(error)) < 200
    assert INPUTS / 20 < read < INPUTS


def _good(count: int) -> dict[str, Any]:
    return {"hosts": [{"name": f"node{number}.example.com", "slots": 8} for number in range(count)]}


def _mapping(count: int) -> dict[str, Any]:
    return {"hosts": {f"node{number}": 8 for number in range(count)}, "first_host": "node0"}


def _filtered(count: int) -> dict[str, Any]:
    return {**_good(count), "exclude": "@".join(f"node{number}.example.com:0" for number in range(count))}


def _bad(count: int) -> dict[str, Any]:
    return {"hosts": [{"name": "node", "slots": -1} for dummy in range(count)]}


def _astray(count: int) -> dict[str, Any]:
    return {**_good(count), "include": "@".join(f"mode{number}" for number in range(count)), "first_host": "nude"}


@pytest.mark.parametrize("make", [_good, _mapping, _filtered, _bad, _astray])
def test_ten_times_the_hosts_cost_about_ten_times_the_time(
    make: Callable[[int], dict[str, Any]],
) -> None:
    def work(options: dict[str, Any]) -> None:
        try:
            planned = plan(*(options.get(key) for key in KEYS))
            assert parse(render(planned.hosts)) == planned.hosts
        except HostsError as error:
            assert str(error)

    few, many = make(HOSTS), make(10 * HOSTS)
    # Quadratic behaviour would be a hundred times.
    assert_growth(lambda: work(few), lambda: work(many), less_than=40)


def test_the_module_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def work(count: int) -> None:
        with (
            patch_module_args({"path": str(tmp_path / f"hostfile{count}"), **_filtered(count)}),
            pytest.raises(SystemExit),
        ):
            hostfile.main()
        assert json.loads(capsys.readouterr().out)["world_size"] == 7 * count

    assert_growth(lambda: work(HOSTS), lambda: work(10 * HOSTS), less_than=40)
