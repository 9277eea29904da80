#!/usr/bin/python
# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The NVIDIA GPUs of a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_info
short_description: Return which NVIDIA GPUs a host has and whether they can be used
version_added: 0.1.0
description:
  - Finds NVIDIA GPUs and NVSwitches on the PCI bus without any tool, reads which driver is loaded, and asks
    C(nvidia-smi) for the GPUs that work, with their MIG, ECC, NVLink and fabric states and how they are connected.
  - Never changes anything. A host without a GPU, without a driver or with a broken driver is an answer, not a failure;
    what is wrong is reported in RV(problems) with its cause and what to do, and what is worth knowing but prevents no
    training in RV(notes).
  - Runs no command where there is no NVIDIA GPU. Where GPUs answer, C(nvidia-smi) runs twice, and once more each for
    the topology where there are several GPUs or RDMA devices, where there are MIG instances, and with drivers before
    510. Each run may take up to 60 seconds, as it takes seconds for each GPU where persistence mode is off. Where there
    is an NVLink fabric, C(nv-fabricmanager --version) runs too.
options:
  sysfs_root:
    description: Where sysfs is. A directory other than V(/sys) is a recorded tree, for tests.
    type: path
    default: /sys
  proc_root:
    description: Where procfs is. A directory other than V(/proc) is a recorded tree, for tests.
    type: path
    default: /proc
  fabric_wait:
    description:
      - For how many seconds, 0 to 600, GPUs may join an NVLink fabric whose manager runs. Their devices are kept open
        meanwhile, as without persistence mode each call of C(nvidia-smi) would have them begin again.
    type: int
    default: 15
    version_added: 0.1.0
notes:
  - C(nvidia-smi) is the first one on the C(PATH), else the one where Debian and container hosts keep it.
  - C(nvidia-smi) may load the kernel module of an installed driver, as any first use of a GPU does.
  - Run it with privileges (become). Without them, RV(fabric.manager_running) may be unknown, and drivers may refuse.
extends_documentation_fragment:
  - swarmspeed.cluster.attributes.read_only
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""

