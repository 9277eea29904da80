# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Host keys: fingerprints as OpenSSH prints them, keys that changed, keys of two addresses, confirmation."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.host_keys import (
    changed,
    parse_fingerprints,
    parse_keys,
    shared,
    table,
    unconfirmed,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.host_keys_io import known_keys

from tests.init_servers import host_key

ONE, OTHER = host_key("10.0.0.11"), host_key("10.0.0.12")


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs OpenSSH")
@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_fingerprints_are_those_of_ssh_keygen(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", file], check=True)
    listed = subprocess.run(["ssh-keygen", "-lf", f"{file}.pub"], stdout=subprocess.PIPE, text=True, check=True).stdout
    (key,) = parse_keys("gpu1 " + Path(f"{file}.pub").read_text(encoding="utf-8"))
    assert key.fingerprint == listed.split()[1]
    assert table({"gpu1": key}, ["gpu1"]) == [f"gpu1  {key.fingerprint}  {kind.upper()}"]


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs OpenSSH")
def test_keys_in_a_hashed_file_are_found(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"{ONE.line}\n{OTHER.line}\n", encoding="utf-8")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=True, stderr=subprocess.DEVNULL)
    assert "10.0.0.11" not in file.read_text(encoding="utf-8")
    assert [key.blob for key in known_keys("10.0.0.11", file)] == [ONE.blob]
    assert known_keys("10.0.0.13", file) == []
    assert known_keys("10.0.0.13", tmp_path / "none") == []


def test_lines_that_pin_nothing_are_left_out() -> None:
    text = f"# Host 10.0.0.11 found: line 1\n{ONE.line} comment\n@cert-authority {OTHER.line}\nshort line\na b !!\n"
    assert parse_keys(text) == [ONE]


def test_a_changed_key_is_refused_with_the_file_that_has_the_old_one() -> None:
    (problem,) = changed("10.0.0.11", ONE, {"mine": [OTHER], "other": [ONE], "none": []})
    assert problem.subject == "10.0.0.11"
    assert ONE.fingerprint in problem.text and "the one in mine" in problem.text
    assert "ssh-keygen -R '10.0.0.11' -f mine" in problem.remedy
    assert list(changed("10.0.0.11", ONE, {"mine": [ONE, OTHER]})) == []


def test_a_key_of_another_kind_is_no_change() -> None:
    (rsa,) = parse_keys(f"10.0.0.11 ssh-rsa {OTHER.blob}")
    assert list(changed("10.0.0.11", ONE, {"mine": [rsa]})) == []


def test_two_addresses_with_one_key_are_refused() -> None:
    same = host_key("10.0.0.13", "10.0.0.11")
    (problem,) = shared({"10.0.0.11": ONE, "10.0.0.12": OTHER, "10.0.0.13": same})
    assert problem.subject == "10.0.0.11, 10.0.0.13"
    assert list(shared({"10.0.0.11": ONE, "10.0.0.12": OTHER})) == []


def test_only_what_is_neither_pinned_nor_given_is_to_be_confirmed() -> None:
    keys = {"a": ONE, "b": OTHER, "c": host_key("c")}
    assert unconfirmed(keys, ["a"], {OTHER.fingerprint}) == ["c"]


@pytest.mark.parametrize("given", [f"{ONE.fingerprint}, {OTHER.fingerprint}", [ONE.fingerprint, OTHER.fingerprint]])
def test_fingerprints_are_a_list_or_a_text(given: object) -> None:
    assert parse_fingerprints(given) == ({ONE.fingerprint, OTHER.fingerprint}, [])  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["MD5:aa:bb", "SHA256:short", "yes"])
def test_what_is_no_fingerprint_is_refused(wrong: str) -> None:
    found, (problem,) = parse_fingerprints(f"{ONE.fingerprint},{wrong}")
    assert found == {ONE.fingerprint}
    assert problem.subject == "init_host_keys" and wrong in problem.text
