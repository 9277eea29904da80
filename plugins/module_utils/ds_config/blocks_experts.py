# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The block expert_parallel of ds_config.json (AutoEP): which experts of a model go where, and how they talk.

Source: module_inject/auto_ep_config.py and auto_ep_presets of DeepSpeed 0.19.2 to 0.19.8. DeepSpeed checks the values
only when ``enabled`` is true; here they are always checked. ``load_balance_coeff`` is refused by every release.
"""

from __future__ import annotations

from .field import COUNT, FLAG, NUMBER, SIZE, TEXT, Field, before, choice, gone, since

_COMBINE = ("auto", "weighted_sum", "legacy_bmm")
_PRESETS = ("deepseek_v2", "deepseek_v3", "mixtral", "qwen3_5_moe", "qwen3_moe")

EXPERTS: dict[str, dict[str, Field]] = {
    "expert_parallel": {
        "enabled": FLAG,
        "autoep_size": COUNT,
        "expert_tensor_parallel_size": since("0.19.3", COUNT),
        "validate_folding_routing": since("0.19.3", FLAG),
        "async_split_plan": since("0.19.8", FLAG),
        "preset_model": before("0.19.8", choice(*_PRESETS), choice(*_PRESETS, "minimax_m3")),
        "moe_layer_pattern": TEXT,
        "expert_pattern": TEXT,
        "router_pattern": TEXT,
        "use_grouped_mm": FLAG,
        "disable_triton_grouped_mm": since("0.19.4", FLAG),
        "route_norm": FLAG,
        "route_scale": NUMBER,
        "score_apply": choice("auto", "pre", "post", own_auto=True),
        "combine_impl": before(
            "0.19.7",
            choice(*_COMBINE, own_auto=True),
            choice(*_COMBINE, "fused_weighted_sum", own_auto=True),
        ),
        "row_weighting_impl": since("0.19.8", choice("auto", "eager", "fused", own_auto=True)),
        "gate_up_impl": since("0.19.8", choice("separate", "fused")),
        "comm_backend": since("0.19.7", choice("comm", "deepep")),
        "comm_num_sm": since("0.19.7", COUNT),
        "comm_qp_margin": since("0.19.7", SIZE),
        "comm_max_tokens_per_rank": since("0.19.7", SIZE),
        "num_expert_groups": COUNT,
        "num_limited_groups": COUNT,
        "score_func": choice("auto", "softmax", "sigmoid", own_auto=True),
        "top_k": Field("whole", gt=0, own_auto=True),
        "load_balance_coeff": gone("0.19.2", NUMBER, "AutoEP does not balance load without auxiliary loss"),
        "routed_scaling_factor": Field("number", own_auto=True),
        "expert_w1": TEXT,
        "expert_w2": TEXT,
        "expert_w3": TEXT,
        "num_experts_attr": TEXT,
        "top_k_attr": TEXT,
        "has_shared_experts": FLAG,
        "shared_experts_pattern": TEXT,
        "shared_experts_gate_pattern": TEXT,
        "expert_activation": since("0.19.8", choice("swiglu", "geglu_tanh", "swiglu_clamped", "swiglu_oai")),
    }
}
