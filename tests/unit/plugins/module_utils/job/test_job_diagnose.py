# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The first cause of a failure, in recorded logs (fixtures/failures, fixtures/job) and in invented ones."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import diagnose as job_diagnose
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import failure_search
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.diagnose import Diagnosis, diagnose, first_cause
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.evidence import Finding
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.exits import exit_meaning
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.failure_search import known_failure
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.failures import BY_ID, FAILURES
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.diagnosis.launcher_log import as_dict, split_log

from tests.effort import examples
from tests.growth import assert_growth

FIXTURES = Path(__file__).parents[1] / "fixtures"
TRACE = ["Traceback (most recent call last):", '  File "/workspace/train.py", line 8, in <module>', "    train()"]
LIBRARY = '  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 125, in forward'
PEER = "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:53645."
Line = tuple[str, "int | None", str]

JOBS = [
    ("script_raise", "script-exception", "lab2", 1),
    ("script_shape", "shapes", "lab2", 1),
    ("torchrun_raise", "script-exception", "lab2", 1),
    ("script_kill", "exit-sigkill", "lab2", None),
    ("torchrun_killed", "exit-sigkill", "lab2", 1),
    ("script_segv", "exit-sigsegv", "lab2", None),
    ("script_exit0", "ended-early", "lab2", None),
    ("script_exit3", "unknown", "lab2", None),
    ("torchrun_exit", "unknown", "lab2", 1),
    ("torchrun_hang", "collective-timeout", "lab1", 0),
    ("checkpoint_shard", "checkpoint-shard", "lab2", 1),
    ("checkpoint_nolatest", "checkpoint-missing", "lab1", 0),
    ("compiler_missing", "compiler", "lab1", 0),
    ("deepspeed_argument", "launcher-argument", "lab1", None),
    ("torchrun_argument", "launcher-argument", "lab1", None),
    ("deepspeed_env", "ds-env", "lab1", None),
    ("disk_full", "disk-full", "lab1", 0),
    ("fp16_on_cpu", "precision", "lab1", 0),
    ("optimizer_name", "optimizer", "lab1", 0),
    ("gloo_interface", "gloo-interface", "lab1", 0),
    ("hostfile_bad", "hostfile-bad", "lab1", None),
    ("include_unknown", "host-filter", "lab1", None),
    ("missing_script", "script-missing", "lab2", 1),
    ("torchrun_missing_script", "script-missing", "lab1", 0),
    ("pdsh_missing", "pdsh-missing", "lab1", None),
    ("ssh_missing", "ssh-missing", "lab1", None),
    ("ssh_unreachable", "ssh-first-node", "lab1", None),
    ("port_taken", "port-taken", "lab1", 0),
    ("name_unknown", "name-unknown", "lab2", None),
    ("missing_node", "rendezvous-missing-node", "lab1", 0),
    ("gloo_loopback", "gloo-loopback", "lab1", 0),
    ("hostfile_missing", "hostfile-missing", "lab1", None),
    ("shm_mmap", "exit-sigbus", "lab2", 1),
    ("shm_loader", "shm-full", "lab2", 1),
    ("torchrun_port_taken", "port-taken", "lab1", None),
    ("gpu_memory", "gpu-memory", "gpu", 0),
    ("gpu_cublas", "gpu-memory", "gpu", 0),
    ("gpu_pinned", "pinned-refused", "gpu", 0),
    ("gpu_ordinal", "gpu-ordinal", "gpu", 0),
    ("gpu_index", "index-on-gpu", "gpu", 0),
    ("gpu_address", "gpu-address", "gpu", 0),
    ("gpu_architecture", "gpu-architecture", "gpu", 0),
    ("gpu_twice", "gpu-twice", "gpu", 0),
    ("gpu_interface", "nccl-interface", "gpu", 0),
    ("gpu_none", "gpu-none", "gpu", 0),
    ("gpu_toolkit", "cuda-toolkit", "gpu", 0),
    ("arch_list", "arch-list", "gpu", 0),
    ("input_precision", "input-precision", "gpu", 0),
    ("input_precision_conv", "input-precision", "gpu", 0),
]
EXCEPTIONS = {
    "accelerator_name": "accelerator-name",
    "batch_padding": "padding",
    "checkpoint_cut": "checkpoint-cut",
    "cuda": "torch-without-cuda",
    "data_denied": "path-denied",
    "data_empty": "data-empty",
    "data_missing": "path-missing",
    "ds_auto": "ds-config-auto",
    "ds_batch": "batch-arithmetic",
    "ds_both": "precision",
    "ds_file": "ds-config-file",
    "ds_json": "ds-config-file",
    "ds_key": "ds-config-key",
    "ds_nothing": "batch-arithmetic",
    "ds_removed": "ds-config-removed",
    "files": "open-files",
    "group_missing": "group-missing",
    "hub_name": "hub-name",
    "hub_offline": "hub-offline",
    "hub_unreachable": "hub-offline",
    "library_name": "library-name",
    "library_version": "library-version",
    "loader_killed": "host-memory-killed",
    "local_rank": "local-rank-argument",
    "memoryerror": "host-memory",
    "module_missing": "module-missing",
    "ninja": "ninja",
    "no_environment": "no-environment",
    "no_master": "rendezvous-no-master",
    "numactl": "numactl-missing",
    "oom": "host-memory",
    "pad_token": "pad-token",
    "padding": "padding",
    "read_only": "disk-read-only",
    "remote_code": "remote-code",
    "safetensors": "safetensors",
    "script_argument": "script-argument",
    "shapes": "shapes",
    "state_dict": "state-dict",
    "threads": "threads",
    "tokenizer": "tokenizer",
    "two_d": "zero3-not-gathered",
    "ulimit": "host-memory",
    "weights_only": "weights-only",
    "zerofp32": "checkpoint-shard",
}


