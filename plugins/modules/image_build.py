#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Builds an image on a node, and shows its progress."""

from __future__ import annotations

DOCUMENTATION = r"""
module: image_build
short_description: Build an image with BuildKit, and show its steps as they run
version_added: 0.1.0
description:
  - Runs C(docker build) in the background on the node, so that a broken connection does not end it, and follows its
    log. On a terminal, each step is printed as it begins and ends; without one, only the result is returned.
  - If a build of the same image is already running, follows it instead of starting another.
options:
  name: {type: str, required: true, description: Name and tag of the image.}
  context: {type: path, required: true, description: Folder on the node with the Dockerfile and what it copies.}
  place: {type: path, required: true, description: "Folder on the node for the log and the state of the build, outside
      the context. Created if missing."}
  dockerfile: {type: str, default: Dockerfile, description: "Path of the Dockerfile, relative to O(context). An absolute
      path may lead elsewhere."}
  args: {type: dict, default: {}, description: "Build arguments. Not for secrets, as they can be read in the image's
      history."}
  labels: {type: dict, default: {}, description: "Labels of the image, in addition to those in the Dockerfile."}
  secrets: {type: dict, default: {}, description: "Files on the node by their ids, for C(RUN --mount=type=secret). They
      leave no trace in the image."}
  observe: {type: bool, default: false, description: "Only query a build that was started, and return the log from
      O(offset) on. Used by the action plugin."}
  offset: {type: int, default: 0, description: "With O(observe), how many bytes of the log are known already."}
requirements:
  - Docker 20.10 or later with BuildKit. From 23.0 on, this is the client's plugin buildx.
attributes:
  check_mode: {support: full, description: Predicts that the image is built; whether that is needed is for the caller to
      determine.}
  diff_mode: {support: none, description: An image is not shown as a diff.}
  idempotent: {support: none, description: "A second run builds again, mostly from the engine's cache."}
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Build the image
  swarmspeed.cluster.image_build:
    name: team/train:1
    context: /srv/train
    place: /srv/train.build
"""

RETURN = r"""
steps:
  returned: when the build has ended
  type: list
  elements: dict
  sample: [{title: Install PyTorch, seconds: 62.2}]
  description: How long each step of the build took, in the order in which they ended.
  contains:
    title: {type: str, description: Title of the step.}
    seconds: {type: float, description: How long it took; null where it came from the engine's cache.}
seconds: {returned: when the build has ended, type: float, description: How long the whole build took.}
reason: {returned: when the build has failed, type: str, description: "A step's own message about the failure, with its
    remedy; empty where no step gave one."}
log: {returned: when the build has failed, type: str, description: The end of the build's log.}
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.common.command_io import find_program
from ..module_utils.image_build.runner import BuildError, gather, start

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "context": {"type": "path", "required": True},
    "place": {"type": "path", "required": True},
    "dockerfile": {"type": "str", "default": "Dockerfile"},
    "args": {"type": "dict", "default": {}},
    "labels": {"type": "dict", "default": {}},
    "secrets": {"type": "dict", "default": {}, "no_log": False},  # paths, and no contents
    "observe": {"type": "bool", "default": False},
    "offset": {"type": "int", "default": 0},
}


def main() -> None:
    """Start the build, or query it."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    given = module.params
    if module.check_mode:
        module.exit_json(changed=True)
    place = Path(given["place"])
    try:
        if given["observe"]:
            module.exit_json(changed=False, **gather(place, given["offset"]))
        program = find_program("docker")
        if program is None:
            module.fail_json(msg="There is no docker command. Remedy: ansible-playbook site.yml --tags docker")
        # The node's own network: no second MTU and no second name resolution in the way.
        command = [program, "build", "--network=host", "--progress=plain", "--tag", given["name"]]
        command += ["--file", str(Path(given["context"], given["dockerfile"]))]
        command += [f"--build-arg={name}={value}" for name, value in given["args"].items()]
        command += [f"--label={name}={value}" for name, value in given["labels"].items()]
        command += [f"--secret=id={name},src={path}" for name, path in given["secrets"].items()]
        started = start(place, given["name"], [*command, given["context"]], {"DOCKER_BUILDKIT": "1"})
        module.exit_json(changed=True, started=started)
    except BuildError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{error}. Remedy: run again; if it stays, check the disk of {place}.")


if __name__ == "__main__":
    main()
