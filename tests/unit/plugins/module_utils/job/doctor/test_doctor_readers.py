# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Readers of stacks, of the flight recorder, of sockets and of /proc. What is recorded says so."""

from __future__ import annotations

import json
import pickle
import socket
import struct
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor import (
    process_files,
    recorder,
    shape,
    sockets,
    stacks,
)

# Recorded with CPython 3.8.18 and 3.13.0, which write the same.
FAULTHANDLER = """\
Thread 0x00007f9f920c16c0 (most recent call first):
  File "<string>", line 4 in f
  File "/usr/lib/python3.8/threading.py", line 870 in run

Current thread 0x00007f9f92998b80 (most recent call first):
  File "/job/train.py", line 6 in load shard
  File "/job/train.py", line ??? in <module>
"""
# Made up after the form that CPython 3.14 has.
NAMED = 'Thread 0x00007f00 [prefetch] (most recent call first):\n  File "a.py", line 1 in f\n'

# Recorded with py-spy 0.4.3, cut to what is read.
PY_SPY = [
    {
        "pid": 15321,
        "thread_id": 140714466629312,
        "thread_name": "prefetch",
        "os_thread_id": 15323,
        "active": False,
        "frames": [{"name": "<lambda>", "filename": "/job/w.py", "module": None, "line": 3, "locals": None}],
    },
    {
        "pid": 15321,
        "thread_id": 140714478455680,
        "thread_name": "MainThread",
        "os_thread_id": 15321,
        "active": False,
        "frames": [
            {"name": "read_shard", "filename": "/job/w.py", "module": None, "line": 2, "locals": None},
            {"name": "<module>", "filename": "/job/w.py", "module": None, "line": 4, "locals": None},
        ],
    },
]


def test_what_faulthandler_writes() -> None:
    main, other = stacks.faulthandler_threads(FAULTHANDLER)
    assert main["main"] is True
    assert main["frames"] == [
        {"function": "load shard", "file": "/job/train.py", "line": 6},
        {"function": "<module>", "file": "/job/train.py", "line": 0},
    ]
    assert [frame["function"] for frame in other["frames"]] == ["f", "run"]
    assert stacks.faulthandler_threads(FAULTHANDLER, main=0x7F9F920C16C0)[0]["frames"][0]["function"] == "f"
    assert stacks.faulthandler_threads(NAMED)[0]["name"] == "prefetch"


def test_of_two_dumps_the_last_one_is_read() -> None:
    later = FAULTHANDLER.replace("load shard", "save")
    threads = stacks.faulthandler_threads(FAULTHANDLER + "\n" + later)
    assert len(threads) == 2
    assert threads[0]["frames"][0]["function"] == "save"


@pytest.mark.parametrize("written", ["", "\x00", "Thread", '  File "x", line 3 in f', "a" * 100000])
def test_what_faulthandler_did_not_write(written: str) -> None:
    assert stacks.faulthandler_threads(written) == []


def test_what_py_spy_prints() -> None:
    main, other = stacks.py_spy_threads(json.dumps(PY_SPY).encode(), 15321)
    assert (main["main"], main["frames"][0]["function"]) == (True, "read_shard")
    assert (other["name"], other["native"]) == ("prefetch", 15323)
    assert stacks.py_spy_threads(json.dumps(PY_SPY).encode(), 1) == []


@pytest.mark.parametrize(
    "printed", [b"", b"null", b"[1, {}]", b"[" * 100000, b"9" * 100000, b'[{"frames": 1}]', b"\xff"]
)
def test_what_py_spy_did_not_print(printed: bytes) -> None:
    assert stacks.py_spy_threads(printed, 1) == []


# --- the recorder ----------------------------------------------------------------------------------------------------

# Recorded with torch 2.13.0 on Gloo, two entries of nine.
GLOO: dict[str, Any] = {
    "version": "2.10",
    "pg_config": {"": {"name": "", "desc": "", "ranks": "[]"}},
    "entries": [
        {
            "frames": [
                {"name": "all_reduce", "filename": "/x/site-packages/torch/distributed/distributed_c10d.py", "line": 1},
                {"name": "average", "filename": "/job/train.py", "line": 8},
            ],
            "record_id": number,
            "pg_id": 0,
            "process_group": ("0", "default_pg"),
            "collective_seq_id": number + 1,
            "p2p_seq_id": 0,
            "op_id": number + 1,
            "profiling_name": "gloo:all_reduce",
            "time_created_ns": 1795862511989727238,
            "input_sizes": [[4]],
            "input_dtypes": ["Float"],
            "output_sizes": [[4]],
            "output_dtypes": ["Float"],
            "state": "scheduled",
            "retired": number == 0,
            "timeout_ms": 1800000,
            "is_p2p": False,
        }
        for number in range(2)
    ],
}
# Made up after FlightRecorder.hpp, as NCCL's has them.
NCCL = {
    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}},
    "entries": [
        {"process_group": ["0", "default_pg"], "collective_seq_id": 7, "state": "completed"},
        {"process_group": ["0", "default_pg"], "p2p_seq_id": 2, "is_p2p": True, "state": "started"},
        {"pg_id": 3, "seq_id": 5, "profiling_name": "nccl:broadcast", "state": "scheduled"},
    ],
}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_dump_is_read(protocol: int) -> None:
    entries = recorder.entries_of(recorder.read_pickle(pickle.dumps(GLOO, protocol=protocol)))
    assert [(one["sequence"], one["done"], one["operation"]) for one in entries] == [
        (1, True, "gloo:all_reduce"),
        (2, False, "gloo:all_reduce"),
    ]
    assert entries[0]["site"] == [{"function": "average", "file": "/job/train.py", "line": 8}]
    assert entries[0]["group"] == "0"