def log(name: str, folder: str = "failures") -> str:
    return (FIXTURES / folder / f"{name}.txt").read_text(encoding="utf-8").replace("␍", "\r")


def sections() -> dict[str, str]:
    parts = log("exceptions").split("=== ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


def first(lines: list[Line]) -> Finding:
    found = first_cause(diagnose(lines))
    assert found is not None
    return found


@pytest.mark.parametrize(("name", "expected", "node", "rank"), JOBS)
def test_recorded_jobs(name: str, expected: str, node: str, rank: int | None) -> None:
    found = first(split_log(log(name)))
    assert (found.id, found.node, found.rank) == (expected, node, rank)


def test_every_recorded_job_is_tested() -> None:
    names = {path.stem for path in (FIXTURES / "failures").glob("*.txt")} - {"ok", "exceptions"}
    assert names == {name for name, *_rest in JOBS}


@pytest.mark.parametrize(("name", "folder"), [("ok", "failures"), ("pdsh_ok", "job")])
def test_a_job_that_ended_well_has_no_findings(name: str, folder: str) -> None:
    assert diagnose(split_log(log(name, folder))) == []


@pytest.mark.parametrize(
    ("name", "expected", "rank"), [("pdsh_raise", "script-exception", 1), ("pdsh_killrank", "exit-sigkill", None)]
)
def test_recorded_jobs_of_pdsh(name: str, expected: str, rank: int | None) -> None:
    found = first(split_log(log(name, "job")))
    assert (found.id, found.node, found.rank) == (expected, "lab2", rank)


def test_every_recorded_exception_is_tested() -> None:
    assert set(sections()) == set(EXCEPTIONS)


@pytest.mark.parametrize(("name", "expected"), EXCEPTIONS.items())
def test_recorded_exceptions(name: str, expected: str) -> None:
    assert first(split_log(sections()[name])).id == expected


def test_what_is_said_to_be_recorded_is_in_a_fixture() -> None:
    seen = set(EXCEPTIONS.values())
    for name, *_rest in JOBS:
        seen |= {finding.id for finding in diagnose(split_log(log(name)))}
    assert {failure.id for failure in FAILURES if failure.source == "recorded"} - seen == set()


def line_of(text: str) -> str:
    return "some words: " * (not text.startswith("^")) + text.lstrip("^").replace("…", " 17 ") + " and more"


REPORTED = [(failure.id, text) for failure in FAILURES for text in failure.texts]


@pytest.mark.parametrize(("expected", "text"), REPORTED)
def test_every_text_finds_its_entry(expected: str, text: str) -> None:
    """None is hidden by an entry before it."""
    found = known_failure(line_of(text), [f"/opt/venv/lib/python3.11/site-packages/{BY_ID[expected].frame}"])
    assert found is not None
    assert found.id == expected


def test_an_entry_with_a_frame_needs_that_frame() -> None:
    line = "ValueError: not enough values to unpack (expected 2, got 1)"
    assert known_failure(line, ["/workspace/train.py"]) is None
    assert first([("lab1", 0, text) for text in (*TRACE, line)]).id == "script-exception"


CUDA_MEMORY = "torch.AcceleratorError: CUDA error: out of memory"
PINNED = ["    torch.empty(8 * GIB, dtype=torch.uint8, pin_memory=True)", "          ^^^^^^^^^~~~~~~~"]
DEEPSPEED = '  File "/opt/venv/site-packages/deepspeed/accelerator/abstract_accelerator.py", line 339, in '


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([LIBRARY, PINNED[0]], "pinned-refused"),
        ([LIBRARY, *PINNED], "pinned-refused"),
        ([LIBRARY, PINNED[0], PINNED[0], *PINNED], "pinned-refused"),
        ([DEEPSPEED + "pin_memory", "    return self._torch_pin_memory(tensor)", "            ^^^^"], "pinned-refused"),
        ([*PINNED, LIBRARY, "    return F.linear(input, self.weight, self.bias)"], "gpu-memory"),
        ([LIBRARY, "    torch.empty(2 * total, device='cuda')"], "gpu-memory"),
        ([LIBRARY], "gpu-memory"),
        ([], "gpu-memory"),
    ],
    ids=["source", "marked", "several", "deepspeed", "further-up", "gpu", "no-source", "script"],
)
def test_memory_that_was_to_be_pinned_is_distinguished_from_a_full_gpu(after: list[str], expected: str) -> None:
    """CUDA has one error for both: the last source line shows which it is."""
    assert first([("lab1", 0, text) for text in (*TRACE, *after, CUDA_MEMORY)]).id == expected


