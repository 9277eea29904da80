# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Finishes a bundle on the controller."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils.common.reported import shown
from ..plugin_utils.bundle.checks import damage
from ..plugin_utils.bundle.files import (
    copy_whole,
    digest,
    measure,
    prune,
    read_manifest,
    read_record,
    take,
    wheel_entry,
    write_record,
    write_text,
)
from ..plugin_utils.bundle.folder import own_folder
from ..plugin_utils.bundle.manifest import MANIFEST, BundleError, Entry, Manifest, inside, render
from ..plugin_utils.core.values import plain
from ..plugin_utils.versions.holds import HOLDS
from ..plugin_utils.workspace.bundled import listed

SPEC: dict[str, Any] = {
    "bundle": {"type": "path", "required": True},
    "collected": {"type": "list", "elements": "dict", "required": True},
    "image": {"type": "dict", "default": {}},
    "built": {"type": "bool", "default": False},
    "archive": {"type": "path"},
    "wheelhouse": {"type": "path"},
    "source": {"type": "str", "default": ""},
    "assets": {"type": "list", "elements": "dict", "default": []},
    "accelerator": {"type": "str", "choices": ["cuda", "cpu"], "required": True},
    "variables": {"type": "dict", "required": True},
}
MADE_BY = "swarmspeed.cluster"
IMAGE = ("name", "id", "path")


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Everything is measured again as it lies there: what the manifest says was read from the disk."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        dummy, arguments = self.validate_argument_spec(argument_spec=SPEC)
        bundle = Path(arguments["bundle"])
        arguments.update({name: plain(arguments[name]) for name in ("collected", "image", "assets")})
        if self._task.check_mode:
            return {**result, "changed": False, "msg": f"{bundle / MANIFEST} would be written"}
        try:
            if arguments["archive"]:
                arguments["image"]["path"] = self._archive(bundle, Path(arguments["archive"]))
            manifest = Manifest(
                made_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                made_by=MADE_BY,
                systems=tuple(sorted(one["system"] for one in arguments["collected"])),
                accelerator=arguments["accelerator"],
                variables=plain(arguments["variables"]),
                files=tuple(self._entries(bundle, arguments)),
                image=self._image(arguments),
            )
            changed = not self._same(bundle, manifest)
            if changed:
                write_text(bundle / MANIFEST, render(manifest))
            removed = prune(bundle, [entry.path for entry in manifest.files])
        except BundleError as error:
            raise AnsibleActionFail(f"{bundle}: {error}. Remedy: run bundle.yml again.") from error
        except OSError as error:
            raise AnsibleActionFail(
                f"{error.filename or bundle} on the controller cannot be used: {error.strerror}."
            ) from error
        size = sum(entry.size for entry in manifest.files)
        result.update(
            changed=changed or bool(removed),
            manifest=str(bundle / MANIFEST),
            files=len(manifest.files),
            bytes=size,
            removed=removed,
            msg=f"{bundle} is complete: {len(manifest.files)} files, {size / 1e6:.0f} MB, "
            f"for {', '.join(manifest.systems)}.",
        )
        return result

    @staticmethod
    def _image(arguments: dict[str, Any]) -> dict[str, str]:
        image = arguments["image"]
        found = {key: str(image.get(key, "")) for key in IMAGE if image}
        return {**found, "holds": " ".join(HOLDS)} if image and arguments["built"] else found

    @staticmethod
    def _archive(bundle: Path, archive: Path) -> str:
        """Take a user's archive that ``docker save`` made, with a record beside it such as this collection writes."""
        expected = digest(archive)
        path = own_folder(bundle, "image") / f"{expected[1][:24]}.tar"
        if read_record(path) is None:
            with archive.open("rb") as source:
                take(source, path, expected)
            write_record(path, {})
        return path.relative_to(bundle).as_posix()

    @staticmethod
    def _same(bundle: Path, manifest: Manifest) -> bool:
        try:
            before = read_manifest(bundle)
        except BundleError:
            return False
        return render(replace(manifest, made_at=before.made_at)) == render(before)

    @staticmethod
    def _entries(bundle: Path, arguments: dict[str, Any]) -> Iterator[Entry]:
        names = [str(one.get("system")) for one in arguments["collected"]]
        names += [str(deb.get("file")) for one in arguments["collected"] for deb in one.get("packages") or []]
        for name in names:
            if not inside(name) or "/" in name:
                raise BundleError(f"{shown(name)} cannot be the name of a file or folder in it")
        for one in arguments["collected"]:
            place, system = f"apt/{one['system']}", str(one["system"])
            size, sha256 = digest(bundle / place / "Packages")
            yield Entry(f"{place}/Packages", size, sha256, "index", system=system)
            debs = [
                Entry(
                    f"{place}/{deb['file']}",
                    int(deb["size"]),
                    str(deb["sha256"]),
                    "deb",
                    package=str(deb["name"]),
                    version=str(deb["version"]),
                    source=str(deb["source"]),
                    system=system,
                )
                for deb in one["packages"]
            ]
            found = measure(bundle, debs)
            for entry in debs:
                wrong = damage(entry, found[entry.path])
                if wrong:
                    raise BundleError(wrong)
                yield entry
        image = arguments["image"]
        if image:
            if not inside(str(image["path"])):
                raise BundleError(f"the image is at {shown(image['path'])}, which is not a path below it")
            size, sha256 = digest(bundle / image["path"])
            name, dummy, tag = str(image["name"]).rpartition(":")
            yield Entry(
                image["path"], size, sha256, "image", package=name, version=tag, source=str(image.get("id") or "")
            )
            size, sha256 = digest(bundle / f"{image['path']}.json")
            yield Entry(f"{image['path']}.json", size, sha256, "index")
        if arguments["source"]:
            yield listed(bundle, arguments["source"], *digest(bundle / arguments["source"]))
        assets = [Entry(**one) for one in arguments["assets"]]
        seen = measure(bundle, assets) if assets else {}
        for entry in assets:
            wrong = damage(entry, seen[entry.path])
            if wrong:
                raise BundleError(wrong)
            yield entry
        wheelhouse = Path(arguments["wheelhouse"]) if arguments["wheelhouse"] else None
        for path in sorted(wheelhouse.iterdir()) if wheelhouse else ():
            if path.is_file() and not path.name.startswith("."):
                copy_whole(path, own_folder(bundle, "wheels") / path.name)
                yield wheel_entry(bundle / "wheels" / path.name, f"wheels/{path.name}")
