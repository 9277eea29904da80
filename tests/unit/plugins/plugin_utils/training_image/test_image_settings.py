# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is wrong with the settings of the image is reported before any connection. Values and files are invented."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.settings import Settings, image_troubles

BUILD = {"training_image_source": "build", "deepspeed_launch_runtime": "container", "cluster_bundle": ""}
OWN = {**BUILD, "training_image_dockerfile": "Dockerfile"}


def lines(values: dict[str, Any], text: str = "") -> list[str]:
    paths = {"training_image_requirements": values.get("training_image_requirements", "")}
    settings = Settings(values.get, paths, lambda path: "file" if path else None, lambda dummy: text)
    return [str(trouble) for trouble in image_troubles(settings)]


@pytest.mark.parametrize(
    "values",
    [
        {},
        BUILD,
        {**OWN, "training_image_build_args": {"A": "1"}, "training_image_context": "x"},
        {**BUILD, "training_image_deepspeed_source": "x.tar.gz", "training_image_requirements": "r.txt"},
        {
            "training_image_source": "pull",
            "training_image_name": "a:1",
            "training_image_build_args": {"API_TOKEN": "hf_invented_invented"},
        },
        # Neither has an image of its own to build.
        {**BUILD, "deepspeed_launch_runtime": "host", "training_image_context": "x"},
        {**BUILD, "cluster_bundle": "/srv/bundle", "training_image_context": "x"},
        {"training_image_source": "archive", "cluster_bundle": "/srv/bundle"},
    ],
)
def test_nothing_is_wrong(values: dict[str, Any]) -> None:
    assert lines(values) == []


@pytest.mark.parametrize("source", ["pull", "archive", "present"])
def test_an_image_without_a_name(source: str) -> None:
    assert lines({"training_image_source": source, "training_image_name": ""}) == [
        f"training_image_name: is empty, and training_image_source is {source}. "
        "Remedy: set it to the name and tag of the image."
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("training_image_requirements", "r.txt"),
        ("training_image_deepspeed_source", "x.tar.gz"),
        ("training_image_python_packages", ["x"]),
        ("training_image_apt_packages", ["x"]),
        ("training_image_wheelhouse", "/srv/w"),
        ("training_image_deepspeed_ops", ["AIO"]),
        ("training_image_torch", "torch==2.13.0"),
    ],
)
def test_what_would_be_left_out_in_silence(name: str, value: Any) -> None:
    assert lines({**OWN, name: value}) == [
        f"{name}: is set, and so is training_image_dockerfile, into which it does not go. "
        "Remedy: write it into your Dockerfile, or leave one of the two empty."
    ]


@pytest.mark.parametrize(("name", "value"), [("training_image_context", "x"), ("training_image_build_args", {"A": 1})])
def test_what_goes_with_a_dockerfile_alone(name: str, value: Any) -> None:
    assert lines({**BUILD, name: value}) == [
        f"{name}: is set without training_image_dockerfile. Remedy: set training_image_dockerfile, or leave it empty."
    ]


def test_every_kind_of_value_is_judged() -> None:
    values = {
        **BUILD,
        "training_image_deepspeed_source": "git+https://h.example/a",
        "training_image_requirements": "r.txt",
        "training_image_apt_sources": ["nonsense"],
    }
    assert [line.split(":")[0] for line in lines(values, "-r other.txt")] == [
        "training_image_deepspeed_source",
        "training_image_requirements",
        "training_image_apt_sources",
    ]
    assert [
        line.split(":")[0]
        for line in lines({**OWN, "training_image_build_args": {"API_TOKEN": "hf_invented_invented"}})
    ] == ["training_image_build_args"]
