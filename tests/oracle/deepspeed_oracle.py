# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Asks a release of DeepSpeed, which runs in a process of its own (``server.py``), and gives its answers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("ORACLE_FOLDER", HERE.parents[1] / ".cache/oracle"))


class DeepSpeedError(Exception):
    """What DeepSpeed raised: ``kind`` is its exception's class, the text its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Oracle:
    """One release; the process starts with the first question, which takes seconds, and ends with ``close``."""

    def __init__(self, release: str) -> None:
        self.release = release
        self._process: subprocess.Popen[str] | None = None

    def ask(self, op: str, **arguments: Any) -> Any:
        """The result of an operation of ``server.py``; raises ``DeepSpeedError`` where DeepSpeed raises."""
        process = self._running()
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            log = self._log().read_text(errors="replace")[-2000:]
            raise RuntimeError(f"the oracle of DeepSpeed {self.release} ended, asked {op}:\n{log}")
        answer = json.loads(line)
        if "error" in answer:
            raise DeepSpeedError(answer["type"], answer["error"])
        return answer["result"]

    def refusal(self, op: str, **arguments: Any) -> str:
        """What DeepSpeed says against it, or an empty text where it accepts."""
        try:
            self.ask(op, **arguments)
        except DeepSpeedError as error:
            return str(error) or error.kind
        return ""

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdin and self._process.stdout
            self._process.stdin.close()
            self._process.wait(timeout=60)
            self._process.stdout.close()
            self._process = None

    def _log(self) -> Path:
        return FOLDER / f"server-{self.release}-{os.getpid()}.log"

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            home = FOLDER / f"deepspeed-{self.release}"
            if not home.is_dir():
                raise RuntimeError(f"DeepSpeed {self.release} is not in {FOLDER}: run make oracle")
            with self._log().open("w") as log:
                self._process = subprocess.Popen(
                    [str(FOLDER / "venv/bin/python"), str(HERE / "server.py")],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    encoding="utf-8",
                    env={"PATH": os.environ["PATH"], "HOME": str(FOLDER), "PYTHONPATH": str(home)},
                )
            if self.ask("version") != self.release:
                raise RuntimeError(f"{home} holds another release than its name says; remove it and run make oracle")
        return self._process
