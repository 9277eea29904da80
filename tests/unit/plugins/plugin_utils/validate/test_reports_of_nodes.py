# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What nodes say of their jobs, transfers and packages: what does not fit is left out or refused, the rest stays."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import (
    WHOLE_MOST,
    ReportedError,
    UnfitError,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.readings import KEYS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate import bundle, image, job, shape

ROW = [0] * len(KEYS)
STANZA = f"Package: one\nVersion: 1\nArchitecture: amd64\nFilename: ./one.deb\nSize: 3\nSHA256: {'ab' * 32}"
SUMMARY: dict[str, Any] = {"restarts": [{"attempt": 1}], "figures": {"loss": "nan"}, "exit_code": 0}


def info(**changed: Any) -> dict[str, Any]:
    """What is made of a job that training_job_info returned."""
    value = {"name": "digits", "state": "running", "summary": SUMMARY, **changed}
    (found,) = job.infos({"gpu1": {"jobs": [value]}})["gpu1"]["jobs"]
    return dict(found)


def test_a_field_of_a_job_that_has_too_much_is_left_out() -> None:
    assert info()["reason"] == "" and info()["summary"] == SUMMARY
    found = info(summary={**SUMMARY, "restarts": [{"attempt": 1}] * 10_001})
    assert found["reason"].endswith("summary.restarts is a list of 10001")
    assert found["summary"] == {"figures": {"loss": "nan"}, "exit_code": 0}


def test_words_of_a_job_are_shortened_and_freed_of_control_codes() -> None:
    assert info(summary={"figures": {"loss": "x" * 50}})["summary"]["figures"]["loss"] == "x" * 40
    assert info(reason="one\n\x1b[2Jtwo")["reason"] == "one\n\\x1b[2Jtwo"
    assert info(reason="\n" * 200_000)["reason"].count("\n") == 100_000
    assert len(info(reason="x" * 200_000)["reason"]) < 5000
    assert info(reason=7)["reason"].endswith("not what a job writes: reason is 7")


@pytest.mark.parametrize("row", [ROW[1:], [*ROW, 0], [None, *ROW[1:]], [0.5, *ROW[1:]], 7])
def test_a_row_of_a_gpu_has_its_index_and_all_figures(row: Any) -> None:
    found = info(gpus={"gpu1": [row]})
    assert "gpus" not in found and "not what a job writes: gpus[gpu1][0] is " in found["reason"]
    assert info(gpus={"gpu1": [ROW]})["gpus"] == {"gpu1": [ROW]}


def test_jobs_that_are_too_many_are_one_message() -> None:
    found = job.infos({"gpu1": {"jobs": [{"name": "digits", "state": "running"}] * 10_001}})["gpu1"]
    assert found["msg"].startswith("gpu1: training_job_info.jobs is a list of 10001, not a list of at most 10000. ")


def test_gpus_that_are_none_do_not_hide_the_jobs() -> None:
    gpus = {"index": 1023, "utilization": 5.0}
    jobs = [{"name": "digits", "state": "running"}]
    assert job.infos({"gpu1": {"jobs": jobs, "gpus": [gpus] * 1024}})["gpu1"]["gpus"] == [gpus] * 1024
    replies: list[Any] = [[gpus] * 1025, [{"index": 1024}], [{}], 7]
    for odd in replies:
        found = job.infos({"gpu1": {"jobs": jobs, "gpus": odd}})["gpu1"]
        assert found["gpus"] == [] and found["jobs"][0]["name"] == "digits"


def test_a_node_that_did_not_answer_is_shown_with_its_message() -> None:
    assert job.infos({"gpu1": {"unreachable": True, "msg": "timed out"}}) == {
        "gpu1": {"unreachable": True, "msg": "timed out"}
    }
    assert job.infos({"gpu1": {"failed": True}, "gpu2": [1], "gpu3": {"msg": [1]}}) == {
        "gpu1": {"failed": True, "msg": "null"},
        "gpu2": {"msg": "null"},
        "gpu3": {"msg": "a list of 1"},
    }


@pytest.mark.parametrize("state", ["failed", "unreachable", "skipped"])
def test_a_step_of_a_transfer_that_was_not_made_stays_as_it_is(state: str) -> None:
    reported = {state: True, "msg": "x", "notes": 7}
    assert image.reply("gpu1", reported) == reported


def test_of_a_reply_only_its_own_fields_are_parsed() -> None:
    """Ansible adds some, which may be of any form."""
    value = {"notes": ["x"], "running": {"pid": "7"}, "invocation": {"deep": object()}}
    assert image.reply("gpu1", value) == value
    assert image.reply("gpu1", {"running": {"pid": 7}})["running"] == {"pid": "7"}
    with pytest.raises(ReportedError, match=r"^gpu1: image_transfer\.notes is 7, not a list of at most 100"):
        image.reply("gpu1", {"notes": 7})


@pytest.mark.parametrize(
    "stanza",
    [
        f"{STANZA}\n\nPackage: two\nVersion: 1\nArchitecture: amd64",
        f"{STANZA}\n\nX-More: 1",
        f"{STANZA}\rX",
        f"{STANZA}\nX-More: \0",
        "",
        STANZA.replace("SHA256", "MD5sum"),
    ],
)
def test_a_package_is_one_paragraph(stanza: str) -> None:
    with pytest.raises(ReportedError, match=r"not the paragraph of one package"):
        bundle.reported("maker", [{"stanza": stanza}])


def test_a_file_of_two_digests_is_refused() -> None:
    one, other = {"stanza": STANZA}, {"stanza": STANZA.replace("ab", "cd")}
    assert [deb.file for deb in bundle.reported("maker", [one, one])] == ["one.deb"]
    with pytest.raises(ReportedError, match=r"^maker: bundle_collect\.debs has two files named one\.deb\. "):
        bundle.reported("maker", [one, other])


def test_plain_data_is_no_more_than_it_may_be() -> None:
    assert shape.data({"x" * 4096: 4 * WHOLE_MOST}) == {"x" * 4096: 4 * WHOLE_MOST}
    for value in ({"x" * 4097: 1}, 4 * WHOLE_MOST + 1, float("-inf"), {None: 1}, {1.5: 1}):
        with pytest.raises(UnfitError):
            shape.data(value)
    assert shape.NAME("x" * 255) and shape.version("x" * 200)
