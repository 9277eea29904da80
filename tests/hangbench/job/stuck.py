# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Data-parallel training in which one rank gets stuck in its own code: asleep, busy, in a file, in a lock."""

from __future__ import annotations

import ctypes
import fcntl
import itertools
import multiprocessing
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.file_baton import FileBaton

from .skeleton import AT, FAULTY, PARAMETERS, PRIVATE, RANK, STEPS, finish, hang_begins, model, start, train_step

FOREVER = 1_000_000
NEVER = Path(os.environ.get("HANGBENCH_FUSE", "/nonexistent"))
"""A folder on a FUSE that never answers, for the cases that need it."""
LOCK = threading.Lock()
OTHER = threading.Lock()


def download_with_retries() -> None:
    while True:
        time.sleep(30)


def pad_until_aligned() -> None:
    length = 1
    while length % 64 != 0:
        length = (length + 2) % 1000


def decode_in_c() -> None:
    """Call a C library that sleeps, and holds the GIL meanwhile."""
    ctypes.PyDLL(None).sleep(FOREVER)


def wait_in_c() -> None:
    """Call a C library that waits without the GIL."""
    ctypes.CDLL(None).pause()


def clean_text() -> None:
    re.match(r"(a+)+$", "a" * 64 + "b")


def count_tokens() -> None:
    sum(itertools.repeat(1))


def recompute_statistics() -> None:
    square = torch.rand(256, 256)
    while True:
        square = torch.nn.functional.normalize(square @ square)


def read_shard() -> None:
    (NEVER / "shard.bin").read_bytes()


def write_checkpoint() -> None:
    (NEVER / "checkpoint.pt").write_bytes(b"0")


def list_dataset() -> None:
    list(NEVER.iterdir())


def open_pipe() -> None:
    os.mkfifo(PRIVATE / "batches")
    (PRIVATE / "batches").open("rb").read()


def lock_cache() -> None:
    """Lock a cache that another process, which is no rank, has locked."""
    path = PRIVATE / "cache.lock"
    holder = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(1, flush=True); time.sleep(1e6)"
    )
    with subprocess.Popen([sys.executable, "-c", holder, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)


def wait_for_build() -> None:
    """Wait for the lock of a build of an extension that was interrupted long ago."""
    (PRIVATE / "lock").touch()
    FileBaton(str(PRIVATE / "lock")).wait()


def update_metrics() -> None:
    with LOCK:
        log_metrics()


def log_metrics() -> None:
    with LOCK:
        print("never", flush=True)


def flush_logs() -> None:
    """Take two locks in the order opposite to that of a thread."""
    ready = threading.Event()

    def upload() -> None:
        with OTHER:
            ready.set()
            time.sleep(0.5)
            with LOCK:
                pass

    threading.Thread(target=upload, daemon=True).start()
    ready.wait()
    with LOCK:
        time.sleep(1)
        with OTHER:
            pass


def next_prefetched() -> None:
    """Wait for a thread that was to prefetch and has ended by an exception."""
    batches: queue.Queue[int] = queue.Queue()
    threading.Thread(target=lambda: batches.put(1 // 0), daemon=True).start()
    batches.get()


def run_converter() -> None:
    """Run a command that has ended, whose child keeps the pipe open."""
    subprocess.run(["sh", "-c", f"sleep {FOREVER} & exit 0"], stdout=subprocess.PIPE, check=True)


def run_helper() -> None:
    subprocess.run(["sh", "-c", f"sleep {FOREVER}; true"], check=True)


def join_writer() -> None:
    """Join a process before its queue is emptied."""
    results: multiprocessing.Queue[bytes] = multiprocessing.get_context("fork").Queue()
    process = multiprocessing.get_context("fork").Process(target=lambda: results.put(b"0" * 10_000_000))
    process.start()
    process.join()


class Locked(Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        with LOCK:
            return torch.ones(4)


def load_with_workers() -> None:
    """Fork workers of a data loader while a thread holds a lock that they need."""
    held = threading.Event()

    def hold() -> None:
        with LOCK:
            held.set()
            time.sleep(3)

    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    for dummy in DataLoader(Locked(), num_workers=1, multiprocessing_context="fork"):
        pass


def fail_and_join_threads() -> None:
    """Raise, and wait at the exit of the interpreter for a thread that is no daemon."""
    threading.Thread(target=heartbeat).start()
    raise RuntimeError("could not parse the batch")


def heartbeat() -> None:
    while True:
        time.sleep(5)


def allocate_until_killed() -> None:
    """Allocate in a memory cgroup until the kernel kills this process; without one, do what the kernel would."""
    group = os.environ.get("HANGBENCH_MEMORY_CGROUP")
    if not group:
        os.kill(os.getpid(), signal.SIGKILL)
    Path(group or "", "cgroup.procs").write_text(str(os.getpid()))
    kept = []
    while True:
        kept.append(bytearray(os.urandom(1 << 20)))


def tokenize(number: int) -> int:
    if number == 3:
        allocate_until_killed()
    return number


def tokenize_in_pool() -> None:
    """Wait for a pool, one of whose processes is killed: its task is lost."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(tokenize, range(8), chunksize=1)


def read_from_helper() -> None:
    """Wait for a killed helper's pipe, whose other end this process holds open too."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        allocate_until_killed()
    os.read(reading, 1)
    os.close(writing)


def take_from_queue() -> None:
    context = multiprocessing.get_context("fork")
    batches: multiprocessing.Queue[int] = context.Queue()
    context.Process(target=allocate_until_killed, daemon=True).start()
    batches.get()


def load_batch(step: int) -> None:
    if step == AT and RANK == FAULTY:
        hang_begins()
        globals()[PARAMETERS["how"]]()


def main() -> None:
    if PARAMETERS.get("before_start"):
        load_batch(AT)
    dist = start()
    network = model()
    for step in range(STEPS):
        load_batch(step)
        train_step(dist, network, step)
    finish(dist)


if __name__ == "__main__":
    main()