def test_without_a_traceback_it_is_the_gpu() -> None:
    assert first([("lab1", 0, text) for text in (*PINNED, CUDA_MEMORY)]).id == "gpu-memory"
    known = known_failure(CUDA_MEMORY)
    assert known is not None
    assert known.id == "gpu-memory"


def test_a_source_line_does_not_outlast_its_traceback() -> None:
    lines = [*TRACE, *PINNED, "KeyError: 'labels'", *TRACE[:2], CUDA_MEMORY]
    assert first([("lab1", 0, text) for text in lines]).id == "gpu-memory"


def plainly(line: str) -> str | None:
    """The first entry in the table's order, found by trying them all."""
    for failure in FAILURES:
        for text in failure.texts:
            pattern = ".*".join(re.escape(piece) for piece in text.lstrip("^").split("…"))
            if not failure.frame and (re.match if text.startswith("^") else re.search)(pattern, line):
                return failure.id
    return None


def test_the_quick_search_finds_what_the_whole_table_finds() -> None:
    source = random.Random(5)
    letters = "abc :'/.NCLrotei"
    found, lines = 0, examples(1500)
    for dummy in range(lines):
        words = [
            source.choice(REPORTED)[1].replace("…", source.choice((" 1 ", ""))) for dummy in range(source.randint(0, 2))
        ]
        words += ["".join(source.choice(letters) for dummy in range(source.randint(0, 12))) for dummy in range(2)]
        source.shuffle(words)
        line = source.choice(("", " ")).join(words).replace("^", "")
        known = known_failure(line)
        assert (known.id if known else None) == plainly(line)
        found += known is not None
    assert lines / 5 < found < lines * 0.93
    assert len(failure_search._SIGNS) * 3 < len(failure_search._NEEDLES)


