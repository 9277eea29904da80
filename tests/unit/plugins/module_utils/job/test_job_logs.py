# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Logs from a node's folder to the controller's: what is sent, what never is, and what is left alone."""

from __future__ import annotations

import base64
import json
import os
import random
import zlib
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import log_files_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.log_files import (
    LONGEST_VALUE,
    WANTED,
    LogsError,
    Piece,
    check_node,
    same_run,
    shorten,
    unpack,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.log_files_io import Copy, NodeFolder

from tests.effort import examples
from tests.growth import assert_growth

MIB = 1 << 20
STATE: dict[str, Any] = {"state": "failed", "run": 1, "run_id": "r1", "started_at": "t0"}


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "jobs/digits"
    (folder / "ranks").mkdir(parents=True)
    for name in ("launcher.log", "node.log", "supervisor.log", "ranks/rank-00000.log", "ranks/rank-00063.log"):
        (folder / name).write_text(f"what {name} says\n")
    (folder / "state.json").write_text(json.dumps(STATE))
    (folder / "summary.json").write_text("{}")
    for name in (
        "spec.json",
        "environment",
        "supervisor.pyz",
        "stop",
        "ranks/rank-x.log",
        "ranks/other",
        "ranks/attempt-1",
    ):
        (folder / name).write_text("hf_s3cret")
    return folder


def node(job: Path, limit: int = MIB) -> NodeFolder:
    return NodeFolder(str(job.parent), job.name, "gpu1", limit)


def names(reply: dict[str, Any]) -> list[str]:
    return [sent["path"] for sent in reply["files"]]


def copied(job: Path, copy: Copy, limit: int = MIB) -> list[str]:
    """One gathering, as action and module do it together."""
    reply = node(job, limit).reply(copy.have(), set())
    copy.turn(node(job).run())
    return [sent["path"] for sent in reply["files"] if copy.write(unpack(sent, limit))]


def test_all_logs_are_sent_and_nothing_else(job: Path) -> None:
    reply = node(job).reply({}, set())
    assert names(reply) == [
        *("launcher.log", "node.log", "state.json", "summary.json", "supervisor.log"),
        *("ranks/rank-00000.log", "ranks/rank-00063.log"),
    ]
    assert (reply["more"], reply["problems"]) == (False, [])
    whole = json.dumps([unpack(sent, MIB).data.decode() for sent in reply["files"]])
    assert "what ranks/rank-00063.log says" in whole and "hf_s3cret" not in whole


def test_what_was_found_of_a_hang_is_sent_too(job: Path, tmp_path: Path) -> None:
    for number in range(1, 30):
        (job / f"hangs/{number:04d}").mkdir(parents=True)
        (job / f"hangs/{number:04d}/finding.json").write_text(f'{{"number": {number}}}')
    for name in ("0029/examination.json", "0029/002.z", "0029/ranks.json", "request/examination.json"):
        (job / "hangs" / name).parent.mkdir(exist_ok=True)
        (job / "hangs" / name).write_text('{"log": "token=hf_s3cret-value"}')
    (job / "spec.json").write_text('{"spec": {"environment": {"HF_TOKEN": "hf_s3cret-value"}}}')
    copy = Copy(str(tmp_path / "here"), "digits", "gpu1")
    sent = [name for name in copied(job, copy) if name.startswith("hangs/")]
    last = [f"hangs/{number:04d}/finding.json" for number in range(11, 30)]
    assert sent == [*last[:-1], "hangs/0029/examination.json", last[-1]]
    assert "s3cret" not in (copy.path / "hangs/0029/examination.json").read_text()
    assert copied(job, copy) == []
    (job / "state.json").write_text(json.dumps({**STATE, "run": 2, "run_id": "r2"}))
    copied(job, copy)
    assert (copy.path / "runs/0001/hangs/0029/finding.json").exists()


def test_no_folder_no_logs(tmp_path: Path) -> None:
    nothing = NodeFolder(str(tmp_path / "none"), "digits", "gpu1", MIB)
    assert nothing.reply({}, set()) == {"files": [], "more": False, "problems": []}
    assert nothing.run() == {}


def test_only_what_changed_is_sent_again(job: Path, tmp_path: Path) -> None:
    copy = Copy(str(tmp_path / "here"), "digits", "gpu1")
    assert len(copied(job, copy)) == 7
    assert node(job).reply(copy.have(), set())["files"] == []
    assert copied(job, copy) == []
    with (job / "launcher.log").open("a") as log:
        log.write("more\n")
    assert copied(job, copy) == ["launcher.log"]
    (copy.path / "node.log").unlink()
    (copy.path / "state.json").write_text("somebody wrote here")
    assert copied(job, copy) == ["node.log", "state.json"]
    os.utime(job / "node.log", ns=(1, 1))
    assert names(node(job).reply(copy.have(), set())) == ["node.log"]
    assert copied(job, copy) == [], "a file that is the same is not written"


def test_a_file_of_exactly_the_limit_is_whole(job: Path) -> None:
    (job / "node.log").write_bytes(b"x" * 100)
    (job / "launcher.log").write_bytes(b"x" * 101)
    sent = {piece.path: piece for piece in node(job, 100).pieces({}, set()) if isinstance(piece, Piece)}
    assert sent["node.log"].data == b"x" * 100 and not sent["node.log"].shortened
    assert sent["launcher.log"].shortened


def test_of_a_long_file_the_end_is_sent_once(job: Path, tmp_path: Path) -> None:
    (job / "launcher.log").write_text("".join(f"line {number}\n" for number in range(1000)))
    copy = Copy(str(tmp_path / "here"), "digits", "gpu1")
    copied(job, copy, limit=100)
    text = (copy.path / "launcher.log").read_text()
    size = (job / "launcher.log").stat().st_size
    kept = "".join(f"line {number}\n" for number in range(989, 1000))
    assert text == (
        f"(The first {size - len(kept)} of {size} bytes are left out here. "
        f"The whole file: gpu1:{job}/launcher.log)\n{kept}"
    )
    assert copied(job, copy, limit=100) == []
    assert node(job, 100).reply(copy.have(), set())["files"] == []
    assert copied(job, copy, limit=MIB) == ["launcher.log"]


def test_shortening_keeps_whole_lines_or_what_is_beyond_the_longest_secret() -> None:
    draw = random.Random(7)
    for dummy in range(examples(300)):
        data = bytes(draw.choice(b"ab\n") for dummy_byte in range(draw.randrange(1, 60)))
        size = len(data) + draw.randrange(100)
        note, rest = shorten("n", "f", size, data).split(b"\n", 1)
        assert data.endswith(rest) and bool(rest) is (b"\n" in data[:-1])
        assert note == b"(The first %d of %d bytes are left out here. The whole file: n:f)" % (size - len(rest), size)
        assert not rest or data[-len(rest) - 1 : -len(rest)] == b"\n"
    assert shorten("n", "f", 50_000, b"a" * 40_000).endswith(b"\n" + b"a" * (40_000 - LONGEST_VALUE))


def test_a_reply_ends_after_some_bytes_and_goes_on(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files_io, "REPLY_BYTES", 50)
    for name in ("launcher.log", "node.log"):
        (job / name).write_bytes(b"x" * 40)
    got: list[str] = []
    replies = 0
    more = True
    while more:
        reply = node(job).reply({}, set(got))
        assert reply["files"] and not set(names(reply)) & set(got)
        got += names(reply)
        replies, more = replies + 1, reply["more"]
    assert len(got) == len(set(got)) == 7 and replies > 2


def test_links_and_pipes_of_the_job_lead_nowhere(job: Path, tmp_path: Path) -> None:
    outside = tmp_path / "shadow"
    outside.write_text("root:secret")
    for name in ("launcher.log", "ranks/rank-00000.log"):
        (job / name).unlink()
        (job / name).symlink_to(outside)
    (job / "node.log").unlink()
    os.mkfifo(job / "node.log")
    reply = node(job).reply({}, set())
    assert names(reply) == ["state.json", "summary.json", "supervisor.log", "ranks/rank-00063.log"]
    assert [problem.replace(str(job), "JOB") for problem in reply["problems"]] == [
        "JOB/launcher.log is a link, not a plain file. Remedy: remove it on this node, and run again.",
        "JOB/node.log is a named pipe, not a plain file. Remedy: remove it on this node, and run again.",
        "JOB/ranks/rank-00000.log is a link, not a plain file. Remedy: remove it on this node, and run again.",
    ]


def test_a_linked_folder_is_no_folder(job: Path, tmp_path: Path) -> None:
    (job.parent / "linked").symlink_to(job)
    assert NodeFolder(str(job.parent), "linked", "gpu1", MIB).reply({}, set())["files"] == []
    (job / "ranks").rename(tmp_path / "ranks")
    (job / "ranks").symlink_to(tmp_path / "ranks")
    assert not [name for name in names(node(job).reply({}, set())) if name.startswith("ranks/")]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"path": "../../.bashrc"}, "which is none of a job's logs. Nothing of it was written."),
        ({"path": "ranks/../spec.json"}, "which is none of a job's logs. Nothing of it was written."),
        ({"path": "launcher.log\n"}, "which is none of a job's logs. Nothing of it was written."),
        ({"data": "%%"}, "the node sent launcher.log damaged: "),
        ({"data": base64.b64encode(b"no zlib").decode()}, "the node sent launcher.log damaged: "),
        ({"mtime_ns": "soon"}, "the node sent launcher.log damaged: "),
        (
            {"data": base64.b64encode(zlib.compress(b"x" * (MIB + 4097))).decode()},
            "the node sent more of launcher.log than max_mib allows. Nothing of it was written.",
        ),
    ],
)
def test_a_node_is_not_trusted(change: dict[str, Any], words: str) -> None:
    good = Piece("launcher.log", 5, b"text").pack()
    assert unpack(good, MIB) == Piece("launcher.log", 5, b"text")
    with pytest.raises(LogsError) as caught:
        unpack({**good, **change}, MIB)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a b", "a\n"])