def test_entries_of_nccl_and_of_earlier_releases() -> None:
    found = [(one["group"], one["sequence"], one["done"], one["p2p"]) for one in recorder.entries_of(NCCL)]
    assert found == [("0", 7, True, False), ("0", 2, False, True), ("3", 5, False, False)]
    assert recorder.groups_of([NCCL]) == {"0": {"ranks": [0, 1, 2], "description": "default_pg"}}


def test_the_last_entries_of_each_group_are_kept() -> None:
    many = [{"process_group": [str(number % 2), ""], "collective_seq_id": number} for number in range(1000)]
    kept = recorder.entries_of({"entries": many}, kept=3)
    assert [one["sequence"] for one in kept] == [994, 995, 996, 997, 998, 999]


class Call:
    def __reduce__(self) -> Any:
        return print, ("called",)


NESTED = b"\x80\x02]" + b"\x85" * 200000 + b"."
HOSTILE = {
    "it calls": pickle.dumps(Call()),
    "it names a class": b"cos\nsystem\n.",
    "an index of a memo": b"\x80\x02]r\xff\xff\xff\x7f.",
    "a key of nested tuples": b"\x80\x02})" + b"\x85" * 200000 + b"K\x01s.",
    "a set": pickle.dumps({1}, protocol=4),
    "bytes": pickle.dumps(b"x", protocol=4),
    "a long text": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "text numbers": b"I" + b"9" * 100000 + b"\n.",
    "nothing": b"",
    "no end": b"\x80\x02]",
    "other": b"\x80\x02" + b"(" * 1000,
    "too large": b"\x80\x02" + bytes(recorder.LARGEST),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_dump_is_refused(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    if name == "an index of a memo":
        assert recorder.read_pickle(HOSTILE[name]) == []  # it is only a key of a dictionary here
        return
    with pytest.raises(recorder.DumpError):
        recorder.read_pickle(HOSTILE[name])
    assert capfd.readouterr().out == ""


def test_a_dump_is_not_read_for_long() -> None:
    with pytest.raises(recorder.DumpError, match="too long"):
        recorder.read_pickle(b"\x80\x02" + b"]0" * 3_000_000 + b"N.", seconds=0.05)


@pytest.mark.parametrize(
    "dump", [None, 1, [], {}, {"entries": 1}, {"entries": [None, {}, {"process_group": 1}]}, NESTED]
)
def test_what_is_no_dump_has_no_usable_entries(dump: Any) -> None:
    entries = recorder.entries_of(dump)
    assert all(shape.ENTRY(one) is not None for one in entries)
    assert recorder.groups_of([dump, {"pg_config": {"a": {"name": "a", "ranks": "[1, x, 99999999999999]"}}}]) == {
        "a": {"ranks": [1], "description": None}
    }


# --- sockets ---------------------------------------------------------------------------------------------------------


def message(info: bytes = b"") -> bytes:
    """Return a message of sock_diag as the kernel makes it (linux/inet_diag.h)."""
    body = struct.pack("=BBBB", socket.AF_INET, 1, 1, 4) + struct.pack("!HH", 29500, 40000)
    body += socket.inet_aton("10.0.0.1") + bytes(12) + socket.inet_aton("10.0.0.2") + bytes(12)
    body += struct.pack("=III", 0, 0, 0) + struct.pack("=IIIII", 0, 11, 22, 0, 4711)
    if info:
        body += struct.pack("=HH", 4 + len(info), 2) + info
    return struct.pack("=IHHII", 16 + len(body), sockets.DUMP, 0, 1, 0) + body


def test_a_socket_of_the_kernel() -> None:
    info = bytearray(200)
    info[2] = 6
    struct.pack_into("=I", info, 56, 5000)
    struct.pack_into("=QQ", info, 120, 100, 200)
    struct.pack_into("=II", info, 136, 33, 44)
    data = message(bytes(info)) + struct.pack("=IHHII", 20, sockets.DONE, 0, 1, 0) + bytes(4)
    (kind, body), (end, _rest) = sockets.messages(data)
    assert (kind, end) == (sockets.DUMP, sockets.DONE)
    assert sockets.socket_of(body) == (
        4711,
        {
            "local": ["10.0.0.1", 29500],
            "remote": ["10.0.0.2", 40000],
            "state": "ESTABLISHED",
            "send": 22,
            "receive": 11,
            "retransmits": 6,
            "since_ack": 5000,
            "acknowledged": 100,
            "received": 200,
            "segments_out": 33,
            "segments_in": 44,
        },
    )


@pytest.mark.parametrize("length", range(0, 90, 7))
def test_a_message_that_is_cut_short(length: int) -> None:
    for _kind, body in sockets.messages(message()[:length]):
        assert sockets.socket_of(body) is None


# Made up in the form of Linux 6.18, one line of each file.
TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:73CC 0200007F:9C40 01 00000016:0000000B 01:00000014 00000006     0        0 4711 1 0000000000000000 20 4
   x: broken
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when
   0: 0000000000000000FFFF00000100007F:73CC 00000000000000000000000000000000:0000 0A 00000000:00000000 00:0 0 0 0 9
"""


def test_sockets_in_proc() -> None:
    assert list(sockets.listed(TCP)) == [
        (
            4711,
            {
                "local": ["127.0.0.1", 29644],
                "remote": ["127.0.0.2", 40000],
                "state": "ESTABLISHED",
                "send": 22,
                "receive": 11,
                "retransmits": 6,
            },
        )
    ]
    ((inode, one),) = sockets.listed(TCP6)
    assert (inode, one["local"], one["state"]) == (9, ["127.0.0.1", 29644], "LISTEN")


# --- /proc -----------------------------------------------------------------------------------------------------------

STAT = "123 (py (x) y) D 1 123 123 0 -1 4194304 1 0 0 0 50 25 0 0 20 0 7 0 100 0 0"


def test_stat_whatever_the_name() -> None:
    found = process_files.stat_of(STAT)
    assert found is not None
    assert (found["name"], found["state"], found["parent"], found["ticks"]) == ("py (x) y", "D", 1, 75)
    assert process_files.stat_of("") is None
    assert process_files.stat_of("1 (x) S a b c d e f g h i j k l") is None


def test_how_a_zombie_ended() -> None:
    fields = ["Z", "1"] + ["0"] * 47 + ["9"] + ["0"]
    found = process_files.stat_of("5 (worker) " + " ".join(fields))
    assert found is not None
    assert (found["signal"], found["code"]) == (9, 0)


def test_masks_of_signals() -> None:
    masks = process_files.signals_of("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t2000000000000000\nSigCgt:\t0\n")
    assert process_files.has_signal(masks["SigBlk"], 1)
    assert process_files.has_signal(masks["SigIgn"], 62)
    assert not process_files.has_signal(masks["SigCgt"], 62)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("202 0x55 0x80 0x0 0x0 0x0 0x0 0x7ffc 0x7f", ("futex", 0x55)),
        ("0 0x5 0x80 0x0 0x0 0x0 0x0 0x7ffc 0x7f", ("read", 5)),
        ("running\n", ("running", None)),
        ("-1 0x7ffc 0x7f", ("-1", 0x7FFC)),
        ("", ("", None)),
    ],
)
def test_calls(content: str, found: tuple[str, int | None]) -> None:
    assert process_files.call_of(content, "x86_64") == found


# Made up in the form of Linux 6.18.
LOCKS = """\
1: FLOCK  ADVISORY  WRITE 700 00:1f:42 0 EOF
1: -> FLOCK  ADVISORY  WRITE 701 00:1f:42 0 EOF
2: POSIX  ADVISORY  READ 9 00:1f:43 0 10
"""
MOUNTS = """\
31 24 0:27 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
32 24 0:28 /docker/a /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
33 1 0:2 / / rw - ext4 /dev/x rw
"""


def test_who_holds_a_lock() -> None:
    assert process_files.locks_of(LOCKS, {701: "", 9: ""}) == {701: [{"kind": "FLOCK", "holder": 700, "waits": True}]}


def test_where_cgroups_are() -> None:
    mounts = process_files.cgroup_mounts(MOUNTS)
    assert mounts[""] == ("/sys/fs/cgroup/unified", "/")
    assert mounts["cpu"] == ("/sys/fs/cgroup/cpu", "/docker/a")
    assert process_files.cgroups_of("4:cpu,cpuacct:/docker/a\n0::/x\nbroken") == {
        "cpu": "/docker/a",
        "cpuacct": "/docker/a",
        "": "/x",
    }


def test_messages_of_the_kernel() -> None:
    record = "6,1,5000000,-;Out of memory: Killed process 42 (python)\n SUBSYSTEM=x"
    assert process_files.kernel_message(record, 15.0) == {
        "age": 10.0,
        "line": "Out of memory: Killed process 42 (python)",
    }
    assert process_files.kernel_message("6,1,5000000,-;usb 1-1: new device", 15.0) is None
    assert process_files.kernel_message("x", 15.0) is None