def test_a_symptom_before_it_does_not_hide_the_cause() -> None:
    lines: list[Line] = [("lab1", 0, text) for text in (*TRACE, PEER)]
    lines += [("lab2", 1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")]
    found = diagnose(lines)
    assert [(item.id, item.node, item.rank) for item in found] == [("gpu-memory", "lab2", 1), ("peer-gone", "lab1", 0)]
    assert found[0].setting == "deepspeed_launch_ds_config_preset"
    assert found[0].line.startswith("torch.OutOfMemoryError")


@pytest.mark.parametrize("early", [0, 1])
def test_of_two_causes_the_first_in_time(early: int) -> None:
    lines: list[Line] = [("lab1", 0, "OSError: [Errno 24] Too many open files"), ("lab2", 1, "MemoryError")]
    assert first(lines if early == 0 else lines[::-1]).node == lines[early][0]


def test_only_a_symptom_is_better_than_nothing() -> None:
    found = first([("lab1", 0, text) for text in (*TRACE, PEER)])
    assert (found.id, found.kind) == ("peer-gone", "symptom")


def test_what_is_true_of_many_causes_comes_after_one_that_is_not() -> None:
    lines: list[Line] = [("lab1", 0, "torch.distributed.DistBackendError: NCCL error: unhandled system error")]
    lines += [("lab1", 0, "Last error: Error: failed to extend /dev/shm/nccl-x to 9 bytes, error: No space left")]
    assert [item.id for item in diagnose(lines)] == ["shm-full", "nccl-system"]


STDLIB = '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode'


@pytest.mark.parametrize("more", [(), (STDLIB, "    return x")])
def test_the_script_is_named_with_file_and_line_for_what_it_raised_itself(more: tuple[str, ...]) -> None:
    found = first([("lab2", 3, text) for text in (*TRACE, *more, "ValueError: no such column")])
    assert found == Finding(
        "script-exception",
        "script",
        "ValueError: no such column (raised at /workspace/train.py, line 8)",
        "Correct the script or its data; the log of that rank has the whole traceback.",
        "",
        "lab2",
        3,
        "ValueError: no such column",
        "certain",
    )


@pytest.mark.parametrize(
    ("frames", "exception", "where"),
    [
        ((), "WeirdError: 7", ""),
        ((LIBRARY, "    return x"), "ValueError: no such column", "raised in torch/nn/modules/linear.py"),
        ((), "RuntimeError: CUDA error: a new one", ""),
    ],
)
def test_what_a_library_raised_and_no_entry_knows_is_not_known(
    frames: tuple[str, ...], exception: str, where: str
) -> None:
    script = TRACE if frames or "CUDA" in exception else TRACE[:1]
    found = first([("lab2", 3, text) for text in (*script, *frames, exception)])
    assert (found.id, found.kind, found.confidence) == ("unknown-exception", "unknown", "not known")
    assert found.cause.startswith(f"Not known; the error lines of rank 3 on lab2 are: {exception}")
    assert where in found.cause and ("called from /workspace/train.py, line 8" in found.cause) == (script is TRACE)


@pytest.mark.parametrize("between", [0, 1])
def test_the_exception_counts_more_than_what_the_rank_printed_before(between: int) -> None:
    survived = "CUDA out of memory: trying a smaller batch"
    lines = [survived, *[f"step {number} loss 1.5" for number in range(60 * between)], *TRACE, "KeyError: 'labels'"]
    assert first([("lab1", 0, text) for text in lines]).id == "script-exception"


def test_a_traceback_after_which_the_rank_went_on_ended_nothing() -> None:
    lines: list[Line] = [("lab1", 0, text) for text in (*TRACE, "ModuleNotFoundError: No module named 'triton'")]
    lines += [("lab1", 0, f"step {number} loss 1.5") for number in range(3)]
    found = fed(lines, [("lab1", 0, -9)])
    assert [(one.id, one.passed) for one in found] == [("exit-sigkill", False)]
    assert first([*lines, *(("lab1", 0, text) for text in (*TRACE, "KeyError: 'x'"))]).id == "script-exception"


def test_of_an_unknown_end_only_the_error_lines_since_it_last_went_on_are_quoted() -> None:
    texts = [f"error {number} of the start" for number in range(5)]
    texts += [*(f"step {number} loss 1.5" for number in range(5)), "fatal: the moon is full"]
    found = fed([("lab1", 0, text) for text in texts], [("lab1", 0, 3)])
    assert "are: fatal: the moon is full; it ended with exit code 3" in found[0].cause


def test_the_kernel_says_why_a_rank_of_a_container_was_killed() -> None:
    kernel = "Memory cgroup out of memory: Killed process 4242 (python3)"
    found = fed([("", None, kernel)], [("lab1", 0, -9)])
    assert (found[0].id, found[0].node, found[0].rank) == ("container-memory", "lab1", 0)


def test_a_signal_says_more_than_what_the_rank_printed() -> None:
    lines: list[Line] = [("lab1", 0, "libcuda.so.1(+0x1234) [0x7f]")]
    found = fed(lines, [("lab1", 0, -11)])
    assert (found[0].id, found[0].confidence) == ("exit-sigsegv", "likely")
    assert [one.passed for one in found[1:]] == [True]


def test_of_chained_exceptions_a_known_one_explains_the_others() -> None:
    chain = [
        *TRACE,
        "ModuleNotFoundError: No module named 'peft'",
        "",
        "During handling of the above exception, another",
    ]
    chain += [*TRACE, "RuntimeError: cannot load the trainer"]
    assert first([("lab1", 0, text) for text in chain]).id == "module-missing"


def test_ranks_that_print_at_once_are_kept_apart() -> None:
    lines: list[Line] = []
    for text in (*TRACE, "KeyError: 'labels'"):
        lines += [("lab1", None, f"[rank{rank}]: {text}") for rank in (1, 0)]
    assert [(item.id, item.rank) for item in diagnose(lines)] == [("script-exception", 1), ("script-exception", 0)]


def test_the_exception_of_a_loader_worker_leads_to_the_script() -> None:
    inner = ["ValueError: Caught ValueError in DataLoader worker process 0.", "Original " + TRACE[0]]
    inner += [LIBRARY, '  File "/workspace/data.py", line 3, in __getitem__', "ValueError: odd row"]
    found = first([("lab1", 0, text) for text in (*TRACE, *inner)])
    assert found.cause == "ValueError: odd row (raised at /workspace/data.py, line 3)"


@pytest.mark.parametrize(
    ("code", "launcher", "name", "entry", "text"),
    [
        (0, "deepspeed", "", "", "exit code 0"),
        (1, "deepspeed", "", "", "exit code 1"),
        (
            247,
            "deepspeed",
            "SIGKILL",
            "exit-sigkill",
            "exit code 247: SIGKILL, often the kernel's out-of-memory killer",
        ),
        (-9, "torchrun", "SIGKILL", "exit-sigkill", "exit code -9: SIGKILL, often the kernel's out-of-memory killer"),
        (137, "per_node", "SIGKILL", "exit-sigkill", "exit code 137: SIGKILL, often the kernel's out-of-memory killer"),
        (249, "deepspeed", "SIGBUS", "exit-sigbus", "exit code 249: SIGBUS, often a full /dev/shm"),
        (-4, "deepspeed", "SIGILL", "exit-sigill", "exit code -4: SIGILL, an operator compiled for another processor"),
        (245, "deepspeed", "SIGSEGV", "exit-sigsegv", "exit code 245: SIGSEGV, a crash in compiled code"),
        (250, "deepspeed", "SIGABRT", "exit-sigabrt", "exit code 250: SIGABRT, a library ended the process"),
        (143, "per_node", "SIGTERM", "ended-from-outside", "exit code 143: SIGTERM, ended from outside"),
        (
            -1,
            "deepspeed",
            "SIGHUP",
            "ended-from-outside",
            "exit code -1: SIGHUP, ended from outside, as its terminal or session was closed",
        ),
        (247, "torchrun", "", "", "exit code 247"),
        (247, "pdsh", "SIGKILL", "exit-sigkill", "exit code 247: SIGKILL, often the kernel's out-of-memory killer"),
        (255, "pdsh", "", "exit-ssh", "exit code 255: ssh itself failed"),
        (255, "deepspeed", "", "", "exit code 255"),
        (127, "per_node", "", "exit-not-found", "exit code 127: the command was not found"),
        (126, "per_node", "", "exit-not-found", "exit code 126: the command may not be run"),
        (-250, "torchrun", "", "", "exit code -250"),
    ],
)
def test_exit_codes(code: int, launcher: str, name: str, entry: str, text: str) -> None:
    assert exit_meaning(code, launcher) == (code, name, text, entry)


def fed(lines: list[Line], exits: list[tuple[str, int | None, int]]) -> list[Finding]:
    diagnosis = Diagnosis()
    for line in lines:
        diagnosis.feed(*line)
    for item in exits:
        diagnosis.exited(*item)
    return diagnosis.result()


def test_a_kill_goes_before_the_ranks_that_lost_their_peer() -> None:
    found = fed([("lab1", 0, PEER)], [("lab2", 1, -9), ("lab1", 0, 1)])
    assert [(item.id, item.node, item.rank) for item in found] == [
        ("exit-sigkill", "lab2", 1),
        ("peer-gone", "lab1", 0),
    ]
    assert found[0].line == "rank 1 on lab2 ended with exit code -9: SIGKILL, often the kernel's out-of-memory killer"


def test_what_a_rank_said_is_better_than_its_exit_code() -> None:
    reported = "NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9 bytes, error: No space left on device (28)"
    assert [item.id for item in fed([("lab2", 1, reported)], [("lab2", 1, -7), ("lab2", None, 249)])] == ["shm-full"]


def test_the_rank_is_taken_from_whoever_names_it() -> None:
    found = fed([], [("lab2", None, 247), ("lab2", 5, -9)])
    assert [(item.id, item.rank) for item in found] == [("exit-sigkill", 5)]


def test_a_rank_that_fails_after_another_of_its_node_ended_well_is_named() -> None:
    found = fed([], [("lab2", None, 0), ("lab2", None, 247)])
    assert [item.id for item in found] == ["exit-sigkill"]


def test_a_silent_end_is_not_known_and_goes_before_its_symptoms() -> None:
    found = fed([("lab1", 0, PEER)], [("lab2", 1, 3), ("lab1", 0, 1)])
    assert found[0].cause == "Not known; rank 1 on lab2 ended with exit code 3 and printed no error."
    assert found[0].remedy == (
        "Read the whole log of rank 1 on lab2; with PYTHONFAULTHANDLER: 1 in deepspeed_launch_environment and "
        "nccl_env_debug: INFO it says more."
    )
    assert (found[0].kind, found[0].confidence) == ("unknown", "not known")
    assert [item.id for item in found] == ["unknown", "peer-gone"]


def test_an_unknown_failure_shows_its_first_error_line_and_the_last_two() -> None:
    lines: list[Line] = [("lab2", 1, "hello"), ("lab2", 1, "fatal: the moon is full"), ("lab1", 0, "an error later")]
    lines += [("lab2", 1, f"error {number}") for number in range(9)]
    found = diagnose(lines)
    assert [item.cause for item in found] == [
        "Not known; the error lines of rank 1 on lab2 are: fatal: the moon is full | error 7 | error 8."
    ]


def test_a_rank_that_ended_well_too_early_is_named() -> None:
    found = fed([("lab1", 0, PEER)], [("lab2", 1, 0), ("lab1", 0, 1)])
    assert [(item.id, item.node, item.rank) for item in found] == [("ended-early", "lab2", 1), ("peer-gone", "lab1", 0)]


def test_a_stalled_build_is_distinguished_from_a_stalled_step() -> None:
    building = Diagnosis()
    building.feed("lab1", 0, "Using /root/.cache/torch_extensions/py311_cu128 as PyTorch extensions root...")
    assert [item.id for item in building.result(stalled=True)] == ["extension-lock"]
    assert building.result() == []
    building.feed("lab1", 0, "step 1")
    assert building.result(stalled=True) == []


def test_nothing_is_found_in_nothing() -> None:
    assert diagnose([]) == []
    assert first_cause([]) is None
    assert as_dict([])["cause"] == "Not known; the log has no error line."


def test_control_codes_and_progress_bars_hide_nothing() -> None:
    assert first([("lab1", 0, "\r10%|#\r\x1b[31mMemoryError\x1b[0m")]).line == "MemoryError"


def noise(source: random.Random) -> str:
    words = (
        "step",
        "loss",
        "0.1",
        "error",
        "rank",
        "exit",
        "[rank3]:",
        "File",
        "Traceback",
        ":",
        "…",
        "\x1b[0m",
        "NCCL",
    )
    return " ".join(source.choice(words) for dummy in range(source.randint(0, 8)))


def test_noise_never_breaks_it_and_causes_stay_before_symptoms() -> None:
    source = random.Random(11)
    for dummy in range(examples(300)):
        diagnosis = Diagnosis()
        for dummy in range(40):
            text = line_of(source.choice(REPORTED)[1]) if source.random() < 0.1 else noise(source)
            text = source.choice(TRACE) if source.random() < 0.1 else text
            diagnosis.feed(source.choice(("", "a", "b")), source.choice((None, 0, 1)), text)
            if source.random() < 0.05:
                diagnosis.exited("a", source.choice((None, 0)), source.randint(-20, 260))
        kinds = [item.kind == "symptom" for item in diagnosis.result() if not item.passed]
        assert kinds == sorted(kinds)
        assert diagnosis.result() == diagnosis.result()


def test_what_is_kept_does_not_grow_with_the_log() -> None:
    diagnosis = Diagnosis()
    for number in range(3000):
        diagnosis.feed(f"node{number % 2}", number % 4, f"error {number}: MemoryError {number}")
        diagnosis.exited("node0", 0, 1)
    streams = list(diagnosis._streams.values())
    assert len(streams) == 4
    assert all(len(stream.errors) <= 5 and len(stream.seen) == 1 for stream in streams)
    assert len(diagnosis._exits) == 1
    for number in range(9000):
        diagnosis.feed("", number, "MemoryError")
    assert len(diagnosis._streams) <= job_diagnose.MOST_STREAMS + 1
    assert len(diagnosis.result()) == job_diagnose.MOST_FINDINGS


def test_time_grows_with_the_lines_and_not_faster() -> None:
    line = "step 17 loss 0.250 samples per second 123.4 grad norm 1.2"

    def read(count: int) -> None:
        diagnose(("lab1", 0, line) for dummy in range(count))

    assert_growth(lambda: read(1000), lambda: read(8000), less_than=16)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lab2: rank 3: hello: you", ("lab2", 3, "hello: you")),
        (
            "lab1: [rank0]: Traceback (most recent call last):",
            ("lab1", None, "[rank0]: Traceback (most recent call last):"),
        ),
        ("ValueError: no\nplain", ("", None, "ValueError: no")),
        ("ValueError: no", ("", None, "ValueError: no")),
        ("lab1: one\nlab2: two: three", ("lab1", None, "one")),
        ("pdsh@lab1: lab2: ssh exited with exit code 1", ("", None, "pdsh@lab1: lab2: ssh exited with exit code 1")),
        ("[default0]:[rank3]: x", ("", None, "[default0]:[rank3]: x")),
    ],
)
def test_lines_of_any_launcher(text: str, expected: Line) -> None:
    assert split_log(text)[0] == expected


