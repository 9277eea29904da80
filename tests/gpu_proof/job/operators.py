# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Compile one of DeepSpeed's operators, and say how long it took. Usage: operators.py BUILDER RESULT."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from deepspeed.accelerator import get_accelerator

if __name__ == "__main__":
    builder = get_accelerator().create_op_builder(sys.argv[1])
    began = time.monotonic()
    builder.load(verbose=False)
    Path(sys.argv[2]).write_text(json.dumps({"seconds": round(time.monotonic() - began, 1)}), encoding="utf-8")
