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
  - Plans the memory of a job from its model and GPUs, and with O(preset=auto) takes the fastest preset that fits.
  - DeepSpeed ignores a misspelt key at the top level and in many blocks, and trains with a default. This module refuses
    it and names the nearest key.
  - All errors are collected into one message, each with its path, and nothing is written when there is one.
  - The file is canonical JSON, keys in order, in ASCII. A file that already means the same is left as it is.
options:
  path:
    description: Path of the configuration. Its folder must exist. A symbolic link is followed.
    type: path
    required: true
  state:
    description: Whether the configuration should exist.
    type: str
    choices: [present, absent]
    default: present
  preset:
    description:
      - Starting point. V(zero0) to V(zero3) are the ZeRO stages. V(zero2_offload) and V(zero3_offload_optimizer) move
        the optimizer to the CPU, V(zero3_offload) the parameters too, V(zero3_infinity) both to a local NVMe disk,
        whose folder O(config) must give. V(pipeline) is for scripts with a C(PipelineModule) (ZeRO 1). V(zenflow) needs
        DeepSpeed 0.17.6, V(superoffload) 0.18.9.
      - V(auto) takes the fastest of the ZeRO presets whose memory plan fits, and needs O(model), O(gpus) and
        O(world_size). It never takes V(pipeline), V(zenflow) or V(superoffload), which do not suit every script or
        machine.
      - Without a preset, O(config) is the whole configuration. With O(state=present) at least one of the two must be
        given.
      - With a Hugging Face O(integration) a preset sets V(auto) where the trainer's arguments decide.
    type: str
    choices:
      - auto
      - zero0
      - zero1
      - zero2
      - zero3
      - zero2_offload
      - zero3_offload_optimizer
      - zero3_offload
      - zero3_infinity
      - pipeline
      - zenflow
      - superoffload
  config:
    description:
      - Keys of DeepSpeed that override the preset, mapping by mapping. V(null) removes a key; a list replaces a list.
      - Text that is a number counts as a number, because YAML reads C(5e8) and C(1e-5) as text.
    type: dict
    default: {}
  precision:
    description:
      - V(fp16) and V(bf16) enable that block, V(fp32) makes sure that neither is enabled. O(config) must not contradict
        this.
      - V(auto) leaves the choice to O(config) where that has an C(fp16), C(bf16) or C(torch_autocast) block, and
        without a preset. With a preset, it follows O(gpus.compute_capability), with bf16 from 8.0 and fp16 from 7.0 on,
        else fp32.
      - With a preset and a Hugging Face O(integration) V(auto) sets both blocks to V(auto), which the trainer fills in.
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
      - Release of DeepSpeed that reads the file. Known releases are 0.15.4, 0.16.9, 0.17.6, 0.18.9 and 0.19.0 to
        0.19.8.
      - Any other is checked as the nearest known one, with a warning.
    type: str
    default: 0.19.8
  world_size:
    description:
      - Number of ranks of the job, such as RV(swarmspeed.cluster.hostfile#module:world_size).
      - With it, the missing one of C(train_batch_size), C(train_micro_batch_size_per_gpu) and
        C(gradient_accumulation_steps) is derived and written, and three values that do not fit together are refused.
      - For that, the ranks are divided by C(pipeline.stages) and C(sequence_parallel_size).
    type: int
  script_keys:
    description:
      - Keys that only the training script reads, which DeepSpeed ignores, such as V(n_epochs) or
        V(optimizer.no_wd_kws). They are taken as they are. A required key that the script fills in later can be named
        too.
      - A key that DeepSpeed knows is an error, and so is one in a block where DeepSpeed refuses foreign keys.
    type: list
    elements: str
    default: []
  model:
    description:
      - The model, for the memory plan. Either C(parameters), a count or text such as V(10B), or fields of the
        C(config.json) of a Hugging Face model, from which they are counted. The whole file may be given.
      - In addition, C(sequence_length) in tokens (default 2048, or less where the model's maximum is less),
        C(activation_checkpointing) (default true), C(trainable_parameters) as a count or a share such as V(1%) for LoRA
        (default all) and C(optimizer) (default V(adam), or that of O(config)).
    type: dict
  gpus:
    description: The GPUs of one host, the weakest host of the job.
    type: dict
    suboptions:
      count:
        description: Number of GPUs of one host that take part.
        type: raw
      memory:
        description: Memory of one GPU, in bytes or as text such as V(24GB), V(80GiB) or V(24564 MiB), or a list of
          these.
        type: raw
      compute_capability:
        description: CUDA compute capability such as V(8.6), or a list, of which the lowest counts.
        type: raw
  host_memory:
    description: Memory of one host, in bytes or as text such as V(256GB). Not checked when left out.
    type: raw
  memlock:
    description:
      - Bytes that the job's processes may lock, -1 for no limit. With it, the module warns of pinned memory that would
        not fit.
    type: int
  force:
    description:
      - Replace or remove a file that is not JSON and not hjson. A copy is kept beside it.
      - Without it such a file is left as it is and the module fails.
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
    description: Changes nothing where the file means the same and its attributes are as requested.
notes:
  - A file with comments (hjson, which DeepSpeed reads) is understood; when it is rewritten its comments are lost, so
    a copy is kept beside it.
  - The memory plan is arithmetic from published formulas and DeepSpeed's source. What it was compared with on GPUs is
    in C(docs/gpu_hosts.md).
  - Values of C(comet.api_key) and of keys whose name suggests a secret (C(token), C(password), C(…_token)) are masked
    in all output.
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

- name: Ten billion parameters on two servers of four 24 GB cards, by the fastest preset that fits
  swarmspeed.cluster.ds_config:
    path: /job/ds_config.json
    preset: auto
    world_size: 8
    model:
      parameters: 10B
    gpus:
      count: 4
      memory: 24564 MiB
      compute_capability: 8.6
    host_memory: 256GB
    config:
      train_micro_batch_size_per_gpu: 1

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
preset:
  description: The preset that was used, chosen by O(preset=auto) or as given. V(null) without one.
  returned: success with O(state=present)
  type: str
  sample: zero3_offload_optimizer
precision:
  description: The precision that was used; V(auto) where O(config) or the trainer decides.
  returned: success with O(state=present)
  type: str
  sample: bf16
reasons:
  description: Why O(precision=auto) and O(preset=auto) chose what they chose, and why each faster preset does not fit.
  returned: success with O(state=present)
  type: list
  elements: str
memory:
  description: The memory plan, in bytes. V(null) without O(model), O(gpus) and O(world_size).
  returned: success with O(state=present)
  type: dict
  contains:
    per_gpu:
      description:
        - C(weights), C(gradients), C(optimizer_states), C(activations), C(buffers), C(reserve) and their C(total) on
          the fullest GPU, at the moment of a training step when it holds most. C(fullest) names this moment (V(loss),
          V(backward), V(reduction) or V(step)). C(available) is the memory available, and C(fits) whether the plan
          fits; both are V(null) where the memory was not given.
      type: dict
      returned: always
    per_host:
      description: The same for a host, without activations and with C(loading), the peak while the model is loaded.
      type: dict
      returned: always
    nvme: {description: Bytes on the NVMe disk of a host., type: int, returned: always}
    summary: {description: In one line., type: str, returned: always}
    assumptions: {description: What was assumed., type: list, elements: str, returned: always}
    formulas:
      description: Every term with formula and source, and C(when), the moments at which it is on a GPU.
      type: list
      elements: dict
      returned: always
config_warnings:
  description:
    - What works, but perhaps not as intended. Also shown as warnings.
    - Not called C(warnings), as Ansible uses that key itself.
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
  returned: when a file was replaced or removed that is not JSON, for which a comment suffices
  type: str
  sample: /job/ds_config.json.812.2026-11-20@10:00:00~
"""

from dataclasses import fields
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.common.masking import hide
from ..module_utils.common.problems import as_dicts, summary
from ..module_utils.common.text_file import Found, TextFileError, apply, left_alone, read
from ..module_utils.ds_config.build import PRECISIONS, Plan, Request, build
from ..module_utils.ds_config.facts import AUTO, INTEGRATIONS, NEWEST
from ..module_utils.ds_config.presets import PRESETS
from ..module_utils.ds_config.text import UnreadableError, is_json, parse, render, same, secrets, secrets_in_text

ARGUMENTS: dict[str, dict[str, Any]] = {
    "path": {"type": "path", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "preset": {"type": "str", "choices": [AUTO, *PRESETS]},
    "config": {"type": "dict", "default": {}},
    "precision": {"type": "str", "choices": list(PRECISIONS), "default": "auto"},
    "integration": {"type": "str", "choices": list(INTEGRATIONS), "default": "deepspeed"},
    "deepspeed_version": {"type": "str", "default": str(NEWEST)},
    "world_size": {"type": "int"},
    # not a secret, though its name ends in keys
    "script_keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "model": {"type": "dict"},
    "gpus": {
        "type": "dict",
        "options": {"count": {"type": "raw"}, "memory": {"type": "raw"}, "compute_capability": {"type": "raw"}},
    },
    "host_memory": {"type": "raw"},
    "memlock": {"type": "int"},
    "force": {"type": "bool", "default": False},
    "mode": {"type": "raw", "default": "0644"},
}


REQUEST = tuple(field.name for field in fields(Request))


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
    wanted = build(Request(**{name: module.params[name] for name in REQUEST}))
    if wanted.errors:
        module.fail_json(
            msg=summary(f"The DeepSpeed configuration {module.params['path']} was not written", wanted.errors),
            errors=as_dicts(wanted.errors),
            config_warnings=as_dicts(wanted.warnings),
        )
    for warning in wanted.warnings:
        module.warn(str(warning))
    return wanted


def run_module(module: AnsibleModule) -> dict[str, Any]:
    """Write or remove the file as requested, and return the result."""
    hide(module, secrets(module.params["config"]))
    path = module.params["path"]
    result: dict[str, Any] = {"path": path}
    try:
        text = None
        wanted = plan(module) if module.params["state"] == "present" else None
        found = read(path)
        before, reason = existing(found)
        hide(module, secrets_in_text(found.text or ""))
        if reason and not module.params["force"]:
            raise left_alone(path, "DeepSpeed configuration", reason)
        if wanted:
            unchanged = before is not None and same(before, wanted.config)
            text = found.text if unchanged else render(wanted.config)
            result.update(
                config=wanted.config,
                batch=wanted.batch,
                preset=wanted.preset,
                precision=wanted.precision,
                reasons=wanted.reasons,
                memory=wanted.memory.as_dict() if wanted.memory else None,
                config_warnings=as_dicts(wanted.warnings),
            )
        # comments of a file in hjson would be lost
        backup = bool(reason) or not is_json(found.text or "")
        result.update(apply(module, found, text, backup=backup))
    except TextFileError as error:
        module.fail_json(msg=str(error))
    return result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(dict(ARGUMENTS), supports_check_mode=True, add_file_common_args=True)
    module.exit_json(**run_module(module))


if __name__ == "__main__":
    main()
