# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Compare what gpu_info returned with NVML. Usage: ask_nvml.py GPU_INFO.json RESULT."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pynvml

from tests.gpu_proof.nvml import compare, read

if __name__ == "__main__":
    ours = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    pynvml.nvmlInit()
    rows = compare(ours, read(pynvml))
    Path(sys.argv[2]).write_text(json.dumps({"rows": rows}), encoding="utf-8")
