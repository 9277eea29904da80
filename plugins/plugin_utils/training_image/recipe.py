# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What an image is built of: its Dockerfile, what that copies, and the tag that follows. Pure.

The tag is a hash of what goes in: a change makes another image, and none makes the same. Where things are fetched from
(proxies, mirrors) does not go in, and can hold a password.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..core.values import fingerprint
from ..plan.changes import Inputs
from ..plan.controller import DIGEST, NAMES, REAL, TEXT, TREE
from ..versions.holds import FABRIC, TOOLS, without_wheel
from .dockerfile import render
from .inputs import Source, Trouble, read_source
from .network import network_script
from .operators import needed_operators, operator_names
from .repositories import Repository, key_files, repositories
from .requirements import Requirements, pins_of, read_by_plan, requirements, troubles

_FILES = "role:training_image"
TEMPLATE = f"{_FILES}/templates/Dockerfile.j2"
CUDA_SCRIPT, WHEEL_SCRIPT = f"{_FILES}/files/cuda_home.py", f"{_FILES}/files/deepspeed_wheel.py"
DEFAULT_BASE = "debian:12-slim"


def files(role_vars: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is read of the controller for a build. All of a context counts for the tag, so it is read once."""
    dockerfile, known = str(role_vars["training_image_dockerfile"] or ""), bool(role_vars.get("swarmspeed_image"))
    authority = str(role_vars["host_ca_certificate"] or "")
    if authority:
        yield authority
    yield from (f"{TEXT}{path}" for path in key_files(role_vars["training_image_apt_repositories"]))
    if dockerfile:
        context = _context(role_vars)
        yield from (f"{TEXT}{dockerfile}", f"{REAL}{dockerfile}", f"{REAL}{context}")
        if not known:
            yield f"{TREE}{context}"
        return
    yield from (TEMPLATE, CUDA_SCRIPT, WHEEL_SCRIPT)
    yield from read_by_plan(role_vars)
    if role_vars["training_image_wheelhouse"]:
        yield f"{NAMES}{role_vars['training_image_wheelhouse']}"
    source = read_source(str(role_vars["training_image_deepspeed_source"] or ""))
    if isinstance(source, Source) and source.kind == "archive":
        yield from (f"{REAL}{source.path}", *([] if known else [f"{DIGEST}{source.path}"]))


def _context(role_vars: Mapping[str, Any]) -> str:
    given = str(role_vars["training_image_context"] or "")
    return given or posixpath.dirname(str(role_vars["training_image_dockerfile"])) or "."


@dataclass(frozen=True)
class Recipe:
    """An image that is built from these role_vars, for this cluster."""

    role_vars: Mapping[str, Any]
    cluster: Mapping[str, Any]
    files: Mapping[str, str]
    source: Source = field(default_factory=lambda: Source("index"))

    @cached_property
    def own(self) -> bool:
        """Whether the Dockerfile is the user's own."""
        return bool(self.role_vars["training_image_dockerfile"])

    @property
    def versions(self) -> Mapping[str, Any]:
        """What goes together, chosen once for the cluster by its GPUs, drivers and settings: docs/versions.md."""
        found = self.cluster.get("versions")
        return found if isinstance(found, Mapping) else {}

    @property
    def accelerator(self) -> str:
        return str(self.cluster.get("accelerator") or "cpu")

    @property
    def cuda(self) -> bool:
        return self.accelerator == "cuda"

    @property
    def built_base(self) -> str:
        """Return what the build stage begins with: where no wheel has nvcc (CUDA 12), an image of NVIDIA's has it."""
        return str(self.role_vars["training_image_base"] or self.versions.get("build_base") or DEFAULT_BASE)

    @property
    def base(self) -> str:
        """Return what the image begins with, of NVIDIA's images the small one."""
        small = str(self.versions.get("build_base") or "").replace("-devel-", "-base-")
        return str(self.role_vars["training_image_base"] or small or DEFAULT_BASE)

    @property
    def operators(self) -> list[str]:
        """One that is not there is compiled at the first step: minutes on each node, and it needs a compiler."""
        preset = str(self.role_vars["deepspeed_launch_ds_config_preset"] or "")
        config = self.role_vars["deepspeed_launch_ds_config"] or {}
        return operator_names(self.role_vars["training_image_deepspeed_ops"]) or needed_operators(
            self.accelerator, preset, config
        )

    @property
    def wheels(self) -> list[str]:
        return self.files.get(f"{NAMES}{self.role_vars['training_image_wheelhouse']}", "").splitlines()

    @cached_property
    def requirements(self) -> Requirements:
        return Requirements() if self.own else requirements(self.role_vars, self.files)

    @property
    def authority(self) -> str:
        path = str(self.role_vars["host_ca_certificate"] or "")
        return self.files[path] if path else ""

    @property
    def repositories(self) -> list[Repository]:
        return repositories(self.role_vars["training_image_apt_repositories"], self.files)

    def script(self, name: str) -> str:
        return self.files[name].rstrip()

    @cached_property
    def dockerfile(self) -> str:
        """Return its text: the user's own as it is, or ours."""
        if self.own:
            return self.files[f"{TEXT}{self.role_vars['training_image_dockerfile']}"]
        compiler = bool(self.role_vars["training_image_compiler"])
        python, operators = str(self.role_vars["training_image_python"]), self.operators
        apt = ["g++", "make", f"{python}-dev"] if compiler else []
        return render(
            self.files[TEMPLATE],
            {
                **self.role_vars,
                "host_ca_certificate": self.role_vars["host_ca_certificate"] or "",
                "requirements": self.requirements.path,
                "source": self.source,
                "accelerator": self.accelerator,
                "cuda": self.cuda,
                "built_base": self.built_base,
                "base": self.base,
                "torch": str(self.versions.get("torch") or ""),
                "compiler": self.versions.get("compiler") or [],
                "capabilities": self.versions.get("capabilities") or [],
                "operators": operators,
                "fabric": FABRIC,
                "tools": TOOLS,
                "apt": [*apt, *(["libaio-dev"] if "AIO" in operators else [])],
            },
        )

    @property
    def context(self) -> str:
        return self.files[f"{REAL}{_context(self.role_vars)}"]

    @property
    def name(self) -> str:
        """Return the Dockerfile's path in its context. Within it, its own NAME.dockerignore stays beside it."""
        if not self.own:
            return "Dockerfile"
        return posixpath.relpath(self.files[f"{REAL}{self.role_vars['training_image_dockerfile']}"], self.context)

    @property
    def within(self) -> bool:
        """Whether the user's own Dockerfile comes with its context."""
        return self.own and not self.name.startswith("../")

    @property
    def reference(self) -> str:
        known = self.role_vars.get("swarmspeed_image")
        return str(known or f"{self.role_vars['training_image_repository']}:{fingerprint(self._goes_in())}")

    def _goes_in(self) -> Sequence[Any]:
        # Unlike a mirror, a further repository has other packages.
        further = [{"repositories": [one.identity for one in self.repositories]}] if self.repositories else []
        if self.own:
            manifest = json.loads(self.files[f"{TREE}{_context(self.role_vars)}"])
            return [self.name, self.dockerfile, self.role_vars["training_image_build_args"], manifest, *further]
        script = self.script(CUDA_SCRIPT) if self.cuda else ""
        found: list[Any] = [self.dockerfile, self.wheels, str(self.versions.get("torch_index") or ""), script, *further]
        if self.requirements.path:
            found.append(self.requirements.text)
        if self.source.kind != "index":
            found.append(self.script(WHEEL_SCRIPT))
        if self.source.kind == "archive":
            found.append(self.files[f"{DIGEST}{self.source.path}"])
        return found

    @property
    def network(self) -> str:
        """Return what the build fetches through: a file that the shell of each step reads. May hold passwords."""
        return network_script(
            {
                "proxy": self.role_vars["training_image_proxy"],
                "no_proxy": ",".join(map(str, self.role_vars["cluster_no_proxy"])),
                "torch_index": str(self.versions.get("torch_index") or ""),
                "pip_index": self.role_vars["training_image_pip_index"],
                "apt_sources": self.role_vars["training_image_apt_sources"],
                "repositories": self.repositories,
                "certificate": self.authority,
            }
        )

    def task_input(self) -> dict[str, Any]:
        """Return what the role's tasks read where it is built. May hold passwords."""
        root = str(self.role_vars["cluster_root"])
        context, place = f"{root}/image", f"{root}/image.build"
        # One from outside of its context stays outside: a build could copy it.
        path = f"{place if self.own and not self.within else context}/{self.name if self.within else 'Dockerfile'}"
        return {
            "folders": [root, context, place],
            "context": context,
            "place": place,
            "base": self.base,
            "base_archive": str(self.role_vars["training_image_base_archive"] or ""),
            "dockerfile": path,
            "text": "" if self.within else self.dockerfile,
            "own": self.context if self.own else "",
            "arguments": dict(self.role_vars["training_image_build_args"] or {}) if self.own else {},
            "texts": [] if self.own else self._texts(),
            "archive": self._archive(),
            "wheelhouse": "" if self.own else str(self.role_vars["training_image_wheelhouse"] or ""),
            "wheels": [] if self.own else self.wheels,
            "network": self.network,
        }

    def _texts(self) -> list[dict[str, str]]:
        """Return the files that our Dockerfile copies, beside wheels and an archive of DeepSpeed's."""
        found = []
        if self.cuda:
            found.append({"path": "cuda_home.py", "content": f"{self.script(CUDA_SCRIPT)}\n", "mode": "0644"})
        if self.authority:
            found.append({"path": "ca.crt", "content": self.authority, "mode": "0644"})
        if self.requirements.path:
            found.append({"path": "requirements.txt", "content": self.requirements.text, "mode": "0600"})
        if self.source.kind != "index":
            wheel = f"{self.script(WHEEL_SCRIPT)}\n"
            found.append({"path": "deepspeed/deepspeed_wheel.py", "content": wheel, "mode": "0644"})
        return found

    def _archive(self) -> dict[str, str]:
        """Return DeepSpeed's own source, where it is an archive on the controller, and its path in the context."""
        if self.own or self.source.kind != "archive":
            return {}
        return {"source": self.files[f"{REAL}{self.source.path}"], "path": f"deepspeed/source{self.source.suffix}"}


def recipe(role_vars: Mapping[str, Any], inputs: Inputs) -> Recipe | Trouble:
    """Return what the image is built of, or what is wrong with it."""
    own = bool(role_vars["training_image_dockerfile"])
    source = Source("index") if own else read_source(str(role_vars["training_image_deepspeed_source"] or ""))
    if isinstance(source, Trouble):
        return source
    found = Recipe(role_vars, inputs.cluster, inputs.files, source)
    pins = pins_of(str(found.versions.get("torch") or ""), str(role_vars["training_image_deepspeed_version"] or ""))
    return _incomplete(found) or next(troubles(found.requirements, pins), found)


def _incomplete(found: Recipe) -> Trouble | None:
    """Return which wheels a wheelhouse lacks that no variable names: pip would say so after minutes."""
    folder = str(found.role_vars["training_image_wheelhouse"] or "")
    if found.own or not folder:
        return None
    lacking = without_wheel(found.wheels)
    if not lacking:
        return None
    return Trouble(
        "training_image_wheelhouse",
        f"{folder} holds no wheel of {', '.join(lacking)}, which the image has for examining jobs that hang",
        f"pip download --no-deps --only-binary=:all: --dest {folder} {' '.join(lacking)}, with --platform where the "
        "nodes have another one",
    )


def named(role_vars: Mapping[str, Any]) -> str:
    """Return the image that is pulled, loaded or there, with its tag."""
    name = str(role_vars["training_image_name"])
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"
