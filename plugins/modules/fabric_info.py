#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The network of a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_info
short_description: Return which interfaces, routes and RDMA devices a host has
version_added: 0.1.0
description:
  - Reads interfaces and IPv4 routes with two calls of C(ip) (iproute2), speed, driver and RDMA devices from sysfs, and
    the offload features of interfaces from the kernel, without ethtool.
  - Never changes anything. What cannot be read, for example because C(ip) is missing, is reported in RV(problems) with
    what to do.
options:
  subnet:
    description:
      - An IPv4 or IPv6 network, such as V(10.20.0.0/24), whose interface is returned in RV(interface).
    type: str
extends_documentation_fragment:
  - swarmspeed.cluster.attributes.read_only
seealso:
  - module: swarmspeed.cluster.cluster_facts
    description: Finds the subnet that all hosts share.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Find the interface in the storage network
  swarmspeed.cluster.fabric_info:
    subnet: 10.20.0.0/24
  register: fabric

- name: Show its name
  ansible.builtin.debug:
    var: fabric.interface
"""

RETURN = r"""
interfaces:
  description: All interfaces in the kernel's order.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      returned: always
      sample: bond0.100
    mac:
      description: Hardware address; 20 bytes long on InfiniBand.
      type: str
      returned: always
      sample: 02:fc:00:00:00:01
    mtu:
      description: Largest packet in bytes.
      type: int
      returned: always
      sample: 9000
    state:
      description: Operational state, such as V(up) or V(down); V(unknown) is usual for virtual interfaces that work.
      type: str
      returned: always
      sample: up
    kind:
      description: >-
        What the kernel calls it (V(bond), V(vlan), V(bridge), V(veth), V(vxlan), V(loopback), V(infiniband), …),
        V(physical) for plain hardware, V(virtual) for anything else.
      type: str
      returned: always
      sample: vlan
    parent:
      description: The interface it is stacked on, as for a VLAN, or null.
      type: str
      returned: always
      sample: bond0
    master:
      description: The bond or bridge it is a member of, or null.
      type: str
      returned: always
    members:
      description: The interfaces that are members of it, as for a bond.
      type: list
      elements: str
      returned: always
      sample: [ens1f0, ens1f1]
    speed_mbps:
      description: >-
        Speed in Mbit/s as the driver reports it; where it reports none, that of its RDMA port (IPoIB) or of
        the interface it is stacked on; else null.
      type: int
      returned: always
      sample: 100000
    driver:
      description: Kernel driver, or null for virtual interfaces.
      type: str
      returned: always
      sample: mlx5_core
    pci_address:
      description: PCI address of its device, or null.
      type: str
      returned: always
      sample: "0000:1b:00.0"
    numa_node:
      description: The NUMA node its device is attached to, or null.
      type: int
      returned: always
      sample: 0
    offloads:
      description: >-
        Which of the features that decide the speed of an overlay are on (C(tx-udp_tnl-segmentation),
        C(tx-udp_tnl-csum-segmentation), C(rx-udp_tunnel-port-offload), C(tx-tcp-segmentation), C(rx-gro)); null where
        the kernel does not report them.
      type: dict
      returned: always
      sample: {tx-udp_tnl-segmentation: true}
    addresses:
      description: Its addresses.
      type: list
      elements: dict
      returned: always
      contains:
        address:
          description: The address.
          type: str
          returned: always
          sample: 10.20.0.11
        prefix:
          description: Length of the network's prefix in bits.
          type: int
          returned: always
          sample: 24
        subnet:
          description: The network it is in.
          type: str
          returned: always
          sample: 10.20.0.0/24
        family:
          description: V(inet) for IPv4, V(inet6) for IPv6.
          type: str
          returned: always
          sample: inet
        scope:
          description: Where it is valid, V(global), V(link) or V(host).
          type: str
          returned: always
          sample: global
routes:
  description: IPv4 routes of all tables, without those that repeat the host's own addresses.
  returned: always
  type: list
  elements: dict
  contains:
    dst:
      description: Network, or V(default).
      type: str
      returned: always
      sample: 10.20.0.0/24
    dev:
      description: Interface, of the first next hop where there are several; null for a route that drops packets.
      type: str
      returned: always
      sample: eth0
    gateway:
      description: Next hop, or null where it is reached directly.
      type: str
      returned: always
      sample: 10.20.0.1
    metric:
      description: The lowest is preferred.
      type: int
      returned: always
      sample: 100
    table:
      description: Routing table.
      type: str
      returned: always
      sample: main