EXAMPLES = r"""
- name: Check the GPUs
  swarmspeed.cluster.gpu_info:
  register: gpu_info

- name: Stop where a GPU is present but unusable
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
  description: The NVIDIA GPUs on the PCI bus, including those that no driver holds.
  returned: always
  type: list
  elements: dict
  contains:
    address:
      description: Address on the bus.
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
    cpu_affinity:
      description: The processors near it, as the kernel lists them, or null where it does not.
      type: str
      returned: always
      sample: 0-55,112-167
    generation:
      description:
        - V(Kepler), V(Maxwell), V(Pascal), V(Volta), V(Turing), V(Ampere), V(Ada), V(Hopper), V(Grace Hopper),
          V(Blackwell) or V(Rubin), by its device number.
        - Null for older ones and for numbers assigned after this collection's table was made; RV(notes) reports this.
      type: str
      returned: always
      sample: Hopper
    flavours:
      description: The flavours of NVIDIA's kernel module that can drive it, or null where the generation is not known.
      type: list
      elements: str
      returned: always
      sample: [open, proprietary]
    last_branch:
      description: The last driver branch that supports its generation, or null where none has dropped it.
      type: int
      returned: always
      sample: 580
    vgpu:
      description: Whether a hypervisor gives this guest a part of a GPU (vGPU), by its vendor-specific PCI capability.
      type: bool
      returned: always
nvswitches:
  description:
    - The NVSwitches on the PCI bus (bridges of vendor 0x10de, class 0x0680).
    - Those of B200 and later are not PCI devices of the host; there RV(fabric.state) describes the fabric.
  returned: always
  type: list
  elements: dict
  contains:
    address:
      description: Address on the bus.
      type: str
      returned: always
      sample: "0000:05:00.0"
    device_id:
      description: PCI device number.
      type: str
      returned: always
      sample: "0x22a3"
    driver:
      description: The kernel driver that holds it, or null.
      type: str
      returned: always
      sample: nvidia-nvswitch
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
      description: Whether module and library have the same version, or null where one of them is not known.
      type: bool
      returned: always
    nouveau_loaded:
      description: Whether the nouveau module is loaded, whichever device it holds; false where there is no NVIDIA GPU.
      type: bool
      returned: always
cuda_version:
  description: The newest CUDA version that the driver supports, or null where no GPU answers or its library is missing.
  returned: always
  type: str
  sample: "12.4"
gpus:
  description:
    - The GPUs that answer, in the order of their index.
    - What a GPU or its driver does not report is null.
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
      description: Its memory in bytes, all of it even in MIG mode, or null where it shares the host's.
      type: int
      returned: always
      sample: 85520809984
    compute_capability:
      description:
        - CUDA compute capability.
        - With drivers before 510, which do not report it, by the PCI device number; null where that is not known
          either.
      type: str
      returned: always
      sample: "9.0"
    address:
      description: Its address on the PCI bus, as in RV(pci_devices), or null.
      type: str
      returned: always
      sample: "0000:3b:00.0"
    numa_node:
      description: The NUMA node it is attached to, or null.
      type: int
      returned: always
      sample: 0
    cpu_affinity:
      description: The processors near it, or null.
      type: str
      returned: always
      sample: 0-55,112-167
    generation:
      description: As in RV(pci_devices), or by the name the driver gives it; null where neither is known.
      type: str
      returned: always
      sample: Hopper
    persistence:
      description: Whether persistence mode is on.
      type: bool
      returned: always
    power_limit_watts:
      description: Power limit in force, in watts.
      type: float
      returned: always
      sample: 700.0
    ecc:
      description: Error correction of its memory.
      type: dict
      returned: always
      contains:
        enabled:
          description: Whether ECC is on, or null where the GPU has none.
          type: bool
          returned: always
        uncorrected_volatile:
          description: Errors since its last reset that ECC could not correct.
          type: int
          returned: always
        uncorrected_aggregate:
          description: Errors in its life that ECC could not correct.
          type: int
          returned: always
        repair_pending:
          description: Whether rows or pages of memory will be taken out of use at its next reset.
          type: bool
          returned: always
        repair_failed:
          description: Whether there was no spare row left for a failing one.
          type: bool
          returned: always
    mig:
      description: Multi-Instance GPU.
      type: dict
      returned: always
      contains:
        enabled:
          description: Whether it is in MIG mode, or null where it has none.
          type: bool
          returned: always
        pending:
          description: Whether it will be in MIG mode after its next reset.
          type: bool
          returned: always
        instances:
          description: The instances that it is divided into.
          type: list
          elements: dict
          returned: always
          contains:
            index:
              description: Number within its GPU.
              type: int
              returned: always
            gpu_instance:
              description: Number of the GPU instance.
              type: int
              returned: always
            compute_instance:
              description: Number of the compute instance in it.
              type: int
              returned: always
            memory_bytes:
              description: Its memory in bytes.
              type: int
              returned: always
            profile:
              description: Its size.
              type: str
              returned: always
              sample: 3g.40gb
            uuid:
              description: Name to use in CUDA_VISIBLE_DEVICES.
              type: str
              returned: always
              sample: MIG-c788539f-c1ea-5a36-8b4d-9b07d024b1bb
    nvlink:
      description: Whether NVLink joins it to another GPU of this host, or null where RV(topology) is null.
      type: bool
      returned: always
    fabric_state:
      description: Its registration with the NVLink fabric, V(Not Started), V(In Progress) or V(Completed).
      type: str
      returned: always
    license:
      description: The state of a vGPU's licence in nvidia-smi's words; null for a GPU that is not a vGPU.
      type: str
      returned: always
      sample: "Licensed (Expiry: 2026-12-24 10:17:12 GMT)"
topology:
  description:
    - How the GPUs reach each other and the RDMA devices (C(nvidia-smi topo -m)).
    - V(NV18) is 18 NVLinks, V(PIX) one PCIe bridge, V(PXB) several, V(PHB) the processor's host bridge, V(NODE) several
      of them in a NUMA node, V(SYS) another NUMA node.
    - Null where there is one GPU and no RDMA device, and where C(nvidia-smi) cannot report it.
  returned: always
  type: dict
  contains:
    gpus:
      description: For each GPU's index (as text) the link to each other GPU, by its index.
      type: dict
      returned: always
      sample: {"0": {"1": NV18}, "1": {"0": NV18}}
    nics:
      description: For each RDMA device the link to each GPU, by its index.
      type: dict
      returned: always
      sample: {mlx5_0: {"0": PIX, "1": SYS}}
fabric:
  description: The NVLink fabric of hosts with NVSwitches.
  returned: always
  type: dict
  contains:
    state:
      description:
        - The least advanced registration of all GPUs, V(Not Started), V(In Progress) or V(Completed).
        - Null where no GPU reports one, as on hosts without NVSwitch and on A100 with NVSwitch.
      type: str
      returned: always
    manager_running:
      description: Whether a fabric manager runs here, or null where there is no fabric or the processes cannot be seen.
      type: bool
      returned: always
    manager_version:
      description: Version of the fabric manager installed here, or null where there is no fabric or none is installed.
      type: str
      returned: always
      sample: 580.105.08
secure_boot:
  description: Whether Secure Boot is on (EFI variable SecureBoot), or null on a host without EFI or without GPU.
  returned: always
  type: bool
slots:
  description:
    - How many ranks can compute here, which is the number of slots for this host in a DeepSpeed hostfile.
    - One for each GPU that answers. A GPU in MIG mode without an instance does not count. Where a GPU is divided into
      MIG instances, there is one slot for the whole host, as a CUDA process then sees one instance and no other GPU.
  returned: always
  type: int
  sample: 8
problems:
  description: What is wrong, each with its cause and what to do; empty where there is no GPU or all of them work.
  returned: always
  type: list
  elements: str
notes:
  description:
    - What is worth knowing but prevents no training, such as persistence mode being off, or a GPU whose generation is
      not known.
    - C(nvidia-smi)'s warnings in its own words, with the GPU. An exit status that comes with a warning, such as 14 for
      a corrupted infoROM, is not a problem as long as the GPUs answer.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.gpu.gather import gather_gpu
from ..module_utils.gpu.host_io import SystemGpuIO

MOST_SECONDS = 600


def main() -> None:
    """Read and return."""
    module = AnsibleModule(
        argument_spec={
            "sysfs_root": {"type": "path", "default": "/sys"},
            "proc_root": {"type": "path", "default": "/proc"},
            "fabric_wait": {"type": "int", "default": 15},
        },
        supports_check_mode=True,
    )
    io = SystemGpuIO(sysfs_root=module.params["sysfs_root"], proc_root=module.params["proc_root"])
    wait = module.params["fabric_wait"]
    if not 0 <= wait <= MOST_SECONDS:
        module.fail_json(msg=f"fabric_wait: {wait} is not within 0 and {MOST_SECONDS} seconds.")
    module.exit_json(changed=False, **gather_gpu(io, wait))


if __name__ == "__main__":
    main()
