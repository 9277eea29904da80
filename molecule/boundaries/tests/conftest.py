"""What the files of this scenario share."""

from __future__ import annotations

import sys
from pathlib import Path

# pytest puts this folder into the path, and not the checkout; the constraints are read with the collection's own code.
ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collections")]
