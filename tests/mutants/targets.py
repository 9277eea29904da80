# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is mutated, by package, and the tests that must notice: its own, and attacks.

Tests of other targets count as well where they reach a mutant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_UTILS = "plugins/module_utils"
_CONTROLLER = "plugins/plugin_utils"
_UNIT = "tests/unit/plugins"
_ATTACKS = "tests/adversary"


@dataclass(frozen=True)
class Target:
    """Some modules that guard one thing, and its tests: patterns of paths below the checkout."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]

    def module_paths(self, root: Path) -> list[str]:
        return list(_matching(root, self.modules))

    def test_paths(self, root: Path) -> list[str]:
        return list(_matching(root, self.tests))


def _matching(root: Path, patterns: tuple[str, ...]) -> Iterator[str]:
    for pattern in patterns:
        found = sorted(str(path.relative_to(root)) for path in root.glob(pattern))
        if not found:
            raise ValueError(f"{pattern} matches no file. Remedy: correct it in tests/mutants/targets.py.")
        yield from found


TARGETS = (
    Target(
        "folders",
        (f"{_UTILS}/common/*_folder.py", f"{_UTILS}/common/unpack.py"),
        (
            f"{_UNIT}/module_utils/common/test_*_folder.py",
            f"{_UNIT}/module_utils/job/test_job_logs.py",
            f"{_UNIT}/action/test_action_job_results.py",
            f"{_ATTACKS}/test_folders*.py",
            f"{_ATTACKS}/test_vsix_attacks.py",
        ),
    ),
    Target(
        "reports",
        (f"{_CONTROLLER}/validate/*.py", f"{_UTILS}/common/reported.py"),
        (
            f"{_UNIT}/plugin_utils/validate/test_*.py",
            f"{_UNIT}/module_utils/common/test_reported_values.py",
            f"{_UNIT}/modules/test_network_mesh_test_module.py",
            f"{_ATTACKS}/test_generic*.py",
            f"{_ATTACKS}/test_reported.py",
            f"{_ATTACKS}/test_bundles.py",
        ),
    ),
    Target(
        "channel",
        tuple(f"{_UTILS}/job/supervisor/{name}.py" for name in ("channel", "frames", "link", "messages", "wire")),
        (
            *(
                f"{_UNIT}/module_utils/job/supervisor/test_job_{name}.py"
                for name in ("channel", "frames", "messages", "wire")
            ),
            f"{_ATTACKS}/test_channel*.py",
        ),
    ),
    Target(
        "secret names",
        (f"{_UTILS}/common/secret_*.py",),
        (
            f"{_UNIT}/module_utils/common/test_secret_*.py",
            f"{_UNIT}/module_utils/engine/test_daemon_config_secrets.py",
            f"{_ATTACKS}/test_secrets*.py",
        ),
    ),
    Target(
        "spools and keys",
        tuple(
            f"{_UTILS}/transfer/{name}.py"
            for name in ("image/archive", "keys", "lock", "receive", "serve", "spool", "spool_io")
        ),
        (
            f"{_UNIT}/module_utils/transfer/test_*.py",
            f"{_UNIT}/module_utils/transfer/image/test_*.py",
            f"{_UNIT}/modules/test_asset_transfer_module.py",
            f"{_UNIT}/modules/test_image_transfer_module.py",
            f"{_ATTACKS}/test_account.py",
            f"{_ATTACKS}/test_transfers.py",
        ),
    ),
    Target(
        "hub",
        tuple(f"{_CONTROLLER}/assets/{name}.py" for name in ("cache_io", "http_io", "hub", "manifest", "sources")),
        (f"{_UNIT}/plugin_utils/assets/test_*.py", f"{_ATTACKS}/test_hub.py"),
    ),
    Target(
        "git",
        (f"{_CONTROLLER}/workspace/repository*.py",),
        (f"{_UNIT}/plugin_utils/workspace/test_*.py", f"{_ATTACKS}/test_repositories.py"),
    ),
    Target(
        "assets on nodes",
        (f"{_UTILS}/transfer/assets/files.py",),
        (
            f"{_UNIT}/module_utils/transfer/assets/test_*.py",
            f"{_UNIT}/modules/test_asset_transfer_module.py",
        ),
    ),
    Target(
        "owned folders",
        (f"{_UTILS}/owned/*.py",),
        (f"{_UNIT}/module_utils/owned/test_*.py", f"{_UNIT}/modules/test_owned_folders.py"),
    ),
)