default_interface:
  description: The interface of the preferred default route, or null.
  returned: always
  type: str
  sample: eth0
infiniband:
  description: RDMA devices, InfiniBand and RoCE.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      returned: always
      sample: mlx5_0
    interfaces:
      description: Network interfaces of the same device.
      type: list
      elements: str
      returned: always
      sample: [ib0]
    numa_node:
      description: The NUMA node it is attached to, or null.
      type: int
      returned: always
      sample: 0
    pci_address:
      description: Its PCI address, or null.
      type: str
      returned: always
      sample: "0000:1b:00.0"
    switch_management:
      description: >-
        Whether it is the way to the NVSwitches of an HGX B200 or later, and not to a network, by the Vital Product Data
        of its PCI device (C(SW_MNG)). It has an active InfiniBand port, which NCCL must not use.
      type: bool
      returned: always
      sample: false
    gpu_distances:
      description: >-
        How far each GPU is from it, by the GPU's PCI address, in the terms of C(nvidia-smi topo -m) from near to far:
        V(PIX) (one PCIe switch), V(PXB), V(PHB), V(NODE), V(SYS). M(swarmspeed.cluster.node_facts) takes it from
        nvidia-smi's own matrix, this module from the PCI bridges on the path.
      type: dict
      returned: always
      sample: {"0000:18:00.0": PIX}
    ports:
      description: Its ports.
      type: list
      elements: dict
      returned: always
      contains:
        port:
          description: Number, from 1.
          type: int
          returned: always
          sample: 1
        state:
          description: Logical state.
          type: str
          returned: always
          sample: active
        physical_state:
          description: State of the link.
          type: str
          returned: always
          sample: linkup
        rate_gbps:
          description: Rate in Gbit/s, or null.
          type: float
          returned: always
          sample: 400.0
        link_layer:
          description: V(infiniband), or V(ethernet) for RoCE.
          type: str
          returned: always
          sample: infiniband
        gids:
          description: The entries of its GID table that are set.
          type: list
          elements: dict
          returned: always
          contains:
            index:
              description: Index in the table.
              type: int
              returned: always
              sample: 3
            gid:
              description: The GID.
              type: str
              returned: always
              sample: 0000:0000:0000:0000:0000:ffff:0a14:000b
            type:
              description: V(roce_v2), V(roce_v1) or V(infiniband), or null where the kernel does not report it.
              type: str
              returned: always
              sample: roce_v2
            interface:
              description: The network interface it belongs to, or null.
              type: str
              returned: always
              sample: bond0
            address:
              description: The IPv4 address in it, or null.
              type: str
              returned: always
              sample: 10.20.0.11
interface:
  description: Name of the first interface with an address in O(subnet), or null where none has one.
  returned: when O(subnet) is given
  type: str
  sample: eth1
problems:
  description: What could not be read, each with its cause and what to do.
  returned: always
  type: list
  elements: str
"""

import ipaddress

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.fabric.host_io import SystemFabricIO
from ..module_utils.fabric.interfaces import gather_fabric, interface_of
from ..module_utils.gpu.host_io import SystemGpuIO
from ..module_utils.gpu.pci import display_devices


def main() -> None:
    """Read and return."""
    module = AnsibleModule(argument_spec={"subnet": {"type": "str"}}, supports_check_mode=True)
    subnet = module.params["subnet"]
    if subnet is not None:
        try:
            ipaddress.ip_network(subnet)
        except ValueError as error:
            module.fail_json(msg=f"subnet: {error}. Give a network such as 10.20.0.0/24.")
    facts = gather_fabric(SystemFabricIO(), {"pci_devices": display_devices(SystemGpuIO().pci_devices())})
    if subnet is not None:
        facts["interface"] = interface_of(facts["interfaces"], subnet)
    module.exit_json(changed=False, **facts)


if __name__ == "__main__":
    main()
