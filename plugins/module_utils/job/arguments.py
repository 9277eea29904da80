# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The arguments of training_job, and which of them make two jobs of one name the same job. Its action has them, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .resource import build_spec

ARGUMENTS: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["started", "stopped", "absent"], "default": "started"},
    "container": {"type": "str"},
    "jobs_dir": {"type": "path", "required": True},
    "container_jobs_dir": {"type": "str", "default": "/jobs"},
    "command": {"type": "list", "elements": "str"},
    "chdir": {"type": "str"},
    "environment": {"type": "dict", "default": {}},
    "world_size": {"type": "int"},
    "nodes": {"type": "int"},
    "fingerprint": {"type": "dict", "default": {}},
    "ds_config": {"type": "str"},
    "launcher": {"type": "str", "choices": ["deepspeed", "torchrun", "per_node"], "default": "deepspeed"},
    "transport": {"type": "str", "choices": ["direct", "pdsh"], "default": "pdsh"},
    "runtime": {"type": "str", "choices": ["container", "host"], "default": "container"},
    "members": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            "slots": {"type": "list", "elements": "int", "required": True},
        },
    },
    "node": {"type": "str"},
    "leader": {
        "type": "dict",
        "options": {
            "port": {"type": "int", "required": True},
            "run": {"type": "int", "required": True},
            "run_id": {"type": "str", "required": True},
        },
    },
    "secret_file": {"type": "str"},
    "visible_devices": {"type": "str"},
    "env_file": {"type": "str"},
    "master_port": {"type": "int", "default": 0},
    "stall_timeout": {"type": "float", "default": 0},
    "hang_after": {"type": "float", "default": 0},
    "on_hang": {"type": "str", "choices": ["report", "restart", "stop"], "default": "report"},
    "resume": {"type": "str", "choices": ["never", "auto"], "default": "never"},
    "resume_args": {"type": "list", "elements": "str", "default": []},
    "checkpoints": {"type": "str"},
    "restarts": {"type": "int", "default": 3},
    "shrink": {"type": "bool", "default": False},
    "versions": {"type": "dict", "default": {}},
    "code": {"type": "str"},
    "files": {"type": "dict", "default": {}},
    "digests": {"type": "dict", "default": {}},
    "image_built": {"type": "bool", "default": False},
    "rerun": {"type": "bool", "default": False},
    "observe": {"type": "bool", "default": False},
    "log_offset": {"type": "int", "default": 0},
    "log_limit": {"type": "int", "default": 65536},
    "follow": {"type": "bool"},
    "follow_timeout": {"type": "float", "default": 0},
    # The action plugin keeps it.
    "recorded": {"type": "dict", "default": {}},
}
_SPECIFIED = (
    *("command", "chdir", "environment", "world_size", "nodes", "fingerprint", "ds_config"),
    *("launcher", "transport", "runtime", "members", "secret_file", "visible_devices", "env_file"),
)


def spec_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification of a job. Raises ``JobError`` where it is none."""
    return build_spec(**{key: params[key] for key in _SPECIFIED})
