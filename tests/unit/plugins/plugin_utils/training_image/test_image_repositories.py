# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Repositories of apt beside the base image's: judged, signed, counted for the tag, and read by apt itself.

The repository is one of files that the test signs with a key of its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.network import network_script
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.repositories import (
    ARMOR,
    Repository,
    key_files,
    repositories,
    repository_troubles,
)

from tests.image_nodes import recipe

LINE = "deb http://ppa.example/deadsnakes/ubuntu jammy main"
KEY = f"{ARMOR}\n\nmQENB\n-----END PGP PUBLIC KEY BLOCK-----\n"
DEB822 = "Types: deb\nURIs: http://ppa.example/u\nSuites: jammy\nComponents: main\n"
NAME = "training_image_apt_repositories"


def lines(*entries: dict[str, Any], kind: str | None = "file", text: str = KEY) -> list[str]:
    found = repository_troubles(list(entries), lambda _path: kind, lambda _path: text)
    return [str(trouble).removeprefix(f"{NAME}: ") for trouble in found]


@pytest.mark.parametrize(
    "entry",
    [
        {"source": LINE, "key": KEY},
        {"source": DEB822, "key": "keys/deadsnakes.asc"},
        {"source": LINE.replace("deb ", "deb [signed-by=/usr/share/keyrings/x.gpg] "), "key": ""},
        {"source": LINE.replace("deb ", "deb [arch=amd64 trusted=yes] ")},
        {"source": f"{DEB822}Signed-By: /usr/share/keyrings/x.gpg\n"},
    ],
)
def test_nothing_is_wrong(entry: dict[str, Any]) -> None:
    assert lines(entry) == []
    assert lines() == []


@pytest.mark.parametrize(
    ("entry", "changed", "expected"),
    [
        (
            {"source": " ", "key": KEY},
            {},
            "entry 1 has no source. Remedy: give 'deb http://HOST/ubuntu jammy main'.",
        ),
        (
            {"source": "ppa:deadsnakes/ppa", "key": KEY},
            {},
            "entry 1: line 1 is not a source of apt. Remedy: write it as 'deb http://HOST/debian bookworm main', or "
            "give all as deb822 (Types, URIs, Suites).",
        ),
        (
            {"source": LINE},
            {},
            "entry 1 has no key, without which apt refuses what is there. Remedy: set key to the public key of the "
            "repository, as text or as a file on the controller.",
        ),
        (
            {"source": f"{DEB822}Signed-By: /x.gpg\n", "key": KEY},
            {},
            "entry 1 has a key, and its source says what it is signed by. Remedy: leave one of the two.",
        ),
        (
            {"source": LINE, "key": "/keys/a.asc"},
            {"kind": None},
            "entry 1: /keys/a.asc is not a file on the controller. Remedy: correct the path of the key.",
        ),
        (
            {"source": LINE, "key": "/keys/a.gpg"},
            {"text": "\x99\x01"},
            "entry 1: /keys/a.gpg is not a public key in text form. Remedy: write it with gpg --export --armor, or gpg "
            "--enarmor.",
        ),
    ],
)
def test_what_is_wrong(entry: dict[str, Any], changed: dict[str, Any], expected: str) -> None:
    assert lines(entry, **changed) == [expected]


def test_no_password_is_in_an_error() -> None:
    assert "hunter2" not in "".join(lines({"source": "deb https://u:hunter2@ppa.example jammy"}, {"source": "hunter2"}))


def test_the_key_is_named_in_each_source_and_in_no_other_line() -> None:
    text = f"# a comment\n{LINE}\ndeb-src [arch=amd64] http://ppa.example/u jammy main\n"
    assert Repository(text, KEY).signed_by("/k.asc").splitlines() == [
        "# a comment",
        "deb [signed-by=/k.asc] http://ppa.example/deadsnakes/ubuntu jammy main",
        "deb-src [arch=amd64 signed-by=/k.asc] http://ppa.example/u jammy main",
    ]
    two = Repository(f"{DEB822}\n{DEB822}", KEY)
    assert two.suffix == "sources" and two.signed_by("/k.asc").count("Signed-By: /k.asc\n") == 2
    assert two.signed_by("/k.asc").count("\n\n") == 1
    assert Repository(text, "").signed_by("/k.asc") == text


