# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One image has one content on every store, and another image another one.

``fixtures/image`` is recorded (2026-11-23): an image built on Docker 20.10 with overlay2, its configuration, and what
GET /images/{name}/json showed of it there and on 26.1 and 28.5 with containerd's image store.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.transfer.image.content import (
    content_of_config,
    content_of_image,
    image_contents,
)
from hypothesis import given
from hypothesis import strategies as st

RECORDED = Path(__file__).parents[2] / "fixtures/image"
SHOWN = sorted(RECORDED.glob("docker-*.json"))
CONFIG = (RECORDED / "config.json").read_bytes()


def shown(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_the_fixtures_have_different_ids() -> None:
    assert len(SHOWN) == 3
    assert len({shown(path)["Id"] for path in SHOWN}) == 2


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.stem)
def test_the_content_is_the_same_on_every_engine(path: Path) -> None:
    assert content_of_image(shown(path)) == content_of_config(CONFIG) != ""


CHANGES: list[tuple[str, Any]] = [
    ("Cmd", ["x", "z"]),
    ("Entrypoint", None),
    ("Env", ["A=1", "B=two", "PATH=/usr/bin"]),
    ("ExposedPorts", {"80/udp": {}, "443/udp": {}}),
    ("Healthcheck", {"Test": ["CMD", "/x"], "Interval": 6000000000}),
    ("Labels", {"a": "b"}),
    ("OnBuild", []),
    ("Shell", ["/bin/bash", "-c"]),
    ("StopSignal", "SIGTERM"),
    ("User", "0"),
    ("Volumes", {}),
    ("WorkingDir", "/"),
]


@pytest.mark.parametrize(("key", "value"), CHANGES)
def test_another_setting_is_another_content(key: str, value: Any) -> None:
    for path in SHOWN:
        image = shown(path)
        image["Config"][key] = value
        assert content_of_image(image) not in (content_of_config(CONFIG), "")


def test_other_layers_and_another_processor_are_another_content() -> None:
    contents = set()
    for change in ({}, {"Architecture": "arm64"}, {"Os": "windows"}, {"RootFS": {"Layers": ["sha256:a"]}}):
        contents.add(content_of_image({**shown(SHOWN[0]), **change}))
    assert len(contents) == 4


@pytest.mark.parametrize(
    ("settings", "same"),
    [
        (
            {},
            {"Cmd": None, "Labels": {}, "Env": [], "User": "", "Tty": False, "Hostname": ""},
        ),  # made up, as 20.10 shows
        ({"ExposedPorts": {"80": {}}}, {"ExposedPorts": {"80/tcp": {}}}),
        # 20.10 knows no StartInterval, and nothing but Windows reads ArgsEscaped.
        (
            {"Healthcheck": {"Test": ["NONE"], "StartInterval": 5}, "ArgsEscaped": True},
            {"Healthcheck": {"Test": ["NONE"]}},
        ),
    ],
)
def test_what_engines_show_differently_does_not_count(settings: dict[str, Any], same: dict[str, Any]) -> None:
    image = {"Os": "linux", "Architecture": "amd64", "RootFS": {"Layers": ["sha256:a"]}}
    assert content_of_image({**image, "Config": settings}) == content_of_image({**image, "Config": same})


TEXT = st.text(max_size=5)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "Cmd": st.lists(TEXT),
        "Env": st.lists(TEXT),
        "Labels": st.dictionaries(TEXT, TEXT),
        "User": TEXT,
        "ExposedPorts": st.dictionaries(st.from_regex(r"[1-9][0-9]{0,3}(/udp)?", fullmatch=True), st.just({})),
    },
)


@given(SETTINGS, st.lists(st.from_regex(r"sha256:[0-9a-f]{4}", fullmatch=True)))
def test_configuration_and_engine_agree_about_any_image(settings: dict[str, Any], layers: list[str]) -> None:
    config = {"os": "linux", "architecture": "amd64", "config": settings, "rootfs": {"diff_ids": layers}}
    image = {"Os": "linux", "Architecture": "x86_64", "Config": settings, "RootFS": {"Layers": layers}}
    assert content_of_config(json.dumps(config).encode()) == content_of_image(image)


@pytest.mark.parametrize(
    "config", [b"", b"[]", b"{}", b'{"os": "linux", "architecture": "amd64", "rootfs": 1}', b"\xff"]
)
def test_what_is_no_configuration_has_no_content(config: bytes) -> None:
    assert content_of_config(config) == ""


def test_an_index_without_an_image_for_this_machine_has_no_content() -> None:
    assert content_of_image({"Id": "sha256:i", "Os": "", "Architecture": "", "RootFS": {}}) == ""


class FakeEngine:
    """Has one image, has just lost another, and does not answer for a third."""

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        assert (method, body) == ("GET", None)
        if path == "/images/r:5000/t:1/json":
            return shown(SHOWN[0])
        raise EngineError("no", 404 if path == "/images/r:5000/t:gone/json" else 500)


def test_only_images_of_the_repositories_are_read() -> None:
    images = {"r:5000/t:1": "sha256:1", "r:5000/t:gone": "sha256:2", "other:1": "sha256:3"}
    assert image_contents(FakeEngine(), images, ["r:5000/t"]) == {"r:5000/t:1": content_of_config(CONFIG)}
    with pytest.raises(EngineError):
        image_contents(FakeEngine(), images, ["other"])
