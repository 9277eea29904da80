# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The GPUs of running jobs in the table of status.yml, and sentences on those that idle. All values are invented."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.table import table
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.job import infos

GIB = 1024**3
HEAD = "GPU"


def gpu(index: int, busy: float | None, **change: Any) -> dict[str, Any]:
    read = {
        "index": index,
        "utilization": busy,
        "utilization_highest": busy,
        "memory_used_bytes": 71 * GIB,
        "memory_bytes": 80 * GIB,
        "power_watts": 612.3,
        "power_limit_watts": 700.0,
        "temperature_celsius": 64.0,
    }
    return {**read, **change}


def results(*busy: list[float | None], state: str = "running", slots: list[int] | None = None) -> dict[str, Any]:
    """A job over as many nodes as there are lists, each with a GPU for each number."""
    members, first = [], 0
    for number, of_node in enumerate(busy, 1):
        mine = slots if slots is not None else list(range(len(of_node)))
        members.append({"name": f"gpu{number}", "slots": mine, "first_rank": first})
        first += len(mine)
    job = {"name": "chat", "state": state, "leader": True, "log_path": "/srv/jobs/chat/launcher.log"}
    return {
        f"gpu{number}": {
            "jobs": [{**job, "leader": number == 1, "summary": {"members": members}}],
            "gpus": [gpu(index, one) for index, one in enumerate(of_node)],
        }
        for number, of_node in enumerate(busy, 1)
    }


def shown(found: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the lines of the GPUs, and the sentences below."""
    lines = table(infos(found))
    start = next((number for number, line in enumerate(lines) if line.startswith(HEAD)), 2)
    rows = [line for line in lines[start:] if line.startswith("gpu") or line.startswith(HEAD)]
    return rows, [line for line in lines[start:] if line.startswith("chat: ")]


def test_a_line_a_gpu() -> None:
    found = results([97, 99], [98, None])
    found["gpu2"]["gpus"][1].update(memory_used_bytes=None, power_limit_watts=None, temperature_celsius=None)
    assert shown(found) == (
        [
            "GPU     JOB   BUSY        MEMORY         POWER   TEMP",
            "gpu1:0  chat  97 %  71 of 80 GiB  612 of 700 W  64 °C",
            "gpu1:1  chat  99 %  71 of 80 GiB  612 of 700 W  64 °C",
            "gpu2:0  chat  98 %  71 of 80 GiB  612 of 700 W  64 °C",
            "gpu2:1  chat     -             -         612 W      -",
        ],
        [],
    )


def test_many_have_a_line_a_node() -> None:
    eight: list[float | None] = [90.0 + index for index in range(8)]
    rows, dummy = shown(results(eight, eight, eight))
    assert rows[1:] == [f"gpu{number} (8)  chat  90–97 %  71 of 80 GiB  612 of 700 W  64 °C" for number in (1, 2, 3)]


def test_the_one_that_idles_is_named_with_its_rank_and_log() -> None:
    assert shown(results([97, 96], [98, 1]))[1] == [
        "chat: GPU 1 of gpu2 (rank 3) idles at 1 %, while the others are at 97 %. Remedy: find out what that rank "
        "waits for, such as data, a lock or a debugger: gpu2:/srv/jobs/chat/ranks/rank-00003.log"
    ]


@pytest.mark.parametrize("busy", [[30, 6], [40, 0, 30], [97], [None, 0]])
def test_those_are_none_that_idle(busy: list[float | None]) -> None:
    """The others do not work hard themselves, or there is no other to compare with."""
    assert [line for line in shown(results(busy))[1] if "idles" in line] == []


def test_where_none_computes() -> None:
    assert shown(results([0, 1], [0, 5]))[1] == [
        "chat: none of its GPUs is computing. The job is loading data, saving a checkpoint, waiting in a debugger or "
        "hanging; its log says since when: /srv/jobs/chat/launcher.log"
    ]


def test_only_the_gpus_of_a_job_that_runs() -> None:
    rows, sentences = shown(results([97, 0], slots=[0]))
    assert [row.split()[0] for row in rows] == ["GPU", "gpu1:0"] and not sentences
    assert shown(results([97, 0], state="succeeded")) == ([], [])


@pytest.mark.parametrize(
    "forged", ["x", [{"index": -1}], [{"index": 0, "utilization": "9\n9"}], [{"busy": 1}], {"a": 1}]
)
def test_what_a_node_forged_is_not_shown(forged: Any) -> None:
    found = results([97])
    found["gpu1"]["gpus"] = forged
    rows, sentences = shown(found)
    assert (rows, sentences) == ([], [])


BOOTS = {"kernel": "6.8.0-152-generic", "module": None, "driver": "580.95.05"}


@pytest.mark.parametrize(
    ("boots", "why"),
    [
        (BOOTS, "has no nvidia module"),
        ({**BOOTS, "module": {"version": "580.1"}}, "has the nvidia module of driver 580.1, not of 580.95.05"),
        ({**BOOTS, "module": {"version": "580.95.05"}}, ""),
        (None, ""),
        ({**BOOTS, "kernel": "6.8.0\n"}, ""),
        ("x", ""),
    ],
)
def test_a_node_whose_gpus_would_be_gone_after_a_reboot_is_named(boots: Any, why: str) -> None:
    found = {"gpu1": {"jobs": [], "next_boot": boots}, "gpu2": {"jobs": []}}
    lines = table(infos(found))
    assert lines[0] == "No jobs on gpu1, gpu2."
    expected = (
        f"gpu1: kernel 6.8.0-152-generic, which boots next, {why}, so after a reboot no program could use the GPUs. "
        "ansible-playbook verify.yml --tags nvidia_driver names the remedy."
    )
    assert lines[1:] == ([expected] if why else [])
