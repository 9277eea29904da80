#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of preflight, which is an action plugin: no part of it runs on a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight
short_description: Check inventory, variables and facts of all hosts before anything is changed
version_added: 0.1.0
description:
  - Runs on the controller alone, contacts no host and changes nothing. Meant for C(run_once).
  - Collects all problems and fails once, with a numbered list of lines C(host or variable, what is wrong, remedy, name
    of the check).
  - The stage V(inventory) needs no connection. Its checks are C(ansible_version), C(copies), C(play_hosts),
    C(connections), C(unused_files), C(groups), C(managers), C(names), C(network_mode), C(cluster_address),
    C(swarm_values), C(overlay_values), C(runtime), C(gpu_slots), C(variable_names), C(variable_values), C(values),
    C(launch_values), C(system_folders), C(overlaps), C(nccl_env), C(container_environment), C(container_options),
    C(files), C(vscode), C(ca_certificate), C(image_settings) and C(bundle).
  - The stage V(facts) judges what M(swarmspeed.cluster.node_facts) found on all hosts. Its checks are C(reachable),
    C(distribution), C(architectures), C(end_of_life), C(systemd), C(python), C(clock), C(proxy), C(disk), C(image),
    C(foreign_files), C(foreign_swarm), C(host_names), C(swarm_fixed), C(swarm_managers), C(swarm_left),
    C(swarm_attached), C(swarm_ports), C(overlay_subnet), C(overlay_network), C(overlay_mtu), C(overlay_encryption),
    C(overlay_names), C(port_2222), C(nccl_interface), C(nccl_settings), C(host), C(docker),
    C(nvidia_container_toolkit), C(nvidia_driver), C(training_container), C(ssh_trust), C(workspace), C(assets),
    C(deepspeed_launch), C(consents), C(version_values), C(compute_capability), C(gpu_dropped_by_cuda),
    C(gpu_newer_than_cuda), C(driver_too_old_for_cuda), C(torch_index), C(torch_python), C(base_compiler),
    C(deepspeed_torch), C(hostfile), C(ds_config), C(shrink), C(job_files) and C(bundle_systems).
  - Run it on a host that exists whatever the inventory holds, such as C(localhost). In a play on C(hosts=cluster) it
    would not run at all where that group is missing.
options:
  stage: {type: str, choices: [inventory, facts], required: true, description: Which checks to run.}
  skip: {type: list, elements: str, default: [], description: "Names of checks to leave out, of either stage. Each of
      them is shown as a warning. A name that is not a check's name is an error."}
  undo: {type: bool, default: false, description: "Whether the playbook only removes something. If so, V(inventory)
      leaves out C(container_options), C(launch_values), C(files), C(vscode), C(ca_certificate), C(image_settings) and
      C(bundle), and V(facts) checks only C(reachable), C(systemd) and C(python), as what the hosts lack for the
      requested state does not matter."}
  launches: {type: bool, default: false, description: "For stage V(inventory), whether a job follows, so that the folder
      for its logs must be writable."}
  files: {type: dict, default: {}, description: "For stage V(inventory), files on the controller that variables name, as
      a mapping of variable name to path. A path that is null or empty is not checked. A relative path is relative to
      the playbook's folder. Where C(workspace_source) is given but missing, C(deepspeed_launch_script) below it is not
      reported too. C(workspace_source), C(cluster_bundle), C(training_image_context) and those that end in
      C(_wheelhouse) must be directories, everything else regular files. Every file of C(cluster_bundle) is read, to
      compare it with its digest."}
  bundle_variables: {type: dict, default: {}, description: "For stage V(inventory), the variables that determine what is
      in an offline bundle, with their current values."}
  bundle_built: {type: bool, default: false, description: "For stage V(inventory), whether the image in an offline
      bundle is to be one that the collection's own Dockerfile builds, which must hold what that puts into it."}
  found: {type: list, elements: dict, default: [], description: "For stage V(inventory), problems with files that
      M(swarmspeed.cluster.workspace_fetch) found, to be reported with the others."}
  hosts_facts: {type: dict, description: "For stage V(facts), the facts of M(swarmspeed.cluster.node_facts) by host,
      null for a host that returned none. A host that is not listed is not judged."}
  unreachable: {type: dict, default: {}, description: "For stage V(facts), Ansible's message, by host, for those that
      could not be reached. A host that returned facts counts as reached, whatever is given here."}
  cluster: {type: dict, default: {}, description: "For stage V(facts), what M(swarmspeed.cluster.cluster_facts) found;
      empty where it could not."}
  image: {type: str, default: '', description: "For stage V(facts), the tag of the training image, empty for none."}
  builds_image: {type: bool, default: false, description: "For stage V(facts), whether the image is built, so that its
      versions must go together."}
  space: {type: dict, default: {}, description: "For stage V(facts), the free space needed, as a mapping of path to a
      mapping with C(bytes), C(variable) (the variable that the remedy names, empty for none), C(unless_image) (a tag; a
      host with that image needs no such space) and C(unless_file) (a file; the same applies to a host that has it)."}
  launch: {type: dict, default: {}, description: "For stage V(facts), the job that will be launched. C(hosts),
      C(include) and C(exclude) are as for M(swarmspeed.cluster.hostfile); C(ds_config) holds options of
      M(swarmspeed.cluster.ds_config) except C(world_size), which follows from the hosts. Without a job, neither is
      checked. C(gpus_known=false) leaves out what needs a working driver. C(shrink) holds whether the job may go on
      with fewer nodes (C(wanted)), and its C(resume). C(name) is that of the job to be started, empty for none."}
  bundle: {type: dict, default: {}, description: "For stage V(facts), of an offline bundle C(systems) and
      C(accelerator_made_for) from its manifest, and C(accelerator) as found; empty where there is none."}
  applies: {type: bool, default: false, description: "For stage V(facts), whether the roles follow, so that the consents
      must be given that their changes need."}
extends_documentation_fragment: [swarmspeed.cluster.attributes.read_only]
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Check inventory and variables
  swarmspeed.cluster.preflight:
    stage: inventory
    skip: "{{ preflight_skip }}"
    files:
      workspace_source: "{{ workspace_source }}"
      deepspeed_launch_script: "{{ deepspeed_launch_script }}"
  run_once: true
"""

RETURN = r"""
msg: {returned: always, type: str, sample: 'Preflight: 34 checks passed.', description: "All problems in numbered lines,
    each with subject, what is wrong, remedy, and the name of the check."}
problems:
  returned: always
  type: list
  elements: dict
  description: Every problem found; what is wrong and what to do is in RV(msg). Warnings are not among them.
  contains:
    check: {returned: always, type: str, sample: network_mode, description: "Name of the check, as shown at the end of
        the problem's line and as O(skip) takes it."}
    subject: {returned: always, type: str, sample: cluster_network_mode, description: "Host, group or variable; several
        hosts with the same problem are joined by commas."}
by_themselves: {returned: success and stage is inventory, type: list, elements: str, sample: [], description: "For stage
    V(inventory), the roles that are to be planned for the hosts of the play alone, as C(--limit) leaves out others and
    no other role was requested. Empty where the cluster is planned as a whole."}
repeated: {returned: success, type: list, elements: str, sample: [], description: Warnings that are worth to be read
    again at the end of a run.}
checked: {returned: success, type: list, elements: str, sample: [reachable, distribution], description: Names of the
    checks that were run.}
"""
