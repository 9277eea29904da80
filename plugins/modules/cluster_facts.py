#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Documentation of the action plugin cluster_facts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_facts
short_description: Derive the facts that concern more than one node
version_added: 0.1.0
description:
  - Derives rank order, slots, accelerator, the underlay, common RDMA, the overlay and the versions of the training
    image from what M(swarmspeed.cluster.node_facts) gathered on every host.
  - Implemented as an action plugin that contacts no host. Meant for C(run_once); its facts are set on every host.
options:
  hosts: {type: list, elements: str, required: true, description: The hosts in rank order.}
  managers: {type: list, elements: str, default: [], description: Those of O(hosts) that are managers of the swarm.}
  accelerator: {type: str, choices: [auto, cuda, cpu], default: auto, description: "V(auto) is V(cuda) where every host
      has a usable GPU, and V(cpu) where none has one; a mix is an error."}
  underlay_subnet: {type: str, description: "The subnet that carries the cluster's traffic. When empty, it is chosen
      among those that all hosts share. The variable C(cluster_address) of each host is read too; where set, those
      addresses are the underlay instead."}
  overlay:
    type: dict
    description: What the roles' variables request of the overlay network. Left out where the containers use the hosts'
      network. The variable C(training_container_address) of each host is read too; it is empty, V(auto) or an address
      of the overlay.
    suboptions:
      name: {type: str, required: true, description: Name of the network.}
      subnet: {type: str, default: '', description: "Its subnet. When empty, that of the existing network, else the
          first free one of the pool."}
      pool: {type: str, default: 10.64.0.0/12, description: "Where to search for a free subnet. A subnet is free if it
          overlaps no device, route, Docker network or address pool, name server, proxy or mirror of any host."}
      mtu: {type: int, default: 0, description: "MTU of the underlay in bytes; V(0) takes the smallest of all hosts, or
          keeps a smaller one that the network already has."}
      recreate: {type: bool, default: false, description: "Whether the network may be re-created, so that settings of it
          that do not fit need not be kept."}
      swarm_pools: {type: list, elements: str, default: [], description: Address pools that were configured for the
          swarm.}
      containers: {type: dict, default: {}, description: Name of the training container by host.}
  host_key_file: {type: str, description: "Path of the public ssh host key of each container, as
      M(swarmspeed.cluster.node_facts) read it (with its content)."}
  versions: {type: dict, default: {}, description: "What the user set for the training image, by the names of its
      variables without C(training_image_). What is empty or left out is chosen from the table of versions
      (C(docs/versions.md))."}
  gathered: {type: str, default: '', description: "Name of the variable that holds each host's registered result of
      M(swarmspeed.cluster.node_facts). The host's variables in it determine which driver will run there, and so which
      CUDA."}
  run: {type: str, default: '', description: "The run in which the facts must have been gathered, as it was passed to
      M(swarmspeed.cluster.node_facts); facts of another run count as missing. When empty, facts of any run are used."}
extends_documentation_fragment: [swarmspeed.cluster.attributes.read_only]
author: The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Derive the cluster's facts
  swarmspeed.cluster.cluster_facts:
    hosts: "{{ groups['managers'] + groups['workers'] }}"
  run_once: true
"""

RETURN = r"""
ansible_facts:
  returned: success
  type: dict
  description: The derived facts.
  contains:
    swarmspeed_cluster: {returned: success, type: dict, description: "C(hosts), C(managers), C(first), C(accelerator),
        C(slots), C(world_size), C(gpus) and C(host_memory) (the least that any host with slots has, in the form of
        M(swarmspeed.cluster.ds_config)), C(gpus_known) (false while a driver is still to be installed; C(slots) then
        counts the GPUs that are plugged in), C(underlay), C(rdma) (C(link_layer), null where not all hosts have the
        same kind, and C(reason)), C(overlay) (C(subnet), C(mtu) and C(addresses), those of the containers that have a
        fixed one; null without an overlay), C(host_keys) and C(versions). C(versions) holds what the training image is
        built from - C(stack) (the row of the table), C(cuda), C(torch) (a requirement), C(torch_index) (empty for the
        index that pip is configured with), C(compiler) (requirements that provide nvcc, none where no wheel has it),
        C(cuda_home) (V(cu13), one tree below site-packages/nvidia; V(base), the toolkit of the base image, such as that
        of C(build_base); empty on CPUs), C(nccl) (empty where not known), C(driver_min), C(capabilities) (of all GPUs
        that take part), C(hosts) (C(driver_branch), C(driver_source) and C(capabilities) of each), C(problems)
        (C(check), C(subjects), C(text) and C(remedy)) and C(notes)."}
"""