def test_it_makes_another_image_by_its_packages_and_not_by_a_password(tmp_path: Path) -> None:
    (tmp_path / "key.asc").write_text(KEY, encoding="utf-8")
    by_file: dict[str, Any] = {NAME: [{"source": LINE.replace("//", "//u:hunter2@"), "key": str(tmp_path / "key.asc")}]}
    by_text: dict[str, Any] = {NAME: [{"source": LINE, "key": KEY}]}
    assert key_files(by_file[NAME]) == [str(tmp_path / "key.asc")] and key_files(by_text[NAME]) == []
    assert recipe(**by_file).reference == recipe(**by_text).reference != recipe().reference
    other: dict[str, Any] = {NAME: [{"source": LINE.replace("jammy", "noble"), "key": KEY}]}
    assert recipe(**other).reference not in (recipe().reference, recipe(**by_text).reference)
    none: dict[str, Any] = {NAME: []}
    assert recipe(**none).reference == recipe().reference
    found = recipe(**by_file)
    assert "hunter2" in found.network and "hunter2" not in found.dockerfile and "mQENB" in found.network


def signed_repository(folder: Path) -> str:
    """Make a repository of apt with no package in it, and return its public key."""
    home = folder / "gnupg"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", ""]
    subprocess.run([*gpg, "--quick-generate-key", "test@example.com", "ed25519", "sign", "never"], check=True)
    packages = folder / "repo/dists/stable/main/binary-amd64/Packages"
    packages.parent.mkdir(parents=True)
    packages.write_text("", encoding="utf-8")
    digest = hashlib.sha256(b"").hexdigest()
    release = folder / "Release"
    release.write_text(
        "Suite: stable\nComponents: main\nArchitectures: amd64\nDate: Mon, 01 Jan 2024 00:00:00 UTC\n"
        f"SHA256:\n {digest} 0 main/binary-amd64/Packages\n",
        encoding="utf-8",
    )
    signed = str(folder / "repo/dists/stable/InRelease")
    subprocess.run([*gpg, "--clearsign", "--output", signed, str(release)], check=True)
    key = subprocess.run([*gpg, "--armor", "--export"], check=True, capture_output=True, text=True).stdout
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)
    return key


@pytest.mark.skipif(not (shutil.which("apt-get") and shutil.which("gpg")), reason="needs apt and gpg")
@pytest.mark.parametrize("form", ["line", "deb822"])
@pytest.mark.parametrize("of_another", [False, True])
def test_apt_takes_what_the_key_signed_and_nothing_else(form: str, of_another: bool, tmp_path: Path) -> None:
    key = signed_repository(tmp_path)
    if of_another:
        (tmp_path / "other").mkdir()
        key = signed_repository(tmp_path / "other")
    place, main = f"file:{tmp_path}/repo", "deb [trusted=yes] http://m.example/debian bookworm main"
    source = (
        f"deb [arch=amd64] {place} stable main"
        if form == "line"
        else f"Types: deb\nURIs: {place}\nSuites: stable\nComponents: main\nArchitectures: amd64"
    )
    memory, script = tmp_path / "shm", tmp_path / "network"
    given = repositories([{"source": source, "key": key}], {})
    script.write_text(network_script({"apt_sources": [main], "repositories": given}, str(memory)), encoding="utf-8")
    options = f"-o Dir::State::lists={tmp_path}/lists -o APT::Sandbox::User=root -o Acquire::Languages=none"
    options += f" -o Dir::Cache={tmp_path}/cache"
    (tmp_path / "lists/partial").mkdir(parents=True)
    # The first source is only named: what it would fetch is not reached here, and is left out of the update.
    asks = f"apt-get {options}"
    command = f"set -eu; . {script}; {asks} --print-uris update; rm {memory}/apt.list; {asks} update"
    found = subprocess.run(
        ["sh", "-c", command],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        timeout=120,
    )
    printed = found.stdout + found.stderr
    assert "'http://m.example/debian/dists/bookworm/InRelease'" in printed
    assert (found.returncode == 0, "NO_PUBKEY" in printed) == (not of_another, of_another), printed
    assert oct((memory / "repository-1.asc").stat().st_mode & 0o777) == "0o644"
    (parts,) = (memory / "parts").iterdir()
    assert oct(parts.stat().st_mode & 0o777) == "0o600" and parts.suffix == (".list" if form == "line" else ".sources")


def test_a_slim_image_gets_authorities_before_a_repository_over_https() -> None:
    plain = network_script({"repositories": repositories([{"source": LINE, "key": KEY}], {})})
    assert "ca-certificates &&" not in plain and "install" not in plain
    found = network_script(
        {
            "repositories": repositories([{"source": LINE.replace("http:", "https:"), "key": KEY}], {}),
            "certificate": "X",
        }
    )
    steps = [found.index(part) for part in ("export APT_CONFIG", "install -y", "parts/swarmspeed-1.list")]
    assert steps == sorted(steps)
    assert found.count("authorities.crt\n") >= 2  # the bundle is made again of what was installed
    assert "cp -a /etc/apt/sources.list.d/. " in found  # the image's own sources stay
