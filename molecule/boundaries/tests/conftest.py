"""What the files of this scenario share."""

from __future__ import annotations

import sys
from pathlib import Path

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))
