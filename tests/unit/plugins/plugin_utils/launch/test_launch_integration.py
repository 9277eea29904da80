# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How a script gets ds_config.json, as its text and the modules beside it show; and what cannot be read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.integration import (
    AUTO,
    INTEGRATIONS,
    Integration,
    Requested,
    conflict,
    determined,
    integration_of,
    undetermined,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.script_files import (
    BETWEEN,
    MAX_BYTES,
    script_files,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

EXAMPLES = Path(__file__).parents[5] / "examples"
ARGPARSE = "import argparse\nparser = argparse.ArgumentParser()\n"


def found(folder: Path, script: str = "train.py", **texts: str) -> Integration:
    """What is determined of a source with these files; ``__`` in a name stands for a slash."""
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return determined(script_files(f"{folder}{BETWEEN}{script}"), script)


@pytest.mark.parametrize(
    ("name", "argument", "text", "reason"),
    [
        (
            "huggingface",
            "--deepspeed",
            "import os\n\nfrom transformers import Trainer, TrainingArguments\n",
            "train.py line 3 imports transformers.Trainer",
        ),
        (
            "huggingface",
            "--deepspeed",
            "import transformers as tf\n\np = tf.HfArgumentParser(tf.TrainingArguments)\n",
            "train.py line 3 uses transformers.HfArgumentParser",
        ),
        (
            "huggingface",
            "--deepspeed",
            "from trl import SFTConfig, SFTTrainer\n",
            "train.py line 1 imports trl.SFTConfig",
        ),
        (
            "huggingface",
            "--deepspeed",
            "from accelerate import Accelerator\nfrom transformers import Seq2SeqTrainer\n",
            "train.py line 2 imports transformers.Seq2SeqTrainer",
        ),
        (
            "huggingface",
            "--deepspeed",
            f"{ARGPARSE}from transformers import Trainer\nparser.add_argument('--deepspeed', type=str)\n",
            "train.py line 3 imports transformers.Trainer",
        ),
        (
            "huggingface",
            "--deepspeed_config",
            f"{ARGPARSE}from transformers import Trainer\nparser.add_argument('--deepspeed_config')\n",
            "train.py line 3 imports transformers.Trainer",
        ),
        (
            "deepspeed",
            "--deepspeed_config",
            f"{ARGPARSE}import deepspeed\nargs = deepspeed.add_config_arguments(parser).parse_args()\n",
            "train.py line 4 uses deepspeed.add_config_arguments",
        ),
        (
            "deepspeed",
            "--deepspeed_config",
            "from deepspeed import initialize as go\ngo()\n",
            "line 1 imports deepspeed.initialize",
        ),
        (
            "deepspeed",
            "--deepspeed-config",
            f"{ARGPARSE}parser.add_argument('--deepspeed-config', required=True)\n",
            "train.py line 3 takes --deepspeed-config",
        ),
        ("accelerate", "", "from accelerate import Accelerator\n", "train.py line 1 imports accelerate.Accelerator"),
        (
            "accelerate",
            "--deepspeed_config",
            f"{ARGPARSE}from accelerate import Accelerator\nparser.add_argument('--deepspeed_config')\n",
            "train.py line 3 imports accelerate.Accelerator",
        ),
        ("lightning", "", "import lightning as L\n\nL.Trainer()\n", "train.py line 3 uses lightning.Trainer"),
        ("lightning", "", "from pytorch_lightning import Trainer\n", "line 1 imports pytorch_lightning.Trainer"),
        (
            "none",
            "",
            f"{ARGPARSE}import torch\nparser.add_argument('--epochs')\n",
            "train.py was read and it does not use DeepSpeed",
        ),
        ("none", "", "print(1)\n", "train.py was read and it does not use DeepSpeed"),
    ],
)
def test_the_script_says_it(name: str, argument: str, text: str, reason: str, tmp_path: Path) -> None:
    made = found(tmp_path, train=text)
    assert (made.name, made.argument) == (name, argument)
    assert reason in made.reason
    assert made.environment is (name == "accelerate" and not argument)
    assert made.keys == INTEGRATIONS[name].keys


def test_a_trainer_whose_parser_takes_no_file_says_so(tmp_path: Path) -> None:
    made = found(tmp_path, train=f"{ARGPARSE}from transformers import Trainer\nparser.add_argument('--epochs')\n")
    assert made.name == "huggingface" and "no --deepspeed to pass to TrainingArguments" in made.reason


def test_a_flag_of_that_name_takes_no_file(tmp_path: Path) -> None:
    flag = "parser.add_argument('--deepspeed', action='store_true')\n"
    assert (
        found(tmp_path, train=f"{ARGPARSE}{flag}parser.add_argument('--deepspeed_config')\n").argument
        == "--deepspeed_config"
    )


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("import lib\n", {"lib": "from transformers import Trainer\n"}),
        ("from pkg.lib import run\n", {"pkg____init__": "", "pkg__lib": "from transformers import Trainer\n"}),
        ("from pkg import lib\n", {"pkg____init__": "", "pkg__lib": "from transformers import Trainer\n"}),
    ],
)
def test_modules_beside_the_script_are_read_too(text: str, files: dict[str, str], tmp_path: Path) -> None:
    made = found(tmp_path, train=text, **files)
    assert made.name == "huggingface" and "lib.py line 1 imports transformers.Trainer" in made.reason