def test_nodes_can_be_given() -> None:
    assert split_log("gpu1: no\nplain", ["gpu1"]) == [("gpu1", None, "no"), ("", None, "plain")]


@pytest.mark.parametrize(
    ("prefix", "rank"), [("[default1]:", 1), ("[rank3]: ", 3), ("[default0]:[rank3]: ", 3), ("", None)]
)
def test_prefixes_of_torchrun_name_the_rank(prefix: str, rank: int | None) -> None:
    found = first(split_log("\n".join(prefix + text for text in (*TRACE, "MemoryError"))))
    assert (found.id, found.rank, found.line) == ("host-memory", rank, "MemoryError")


CONFIG = "'--deepspeed_config', '/etc/swarmspeed/ds_config.json'"


@pytest.mark.parametrize(
    ("line", "value"),
    # What these print of an argument that they do not know, as tried with the releases that failures.py names.
    [
        (
            f"ValueError: Some specified arguments are not used by the HfArgumentParser: ['--local_rank=0', {CONFIG}]",
            "huggingface",
        ),
        ("train.py: error: unrecognized arguments: --deepspeed_config /etc/swarmspeed/ds_config.json", "none"),
        ("train.py: error: unrecognized arguments: --local_rank=0 --deepspeed /srv/x/etc/ds_config.json", "none"),
        ("train.py: error: unrecognized arguments: /etc/swarmspeed/ds_config.json", "deepspeed"),
        ("train.py: error: unrecognized arguments: --deepspeed_config", "none"),  # hydra
        (
            "error: unrecognized arguments: --deepspeed_config /etc/swarmspeed/ds_config.json",
            "lightning",
        ),
        ("│ Unrecognized options: --deepspeed_config, /etc/swarmspeed/ds_config.json │", "none"),
        ("Error: No such option '--deepspeed_config'.", "none"),
        ("Error: no such option: --deepspeed_config", "none"),
        ("│ No such option: --deepspeed_config        │", "none"),
        ("ERROR: Could not consume arg: --deepspeed_config", "none"),
        ("FATAL Flags parsing error: Unknown command line flag 'deepspeed_config'", "none"),
    ],
)
def test_who_does_not_know_our_argument_is_answered_with_the_variable(line: str, value: str) -> None:
    found = first([("lab1", 0, line)])
    assert found.setting == "deepspeed_launch_integration" and value in found.remedy
    assert "deepspeed_launch_integration" in found.remedy
