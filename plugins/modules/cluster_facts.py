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
  - Derives from the facts that M(swarmspeed.cluster.node_facts) gathered on every host the rank order, slots,
    accelerator, the underlay (the subnet that all hosts share, its addresses, smallest MTU and why it was chosen), the
    RDMA that all hosts have, and the overlay on top of it.
  - Implemented as an action plugin that contacts no host. Meant for C(run_once); its facts are set on every host.
options:
  hosts:
    description: The hosts in rank order.
    type: list
    elements: str
    required: true
  managers:
    description: Those of O(hosts) that are managers of the swarm.
    type: list
    elements: str
    default: []
  accelerator:
    description: V(auto) is V(cuda) where every host has a usable GPU, and V(cpu) where none has one; a mix is an error.
    type: str
    choices: [auto, cuda, cpu]
    default: auto
  underlay_subnet:
    description:
      - The subnet that carries the cluster's traffic. When empty, it is chosen among those that all hosts share.
      - The variable C(cluster_address) of each host is read too; where set, those addresses are the underlay instead.
    type: str
  overlay:
    description:
      - What the roles' variables request of the overlay network. Left out where the containers use the hosts' network.
      - The variable C(training_container_address) of each host is read too; it is empty, V(auto) or an address of the
        overlay.
    type: dict
    suboptions:
      name:
        description: Name of the network.
        type: str
        required: true
      subnet:
        description: Its subnet. When empty, that of the existing network, else the first free one of the pool.
        type: str
        default: ""
      pool:
        description: Where to search for a free subnet. A subnet is free if it overlaps no device, route, Docker network
          or address pool, name server, proxy or mirror of any host.
        type: str
        default: 10.64.0.0/12
      mtu:
        description: MTU of the underlay in bytes; V(0) takes the smallest of all hosts, or keeps a smaller one that the
          network already has.
        type: int
        default: 0
      recreate:
        description: Whether the network may be re-created, so that settings of it that do not fit need not be kept.
        type: bool
        default: false
      swarm_pools:
        description: Address pools that were configured for the swarm.
        type: list
        elements: str
        default: []
      containers:
        description: Name of the training container by host.
        type: dict
        default: {}
  host_key_file:
    description: Path of the public ssh host key of each container, as M(swarmspeed.cluster.node_facts) read it (with
      its content).
    type: str
  versions:
    description:
      - What the user set for the training image, by the names of its variables without C(training_image_) - C(torch),
        C(torch_index), C(cuda), C(compute_capabilities), C(deepspeed_version), C(base), C(python) and C(wheelhouse).
        What is empty or left out is chosen from the table of versions (C(docs/versions.md)).
    type: dict
    default: {}
  drivers:
    description: Request for each host's driver, by host, as the filter P(swarmspeed.cluster.driver_request#filter)
      returns it. It determines which driver will run there, and so which CUDA.
    type: dict
    default: {}
  run:
    description:
      - The run in which the facts must have been gathered, as it was passed to M(swarmspeed.cluster.node_facts).
      - Facts of another run, such as those in a fact cache for an unreachable host, count as missing.
      - When empty, facts of any run are used.
    type: str
    default: ""
extends_documentation_fragment:
  - swarmspeed.cluster.attributes.read_only
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Derive the cluster's facts
  swarmspeed.cluster.cluster_facts:
    hosts: "{{ groups['managers'] + groups['workers'] }}"
  run_once: true
"""

RETURN = r"""
ansible_facts:
  description: The derived facts.
  returned: success
  type: dict
  contains:
    swarmspeed_cluster:
      description:
        - C(hosts), C(managers), C(first), C(accelerator), C(slots), C(world_size), C(gpus) and C(host_memory) (the
          least that any host with slots has, in the form of M(swarmspeed.cluster.ds_config)), C(gpus_known) (false
          while a driver is still to be installed; C(slots) then counts the GPUs that are plugged in), C(underlay),
          C(rdma) (C(link_layer), null where not all hosts have the same kind, and C(reason)), C(overlay) (C(subnet),
          C(mtu) and C(addresses), those of the containers that have a fixed one; null without an overlay), C(host_keys)
          and C(versions).
        - C(versions) holds what the training image is built from - C(stack) (the row of the table), C(cuda), C(torch)
          (a requirement), C(torch_index) (empty for the index that pip is configured with), C(compiler) (requirements
          that provide nvcc, none where no wheel has it), C(cuda_home) (V(cu13), one tree below site-packages/nvidia;
          V(base), the toolkit of the base image, such as that of C(build_base); empty on CPUs), C(nccl) (empty where
          not known), C(driver_min), C(capabilities) (of all GPUs that take part), C(hosts) (C(driver_branch),
          C(driver_source) and C(capabilities) of each), C(problems) (C(check), C(subjects), C(text) and C(remedy)) and
          C(notes).
      type: dict
      returned: success
"""
