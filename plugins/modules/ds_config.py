#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes a ds_config.json that the named release of DeepSpeed accepts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ds_config
short_description: Write a checked DeepSpeed configuration
version_added: 0.1.0
description:
  - Writes a C(ds_config.json) from a preset and overrides, checked against one release of DeepSpeed.
  - DeepSpeed ignores a misspelt key at the top level and in many blocks, and trains with a default. This module refuses
    it and names the nearest key.
  - All errors are collected into one message, each with its path, and nothing is written when there is one.
  - The file is canonical JSON, keys in order, in ASCII. A file that already means the same is left as it is.
options:
  path:
    description: Where the configuration is. Its folder must exist. A symbolic link is followed.
    type: path
    required: true
  state:
    description: Whether the configuration is there.
    type: str
    choices: [present, absent]
    default: present
  preset:
    description:
      - Starting point. V(zero0) to V(zero3) are the ZeRO stages, V(zero2_offload) moves the optimizer to the CPU,
        V(zero3_offload) the parameters too, V(pipeline) is for scripts with a C(PipelineModule) (ZeRO 1).
      - Left out, O(config) is all there is. With O(state=present) at least one of the two must be given.
      - With a Hugging Face O(integration) a preset sets V(auto) where the trainer's arguments decide.
    type: str
    choices: [zero0, zero1, zero2, zero3, zero2_offload, zero3_offload, pipeline]
  config:
    description:
      - Keys of DeepSpeed laid over the preset, mapping by mapping. V(null) removes a key, a list replaces a list.
      - Text that is a number counts as one, because YAML reads C(5e8) and C(1e-5) as text.
    type: dict
    default: {}
  precision:
    description:
      - V(fp16) and V(bf16) enable that block, V(fp32) makes sure that neither is enabled. O(config) must not say
        otherwise.
      - V(auto) leaves it to O(config), which without an C(fp16) or C(bf16) block means fp32. With a preset and a
        Hugging Face O(integration) it sets both to V(auto), which the trainer fills in. GPUs are not asked.
    type: str
    choices: [auto, fp32, fp16, bf16]
    default: auto
  integration:
    description:
      - Who calls DeepSpeed. The value V(auto) is allowed only with V(huggingface) (C(transformers.Trainer)) and
        V(accelerate), and only for keys that these fill in (transformers 5.23, accelerate 1.15).
    type: str
    choices: [deepspeed, huggingface, accelerate]
    default: deepspeed
  deepspeed_version:
    description:
      - Release of DeepSpeed that reads the file. Known are 0.15.4, 0.16.9, 0.17.6, 0.18.9 and 0.19.0 to 0.19.8.
      - Any other is checked as the nearest known one, with a warning.
    type: str
    default: 0.19.8
  world_size:
    description:
      - Number of ranks of the job, such as RV(swarmspeed.cluster.hostfile#module:world_size).
      - With it the missing one of C(train_batch_size), C(train_micro_batch_size_per_gpu) and
        C(gradient_accumulation_steps) is derived and written, and a triple that does not fit is refused.
      - The ranks are divided by C(pipeline.stages) and C(sequence_parallel_size) for that.
    type: int
  force:
    description:
      - Replace or remove a file that is not JSON. A copy is kept beside it.
      - Without it such a file is left as it is and the module fails. A file with comments (hjson, which DeepSpeed
        reads too) counts as one.
    type: bool
    default: false
  mode:
    description: Permissions of the file, as for M(ansible.builtin.file).
    type: raw
    default: "0644"
extends_documentation_fragment:
  - ansible.builtin.files
attributes:
  check_mode:
    support: full
    description: Shows what would change and changes nothing. Warns where the folder does not exist yet.
  diff_mode:
    support: full
    description: Shows the file before and after.
  idempotent:
    support: full
    description: Changes nothing where the file means the same and its attributes are as asked for.
notes:
  - Names and parameters of optimizers and schedulers are not checked, nor are C(expert_parallel), curricula and blocks
    of removed features.
  - Values of C(comet.api_key) and of keys named C(token), C(secret), C(password) or C(…_token) and so on are masked in
    all output.
seealso:
  - module: swarmspeed.cluster.hostfile
  - name: DeepSpeed configuration JSON
    description: The reference of the DeepSpeed project.
    link: https://www.deepspeed.ai/docs/config-json/
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: ZeRO-2 in bf16 on 16 ranks; gradient_accumulation_steps is derived
  swarmspeed.cluster.ds_config:
    path: /job/ds_config.json
    preset: zero2
    precision: bf16
    world_size: 16
    config:
      train_batch_size: 256
      train_micro_batch_size_per_gpu: 4
      optimizer:
        type: AdamW
        params:
          lr: 3e-5

- name: ZeRO-3 for the Hugging Face Trainer, with larger buckets, without clipping
  swarmspeed.cluster.ds_config:
    path: /job/ds_config.json
    preset: zero3
    integration: huggingface
    deepspeed_version: 0.16.9
    config:
      gradient_clipping: null
      zero_optimization:
        reduce_bucket_size: 5e8
"""

RETURN = r"""
config:
  description: The configuration as written.
  returned: success with O(state=present)
  type: dict
  sample: {train_batch_size: 256, zero_optimization: {stage: 2}}
batch:
  description:
    - The batch sizes and the number of ranks that a batch is split among.
    - V(null) without O(world_size), with V(auto) values, and where only the script knows the pipeline's stages.
  returned: success with O(state=present)
  type: dict
  contains:
    train_batch_size: {description: Samples in one step of the optimizer., type: int, returned: always}
    train_micro_batch_size_per_gpu: {description: Samples in one forward pass of a rank., type: int, returned: always}
    gradient_accumulation_steps: {description: Forward passes in one step., type: int, returned: always}
    data_parallel_size: {description: Ranks with data of their own., type: int, returned: always}
config_warnings:
  description:
    - What runs, but perhaps not as meant. Shown as warnings too.
    - Not called C(warnings), which in a result is Ansible's own.
  returned: with O(state=present)
  type: list
  elements: dict
  contains:
    path: {description: "Where, such as C(zero_optimization.offload_param).", type: str, returned: always}
    message: {description: What to know., type: str, returned: always}
errors:
  description: Everything that is wrong with the configuration.
  returned: failure because of the configuration
  type: list
  elements: dict
  contains:
    path: {description: "Where, such as C(zero_optimization.stage).", type: str, returned: always}
    message: {description: What is wrong and what to do., type: str, returned: always}
backup_file:
  description: Copy of the file that was replaced or removed.
  returned: when O(force=true) replaced or removed a file that is not JSON
  type: str
  sample: /job/ds_config.json.812.2026-11-20@10:00:00~
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_config import (
    PRECISIONS,
    Plan,
    Request,
    UnreadableError,
    build,
    parse,
    render,
    same,
    secrets,
    secrets_in_text,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_facts import INTEGRATIONS, NEWEST
from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_presets import PRESETS
from ansible_collections.swarmspeed.cluster.plugins.module_utils._problems import as_dicts, summary
from ansible_collections.swarmspeed.cluster.plugins.module_utils._text_file import (
    Found,
    TextFileError,
    left_alone,
    read,
    settle,
)

ARGUMENTS: dict[str, dict[str, Any]] = {
    "path": {"type": "path", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "preset": {"type": "str", "choices": list(PRESETS)},
    "config": {"type": "dict", "default": {}},
    "precision": {"type": "str", "choices": list(PRECISIONS), "default": "auto"},
    "integration": {"type": "str", "choices": list(INTEGRATIONS), "default": "deepspeed"},
    "deepspeed_version": {"type": "str", "default": str(NEWEST)},
    "world_size": {"type": "int"},
    "force": {"type": "bool", "default": False},
    "mode": {"type": "raw", "default": "0644"},
}


def existing(found: Found) -> tuple[dict[str, Any] | None, str]:
    """The configuration that is there (``None``: no file), and why it cannot be read, or an empty text."""
    if not found.exists:
        return None, ""
    if found.text is None:
        return None, "it is not UTF-8 text"
    try:
        return parse(found.text), ""
    except UnreadableError as error:
        return None, str(error)


def plan(module: AnsibleModule) -> Plan:
    """What the parameters ask for; fails the module where they contradict DeepSpeed."""
    names = ("preset", "config", "precision", "integration", "deepspeed_version", "world_size")
    wanted = build(Request(**{name: module.params[name] for name in names}))
    if wanted.errors:
        module.fail_json(
            msg=summary(f"The DeepSpeed configuration {module.params['path']} was not written", wanted.errors),
            errors=as_dicts(wanted.errors),
            config_warnings=as_dicts(wanted.warnings),
        )
    for warning in wanted.warnings:
        module.warn(str(warning))
    return wanted


def main() -> None:
    """Run the module."""
    module = AnsibleModule(dict(ARGUMENTS), supports_check_mode=True, add_file_common_args=True)
    module.no_log_values.update(secrets(module.params["config"]))
    path = module.params["path"]
    result: dict[str, Any] = {"path": path}
    try:
        text = None
        wanted = plan(module) if module.params["state"] == "present" else None
        found = read(path)
        before, reason = existing(found)
        module.no_log_values.update(secrets_in_text(found.text or ""))
        if reason and not module.params["force"]:
            raise left_alone(path, "DeepSpeed configuration in JSON", reason)
        if wanted:
            unchanged = before is not None and same(before, wanted.config)
            text = found.text if unchanged else render(wanted.config)
            result.update(config=wanted.config, batch=wanted.batch, config_warnings=as_dicts(wanted.warnings))
        result.update(settle(module, found, text, backup=bool(reason)))
    except TextFileError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
