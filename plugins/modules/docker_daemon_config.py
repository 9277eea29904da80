#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Merges keys into the Docker engine's daemon.json and has the engine use them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: docker_daemon_config
short_description: Merge keys into the Docker engine's daemon.json
version_added: 0.1.0
description:
  - Merges keys into C(/etc/docker/daemon.json), keeps all others, and has the running engine use the new file. If that
    is not possible, leaves everything as it was and reports why.
  - Before the first change, checks names and types of the keys, address pools with which the engine would not start,
    clashes with flags in its systemd unit, keys that keep it out of a swarm, and whether a restart is allowed;
    C(dockerd --validate) of engine 23.0 or later checks the whole file.
  - Reloads the engine where that applies all changed keys, and restarts it otherwise. Where the engine does not apply
    the file, or does not come back, the former file is restored, the engine is started with it, and the module fails
    with the engine's own message.
  - Where no engine is installed or running, the file is written and nothing is started.
options:
  config: {type: dict, required: true, description: "The keys, as in C(daemon.json). Mappings are merged key by key;
      everything else, including lists, replaces what is there; null removes a key (RFC 7396). Values keep their types;
      O(config=log-opts) takes text only."}
  path: {type: path, default: /etc/docker/daemon.json, description: "The file. A symbolic link is followed. A file that
      is not JSON, not a mapping, or not UTF-8, is never overwritten. Of a key that appears twice the last value counts,
      as for the engine, with a warning; with different mappings, the file is not overwritten either."}
  restart: {type: str, choices: [never, if_idle, always], default: if_idle, description: "Whether the engine may be
      restarted for keys that it reads only when it starts. A restart stops running containers. V(if_idle) restarts it
      only while no container runs, and otherwise fails before anything is written. V(always) restarts it whatever is
      running. V(never) writes the file and neither reloads nor restarts; the engine uses it from its next start on. A
      later run does not make up for that, as nothing differs any more."}
  swarm: {type: bool, default: false, description: "Whether the engine will be in a swarm. If so, C(live-restore) and
      the nftables firewall backend are refused, even where they are in the file already. An engine that is in a swarm
      is always treated this way."}
  service: {type: str, default: docker.service, description: The engine's systemd unit.}
  timeout: {type: int, default: 120, description: "Seconds within which the engine must be restarted, and then within
      which it must answer."}
  validate: {type: bool, default: true, description: "Whether C(dockerd --validate) checks the file before it is put in
      place, where the engine has that command."}
  backup: {type: bool, default: false, description: Whether to leave a dated copy of the former file beside it.}
  mode: {type: raw, description: "Permissions of the file, as for M(ansible.builtin.file). Without it, an existing file
      keeps its own, and a new one gets V(0644), or V(0600) where it holds a credential."}
extends_documentation_fragment: [ansible.builtin.files]
attributes:
  check_mode: {support: full, description: "Checks everything, including the engine's own validation, and changes
      nothing."}
  diff_mode: {support: full, description: "Shows the file before and after, in the same format, with secrets masked."}
  idempotent: {support: full, description: "Where the file holds the keys, changes nothing and does not query the
      engine."}
notes:
  - Results, diffs and messages mask user and password in any URL, and all values under or assigned to names that
    suggest a password, token, secret, credential or API key.
  - A change by another tool at the same moment is detected by its content, right before the file is replaced.
  - Needs root, and the engine's socket at C(/var/run/docker.sock). Keys are those of engines 20.10 to 29.7.
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Configure log rotation and a registry mirror
  swarmspeed.cluster.docker_daemon_config:
    config:
      log-driver: json-file
      log-opts: {max-size: 50m, max-file: "3"}
      registry-mirrors: [https://mirror.example.com]
"""

RETURN = r"""
path: {returned: always, type: str, sample: /etc/docker/daemon.json, description: The file.}
config: {returned: success, type: dict, sample: {log-driver: json-file, log-opts: {max-size: 50m}}, description: "The
    whole configuration after the merge, secrets masked."}
changed_keys: {returned: always, type: list, elements: str, sample: [log-opts.max-size], description: Dotted names of
    what differs from the former file.}
validated: {returned: always, type: bool, description: "Whether C(dockerd --validate) checked the new file. False for an
    engine older than 23.0, and without a change."}
reloaded: {returned: always, type: bool, description: Whether the engine applied the file by a reload.}
restarted: {returned: always, type: bool, description: Whether the engine was restarted with the file.}
restart_needed: {returned: always, type: bool, description: "Whether a running engine does not use the new file yet,
    because of O(restart=never)."}
rolled_back: {returned: always, type: bool, description: Whether the former file was restored.}
engine_version: {returned: always, type: str, sample: 20.10.24+dfsg1, description: "Version of the engine; null where
    there is none, and where nothing differs, as it is then not queried."}
backup_file: {returned: when O(backup=true) and a file was replaced, type: str, sample:
    '/etc/docker/daemon.json.812.2026-11-20@10:00:00~', description: Copy of the former file.}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.common.masking import hide
from ..module_utils.common.text_file import TextFileError
from ..module_utils.engine.daemon_config import DaemonConfigError, too_deep
from ..module_utils.engine.daemon_config_apply import Request, Run, shown_diff
from ..module_utils.engine.daemon_config_io import ConfigFile, LocalHost, readable_by_all
from ..module_utils.engine.daemon_config_secrets import mask, secrets

ARGUMENTS: dict[str, dict[str, Any]] = {
    "config": {"type": "dict", "required": True},
    "path": {"type": "path", "default": "/etc/docker/daemon.json"},
    "restart": {"type": "str", "choices": ["never", "if_idle", "always"], "default": "if_idle"},
    "swarm": {"type": "bool", "default": False},
    "service": {"type": "str", "default": "docker.service"},
    "timeout": {"type": "int", "default": 120},
    "validate": {"type": "bool", "default": True},
    "backup": {"type": "bool", "default": False},
    "mode": {"type": "raw"},
}


class Module(AnsibleModule):  # type: ignore[misc] # ansible-core is not typed
    """An AnsibleModule that knows the secrets in its options before it logs how it was called."""

    def _log_invocation(self) -> None:
        config = self.params["config"]
        if not too_deep(config):
            hide(self, secrets(config))
            super()._log_invocation()


def results(module: Module, run: Run) -> dict[str, Any]:
    """What the module returns, of a failure too."""
    outcome = run.outcome
    hide(module, outcome.known_secrets)
    names = ("changed", "changed_keys", "validated", "reloaded", "restarted", "restart_needed", "rolled_back")
    result: dict[str, Any] = {name: getattr(outcome, name) for name in names}
    result.update(path=run.file.path, engine_version=outcome.engine_version)
    if outcome.backup_file:
        result["backup_file"] = outcome.backup_file
    return result


def main() -> None:
    """Run the module."""
    module = Module(dict(ARGUMENTS), supports_check_mode=True, add_file_common_args=True)
    params = module.params
    path = params["path"]

    def prepare(candidate: str) -> None:
        arguments = module.load_file_common_arguments(params, path=candidate)
        module.set_fs_attributes_if_different(arguments, False)

    request = Request(
        config=params["config"],
        restart=params["restart"],
        service=params["service"],
        timeout=float(params["timeout"]),
        validate=params["validate"],
        swarm=params["swarm"],
        check_mode=module.check_mode,
        folder=module.tmpdir,
        backup=(lambda: str(module.backup_local(path))) if params["backup"] else None,
    )
    run = Run(ConfigFile(path, prepare), LocalHost(), request)
    try:
        if request.timeout < 1:
            raise DaemonConfigError(f"timeout is {params['timeout']}; give a number of seconds, at least 1")
        run.converge()
    except (DaemonConfigError, TextFileError) as error:
        module.fail_json(msg=str(error), **results(module, run))
    outcome = run.outcome
    result = {**results(module, run), "config": mask(outcome.after), "diff": []}
    if outcome.changed:
        result["diff"].append(shown_diff(path, outcome))
    elif outcome.after:
        attributes: dict[str, Any] = {}
        arguments = module.load_file_common_arguments(params, path=path)
        result["changed"] = module.set_fs_attributes_if_different(arguments, False, attributes)
        if attributes:
            header = f"{path} (file attributes)"
            result["diff"].append({"before_header": header, "after_header": header, **attributes})
    if secrets(outcome.after) and readable_by_all(path):
        module.warn(f"{path} holds a credential and everybody on this host can read it. Set mode: '0600'")
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
