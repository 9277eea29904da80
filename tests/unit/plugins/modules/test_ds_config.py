# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue of ds_config, over real files, and that it returns what it documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import KNOWN_VERSIONS, NEWEST
from ansible_collections.swarmspeed.cluster.plugins.modules import ds_config

from tests.displayed import displayed, returned

CONFIG = {"train_batch_size": 32, "optimizer": {"type": "AdamW", "params": {"lr": "3e-5"}}}


class Run:
    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str], invocation_requested: dict[str, Any]) -> None:
        self.path = path
        self.invocation_requested = invocation_requested
        self.output = ""
        self._capsys = capsys

    def __call__(self, **args: Any) -> dict[str, Any]:
        with (
            patch_module_args({"path": str(self.path), **self.invocation_requested, **args}),
            pytest.raises(SystemExit) as ended,
        ):
            ds_config.main()
        output = self._capsys.readouterr().out
        self.output = displayed(output)
        result = returned(output)
        assert (ended.value.code == 0) is not result.get("failed", False)
        return result


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], invocation_requested: dict[str, Any]) -> Run:
    return Run(tmp_path / "ds_config.json", capsys, invocation_requested)


def test_check_run_and_run_again(run: Run) -> None:
    wanted: dict[str, Any] = {"preset": "zero2", "config": CONFIG, "world_size": 4, "_ansible_diff": True}
    predicted = run(**wanted, _ansible_check_mode=True)
    assert not run.path.exists()
    first = run(**wanted)
    assert json.loads(run.path.read_text()) == first["config"] == predicted["config"]
    assert first["config"]["optimizer"]["params"]["lr"] == 3e-5
    assert run.path.stat().st_mode & 0o777 == 0o644
    second = run(**wanted)
    assert [result["changed"] for result in (predicted, first, second)] == [True, True, False]
    assert predicted["diff"][0] == first["diff"][0]
    assert first["diff"][0]["after"] == run.path.read_text()
    assert second["diff"] == []
    assert first["batch"] == {
        "train_batch_size": 32,
        "train_micro_batch_size_per_gpu": 8,
        "gradient_accumulation_steps": 1,
        "data_parallel_size": 4,
    }
    assert set(from_yaml(ds_config.RETURN)) - {"errors", "backup_file"} <= set(first)


def test_a_file_that_means_the_same_is_left_as_it_is(run: Run) -> None:
    text = '{"zero_optimization": {"reduce_bucket_size": 5e8},\n\n "train_batch_size": 8}'
    run.path.write_text(text)
    wanted = {"train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": "5e8"}}
    assert run(config=wanted)["changed"] is False
    assert run.path.read_text() == text
    assert run(config={**wanted, "train_batch_size": 16})["changed"] is True


def test_errors_are_one_message_and_nothing_is_written(run: Run) -> None:
    run.path.write_text("{}")
    result = run(
        preset="zero2", config={"train_batch_sise": 32, "gradient_clipping": "auto"}, deepspeed_version="0.19.9"
    )
    assert [error["path"] for error in result["errors"]] == [
        "gradient_clipping",
        "train_batch_sise",
        "train_batch_size",
    ]
    assert result["msg"].splitlines() == [
        f"The DeepSpeed configuration {run.path} was not written: 3 problems",
        *(f"- {error['path']}: {error['message']}" for error in result["errors"]),
    ]
    assert result["config_warnings"] == [
        {"path": "deepspeed_version", "message": "0.19.9 is unknown here; checked as for 0.19.8"}
    ]
    assert run.path.read_text() == "{}"


