# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The log of a build becomes lines for people. The log was recorded on engine 20.10.24 and shortened."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.progress import (
    BuildLog,
    Step,
    summary,
    title,
)
from hypothesis import given
from hypothesis import strategies as st

RECORDED = """\
#1 [internal] load build definition from Dockerfile
#1 sha256:d4b7c4dcd87af35e625c7f7a1b766af0df893e1c884bcd7125cd6e90fbed0439
#1 transferring dockerfile: 32B done
#1 DONE 0.0s

#4 [build  1/10] FROM docker.io/swarmspeed-lab/base:bookworm
#4 CACHED

#6 [build  2/10] RUN --mount=type=secret,id=network : 'Install Python and compilers' && apt-get update
#6 0.237 Get:1 http://mirror.example/debian bookworm InRelease [151 kB]

#5 [stage-1 2/3] RUN --mount=type=secret,id=network apt-get update && apt-get install -y openssh-server pdsh procps
#5 24.71 Setting up openssh-server (1:9.2p1-2+deb12u10) ...
#5 DONE 29.8s

#6 [build  2/10] RUN --mount=type=secret,id=network : 'Install Python and compilers' && apt-get update
#6 30.1 Setting up g++ (4:12.2.0-3) ...
#6 DONE 30.5s

#11 [build  5/10] RUN : 'Install PyTorch' && pip install torch==2.12.1
#11 1.195   Downloading torch-2.12.1-cp311-cp311-manylinux_2_28_x86_64.whl (532.2 MB)
#11 2.100   Downloading https://example.com/w/mpmath-1.3.0-py3-none-any.whl (536 kB)
#11 2.200   Downloading sympy-1.14.0-py3-none-any.whl (6.3 MB)
#11 DONE 150.2s

#13 [stage-1 3/3] COPY --from=build /opt/swarmspeed /opt/swarmspeed
#13 DONE 20.1s

#14 exporting to image
#14 exporting layers 4.1s done
#14 DONE 4.2s
"""
PRINTED = [
    "FROM docker.io/swarmspeed-lab/base:bookworm: from an earlier build",
    "Install Python and compilers …",
    "RUN apt-get update && apt-get install -y openssh-server pds… …",
    "RUN apt-get update && apt-get install -y openssh-server pds…: 30 s",
    "Install Python and compilers: 30 s",
    "Install PyTorch …",
    "  Downloading torch-2.12.1-cp311-cp311-manylinux_2_28_x86_64.whl (532.2 MB)",
    "Install PyTorch: 150 s",
    "COPY /opt/swarmspeed /opt/swarmspeed: 20 s",
    "Write the image: 4 s",
]


def test_what_is_printed() -> None:
    log = BuildLog()
    assert log.feed(RECORDED) == PRINTED
    assert summary(log.steps).split("; ") == [
        "Install PyTorch 150 s",
        "Install Python and compilers 30 s",
        "RUN apt-get update && apt-get install -y openssh-server pds… 30 s",
        "COPY /opt/swarmspeed /opt/swarmspeed 20 s",
        "Write the image 4 s",
    ]


@given(st.lists(st.integers(0, len(RECORDED)), max_size=8))
def test_pieces_end_anywhere(ends: list[int]) -> None:
    log, lines, begin = BuildLog(), [], 0
    for end in [*sorted(ends), len(RECORDED)]:
        lines += log.feed(RECORDED[begin:end])
        begin = end
    assert lines == PRINTED


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    BuildLog().feed(text + "\n")


def test_a_step_that_fails() -> None:
    log = BuildLog()
    lines = log.feed(
        "#5 [2/3] RUN : 'Compile DeepSpeed' && pip wheel x\n#5 ERROR: process did not complete: exit code: 1\n"
    )
    assert lines == ["Compile DeepSpeed …", "Compile DeepSpeed: failed"]
    assert log.steps == []


def test_a_step_from_the_cache_has_no_seconds() -> None:
    log = BuildLog()
    log.feed("#5 [2/3] RUN : 'Compile DeepSpeed' && pip wheel x\n#5 CACHED\n")
    assert log.steps == [Step("Compile DeepSpeed", None)]
    assert summary(log.steps) == ""


@pytest.mark.parametrize(
    ("verb", "rest", "expected"),
    [
        ("RUN", "--mount=type=bind,source=a,target=/a : 'Two words' && true", "Two words"),
        ("RUN", "--mount=type=cache,target=/c apt-get update", "RUN apt-get update"),
        ("COPY", "--from=build /a /b", "COPY /a /b"),
    ],
)
def test_titles(verb: str, rest: str, expected: str) -> None:
    assert title(verb, rest) == expected


def test_what_a_step_says_of_its_failure_is_kept_and_not_the_command_that_could_say_it() -> None:
    log = BuildLog()
    log.feed("#9 [build 6/8] RUN : 'Compile DeepSpeed' && echo 'wrong. Remedy: none'\n#9 1.234 fine\n")
    assert log.reason == ""
    log.feed("#9 218.1 DeepSpeed is 0.18.2. Remedy: set it.\n#9 ERROR: process did not complete: exit code: 1\n")
    assert log.reason == "DeepSpeed is 0.18.2. Remedy: set it."
