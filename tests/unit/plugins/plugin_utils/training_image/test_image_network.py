# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The secret of a build is a script that any shell reads, whatever is in the values. Nothing is fetched."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.network import network_script
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ODD = "http://us'er:p$w`d\"%40\\@proxy.example:3128"
SHOWN = (
    "http_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "TORCH_INDEX",
    "PIP_INDEX_URL",
    "APT_CONFIG",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


def read(values: dict[str, Any], memory: Path) -> dict[str, str]:
    """Return what a step that reads the script, stopping at the first error, has in its environment."""
    script = memory.parent / "network"
    script.write_text(network_script(values, str(memory)), encoding="utf-8")
    show = " ".join(f'"${{{name}-}}"' for name in SHOWN)
    command = f"set -eu; . {script} && printf '%s\\0' {show}"
    done = subprocess.run(["sh", "-c", command], env={"PATH": "/usr/bin:/bin"}, capture_output=True, check=True)
    return dict(zip(SHOWN, done.stdout.decode().split("\0"), strict=False))


def test_nothing_given(tmp_path: Path) -> None:
    assert set(read({}, tmp_path / "shm").values()) == {""}
    assert not (tmp_path / "shm").exists()
    # BuildKit leaves an empty secret out, and the step would not find it.
    assert network_script({}) != ""


def test_proxy_and_indexes(tmp_path: Path) -> None:
    values = {"proxy": ODD, "torch_index": "https://t.example/cpu", "pip_index": "https://u:p@m.example/simple"}
    found = read(values, tmp_path / "shm")
    assert (found["http_proxy"], found["HTTPS_PROXY"]) == (ODD, ODD)
    assert (found["no_proxy"], found["NO_PROXY"]) == ("", "")
    direct = read({"proxy": ODD, "no_proxy": "m.example,10.0.0.0/8"}, tmp_path / "shm")
    assert (direct["no_proxy"], direct["NO_PROXY"]) == ("m.example,10.0.0.0/8",) * 2
    assert read({"no_proxy": "m.example"}, tmp_path / "shm")["no_proxy"] == ""
    assert (found["TORCH_INDEX"], found["PIP_INDEX_URL"]) == (values["torch_index"], values["pip_index"])


@given(VALUES, VALUES)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value_arrives(tmp_path: Path, proxy: str, index: str) -> None:
    found = read({"proxy": proxy, "pip_index": index}, tmp_path / "shm")
    assert (found["http_proxy"], found["PIP_INDEX_URL"]) == (proxy, index)


def test_sources_of_apt_are_for_root_alone_and_their_settings_for_apt(tmp_path: Path) -> None:
    memory = tmp_path / "shm"
    line = "deb http://us'er:secret@m.example/debian bookworm main"
    found = read({"apt_sources": [line, "# more"]}, memory)
    assert found["APT_CONFIG"] == f"{memory}/apt.conf"
    assert (memory / "apt.list").read_text() == f"{line}\n# more\n"
    assert (memory / "apt.list").stat().st_mode & 0o777 == 0o600
    assert "secret" not in (memory / "apt.conf").read_text()


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")
@pytest.mark.parametrize(
    "sources",
    [
        ["deb [trusted=yes] http://m.example/debian bookworm main"],
        "Types: deb\nURIs: http://m.example/debian\nSuites: bookworm\nComponents: main\nTrusted: yes\n",
    ],
)
def test_apt_asks_these_sources_and_no_others(sources: Any, tmp_path: Path) -> None:
    memory = tmp_path / "shm"
    settings_ = read({"apt_sources": sources}, memory)["APT_CONFIG"]
    done = subprocess.run(
        ["apt-get", "--print-uris", "update", "-o", f"Dir::State::lists={tmp_path}"],
        env={"PATH": "/usr/bin:/bin", "APT_CONFIG": settings_},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("'")]
    assert lines
    assert [line for line in lines if not line.startswith("'http://m.example/debian/")] == []


def test_an_authority_is_trusted_beside_those_of_the_image(tmp_path: Path) -> None:
    memory = tmp_path / "shm"
    found = read({"certificate": "-----INVENTED-----\n", "apt_sources": ["deb https://m.example/d sid main"]}, memory)
    bundle = memory / "authorities.crt"
    assert {found["PIP_CERT"], found["GIT_SSL_CAINFO"]} == {str(bundle)}
    assert bundle.read_text().endswith("-----INVENTED-----\n")
    # apt's methods read it as another user.
    assert bundle.stat().st_mode & 0o777 == 0o644
    assert f'Acquire::https::CAInfo "{bundle}";' in (memory / "apt.conf").read_text()
