# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What rules out versions that were chosen or requested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """``check`` is its name in preflight; ``subjects`` are hosts or variables; both texts are without a full stop."""

    check: str
    subjects: tuple[str, ...]
    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{', '.join(self.subjects)}: {self.text}. Remedy: {self.remedy}."

    def as_dict(self) -> dict[str, Any]:
        """The form that preflight takes."""
        return {"check": self.check, "subjects": list(self.subjects), "text": self.text, "remedy": self.remedy}