@pytest.mark.parametrize(
    ("text", "files", "reason"),
    [
        ("import sys\nprint(sys.argv)\n", {}, "in its own way"),
        (f"{ARGPARSE}parser.parse_known_args()\n", {}, "in its own way"),
        ("path = 'ds_config.json'\n", {}, "in its own way"),
        ("import megatron\n", {}, "whether megatron uses DeepSpeed is not known"),
        ("import b, a\n", {}, "whether a or b uses DeepSpeed is not known"),
        ("import deepspeed\n", {}, "train.py imports deepspeed, but how it gets its configuration is unknown"),
        ("import a\n", {"a": "import b\n", "b": "import deepspeed\n"}, "not everything that it imports was read"),
        (
            "import deepspeed\nfrom transformers import Trainer\ndeepspeed.initialize()\n",
            {},
            "uses both train.py line 3 uses deepspeed.initialize and train.py line 2 imports transformers.Trainer",
        ),
    ],
)
def test_what_is_not_certain_is_not_determined(text: str, files: dict[str, str], reason: str, tmp_path: Path) -> None:
    made = found(tmp_path, train=text, **files)
    assert (made.name, made.argument, made.keys) == ("", "--deepspeed_config", "deepspeed")
    assert reason in made.reason and "Integration: not determined (" in made.sentence


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"print 'Python 2'\n", "line 1 is not valid Python 3"),
        (b"def f(:\n", "line 1 is not valid Python 3"),
        ("# Schl\u00fcssel\n".encode("latin-1"), "it is not UTF-8"),
        (b"x = 1\0\n", "train.py: "),
        (b"x" * (MAX_BYTES + 1), f"it has more than {MAX_BYTES // 1024} KiB"),
        (b"x = " + b"(" * 100_000, "train.py: "),
        (b"x = " + b"-" * 100_000 + b"1", "train.py: "),
        (b"x = " + b"a." * 100_000 + b"a", "train.py: "),
        (b"x = 1" + b" + 1" * 100_000, "train.py: "),
        (b"import torch\nx = torch" + b".a" * 400, "train.py: it is nested more than 300 deep"),
    ],
)
def test_a_script_that_cannot_be_read_is_not_determined(data: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(data)
    made = found(tmp_path)
    assert (made.name, made.argument) == ("", "--deepspeed_config") and reason in made.reason


def test_what_leads_out_of_the_source_is_not_read(tmp_path: Path) -> None:
    source, outside = tmp_path / "source", tmp_path / "outside.py"
    source.mkdir()
    outside.write_text("from transformers import Trainer\n", encoding="utf-8")
    (source / "train.py").symlink_to(outside)
    assert "leads out of workspace_source" in found(source).reason
    assert "leads out of workspace_source" in found(source, "../outside.py").reason
    (source / "train.py").unlink()
    (source / "lib.py").symlink_to(outside)
    assert found(source, train="import lib\n").name == ""


def test_a_named_pipe_or_a_folder_does_not_stop_the_plan(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.py")
    (tmp_path / "folder.py").mkdir()
    assert "it is not a plain file" in found(tmp_path).reason
    assert found(tmp_path, "folder.py").name == ""
    assert "it is not in workspace_source" in found(tmp_path, "missing.py").reason


@settings(max_examples=examples(200), deadline=None)
@given(st.text())
def test_no_text_is_a_traceback(text: str) -> None:
    made = determined(json.dumps({"texts": {"train.py": text}, "more": False}), "train.py")
    assert made.name in {"", *INTEGRATIONS}


def test_a_script_is_never_executed(tmp_path: Path) -> None:
    found(
        tmp_path,
        train=f"open({str(tmp_path / 'ran')!r}, 'w')\nimport lib\n",
        lib=f"open({str(tmp_path / 'ran')!r}, 'w')\n",
    )
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", sorted(INTEGRATIONS))
def test_what_the_user_says_goes_before_what_the_script_says(name: str) -> None:
    made = integration_of(Requested(name), undetermined("no matter"))
    assert made.name == name and made.reason == ", as deepspeed_launch_integration says"


def test_the_two_older_variables_go_before_it_and_the_plan_says_so() -> None:
    made = integration_of(Requested("accelerate", "--config", "deepspeed"), undetermined("no matter"))
    assert (made.argument, made.keys, made.environment) == ("--config", "deepspeed", False)
    assert made.sentence == (
        "Integration: accelerate, as deepspeed_launch_integration says; deepspeed_launch_config_argument is set and "
        "takes precedence; deepspeed_launch_ds_config_integration: deepspeed is set and takes precedence. The script "
        "gets ds_config.json through --config."
    )
    assert integration_of(Requested(AUTO, ""), undetermined("no matter")).configured is False


@pytest.mark.parametrize(
    ("argument", "args", "refused"),
    [
        ("--deepspeed", ["--deepspeed", "my.json"], True),
        ("--deepspeed", ["--deepspeed=my.json"], True),
        ("--deepspeed_config", ["--deepspeed", "my.json"], True),
        ("--deepspeed_config", ["--deepspeed_config=my.json"], True),
        ("--config", ["--config", "my.json"], True),
        ("--deepspeed_config", ["--deepspeed", "--epochs", "3"], False),  # DeepSpeed's own flag
        ("--deepspeed_config", ["--epochs", "3", "--deepspeed"], False),
        ("--deepspeed", ["--deepspeed_stage", "3"], False),
        ("--deepspeed", [], False),
    ],
)
def test_a_file_of_the_users_own_beside_ours_is_refused(argument: str, args: list[str], refused: bool) -> None:
    assert bool(conflict(argument, True, args)) is refused
    assert conflict(argument, False, args) == ""


@pytest.mark.parametrize(
    ("script", "name", "argument"),
    [
        ("digits/train.py", "deepspeed", "--deepspeed_config"),
        ("cifar10/train.py", "deepspeed", "--deepspeed_config"),
        ("deepspeed_chat_sft/train.py", "deepspeed", "--deepspeed_config"),
        ("gdgpt_pipeline/train.py", "deepspeed", "--deepspeed_config"),
        ("trainer_full/train.py", "huggingface", "--deepspeed"),
        ("llama_factory_sft/train.py", "huggingface", "--deepspeed"),
        ("lightning_ddp/cli.py", "lightning", ""),
        ("torchrun_single/train.py", "none", ""),
        ("torchrun_single/spawn.py", "", "--deepspeed_config"),  # reads sys.argv
    ],
)
def test_the_examples_are_told_apart(script: str, name: str, argument: str) -> None:
    folder, dummy, file = script.partition("/")
    made = found(EXAMPLES / folder, file)
    assert (made.name, made.argument) == (name, argument), made.sentence
