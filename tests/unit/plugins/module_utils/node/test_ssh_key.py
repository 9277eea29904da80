# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The public half of a private key, beside what ssh-keygen writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.ssh_key import public_half
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.system_io import file_facts
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples


def made(folder: Path, *words: str) -> Path:
    path = folder / "key"
    command = ["ssh-keygen", "-q", "-N", "", "-C", "a comment", "-f", str(path), *words]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


@pytest.mark.parametrize(
    "words", [("-t", "ed25519"), ("-t", "rsa", "-b", "2048"), ("-t", "ecdsa"), ("-t", "ed25519", "-N", "a password")]
)
def test_it_is_that_of_the_pub_file(tmp_path: Path, words: tuple[str, ...]) -> None:
    path = made(tmp_path, *words)
    assert public_half(path.read_bytes()) == " ".join(Path(f"{path}.pub").read_text().split()[:2])


def test_other_forms_of_private_keys_have_none(tmp_path: Path) -> None:
    assert public_half(made(tmp_path, "-t", "rsa", "-b", "2048", "-m", "PEM").read_bytes()) is None


def test_facts_have_it_and_nothing_else_of_a_secret(tmp_path: Path) -> None:
    path = made(tmp_path, "-t", "ed25519")
    facts = file_facts(str(path), content=False, block=None, key="k" * 40)
    assert facts["public_key"] == public_half(path.read_bytes())
    assert set(facts) == {"exists", "sha256", "mode", "owner", "group", "keyed", "public_key"}
    path.write_text("token = s3cret\n")
    assert "public_key" not in file_facts(str(path), content=False, block=None, key="k" * 40)


KEY = (
    b"-----BEGIN OPENSSH PRIVATE KEY-----\n"
    b"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAA\n"
    b"-----END OPENSSH PRIVATE KEY-----\n"
)
"""It ends before its public half."""


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(st.binary(max_size=200), st.integers(0, len(KEY)))
def test_whatever_a_file_holds_there_is_an_answer(data: bytes, at: int) -> None:
    for text in (data, KEY[:at] + data + KEY[at:], KEY[:at]):
        assert public_half(text) is None