def test_names_of_nodes(name: str) -> None:
    with pytest.raises(LogsError, match=r"cannot be the name of a folder\. Use letters, digits"):
        check_node(name)
    check_node("gpu1.example")


def test_everything_here_is_private(job: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir(mode=0o755)
    copy = Copy(str(here), "digits", "gpu1")
    old = os.umask(0o022)
    try:
        copied(job, copy)
    finally:
        os.umask(old)
    modes = {str(path.relative_to(here)): oct(path.stat().st_mode & 0o777) for path in here.rglob("*")}
    assert {modes[name] for name in ("digits", "digits/gpu1", "digits/gpu1/ranks")} == {"0o700"}
    assert {mode for name, mode in modes.items() if (here / name).is_file()} == {"0o600"}
    assert here.stat().st_mode & 0o777 == 0o755, "a folder that was there stays as it is"
    assert (here / "digits/summary.json").read_text() == "{}"


def test_an_earlier_run_is_put_aside_once(job: Path, tmp_path: Path) -> None:
    copy = Copy(str(tmp_path / "here"), "digits", "gpu1")
    assert copy.turn(STATE) is False
    copied(job, copy)
    assert copy.turn(STATE) is False
    (job / "ranks/rank-00063.log").unlink()
    (job / "state.json").write_text(json.dumps({**STATE, "run": 2, "run_id": "r2"}))
    assert copy.turn({}) is False, "nothing is known of the node's run"
    copied(job, copy)
    assert (copy.path / "runs/0001/ranks/rank-00063.log").read_text() == "what ranks/rank-00063.log says\n"
    assert json.loads((copy.path / "runs/0001/state.json").read_text())["run"] == 1
    assert not (copy.path / "ranks/rank-00063.log").exists()
    assert copy.state()["run"] == 2


def test_runs_are_distinguished_by_what_is_known() -> None:
    assert same_run(STATE, {**STATE, "state": "running"})
    for key in ("run", "run_id", "started_at"):
        assert not same_run(STATE, {**STATE, key: "other"})
    assert same_run({}, {})


def test_spec_and_environment_are_never_wanted() -> None:
    for name in ("spec.json", "environment", "stop", "supervisor.pyz", "ranks/../spec.json", "runs/0001/launcher.log"):
        assert not WANTED.fullmatch(name)


def test_what_is_new_is_found_in_time_that_grows_with_the_files(tmp_path: Path) -> None:
    def folder(ranks: int) -> NodeFolder:
        path = tmp_path / f"jobs/r{ranks}"
        (path / "ranks").mkdir(parents=True)
        for rank in range(ranks):
            (path / f"ranks/rank-{rank:05d}.log").write_text("x\n" * 50)
        return NodeFolder(str(path.parent), path.name, "n", MIB)

    few, many = folder(32), folder(512)
    assert_growth(lambda: few.reply({}, set()), lambda: many.reply({}, set()), less_than=16 * 6)
