# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What an image needs: the script runs in a real shell, whose PATH has the programs that a case asks for."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.needs import (
    END,
    NEEDS,
    check_problem,
    check_script,
    needs_of,
)

PDSH = {"script": "train.py", "launcher": "deepspeed", "transport": "pdsh", "launcher_args": ["--bind_cores_to_rank"]}
RDMA = {**PDSH, "rdma": True}
SHELL = "/bin/sh"
ROOT = Path(__file__).parents[5]


def names(job: dict[str, Any]) -> list[str]:
    return [need.name for need in needs_of(job)]


def run(job: dict[str, Any], path: Path) -> dict[str, Any]:
    command = [SHELL, "-c", check_script(job)]
    done = subprocess.run(command, env={"PATH": str(path)}, capture_output=True, text=True, check=False)
    return {"rc": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def numbers(found: dict[str, Any]) -> set[int]:
    return {int(number) for number in re.findall(r"lacks (\d+)", found["stdout"])}


@pytest.mark.parametrize(
    ("job", "more"),
    [
        ({}, []),
        ({"script": "", "launcher": "deepspeed", "transport": "pdsh", "launcher_args": ["--bind_cores_to_rank"]}, []),
        ({"script": "t.py", "launcher": "per_node", "transport": "direct"}, []),
        ({"script": "t.py", "launcher": "deepspeed", "transport": "direct"}, ["PyTorch", "deepspeed"]),
        ({"script": "t.py", "launcher": "torchrun", "transport": "direct"}, ["PyTorch", "torchrun"]),
        (PDSH, ["PyTorch", "deepspeed", "pdsh", "numactl"]),
        ({"script": "", "rdma": True}, ["libibverbs", "drivers of libibverbs"]),
        ({"script": "", "rdma": False}, []),
    ],
)
def test_what_a_job_needs_beyond_a_container(job: dict[str, Any], more: list[str]) -> None:
    always = [need.name for need in NEEDS if need.uses == "always"]
    assert names(job) == always + more
    assert {"ip", "ssh", "/usr/sbin/sshd", "Python 3.8 or later as python3"} <= set(always)


def test_programs_are_found_by_the_path_of_the_image(tmp_path: Path) -> None:
    programs = [need.name for need in needs_of(PDSH) if need.test == f"command -v {need.name}"]
    assert len(programs) >= 8
    before = numbers(run(PDSH, tmp_path))
    for name in programs:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    after = numbers(run(PDSH, tmp_path))
    assert {needs_of(PDSH)[number].name for number in before - after} == set(programs)


@pytest.mark.parametrize(("status", "missing"), [(0, False), (1, True)])
def test_what_is_tried_counts_and_not_that_it_is_there(status: int, missing: bool, tmp_path: Path) -> None:
    (tmp_path / "python3").write_text(f"#!/bin/sh\nexit {status}\n")
    (tmp_path / "python3").chmod(0o755)
    found = {needs_of(PDSH)[number].name for number in numbers(run(PDSH, tmp_path))}
    assert ("Python 3.8 or later as python3" in found) is missing
    assert ("PyTorch" in found) is missing


def test_the_python_of_these_tests_passes(tmp_path: Path) -> None:
    tests = {need.name: need.test for need in NEEDS}
    for name in ("Python 3.8 or later as python3", "env of GNU coreutils", "df of GNU coreutils"):
        subprocess.run([SHELL, "-c", tests[name]], stdout=subprocess.DEVNULL, check=True)


def answer(*missing: str, job: dict[str, Any] | None = None) -> dict[str, Any]:
    wanted = names(job or PDSH)
    lines = [f"swarmspeed lacks {wanted.index(name)}" for name in missing]
    return {"rc": 0, "stdout": "\n".join(["a banner", *lines, END]), "stderr": ""}


def problem(run_: dict[str, Any], job: dict[str, Any] | None = None) -> str:
    return check_problem(job or PDSH, run_, "team/train:1", "gpu1")


def test_nothing_is_missing() -> None:
    assert problem(answer()) == ""


def test_everything_that_is_missing_is_reported_at_once() -> None:
    found = answer("root as its user", "ip", "/usr/sbin/sshd", "deepspeed")
    assert problem(found) == (
        "gpu1: the image team/train:1 lacks root as its user (sshd and the mounts are root's); "
        "ip (finds the interface of the training network); /usr/sbin/sshd (is the container's process); "
        "deepspeed (starts the ranks (deepspeed_launch_launcher: deepspeed)). "
        "Remedy: apt-get install iproute2 openssh-server, in its Dockerfile; end the Dockerfile with USER root; "
        "pip install deepspeed, in an environment whose bin is on PATH (ENV PATH=…) (docs/own_image.md)."
    )


def test_every_need_has_a_remedy() -> None:
    for need in NEEDS:
        assert bool(need.package) is not bool(need.remedy), need.name
        reported = problem(
            answer(need.name, job=(job := {**RDMA, "launcher": "torchrun"} if need.uses == "torchrun" else RDMA)), job
        )
        assert need.name in reported and (need.package or need.remedy) in reported


def test_an_image_that_would_leave_nccl_with_sockets() -> None:
    assert problem(answer("libibverbs", "drivers of libibverbs", job=RDMA), RDMA) == (
        "gpu1: the image team/train:1 lacks libibverbs (NCCL opens it for the HCAs that nccl_env chose, and falls "
        "back to sockets without an error where it is missing); drivers of libibverbs (libibverbs finds no HCA "
        "without them)."
        " Remedy: apt-get install libibverbs1 ibverbs-providers, in its Dockerfile (docs/own_image.md)."
    )


def test_a_library_counts_where_python_loads_it(tmp_path: Path) -> None:
    """With the C library in place of libibverbs, which few machines have: what is tried is the loader's own search."""
    (test,) = [need.test for need in NEEDS if need.name == "libibverbs"]
    loads = subprocess.run([SHELL, "-c", test.replace("libibverbs.so.1", "libc.so.6")], check=False)
    fails = subprocess.run([SHELL, "-c", test.replace("libibverbs", "libswarmspeed")], capture_output=True, check=False)
    assert (loads.returncode, fails.returncode) == (0, 1)
    assert b"libswarmspeed.so.1: cannot open shared object file" in fails.stderr


def test_an_image_without_a_shell() -> None:
    # Recorded on engine 20.10.24.
    reported = (
        "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: runc create "
        'failed: unable to start container process: exec: "sh": executable file not found in $PATH: unknown'
        "\n\nRun 'docker run --help' for more information"
    )
    assert problem({"rc": 127, "stdout": "", "stderr": reported}) == (
        "gpu1: the image team/train:1 has no shell (sh), which starts sshd in it. "
        "Remedy: begin its Dockerfile with a Debian or Ubuntu image."
    )


@pytest.mark.parametrize(
    ("run_", "why"),
    [
        (
            {"rc": 125, "stdout": "", "stderr": "docker: Error response:\n no such runtime.\n"},
            "docker: Error response: no such runtime",
        ),
        ({"rc": 137, "stdout": "", "stderr": ""}, "exit status 137"),
        ({"rc": 0, "stdout": "swarmspeed lacks 0", "stderr": ""}, "swarmspeed lacks 0"),
        ({}, "exit status None"),
    ],
)
def test_a_container_that_does_not_run_is_no_image_that_lacks_nothing(run_: dict[str, Any], why: str) -> None:
    assert problem(run_) == (
        f"gpu1: the image team/train:1 was not checked, because no container of it could run: {why}. Remedy: fix "
        "that; docker run --rm --entrypoint sh team/train:1 -c true must work there."
    )


def page() -> str:
    return (ROOT / "docs/own_image.md").read_text(encoding="utf-8")


def test_the_page_has_every_need() -> None:
    rows = [line for line in page().splitlines() if line.startswith("|")]
    for need in NEEDS:
        (row,) = [row for row in rows if row.startswith(f"| {need.name} |")]
        assert need.purpose in row.replace("`", "")
        assert need.package in row


def test_the_dockerfile_of_the_page_installs_every_package() -> None:
    (dockerfile,) = re.findall(r"```Dockerfile\n(.*?)```", page(), re.DOTALL)
    words = dockerfile.split()
    # What every Debian image has stands in the table and not in the Dockerfile.
    essential = {"sed", "grep", "coreutils", "util-linux"}
    assert sorted({need.package for need in NEEDS if need.package} - essential - set(words)) == []
    assert {"torch", "deepspeed"} <= {re.split(r"[=<>]", word)[0] for word in words}
    assert re.search(r"^ENV PATH=", dockerfile, re.MULTILINE)
    assert "--mount=type=secret,id=network,target=/run/network" in dockerfile
