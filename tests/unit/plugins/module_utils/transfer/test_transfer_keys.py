# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Lines of authorized_keys: what a key may do, and that no other line is touched."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_folder import FolderError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.keys import (
    LONGEST,
    key_line,
    known_hosts,
    rewrite,
    server_command,
    ssh_command,
    with_keys,
    without_keys,
)
from hypothesis import example, given
from hypothesis import strategies as st

from tests.growth import peak_memory

SPOOL = "/srv/swarmspeed/lab/transfer"
MINE = "ssh-ed25519 AAAA me@desk\n"


def line(spool: str = SPOOL, account: str = "root") -> str:
    command = server_command(spool, "/usr/bin/python3", account)
    return key_line("ssh-ed25519 BBBB comment", command, "lab2", "run1", 0)


def test_a_key_may_read_the_spool_and_nothing_else_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    __import__("time").tzset()
    assert line() == (
        f'restrict,expiry-time="197001010000",command="/usr/bin/python3 -B {SPOOL}/serve.py" '
        "ssh-ed25519 BBBB swarmspeed-transfer lab2.run1"
    )
    assert f'command="sudo -n /usr/bin/python3 -B {SPOOL}/serve.py"' in line(account="debian")


def test_only_lines_of_this_spool_are_removed() -> None:
    other = line("/srv/swarmspeed/other/transfer")
    text = with_keys(MINE.rstrip("\n"), [line(), other, line(account="debian")])
    assert text == MINE + "".join(f"{one}\n" for one in (line(), other, line(account="debian")))
    assert without_keys(text, SPOOL) == MINE + other + "\n"


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\x85\u2028\u2029"), min_size=1)
)
@example("srv/swarm speed, 100% é'")
@example('a\\b\\"c\'\\"')
def test_sshd_runs_the_command_whatever_the_folder_is_named(name: str) -> None:
    spool = f"/{name}"
    text = with_keys(MINE, [line(spool, account="debian")])
    # As OpenSSH's opt_dequote() reads it: a backslash counts before a quote alone.
    value = re.match(r'.*?command="((?:\\"|[^"])*)" ssh-ed25519 BBBB ', text[len(MINE) :])
    assert value is not None
    assert shlex.split(value[1].replace('\\"', '"')) == ["sudo", "-n", "/usr/bin/python3", "-B", f"{spool}/serve.py"]
    assert without_keys(text, spool) == MINE


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")))
def test_what_the_user_wrote_stays_as_it_is(text: str) -> None:
    ended = text if not text or text.endswith("\n") else text + "\n"
    assert without_keys(with_keys(text, [line()]), SPOOL) == ended


def test_a_file_keeps_its_mode_and_owner(tmp_path: Path) -> None:
    path = tmp_path / "ssh" / "authorized_keys"
    owner = (os.getuid(), os.getgid())
    rewrite(path, lambda text: text, owner)
    assert not path.parent.exists(), "nothing to write"
    rewrite(path, lambda text: with_keys(text, ["a"]), owner)
    assert (path.read_text(), oct(path.stat().st_mode & 0o777)) == ("a\n", "0o600")
    path.chmod(0o640)
    rewrite(path, lambda text: with_keys(text, ["b"]), owner)
    assert (path.read_text(), oct(path.stat().st_mode & 0o777)) == ("a\nb\n", "0o640")
    assert [entry.name for entry in path.parent.iterdir()] == ["authorized_keys"]


def test_a_file_that_is_too_large_is_neither_read_to_its_end_nor_cut(tmp_path: Path) -> None:
    path = tmp_path / ".ssh" / "authorized_keys"
    path.parent.mkdir()
    with path.open("wb") as file:
        file.write(MINE.encode())
        file.truncate(256 << 20)
    with peak_memory() as peak, pytest.raises(FolderError, match=r"is larger than 4194304 bytes\. Remedy: shorten it"):
        rewrite(path, lambda text: with_keys(text, ["a"]), (os.getuid(), os.getgid()))
    assert peak() < 32 << 20
    assert path.stat().st_size == 256 << 20
    os.truncate(path, LONGEST)
    rewrite(path, lambda text: with_keys(text, ["a"]), (os.getuid(), os.getgid()))
    assert path.stat().st_size == LONGEST + len("\na\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_a_third_account_is_refused(tmp_path: Path) -> None:
    path = tmp_path / ".ssh" / "authorized_keys"
    path.parent.mkdir()
    path.write_text(MINE)
    os.chown(path, 4001, 4001)
    with pytest.raises(FolderError, match="has a second name, or belongs to another account"):
        rewrite(path, lambda text: with_keys(text, ["a"]), (4002, 4002))
    assert path.read_text() == MINE


def test_the_hosts_key_is_pinned_and_nothing_of_the_hosts_configuration_counts() -> None:
    source = {"name": "lab1", "address": "10.0.0.1", "port": 2222, "account": "root", "host_key": "ssh-ed25519 H c\n"}
    assert known_hosts([source]) == "lab1 ssh-ed25519 H\n"
    words = ssh_command(source)
    options = {words[number + 1] for number, word in enumerate(words) if word == "-o"}
    assert options == {
        "BatchMode=yes",
        "IdentitiesOnly=yes",
        "HostKeyAlias=lab1",
        "HostKeyAlgorithms=ssh-ed25519",
        "StrictHostKeyChecking=yes",
        "UserKnownHostsFile=hosts",
        "GlobalKnownHostsFile=/dev/null",
        "ConnectTimeout=10",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=3",
        "Compression=no",
        "Ciphers=^aes128-gcm@openssh.com",
        "LogLevel=ERROR",
    }
    assert words[:10] == ["ssh", "-T", "-F", "/dev/null", "-i", "key", "-l", "root", "-p", "2222"]
    assert words[-3:] == ["--", "10.0.0.1", "read"]
