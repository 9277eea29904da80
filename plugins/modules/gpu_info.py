#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The NVIDIA GPUs of a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_info
short_description: Tell which NVIDIA GPUs a host has and whether they can be used
version_added: 0.1.0
description:
  - Finds NVIDIA GPUs on the PCI bus without any tool, reads which driver is loaded, and asks C(nvidia-smi) for the GPUs
    that work.
  - Never changes anything. A host without a GPU, without a driver or with a broken driver is an answer, not a failure;
    what is wrong stands in RV(problems) with its cause and what to do.
  - Runs no command where there is no NVIDIA GPU. Where there are some, C(nvidia-smi) is given 60 seconds for each of at
    most four calls, as it takes seconds for each GPU where persistence mode is off.
notes:
  - C(nvidia-smi) may load the kernel module of an installed driver, as any first use of a GPU does.
  - The forms of C(nvidia-smi) output that this module reads are those of its manual page and of NVIDIA's documentation.
options: {}
attributes:
  check_mode:
    support: full
    description: Runs the same in check mode, as it only reads.
  diff_mode:
    support: N/A
    description: Nothing is changed.
  idempotent:
    support: full
    description: Nothing is changed.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Look at the GPUs
  swarmspeed.cluster.gpu_info:
  register: gpu

- name: Stop where a GPU is there but cannot be used
  ansible.builtin.assert:
    that: gpu.problems | length == 0
    fail_msg: "{{ gpu.problems | join(' ') }}"
"""

RETURN = r"""
present:
  description: Whether an NVIDIA GPU is on the PCI bus (a display device of vendor 0x10de).
  returned: always
  type: bool
pci_devices:
  description: The NVIDIA GPUs on the PCI bus.
  returned: always
  type: list
  elements: dict
  contains:
    address:
      description: Where on the bus.
      type: str
      returned: always
      sample: "0000:3b:00.0"
    class:
      description: PCI class, 0x0300 and following for a VGA controller, 0x0302 and following for a 3D controller.
      type: str
      returned: always
      sample: "0x030200"
    device_id:
      description: PCI device number.
      type: str
      returned: always
      sample: "0x2330"
    driver:
      description: The kernel driver that holds it, such as V(nvidia), V(nouveau) or V(vfio-pci), or null.
      type: str
      returned: always
      sample: nvidia
    numa_node:
      description: The NUMA node it is attached to, or null where the firmware names none.
      type: int
      returned: always
      sample: 0
driver:
  description: NVIDIA's driver.
  returned: always
  type: dict
  contains:
    loaded:
      description: Whether the kernel module is loaded.
      type: bool
      returned: always
    version:
      description: Version of the loaded kernel module, or null.
      type: str
      returned: always
      sample: 550.163.01
    flavour:
      description: V(open) or V(proprietary), or null where none is loaded.
      type: str
      returned: always
      sample: open
    library_version:
      description: Version of the driver's management library (NVML) on disk, or null.
      type: str
      returned: always
      sample: 550.163.01
    matches:
      description: Whether module and library are of the same version, or null where one of them is not known.
      type: bool
      returned: always
cuda_version:
  description: The newest CUDA version that the driver supports, or null.
  returned: always
  type: str
  sample: "12.4"
gpus:
  description: The GPUs that answer, in the order of their index.
  returned: always
  type: list
  elements: dict
  contains:
    index:
      description: Number that C(nvidia-smi) gives it.
      type: int
      returned: always
    name:
      description: Product name.
      type: str
      returned: always
      sample: NVIDIA H100 80GB HBM3
    uuid:
      description: Identifier that stays the same whatever the order.
      type: str
      returned: always
      sample: GPU-5a2c7d1e-0000-1111-2222-333344445555
    memory_bytes:
      description: Its memory in bytes, or null where it shares the host's.
      type: int
      returned: always
      sample: 85520809984
    compute_capability:
      description: CUDA compute capability, or null with a driver that does not tell.
      type: str
      returned: always
      sample: "9.0"
slots:
  description: How many GPUs can be used, which is the number of ranks a DeepSpeed hostfile gives this host.
  returned: always
  type: int
  sample: 8
problems:
  description: What is wrong, each with its cause and what to do; empty where there is no GPU or all of them work.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.swarmspeed.cluster.plugins.module_utils._gpu import gather_gpu
from ansible_collections.swarmspeed.cluster.plugins.module_utils._gpu_io import SystemGpuIO


def main() -> None:
    """Read and return."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, **gather_gpu(SystemGpuIO()))


if __name__ == "__main__":
    main()
