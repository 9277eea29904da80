"""Gives an environment pip without a download, for ansible-test where its own bootstrap script cannot be had.

Takes that script's arguments: what to install, and options of which those to leave something out do not apply here.
"""

from __future__ import annotations

import ensurepip
import os
import subprocess
import sys

ensurepip.bootstrap()
# ensurepip points pip at no configuration, and with it at no mirror; the install that follows needs the user's.
os.environ.pop("PIP_CONFIG_FILE", None)
wanted = [argument for argument in sys.argv[1:] if not argument.startswith("--no-")]
sys.exit(subprocess.run([sys.executable, "-m", "pip", "install", *wanted], check=False).returncode)