def test_warnings_are_shown_and_returned(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _, text: shown.append(text))
    result = run(preset="zero2", config={**CONFIG, "zero_optimization": {"offload_param": {"device": "cpu"}}})
    message = "has no effect with stage 2; parameters are offloaded with stage 3"
    assert result["config_warnings"] == [{"path": "zero_optimization.offload_param", "message": message}]
    assert shown == [f"zero_optimization.offload_param: {message}"]


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            b'{"a": 1',
            "the text ends where a key or a closing brace should be (line 1, column 8)",
        ),
        (b"\xff", "it is not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_alone_without_force(
    run: Run, state: str, content: bytes, reason: str
) -> None:
    run.path.write_bytes(content)
    result = run(config=CONFIG, state=state)
    assert result["msg"].startswith(f"{run.path} is not a DeepSpeed configuration: {reason}. It was left as it is; ")
    assert run.path.read_bytes() == content
    predicted = run(config=CONFIG, state=state, force=True, _ansible_check_mode=True)
    assert (predicted["changed"], run.path.read_bytes()) == (True, content)
    assert [path.name for path in run.path.parent.iterdir()] == [run.path.name]
    forced = run(config=CONFIG, state=state, force=True)
    assert Path(forced["backup_file"]).read_bytes() == content
    assert run.path.exists() is (state == "present")


def test_comments_that_would_be_lost_are_kept_beside(run: Run) -> None:
    text = "{train_batch_size: 32 # tuned by hand\n}"
    run.path.write_text(text)
    assert run(config={"train_batch_size": 32})["changed"] is False
    result = run(config={"train_batch_size": 64})
    assert (result["changed"], Path(result["backup_file"]).read_text()) == (True, text)
    assert "backup_file" not in run(config={"train_batch_size": 128})


def test_a_plan_is_returned(run: Run) -> None:
    requested = {
        "preset": "auto",
        "config": {"train_micro_batch_size_per_gpu": 1},
        "model": {"parameters": "10B"},
        "gpus": {"count": 4, "memory": "24564 MiB", "compute_capability": 8.6},
        "host_memory": "256GB",
        "world_size": 8,
    }
    result = run(**requested)
    assert (result["preset"], result["precision"]) == ("zero3_offload_optimizer", "bf16")
    assert result["memory"]["per_gpu"]["fits"] is result["memory"]["per_host"]["fits"] is True
    assert set(result["memory"]) == set(from_yaml(ds_config.RETURN)["memory"]["contains"])
    assert "does not fit; a GPU has 24.0 GiB" in result["reasons"][1]
    assert run(**{**requested, "gpus": {"cuont": 4}})["failed"] is True


def test_absent_asks_for_nothing_else(run: Run) -> None:
    assert run(state="absent")["changed"] is False
    run(config=CONFIG)
    assert run(state="absent", _ansible_check_mode=True)["changed"] is True
    assert run.path.exists()
    assert run(state="absent")["changed"] is True
    assert not run.path.exists()


@pytest.mark.parametrize(
    "before", ['{"comet": {"api_key": "old-secret-key"}}', "{api_key: old-secret-key # by hand\n}"]
)
def test_keys_are_never_shown(run: Run, before: str) -> None:
    run.path.write_text(before)
    config = {**CONFIG, "comet": {"enabled": True, "api_key": "new-secret-key"}}
    assert run(config=config, force=True, _ansible_diff=True)["changed"] is True
    assert "secret-key" not in run.output
    assert json.loads(run.path.read_text())["comet"]["api_key"] == "new-secret-key"
    assert "errors" in run(config={**config, "comet": {"api_key": ["new-secret-key"], "token": "new-secret-key"}})
    assert run(config={**config, "typo": 1, "comet": {"api_kee": 1, "token": "other-secret-key"}})["failed"] is True
    assert "other-secret-key" not in run.output


def test_config_may_be_json_text_or_nothing(run: Run) -> None:
    assert run(config=json.dumps(CONFIG))["config"]["train_batch_size"] == 32
    assert "nothing to write: give a preset" in run()["msg"]
    assert "'config' is of type NoneType" in run(config=None)["msg"]


def test_documented_releases_and_choices_are_the_known_ones() -> None:
    options = from_yaml(ds_config.DOCUMENTATION)["options"]
    assert options["deepspeed_version"]["default"] == str(NEWEST)
    text = " ".join(options["deepspeed_version"]["description"])
    assert all(str(version) in text for version in KNOWN_VERSIONS if version[:2] != NEWEST[:2])
    for name, argument in ds_config.ARGUMENTS.items():
        assert options[name].get("choices") == argument.get("choices")
