# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What failures of training jobs look like: text, cause, remedy. Data only, and one table, so it is a long file.

Read by failure_search.py, and by the test that keeps docs/diagnosis.md equal to it. A text is plain; ``…`` in it stands
for anything, and ``^`` before it for the beginning of the line. Where two entries fit one line, the first of them is
taken, so what is special stands before what is not.
Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

from typing import NamedTuple

KINDS = {
    "cluster": "network, names, ports, ssh, or a node that is gone",
    "resources": "memory, /dev/shm, disk, limits, GPUs",
    "environment": "image, libraries, driver, compiler",
    "configuration": "ds_config, hostfile, slots, options, paths",
    "script": "the training script itself",
    "symptom": "what other ranks print when one has ended; never the first cause",
}


class Failure(NamedTuple):
    """One known failure. An entry ends with setting, source and, by keyword, what few entries have."""

    id: str
    kind: str
    texts: tuple[str, ...]
    cause: str
    remedy: str
    setting: str
    source: str
    general: bool = False  # true of several causes, or printed by jobs that go on: any other cause goes before it
    # Where set, only a traceback's exception counts that has this in a file's path or in its last source line.
    frame: str = ""
    passing: bool = False  # programs also print it while they go on: it counts as an exception, else after all others
    unless: tuple[str, ...] = ()  # texts that make a line harmless

    @property
    def exact(self) -> bool:
        """Whether it means one cause, and is not a symptom of another rank's end."""
        return not self.general and self.kind != "symptom"


RUNNER = "DeepSpeed 0.19.8, launcher/runner.py"
ENGINE = "DeepSpeed 0.19.8, runtime/engine.py"
BUILDER = "DeepSpeed 0.19.8, ops/op_builder/builder.py"
NUMA = "DeepSpeed 0.19.8, utils/numa.py"
C10D = "PyTorch 2.13.0, torch/distributed"
TORCH = "PyTorch 2.13.0"
NCCL = "NCCL 2.30.7"
CUDA = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"
HF = "transformers 5.23.0"
HUB = "huggingface_hub 2.4.0"
SSH = "OpenSSH"
LINUX = "Linux, errno(3)"

# The formatter would give each value a line of its own.
# fmt: off
FAILURES = (
    # --- ssh and pdsh
    Failure(
        "ssh-first-node", "cluster", ("was not reachable via ssh",),
        "DeepSpeed's launcher could not log in to the first node of the hostfile.",
        "Repair the containers' ssh with --tags ssh_trust,training_container, or launch without ssh: transport direct.",
        "deepspeed_launch_transport", RUNNER),
    Failure(
        "ssh-key", "cluster", ("Permission denied (publickey",),
        "A node does not accept the cluster's key.",
        "Write the keys again with --tags ssh_trust.",
        "", SSH),
    Failure(
        "ssh-host-key", "cluster", ("Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED"),
        "A container's host key is not the pinned one.",
        "Pin the keys again with --tags ssh_trust; if no one re-created that container, find out who answers there.",
        "", SSH),
    Failure(
        "ssh-name", "cluster", ("Could not resolve hostname", "gethostbyname("),
        "The name of a node's container is unknown.",
        "Run --tags overlay_network,training_container,ssh_trust; wait a minute after an engine's restart.",
        "", SSH),
    Failure(
        "ssh-refused", "cluster", ("ssh: connect to host … Connection refused",),
        "Nothing answers on the ssh port of a node's container.",
        "Check whether that container runs: --tags training_container; the port is ssh_trust_port.",
        "ssh_trust_port", SSH),
    Failure(
        "ssh-no-way", "cluster", ("ssh: connect to host … No route to host", "ssh: connect to host … timed out"),
        "Packets to a node's container do not arrive.",
        "Open the ports between the nodes (--tags host) and check the overlay: verify.yml --tags overlay_network.",
        "host_firewall", SSH),
    Failure(
        "ssh-cut", "cluster", ("kex_exchange_identification",),
        "A node's sshd closed the connection before the log-in: it is starting, or it has too many log-ins at once.",
        "Launch again, or launch without ssh: transport direct.",
        "deepspeed_launch_transport", SSH),
    Failure(
        "ssh-missing", "environment", ("No such file or directory: 'ssh'",),
        "The launcher needs ssh and the image has none.",
        "Add openssh-client to the image, or launch without ssh: transport direct.",
        "deepspeed_launch_transport", "recorded"),
    Failure(
        "pdsh-missing", "environment", ("launcher 'pdsh' not installed",),
        "The launcher needs pdsh and the image has none.",
        "Install pdsh in the image, or launch without it: transport direct.",
        "deepspeed_launch_transport", "recorded"),
    Failure(
        "pdsh-rsh", "environment", ("rcmd: socket: Permission denied",),
        "pdsh used rsh instead of ssh.",
        "Set PDSH_RCMD_TYPE to ssh in deepspeed_launch_environment where you call pdsh yourself.",
        "deepspeed_launch_environment", "pdsh 2.34"),
    # --- names, ports, rendezvous
    Failure(
        "port-taken", "cluster", ("EADDRINUSE", "Address already in use", "address already in use"),
        "Another process holds the master port.",
        "End the job that is left over, or set deepspeed_launch_master_port to 0 or to a free port.",
        "deepspeed_launch_master_port", "recorded"),
    Failure(
        "master-address", "cluster", ("Unable to detect suitable master address via",),
        "DeepSpeed asked the first node for its address by ssh and got none.",
        "Give --master_addr, as the role deepspeed_launch does; then ssh to that node must work: --tags ssh_trust.",
        "", RUNNER),
    Failure(
        "rendezvous-missing-node", "cluster",
        ("Timed out after … clients joined", "in store based barrier on rank"),
        "A node did not start in time, so the ranks never met.",
        "Check the nodes whose ranks printed nothing: container, network, launcher.",
        "", "recorded"),
    Failure(
        "rendezvous-no-master", "cluster", ("client socket has timed out after … while trying to connect to",),
        "A node never reached rank 0's port: rank 0 did not start, a firewall is between, or the address is wrong.",
        "Check rank 0's node first; then open the nodes' ports (--tags host).",
        "host_firewall", "recorded", general=True),
    Failure(
        "rendezvous-refused", "cluster", ("client socket has failed to connect to any network address of",),
        "A node could not connect to rank 0's port.",
        "Check whether rank 0 started; check address and port, and the overlay with verify.yml --tags overlay_network.",
        "deepspeed_launch_master_port", C10D),
    Failure(
        "rendezvous-torchrun", "cluster",
        ("RendezvousTimeoutError", "RendezvousConnectionError", "RendezvousClosedError"),
        "torchrun's rendezvous failed: a node did not come, or has left already.",
        "Check the nodes whose launcher printed nothing, and whether all were given the same address and port.",
        "", C10D),
    Failure(
        "name-unknown", "cluster", ("cannot be retrieved (gai error",),
        "The name of rank 0's node cannot be resolved.",
        "Wait a minute for the overlay's names, then --tags overlay_network,training_container.",
        "cluster_network_mode", "recorded"),
    Failure(
        "no-environment", "configuration", ("using env:// rendezvous: environment variable … expected",),
        "The script ran without a launcher, or the launcher's variables did not reach it.",
        "Start it through deepspeed_launch_script; your own command must pass MASTER_ADDR, RANK and others on.",
        "deepspeed_launch_launcher", "recorded"),
    # --- Gloo
    Failure(
        "gloo-interface", "cluster",
        ("Unable to find address for:", "unsupported gloo device"),
        "GLOO_SOCKET_IFNAME names an interface that this node does not have.",
        "Remove it from nccl_env_environment and deepspeed_launch_environment, then --tags nccl_env.",
        "nccl_env_environment", "recorded"),
    Failure(
        "gloo-host-name", "cluster",
        ("Unable to find interface for",),
        "The node's host name leads to an address that none of its interfaces has.",
        "Correct that name in the node's /etc/hosts (hostname -I shows its addresses), or name the "
        "interface: --tags nccl_env.",
        "nccl_env_environment", "https://github.com/gpustack/gpustack/issues/4128", general=True),
    Failure(
        "gloo-loopback", "cluster", ("connectFullMesh failed … remote=[127.", "connectFullMesh failed … remote=[::1]"),
        "A node's host name leads to its loopback address, which Gloo gave the others.",
        "Name the interface in GLOO_SOCKET_IFNAME: --tags nccl_env; look for 127. beside the name in /etc/hosts.",
        "nccl_env_environment", "recorded"),
    Failure(
        "gloo-sizes", "script",
        ("op.preamble.length <= op.nbytes",),
        "Two ranks used tensors of different sizes in the same collective operation.",
        "Give every rank a tensor of the same shape there; TORCH_DISTRIBUTED_DEBUG: DETAIL names the ranks.",
        "deepspeed_launch_environment", "PyTorch 2.13.0, gloo/transport/tcp", general=True),
    Failure(
        "gloo-mesh", "cluster", ("connectFullMesh failed",),
        "Gloo's ranks could not connect to one another: wrong interface, firewall, or a rank that ended.",
        "See which address it tried (remote=); check it with verify.yml --tags overlay_network,nccl_env.",
        "nccl_env_environment", C10D, general=True),
    # --- NCCL's network
    Failure(
        "nccl-interface", "cluster",
        ("no socket interface found", "NET/Socket : no interface found", "No usable listening interface found",
         "No interface found in the same subnet as remote address"),
        "NCCL_SOCKET_IFNAME fits no interface of this node that is up.",
        "Remove it from nccl_env_settings and run --tags nccl_env, which finds the interface of each node.",
        "nccl_env_settings", "recorded"),
    Failure(
        "nccl-wrong-interface", "cluster",
        ("exceeded error retry count after", "Call to connect returned Connection refused"),
        "NCCL used an interface on which the nodes cannot reach one another, often Docker's gateway bridge.",
        "Run --tags nccl_env, which pins the training network's interface, and keep NCCL_SOCKET_IFNAME out of the job.",
        "nccl_env_settings", "NCCL 2.30.7; https://github.com/ROCm/rccl/issues/328", passing=True),
    Failure(
        "nccl-no-way", "cluster",
        ("Call to connect returned No route to host", "Call to connect returned Connection timed out"),
        "Packets between two nodes do not arrive.",
        "Open all ports between the nodes, 4789/udp for an overlay (--tags host), and check the MTU: verify.yml.",
        "host_firewall", NCCL, passing=True),
    Failure(
        "nccl-proxy", "cluster",
        ("Proxy Call to rank … failed (Connect)", "Failed to execute operation Connect from rank"),
        "NCCL could not connect two ranks, mostly because of a wrong interface.",
        "Read the NCCL WARN lines before it with nccl_env_debug: INFO, and pin the interface with --tags nccl_env.",
        "nccl_env_settings", "NCCL 2.12 to 2.30.7", general=True),
    Failure(
        "rdma-memlock", "resources",
        ("ibv_create_cq…Cannot allocate memory", "ibv_create_qp…Cannot allocate memory",
         "ibv_reg_mr…Cannot allocate memory", "ibv_reg_dmabuf_mr…Cannot allocate memory", "ibv_reg_mr…error 12"),
        "RDMA could not pin memory: the limit of locked memory is too low.",
        "Keep memlock:-1:-1 in training_container_ulimits and IPC_LOCK in training_container_capabilities.",
        "training_container_ulimits", "https://github.com/NVIDIA/nccl/issues/380"),
    Failure(
        "rdma-gpudirect", "environment",
        ("ibv_reg_mr…Bad address", "ibv_reg_dmabuf_mr…Bad address", "ibv_reg_mr…error 14"),
        "GPUDirect RDMA could not register the GPU's memory: nvidia_peermem is not loaded, or driver and "
        "kernel lack DMA-BUF.",
        "Run modprobe nvidia_peermem on that host, or set NCCL_NET_GDR_LEVEL: LOC in nccl_env_settings.",
        "nccl_env_settings", "https://github.com/Mellanox/nv_peer_memory/issues/115", general=True),
    Failure(
        "rdma-call", "resources",
        ("ibv_create_cq", "ibv_create_qp", "ibv_reg_mr", "ibv_reg_dmabuf_mr"),
        "RDMA could not be set up; the error at the end of that line says why.",
        "Check training_container_ulimits (memlock:-1:-1) and the RDMA device on the host: ibv_devinfo.",
        "training_container_ulimits", "https://github.com/NVIDIA/nccl/issues/380", general=True, passing=True),
    Failure(
        "rdma-device", "resources", ("ibv_open_device", "Unable to open device"),
        "The RDMA device cannot be opened in the container.",
        "Check the host's /dev/infiniband; keep IPC_LOCK in training_container_capabilities.",
        "training_container_capabilities", "https://github.com/NVIDIA/nccl/issues/451", passing=True),
    Failure(
        "rdma-namespace", "configuration", ("ibv_modify_qp…No such device",),
        "RoCE does not work from an overlay or bridge network.",
        "Set cluster_network_mode: host, or NCCL_IB_DISABLE: 1 in nccl_env_settings to use sockets.",
        "cluster_network_mode", "https://github.com/NVIDIA/nccl/issues/925"),
    Failure(
        "rdma-gid", "configuration", ("ibv_modify_qp…Invalid argument",),
        "The RDMA connection was given a wrong GID.",
        "Take NCCL_IB_GID_INDEX out of nccl_env_settings; NCCL before 2.21 needs the right one instead.",
        "nccl_env_settings", NCCL),
    Failure(
        "rdma-unreachable", "cluster",
        ("ibv_modify_qp…Connection timed out", "ibv_modify_qp…error 110"),
        "An RDMA port does not reach the port of the other node: rails, routes, subnet or GID.",
        "Set NCCL_CROSS_NIC: 0 in nccl_env_settings, or name the ports of one rail in NCCL_IB_HCA; check: verify.yml.",
        "nccl_env_settings", "https://github.com/NVIDIA/nccl/issues/2013", general=True),
    Failure(
        "rdma-retries", "cluster",
        ("Got completion from peer … status=12", "Got completion with error 12", "vendor err 129"),
        "An RDMA link lost packets until its retries were used up.",
        "Check cable, switch, PFC and routing; NCCL_IB_TIMEOUT: 22 in nccl_env_settings bridges short breaks.",
        "nccl_env_settings", NCCL),
    Failure(
        "nccl-shm-removed", "environment", ("unlink shared memory /dev/shm/nccl-",),
        "Somebody removed NCCL's files in /dev/shm, mostly systemd at a user's log-out.",
        "Set RemoveIPC=no in /etc/systemd/logind.conf of the host, or run the job in a container.",
        "deepspeed_launch_runtime", NCCL),
    Failure(
        "nccl-versions", "environment", ("Mismatched NCCL version detected",),
        "The nodes have different releases of NCCL.",
        "Bring the same image to every node: --tags training_image,training_container.",
        "training_image_name", NCCL),
    Failure(
        "gpu-twice", "configuration", ("Duplicate GPU detected", "Multiple Ranks are using the same GPU"),
        "Two ranks use one GPU: more slots than GPUs, or the script picks its device wrongly.",
        "Correct gpu_slots or deepspeed_launch_include; the script must use LOCAL_RANK as its device.",
        "gpu_slots", "recorded"),
    # --- /dev/shm, memory, disk, limits
    Failure(
        "shm-full", "resources",
        ("failed to extend /dev/shm", "Error while creating shared memory segment /dev/shm",
         "insufficient shared memory", "unable to mmap … Cannot allocate memory", "unable to allocate shared memory",
         "No space left on device … /dev/shm", "/dev/shm … No space left on device",
         "torch_shm_manager … No space left", "unable to write to file </torch_", "unable to resize file </torch_",
         "unable to open shared memory object </torch_", "Bus error", "bus error"),
        "/dev/shm is full or too small.",
        "Raise training_container_shm_size and run --tags training_container; fewer data loader workers need less.",
        "training_container_shm_size", "recorded"),
    # CUDA has one error for both; the GPU's memory is full only where nothing was to be pinned.
    Failure(
        "pinned-refused", "resources", ("CUDA error: out of memory",),
        "Memory of the host could not be pinned, and CUDA reports that as out of memory.",
        "Free memory of the host, or set pin_memory: false for what is offloaded in deepspeed_launch_ds_config.",
        "deepspeed_launch_ds_config", "recorded", frame="pin_memory"),
    Failure(
        "gpu-memory", "resources",
        ("CUDA out of memory", "torch.OutOfMemoryError", "CUDA error: out of memory", "Cuda failure 2 'out of memory'",
         "CUBLAS_STATUS_ALLOC_FAILED"),
        "A GPU's memory is full.",
        "Lower train_micro_batch_size_per_gpu, or take more ZeRO or offload: deepspeed_launch_ds_config_preset. "
        "Where little is missing: PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True in deepspeed_launch_environment.",
        "deepspeed_launch_ds_config_preset", "recorded", passing=True),
    Failure(
        "container-memory", "resources",
        ("Memory cgroup out of memory", "memory cgroup out of memory"),
        "The container, or the step of a queue, reached its memory limit, and the kernel killed a process.",
        "Use less offload, fewer data loader workers or a smaller batch, or raise that limit (docker inspect "
        "shows it).",
        "deepspeed_launch_ds_config", "https://github.com/docker/for-linux/issues/1001"),
    Failure(
        "host-memory-killed", "resources",
        ("is killed by signal: Killed", "Out of memory: Killed process", "oom-kill:", "oom_kill", "invoked oom-killer",
         "OOM Killed"),
        "A process was killed, most likely because the host's memory was full.",
        "Look into the node's kernel log (dmesg); use less offload, fewer data loader workers or a smaller batch.",
        "deepspeed_launch_ds_config", "recorded"),
    Failure(
        "host-memory", "resources",
        ("DefaultCPUAllocator:", "MemoryError", "std::bad_alloc", "memory allocation of … bytes failed"),
        "The host gave no more memory.",
        "Use less offload to the CPU, fewer data loader workers or a smaller batch; look for a limit on the container.",
        "deepspeed_launch_ds_config", "recorded", passing=True),
    Failure(
        "pinned-memory", "resources", ("Unable to pin memory", "cudaHostAlloc", "cudaHostRegister"),
        "Memory of the host could not be pinned.",
        "Keep memlock:-1:-1 in training_container_ulimits, or set pin_memory: false in deepspeed_launch_ds_config.",
        "training_container_ulimits", TORCH),
    Failure(
        "disk-full", "resources",
        ("No space left on device", "Disk quota exceeded", "PytorchStreamWriter failed", "unexpected pos"),
        "A disk or quota is full where the job writes.",
        "Free space, or mount a larger disk for the checkpoints with training_container_volumes.",
        "training_container_volumes", "recorded", passing=True),
    Failure(
        "disk-read-only", "resources", ("Read-only file system",),
        "The job writes to a place that is mounted read-only.",
        "Write below the workspace or /jobs, or mount the place writable with training_container_volumes.",
        "training_container_volumes", "recorded"),
    Failure(
        "disk-broken", "resources", ("Stale file handle", "Input/output error", "Transport endpoint is not connected"),
        "A disk or a network file system does not answer.",
        "Mount it again on that node, look into its kernel log, then run --tags training_container.",
        "training_container_volumes", LINUX),
    Failure(
        "nvme-io", "resources",
        ("n_completes >= min_completes",),
        "DeepSpeed's asynchronous I/O failed while it read or wrote the NVMe disk.",
        "Check that disk in the node's kernel log (dmesg), its free space and fs.aio-max-nr: sysctl "
        "fs.aio-nr fs.aio-max-nr.",
        "deepspeed_launch_ds_config", "https://github.com/deepspeedai/DeepSpeed/issues/4888", general=True),
    Failure(
        "open-files", "resources", ("Too many open files", "received 0 items of ancdata"),
        "The limit of open files is too low.",
        "Add nofile:1048576:1048576 to training_container_ulimits, or use fewer data loader workers.",
        "training_container_ulimits", "recorded"),
    Failure(
        "file-locked", "resources",
        ("unable to lock file", "Unable to lock file"),
        "A file is locked: another process has it open, as with HDF5 where several ranks use one file.",
        "Let one rank write it, or all open it for reading; HDF5_USE_FILE_LOCKING: 'FALSE' in "
        "deepspeed_launch_environment.",
        "deepspeed_launch_environment", "https://github.com/ray-project/ray/issues/27939", passing=True),
    Failure(
        "threads", "resources",
        ("can't start new thread", "pthread_create failed", "libgomp: Thread creation failed",
         "Resource temporarily unavailable"),
        "The limit of processes and threads is reached.",
        "Set OMP_NUM_THREADS in deepspeed_launch_environment, raise nproc in training_container_ulimits.",
        "training_container_ulimits", "recorded", passing=True),
    Failure(
        "rlimit", "environment", ("error setting rlimit",),
        "The Docker engine may not raise a limit as high as training_container_ulimits asks.",
        "Shorten training_container_ulimits, or set LimitMEMLOCK=infinity for the engine.",
        "training_container_ulimits", "https://docs.docker.com/reference/cli/docker/container/run/#ulimit"),
    # --- processors and their binding
    Failure(
        "mempolicy", "environment",
        ("set_mempolicy: Operation not permitted", "setting membind: Operation not permitted",
         "mbind: Operation not permitted"),
        "The container may not bind memory to a processor.",
        "Keep SYS_NICE in training_container_capabilities, or launch without --bind_cores_to_rank.",
        "training_container_capabilities", NUMA),
    Failure(
        "numactl-missing", "environment",
        ("please install the numactl package", "No such file or directory: 'numactl'"),
        "Core binding needs numactl and the image has none.",
        "Add numactl to training_image_apt_packages, or launch without --bind_cores_to_rank.",
        "training_image_apt_packages", "recorded"),
    Failure(
        "core-binding", "configuration",
        ("KMP_AFFINITY conflicts with numactl", "At least one core needs to be assigned to each rank", "Bad range:"),
        "The requested core binding does not fit.",
        "Correct --bind_core_list in deepspeed_launch_launcher_args; take KMP_AFFINITY out of the environment.",
        "deepspeed_launch_launcher_args", NUMA),
    # --- GPUs and driver
    Failure(
        "driver-old", "environment",
        ("CUDA driver version is insufficient", "NVIDIA driver on your system is too old", "unsupported toolchain",
         "forward compatibility was attempted on non supported HW",
         "API call is not supported in the installed CUDA driver", "unsatisfied condition: cuda>="),
        "The driver is too old for the image's CUDA.",
        "Ask for a newer driver with nvidia_driver_branch, or take an image with an older CUDA: training_image_base.",
        "nvidia_driver_branch", CUDA),
    Failure(
        "cuda-compat", "environment",
        ("Error 803", "CUDA error: 803", "unsupported display driver / cuda driver combination"),
        "The image's CUDA compatibility library does not fit the driver of this host (CUDA error 803).",
        "Take cuda-compat out of the image's LD_LIBRARY_PATH, or install a driver that fits: --tags nvidia_driver.",
        "nvidia_driver_branch", "https://github.com/llm-d/llm-d/issues/706"),
    Failure(
        "nvcc-architecture", "environment",
        ("nvcc fatal … Unsupported gpu architecture",),
        "The image's CUDA toolkit (nvcc) is older than this GPU and does not know its architecture.",
        "Take a training_image_base with a newer CUDA, and run --tags training_image.",
        "training_image_base", "https://github.com/OpenGVLab/InternVL/issues/1245"),
    Failure(
        "gpu-architecture", "environment",
        ("no kernel image is available for execution", "CUDA error: invalid device function",
         "is not compatible with the current PyTorch installation"),
        "A library was built for other GPUs than these.",
        "Take a PyTorch that knows the GPU (training_image_torch); build operators again with TORCH_CUDA_ARCH_LIST.",
        "training_image_torch", "recorded"),
    Failure(
        "nvml-assert", "environment",
        ("NVML_SUCCESS == r INTERNAL ASSERT FAILED",),
        "PyTorch could not use NVML in the container, mostly while it reports that a GPU's memory, or a MIG "
        "instance's, is full.",
        "Lower train_micro_batch_size_per_gpu first; check that nvidia-smi works in that container (docker exec).",
        "deepspeed_launch_ds_config", "https://github.com/pytorch/pytorch/issues/112377", general=True),
    Failure(
        "cuda-unknown", "environment",
        ("CUDA unknown error", "CUDA error: unknown error", "Error 999"),
        "The container has lost its GPUs, mostly as systemd was reloaded on the host, or the driver does not work.",
        "Re-create the containers: --tags nvidia_container_toolkit,training_container; run nvidia-smi on that host.",
        "nvidia_container_toolkit_cgroups",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/48", general=True),
    Failure(
        "nvml-unknown", "environment", ("Failed to initialize NVML: Unknown Error",),
        "The container lost its GPUs, mostly after systemd was reloaded on the host.",
        "Re-create the containers: --tags training_container; nvidia_container_toolkit_cgroups prevents it.",
        "nvidia_container_toolkit_cgroups",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/48", passing=True),
    Failure(
        "nvml-mismatch", "environment", ("Driver/library version mismatch", "driver/library version mismatch"),
        "The driver was updated and the kernel still has the old one.",
        "Reboot that node (nvidia_driver_reboot), and keep the driver on hold with nvidia_driver_hold.",
        "nvidia_driver_reboot", "https://github.com/NVIDIA/nvidia-container-toolkit/issues/394"),
    Failure(
        "cuda-stub", "environment",
        ("CUDA driver is a stub library",),
        "The stub of libcuda, which only serves to link, is loaded instead of the driver's library.",
        "Take …/stubs out of LD_LIBRARY_PATH of the image and of deepspeed_launch_environment.",
        "deepspeed_launch_environment", "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"),
    Failure(
        "fabric-manager", "environment", ("system not yet initialized", "CUDA error: 802", "Error 802"),
        "The fabric manager of this node's NVSwitches does not run, or is of another version than the driver.",
        "Run --tags nvidia_driver, which installs the release that fits the driver.",
        "nvidia_driver_branch", CUDA),
    Failure(
        "nvls", "environment",
        ("NVLink SHARP (NVLS)", "Cuda failure 401", "CUDA error 401", "transport/nvls.cc"),
        "NVLink SHARP (NVLS) cannot be used: the fabric manager of that node's NVSwitches is not in order.",
        "Run --tags nvidia_driver, which installs the fabric manager that fits, or set NCCL_NVLS_ENABLE: 0 "
        "in nccl_env_settings.",
        "nccl_env_settings", "https://github.com/NVIDIA/nccl/issues/1788", general=True),
    Failure(
        "cdi-missing", "environment",
        ("no known GPU vendor found", "unresolvable CDI devices", "CDI device injection failed",
         "failed to discover GPU vendor from CDI"),
        "The engine finds no CDI description of the GPUs that were asked for.",
        "Run --tags nvidia_container_toolkit,training_container, which write it again.",
        "nvidia_container_toolkit_mode", "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1537"),
    Failure(
        "driver-absent", "environment",
        ("load library failed: libnvidia-ml.so", "nvml error: driver not loaded"),
        "The container toolkit finds no NVIDIA driver on the host: it is not installed or not loaded, or "
        "Docker is a snap.",
        "Run --tags nvidia_driver; replace a Docker of snap (snap list docker) by the package: --tags docker.",
        "nvidia_driver_source", "https://github.com/NVIDIA/nvidia-container-toolkit/issues/154"),
    Failure(
        "gpu-failed", "resources",
        ("nvml error: unknown error",),
        "A GPU of this host, or its driver, has failed: NVML answers with an unknown error.",
        "Run nvidia-smi and dmesg | grep Xid on that host, then reboot it; leave it out meanwhile: "
        "deepspeed_launch_exclude.",
        "deepspeed_launch_exclude", "https://github.com/NVIDIA/dcgm-exporter/issues/319"),
    Failure(
        "gpu-number", "configuration",
        ("device error: … unknown device", "unknown device"),
        "The host has fewer GPUs than were requested for the container: a device does not exist there.",
        "Correct gpu_slots of that host (nvidia-smi -L lists what it has), then --tags training_container.",
        "gpu_slots", "https://github.com/NVIDIA/libnvidia-container"),
    Failure(
        "gpu-runtime", "environment",
        ("could not select device driver", "unknown or invalid runtime name", "Unknown runtime specified"),
        "The Docker engine knows no runtime for GPUs.",
        "Run --tags nvidia_container_toolkit.",
        "nvidia_container_toolkit_runtime", "Docker Engine"),
    Failure(
        "gpu-nvlink", "resources",
        ("uncorrectable NVLink error", "NVRM: Xid …): 74,"),
        "An NVLink of that GPU has failed, which is the hardware.",
        "Look for Xid in the node's kernel log (dmesg | grep Xid), reset or replace the GPU; leave it out: "
        "deepspeed_launch_exclude.",
        "deepspeed_launch_exclude", "https://docs.nvidia.com/deploy/xid-errors/"),
    Failure(
        "xid-application", "script",
        ("NVRM: Xid …): 13,", "NVRM: Xid …): 31,", "NVRM: Xid …): 43,", "NVRM: Xid …): 45,", "NVRM: Xid …): 69,"),
        "The kernel's Xid line speaks of an error of the program on the GPU, seldom of the hardware "
        "(NVIDIA's class application).",
        "Run again with CUDA_LAUNCH_BLOCKING: 1 in deepspeed_launch_environment; if only this GPU shows it, reset it.",
        "deepspeed_launch_environment", "https://docs.nvidia.com/deploy/xid-errors/", general=True),
    Failure(
        "gpu-firmware", "resources",
        ("NVRM: Xid …): 119,", "NVRM: Xid …): 120,"),
        "The GPU's own firmware (GSP) did not answer the driver.",
        "Reboot that node, and take a newer driver: nvidia_driver_branch.",
        "nvidia_driver_branch", "https://docs.nvidia.com/deploy/xid-errors/"),
    Failure(
        "gpu-defect", "resources",
        ("uncorrectable ECC error", "NVRM: Xid", "fallen off the bus", "Unable to determine the device handle for GPU"),
        "A GPU of this node is defective or has stopped.",
        "Reboot the node and look for Xid in its kernel log; leave it out with deepspeed_launch_exclude meanwhile.",
        "deepspeed_launch_exclude", "https://docs.nvidia.com/deploy/xid-errors/"),
    Failure(
        "gpu-ordinal", "configuration", ("invalid device ordinal",),
        "A rank requested a GPU that the node or container does not have.",
        "Correct gpu_slots or deepspeed_launch_include; take CUDA_VISIBLE_DEVICES out of the environment.",
        "gpu_slots", "recorded"),
    Failure(
        "gpu-none", "environment",
        ("Unable to proceed, no GPU resources available", "No CUDA GPUs are available",
         "but torch.cuda.is_available() is False",
         "Found no NVIDIA driver on your system", "no CUDA-capable device is detected"),
        "No GPU is visible where the job runs.",
        "Run --tags nvidia_driver,nvidia_container_toolkit,training_container, or train with cluster_accelerator: cpu.",
        "cluster_accelerator", "recorded"),
    Failure(
        "torch-without-cuda", "environment", ("Torch not compiled with CUDA enabled",),
        "The image's PyTorch is the one without CUDA, and the script asks for a GPU.",
        "Correct training_image_torch and training_image_torch_index, or let the script ask DeepSpeed for its device.",
        "training_image_torch", "recorded"),
    Failure(
        "gpu-busy", "resources", ("devices are busy or unavailable", "is/are busy or unavailable", "exclusive-process"),
        "Another process has the GPU for itself, or a virtual GPU has no licence.",
        "End that process (nvidia-smi shows it), set the compute mode: nvidia-smi -c DEFAULT; licence: nvidia-smi -q.",
        "", CUDA),
    Failure(
        "cuda-unsupported", "environment",
        ("Cuda failure 'operation not supported'", "Cuda failure 801", "CUDA error: operation not supported",
         "Cuda failure 'operation not permitted'"),
        "This GPU or its driver cannot do what was asked, as with a vGPU, in WSL, or without cuMem or peer access.",
        "Set NCCL_CUMEM_ENABLE: 0 in nccl_env_settings; if that is not enough, NCCL_P2P_DISABLE: 1, too.",
        "nccl_env_settings", "https://github.com/vllm-project/vllm/issues/19188", general=True),
    Failure(
        "gpu-peers", "environment",
        ("peer access is not supported between these two devices", "peer mapping resources exhausted"),
        "Two GPUs cannot reach each other's memory.",
        "Set NCCL_P2P_DISABLE: 1 in nccl_env_settings.",
        "nccl_env_settings", CUDA),
    Failure(
        "accelerator-name", "configuration", ("DS_ACCELERATOR must be one of",),
        "DS_ACCELERATOR has a value that DeepSpeed does not know.",
        "Take it out of deepspeed_launch_environment; cluster_accelerator sets it.",
        "cluster_accelerator", "recorded"),
    Failure(
        "accelerator-fallback", "environment", ("Setting accelerator to CPU. If you have GPU",),
        "DeepSpeed found no GPU and went on with the CPU.",
        "Where GPUs are meant, run --tags nvidia_driver,nvidia_container_toolkit,training_container.",
        "cluster_accelerator", "DeepSpeed 0.19.8, accelerator/real_accelerator.py", general=True, passing=True),
    # --- building operators
    Failure(
        "ninja", "environment", ("Ninja is required to load C++ extensions", "due to ninja not being installed"),
        "ninja is not in the PATH of the ranks.",
        "Add ninja-build to training_image_apt_packages, or have the operators built in: training_image_deepspeed_ops.",
        "training_image_deepspeed_ops", "recorded", passing=True),
    Failure(
        "compiler", "environment",
        ("c++: not found", "g++: not found", "c++: command not found", "g++: command not found",
         "No such file or directory: 'c++'", "No such file or directory: 'g++'", "command 'gcc' failed: No such file",
         "No working C++ compiler found", "Failed to find C compiler"),
        "An operator, or what torch.compile made, is to be compiled, and the image has no C++ compiler.",
        "Have the operators built in (training_image_deepspeed_ops), or add g++ to training_image_apt_packages.",
        "training_image_deepspeed_ops", "recorded"),
    Failure(
        "python-headers", "environment", ("Python.h: No such file",),
        "DeepSpeed wants to compile an operator and the image has no Python headers.",
        "Add python3-dev to training_image_apt_packages, or have the operators built in: training_image_deepspeed_ops.",
        "training_image_apt_packages", "GCC"),
    Failure(
        "libaio", "environment", ("libaio.h: No such file", "requires the dev libaio"),
        "Offload to NVMe needs libaio and the image has none.",
        "Add libaio-dev to training_image_apt_packages.",
        "training_image_apt_packages", "DeepSpeed 0.19.8, ops/op_builder/async_io.py", passing=True),
    Failure(
        "cuda-toolkit", "environment",
        ("CUDA_HOME environment variable is not set", "CUDA_HOME does not exist", "MissingCUDAException",
         "nvcc: not found", "/bin/nvcc'"),
        "DeepSpeed wants to compile an operator and the image has no CUDA toolkit.",
        "Take a devel image as training_image_base, or an image with the operators built in.",
        "training_image_base", "recorded", passing=True),
    Failure(
        "cuda-libraries", "environment",
        ("cannot find -lcu",),
        "CUDA's libraries are missing in the image, so an operator cannot be linked.",
        "Take a devel image as training_image_base, or have the operators built in: training_image_deepspeed_ops.",
        "training_image_base", "https://github.com/deepspeedai/DeepSpeed/issues/7174"),
    Failure(
        "host-compiler", "environment",
        ("unsupported GNU version", "unsupported clang version"),
        "The image's gcc is newer than its CUDA toolkit (nvcc) accepts, so an operator cannot be built.",
        "Take a training_image_base with a newer CUDA or an older gcc, or set CC and CXX to an older one in the image.",
        "training_image_base", "CUDA 12, crt/host_config.h"),
    Failure(
        "cuda-mismatch", "environment",
        ("CUDAMismatchException", "does not match the version torch was compiled with", "CUDA version mismatch!"),
        "The image's CUDA toolkit is not the one PyTorch was built with.",
        "Take a training_image_base with PyTorch's CUDA, or another training_image_torch.",
        "training_image_base", BUILDER, unless=("accepting this combination",)),
    Failure(
        "arch-list", "environment", ("invalid literal for int() with base 10: '",),
        "DeepSpeed takes no architecture with a letter, such as 9.0a, from TORCH_CUDA_ARCH_LIST.",
        "Take the variable out of deepspeed_launch_environment and of the image (then the GPU is asked), or set 9.0.",
        "deepspeed_launch_environment", "recorded", frame="op_builder/builder.py"),
    Failure(
        "torch-mismatch", "environment", ("PyTorch version mismatch! DeepSpeed ops",),
        "DeepSpeed's operators were built with another PyTorch.",
        "Build the image again with --tags training_image.",
        "training_image_torch", BUILDER),
    Failure(
        "extension-lock", "environment", (),
        "A build of an operator that was killed left its lock, and every rank waits for it (or the build is slow).",
        "Remove the files named lock below ~/.cache/torch_extensions there; training_image_deepspeed_ops avoids it.",
        "training_image_deepspeed_ops", "https://github.com/pytorch/pytorch/issues/189245"),
    Failure(
        "build", "environment", ("Error building extension", "subprocess.CalledProcessError: Command '['ninja'"),
        "An operator of DeepSpeed, or of another library, could not be compiled.",
        "Read the compiler's first error line above; training_image_deepspeed_ops builds the operators into the image.",
        "training_image_deepspeed_ops", "recorded", general=True),
    Failure(
        "op-unfit", "environment", ("op due to it not being compatible due to hardware/software issue",),
        "An operator of DeepSpeed does not work with this hardware or software.",
        "Leave the feature out of deepspeed_launch_ds_config that needs it; the lines above name what is missing.",
        "deepspeed_launch_ds_config", BUILDER, passing=True),
    Failure(
        "op-attribute", "symptom", ("has no attribute 'ds_opt_adam'", "has no attribute 'ds_opt_adagrad'"),
        "A follow-up: the operator cpu_adam was not built.",
        "Look for the error before it.",
        "training_image_deepspeed_ops", "https://github.com/deepspeedai/DeepSpeed/issues/889"),
    # --- libraries
    Failure(
        "flash-attention", "environment",
        ("FlashAttention2 has been toggled on", "No module named 'flash_attn", "flash_attn seems to be not installed",
         "FlashAttention only supports"),
        "Flash attention is requested, and it is not installed or does not know this GPU.",
        "Add flash-attn to training_image_python_packages, or choose attn_implementation sdpa in the script.",
        "training_image_python_packages", HF, passing=True),
    Failure(
        "no-launcher", "configuration", ("No module named 'mpi4py'",),
        "DeepSpeed was not started by a launcher, so it tried MPI to find the other ranks.",
        "Start the script through deepspeed_launch_script, or add mpi4py to the image where MPI is meant.",
        "deepspeed_launch_launcher", "DeepSpeed 0.19.8, comm/comm.py"),
    Failure(
        "setuptools", "environment",
        ("No module named 'pkg_resources'",),
        "setuptools 82 and later no longer have pkg_resources, which a library asks for.",
        "Add setuptools<82 to training_image_python_packages, and run --tags training_image.",
        "training_image_python_packages", "https://github.com/facebookresearch/fairchem/issues/1762"),
    Failure(
        "no-sync", "environment",
        ("no_sync context manager is incompatible",),
        "This release of accelerate or transformers is too old for DeepSpeed 0.16 and later, which refuse "
        "no_sync with ZeRO 2 and 3.",
        "Raise accelerate and transformers in training_image_python_packages, and run --tags training_image.",
        "training_image_python_packages", "https://github.com/deepspeedai/DeepSpeed/issues/6793"),
    Failure(
        "model-type", "environment",
        ("does not recognize this architecture",),
        "The image's release of transformers does not know this type of model: it is older than the model.",
        "Raise transformers in training_image_python_packages, and run --tags training_image.",
        "training_image_python_packages", "transformers 5.24.0"),
    Failure(
        "cudnn-mixed", "environment",
        ("CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "CUDNN_STATUS_VERSION_MISMATCH"),
        "Parts of two releases of cuDNN are loaded.",
        "Take LD_LIBRARY_PATH out of deepspeed_launch_environment and a second cuDNN out of the image.",
        "deepspeed_launch_environment", "https://docs.nvidia.com/deeplearning/cudnn/"),
    Failure(
        "bitsandbytes", "environment",
        ("CUDA Setup failed despite GPU being available", "bitsandbytes was compiled without GPU support"),
        "This release of bitsandbytes finds no CUDA library that it was built for.",
        "Set a release of bitsandbytes in training_image_python_packages that fits the image's CUDA: --tags "
        "training_image.",
        "training_image_python_packages", "https://github.com/bitsandbytes-foundation/bitsandbytes"),
    Failure(
        "module-missing", "environment", ("No module named",),
        "A Python module is missing.",
        "Add it to training_image_python_packages (--tags training_image), or put it into the workspace.",
        "training_image_python_packages", "recorded", passing=True),
    Failure(
        "library-name", "environment",
        ("cannot import name", "partially initialized module", "has no attribute '_ARRAY_API'"),
        "Two libraries do not fit, or a file of the workspace has the name of a library.",
        "Set the releases in training_image_python_packages that the script was written for; rename such a file.",
        "training_image_python_packages", "recorded", passing=True),
    Failure(
        "library-version", "environment",
        ("normal functioning of this module, but found", "requires `accelerate",
         "operator torchvision::nms does not exist", "numpy.dtype size changed",
         "compiled using NumPy 1.x cannot be run in",
         "compiled with different CUDA major versions"),
        "A library has a release that another one does not accept.",
        "Set the releases in training_image_python_packages, and run --tags training_image.",
        "training_image_python_packages", HF, passing=True),
    Failure(
        "glibc", "environment", ("GLIBCXX_… not found", "GLIBC_… not found", "CXXABI_… not found"),
        "A compiled library was built for a newer system than the image.",
        "Install it in the image itself (training_image_python_packages) instead of bringing it in the workspace.",
        "training_image_python_packages", "glibc, ld.so(8)"),
    Failure(
        "libcuda", "environment", ("libcuda.so",),
        "The driver's library is not in the container.",
        "Run --tags nvidia_container_toolkit,training_container.",
        "nvidia_container_toolkit_runtime", "glibc, ld.so(8)", passing=True),
    Failure(
        "library-file", "environment", ("cannot open shared object file", "undefined symbol:"),
        "A compiled library is missing, or was built for another release of its parts.",
        "Install the library and PyTorch together in the image: training_image_python_packages, training_image_torch.",
        "training_image_python_packages", "glibc, ld.so(8)", passing=True),
    Failure(
        "illegal-instruction", "environment", ("Illegal instruction",),
        "An operator or library was compiled for another processor.",
        "Remove ~/.cache/torch_extensions; let the image be built for the oldest processor, or on the node itself.",
        "training_image_deepspeed_ops", "Linux, signal(7)"),
    # --- hostfile, launcher, arguments
    Failure(
        "interpreter", "configuration",
        ("/python: No such file", "/python3: No such file", "python: command not found", "python3: command not found",
         "python3: not found"),
        "The Python interpreter of the command is not on that node.",
        "Install the same environment on every node (workspace_python_environment), or correct deepspeed_launch_path.",
        "deepspeed_launch_path", "https://github.com/deepspeedai/Megatron-DeepSpeed/issues/126"),
    Failure(
        "hostfile-missing", "configuration",
        ("Unable to find hostfile, will proceed with training with local resources only",),
        "DeepSpeed did not find its hostfile and went on with one node.",
        "Write it with --tags hostfile, and check --hostfile in the command.",
        "", "recorded", general=True, passing=True),
    Failure(
        "hostfile-bad", "configuration", ("Hostfile contains", "Hostfile is empty or not formatted correctly"),
        "DeepSpeed cannot read the hostfile.",
        "Write it with --tags hostfile, and correct gpu_slots; each line is NAME slots=N.",
        "gpu_slots", "recorded"),
    Failure(
        "hostfile-one-node", "configuration", ("Num nodes is >1 but no extra nodes available via hostfile",),
        "More nodes are requested than the hostfile has.",
        "Check --hostfile and take --num_nodes out of deepspeed_launch_launcher_args.",
        "deepspeed_launch_launcher_args", RUNNER),
    Failure(
        "host-filter", "configuration",
        ("not found in hostfile", "No slot '… specified on host", "include_str and exclude_str are mutually exclusive",
         "Cannot specify num_nodes/gpus with include/exclude"),
        "The choice of hosts and slots does not fit the hostfile.",
        "Correct deepspeed_launch_include or deepspeed_launch_exclude.",
        "deepspeed_launch_include", "recorded"),
    Failure(
        "node-rank", "configuration", ("--node_rank is not set correctly",),
        "A node was started without its number.",
        "Give --node_rank 0 to N-1 with --no_ssh, as transport direct does.",
        "deepspeed_launch_transport", RUNNER),
    Failure(
        "ds-env", "configuration", ("not enough values to unpack (expected 2, got 1)",),
        "A line of .deepspeed_env is blank, a comment, or has no equals sign.",
        "Leave only NAME=value lines in it; deepspeed_launch_environment needs no such file.",
        "deepspeed_launch_environment", "recorded", frame="deepspeed/launcher/runner.py"),
    Failure(
        "pid-file", "configuration", ("pid file exists but shouldn't",),
        "A file of an earlier launch with --save_pid is left in /tmp.",
        "Remove /tmp/*.deepspeed in that node's container, or take --save_pid out of deepspeed_launch_launcher_args.",
        "deepspeed_launch_launcher_args", "DeepSpeed 0.19.8, launcher/launch.py"),
    Failure(
        "launcher-argument", "configuration",
        ("^deepspeed: error:", "^runner.py: error:", "^torchrun: error:", "^launch.py: error:", "^run.py: error:"),
        "The launcher rejected an option, or a required one is missing.",
        "Correct deepspeed_launch_launcher_args; script arguments belong in deepspeed_launch_args.",
        "deepspeed_launch_launcher_args", "recorded"),
    Failure(
        "config-argument-trainer", "configuration", ("not used by the HfArgumentParser: …--deepspeed_config",),
        "The script parses its arguments with transformers, whose Trainer takes ds_config.json by --deepspeed.",
        "Set deepspeed_launch_integration: huggingface.",
        "deepspeed_launch_integration", "transformers 5.24.0, hf_argparser.py"),
    # argparse, and with it hydra, jsonargparse (LightningCLI) and simple-parsing; tyro; click and typer; fire; absl.
    Failure(
        "config-argument", "configuration",
        ("not used by the HfArgumentParser: …ds_config.json", "unrecognized arguments: …ds_config.json",
         "unrecognized arguments: --deepspeed_config", "Unrecognized options: --deepspeed",
         "o such option: --deepspeed", "o such option '--deepspeed", "Could not consume arg: --deepspeed",
         "Unknown command line flag 'deepspeed"),
        "The script does not know the argument by which it was given ds_config.json.",
        "Set deepspeed_launch_integration to what trains: huggingface, deepspeed, accelerate or lightning; or to none "
        "where the script does not use DeepSpeed.",
        "deepspeed_launch_integration",
        "argparse, hydra 1.3.8, jsonargparse 4.53.0, tyro 1.0.17, click 8.5.1, typer 0.29.2, fire 0.7.1, absl 2.5.1"),
    Failure(
        "local-rank-argument", "script",
        ("unrecognized arguments: --local_rank", "unrecognized arguments: --local-rank"),
        "The script does not accept --local_rank, which the launcher adds.",
        "Add that argument to the script, or put --no_local_rank into deepspeed_launch_launcher_args.",
        "deepspeed_launch_launcher_args", "recorded"),
    Failure(
        "script-argument", "configuration",
        ("error: unrecognized arguments", "error: the following arguments are required", "error: argument ",
         "error: ambiguous option"),
        "The script rejected an argument, or a required one is missing.",
        "Correct deepspeed_launch_args.",
        "deepspeed_launch_args", "recorded"),
    Failure(
        "script-missing", "configuration", ("can't open file",),
        "The script is not on that node.",
        "Bring the workspace there with --tags workspace, and check deepspeed_launch_script.",
        "deepspeed_launch_script", "recorded"),
    # --- ds_config
    Failure(
        "batch-arithmetic", "configuration",
        ("Check batch related parameters", "Train batch size: … has to be greater than 0",
         "Micro batch size per gpu: … has to be greater than 0",
         "Gradient accumulation steps: … has to be greater than 0",
         "train_micro_batch_size_per_gpu needs to be provided"),
        "The batch sizes do not fit the number of ranks.",
        "Correct them in deepspeed_launch_ds_config, or where the script sets them itself: train_batch_size is "
        "micro batch * accumulation * ranks.",
        "deepspeed_launch_ds_config", "recorded"),
    Failure(
        "ds-config-key", "configuration",
        ("Extra inputs are not permitted", "validation error for DeepSpeed", "validation errors for DeepSpeed",
         "for DeepSpeedZero"),
        "A block of ds_config.json has a key or value that this DeepSpeed does not know.",
        "Correct deepspeed_launch_ds_config, or give training_image_deepspeed_version the release that knows it.",
        "deepspeed_launch_ds_config", "recorded"),
    Failure(
        "ds-config-removed", "configuration", ("DeepSpeedConfigError: … removed",),
        "ds_config.json has a key that this DeepSpeed no longer has.",
        "Take it out of deepspeed_launch_ds_config, or set an older training_image_deepspeed_version.",
        "deepspeed_launch_ds_config", "recorded"),
    Failure(
        "ds-config-file", "configuration",
        ("Expected a string path to an existing deepspeed config", "DeepSpeed requires --deepspeed_config",
         "HjsonDecodeError"),
        "DeepSpeed was given no configuration, or one that is not there or is no JSON.",
        "Write it with --tags ds_config, and check deepspeed_launch_integration.",
        "deepspeed_launch_integration", "recorded"),
    Failure(
        "ds-config-auto", "configuration", ("unsupported operand type(s) for //",),
        "ds_config.json has the value auto, and the script does not use the integration that fills it in.",
        "Give numbers instead, or set deepspeed_launch_integration to the script's.",
        "deepspeed_launch_integration", "recorded", frame="deepspeed/runtime/config.py"),
    Failure(
        "ds-config-trainer", "configuration", ("mismatch TrainingArguments values",),
        "ds_config.json and the arguments of the Trainer say different things.",
        "Set the keys that it names to auto in deepspeed_launch_ds_config, or give the Trainer the same values.",
        "deepspeed_launch_ds_config", HF),
    Failure(
        "precision", "configuration",
        ("Type fp16 is not supported on your device", "Type bf16 is not supported on your device",
         "Your setup doesn't support bf16", "bfloat16 and fp16 modes cannot be simultaneously enabled"),
        "The requested precision does not work on this device, or two are requested.",
        "Set deepspeed_launch_ds_config_precision; old GPUs have no bf16, and processors no fp16.",
        "deepspeed_launch_ds_config_precision", "recorded"),
    Failure(
        "optimizer", "configuration",
        ("is not a supported DeepSpeed Optimizer", "does not recognize LR scheduler",
         "You are using an untested ZeRO Optimizer", "requires an optimizer"),
        "Optimizer or scheduler do not fit this DeepSpeed or its ZeRO stage.",
        "Correct them in deepspeed_launch_ds_config; the script's own needs zero_allow_untested_optimizer.",
        "deepspeed_launch_ds_config", "recorded"),
    Failure(
        "zero-and-others", "configuration",
        ("are incompatible with pipeline parallelism", "MoE is not supported with ZeRO Stage 3",
         "MoE not supported with Stage 3"),
        "The ZeRO stage does not go with pipelines or experts.",
        "Take a lower stage: deepspeed_launch_ds_config_preset zero1, or zero2 with experts.",
        "deepspeed_launch_ds_config_preset", ENGINE),
    Failure(
        "zero3-inflight", "script",
        ("inflight params",),
        "ZeRO-3 found parameters in flight: the modules that run differ from step to step or from rank to "
        "rank, as with experts.",
        "Name such modules with deepspeed.utils.set_z3_leaf_modules, or take deepspeed_launch_ds_config_preset zero2.",
        "deepspeed_launch_ds_config_preset",
        "DeepSpeed 0.19.8, runtime/zero/partitioned_param_coordinator.py", general=True),
    Failure(
        "zero3-not-gathered", "script", ("weight' must be 2-D",),
        "The script uses a parameter that ZeRO-3 has split over the ranks.",
        "Gather it with deepspeed.zero.GatheredParameters, or take deepspeed_launch_ds_config_preset zero2.",
        "deepspeed_launch_ds_config_preset", TORCH),
    Failure(
        "zero3-save", "configuration",
        ("stage3_gather_16bit_weights_on_model_save", "stage3_gather_fp16_weights_on_model_save"),
        "ZeRO-3 cannot save whole weights, because gathering them is switched off.",
        "Set stage3_gather_16bit_weights_on_model_save: true in deepspeed_launch_ds_config, or convert it later.",
        "deepspeed_launch_ds_config", "accelerate 1.15.0, accelerator.py", general=True),
    Failure(
        "loss-scale", "script", ("Current loss scale already at minimum",),
        "The loss has been infinite or no number for many steps in fp16.",
        "Lower the learning rate, check the data, or use bf16: deepspeed_launch_ds_config_precision.",
        "deepspeed_launch_ds_config_precision", "DeepSpeed 0.19.8, runtime/fp16/loss_scaler.py"),
    # --- checkpoints
    Failure(
        "checkpoint-race", "script",
        ("tmp-checkpoint-",),
        "Several ranks renamed the same temporary checkpoint, and only one of them may: a bug of some "
        "releases of transformers.",
        "Raise transformers in training_image_python_packages (4.38 or later), or save on one rank only.",
        "training_image_python_packages", "https://github.com/huggingface/transformers/issues/28027", general=True),
    Failure(
        "checkpoint-missing", "configuration",
        ("Unable to find latest file at", "Unable to find 'latest' file at", "Client provided checkpoint load path"),
        "There is no checkpoint where the script looks for one.",
        "Correct the path, or deepspeed_launch_checkpoints; a first run has none.",
        "deepspeed_launch_checkpoints", "recorded", general=True, passing=True),
    Failure(
        "checkpoint-shard", "configuration",
        ("No such file or directory: '…_optim_states.pt", "No such file or directory: '…_model_states.pt",
         "can't find … files in directory", "can't find model states file at", "Expert checkpoint file not found"),
        "A part of the checkpoint is missing on that node: every rank wrote its own, to a disk that is not shared.",
        "Keep checkpoints on a shared disk (training_container_volumes), or bring the parts back to their nodes.",
        "deepspeed_launch_checkpoints", "recorded"),
    Failure(
        "checkpoint-world", "configuration", ("The checkpoint being loaded used a DP world size of",),
        "The checkpoint was written by another number of ranks.",
        "Start as many ranks as then, or convert it with ds_to_universal and set load_universal in block checkpoint.",
        "deepspeed_launch_ds_config", ENGINE),
    Failure(
        "checkpoint-tag", "script", ("The checkpoint tag name … is not consistent",),
        "The ranks save under different names.",
        "Use the same tag on every rank, such as the global step.",
        "", ENGINE),
    Failure(
        "checkpoint-cut", "configuration",
        ("PytorchStreamReader failed", "Expert checkpoint file is corrupt", "unexpected EOF, expected"),
        "A checkpoint is cut short or no checkpoint: its writing was interrupted, or it was copied in part.",
        "Take an earlier checkpoint: write its tag into the file latest.",
        "deepspeed_launch_checkpoints", "recorded"),
    Failure(
        "weights-only", "script", ("Weights only load failed",),
        "PyTorch 2.6 and later load only weights unless the script says otherwise.",
        "Load trusted files with weights_only=False, or allow their classes.",
        "training_image_torch", "recorded"),
    Failure(
        "state-dict", "script", ("Error(s) in loading state_dict", "size mismatch for"),
        "The checkpoint belongs to another model than the one the script builds.",
        "Compare model, vocabulary and adapters with those of the run that wrote it.",
        "", "recorded"),
    # --- Hugging Face and other services
    Failure(
        "hub-offline", "environment",
        ("couldn't connect to 'https://huggingface.co'", "LocalEntryNotFoundError", "OfflineModeIsEnabled",
         "offline mode is enabled", "Cannot reach https://huggingface.co", "find them in the cached files"),
        "A model or data set is requested from the Hugging Face hub, which the node cannot reach.",
        "Put it on every node (workspace_source, training_container_volumes) and name its path, or set HF_ENDPOINT.",
        "deepspeed_launch_environment", "recorded", passing=True),
    Failure(
        "hub-limit", "environment",
        ("429 Client Error", "Too Many Requests"),
        "The Hugging Face hub refuses more requests for now (429, too many requests): every rank asks it.",
        "Fetch model and data once (assets_sources), and set HF_HUB_OFFLINE: 1 in deepspeed_launch_environment.",
        "assets_sources", "huggingface_hub 2.4.0", general=True, passing=True),
    Failure(
        "hub-gated", "environment", ("gated repo", "GatedRepoError", "401 Client Error"),
        "The model needs permission from its owner, or the token is missing.",
        "Ask for access, and give HF_TOKEN in deepspeed_launch_secrets.",
        "deepspeed_launch_secrets", HUB),
    Failure(
        "hub-name", "configuration",
        ("is not a local folder", "RepositoryNotFoundError", "Repo id must be in the form"),
        "The model is neither a folder on that node nor a name on the hub.",
        "Correct the path in deepspeed_launch_args; mount it on every node with training_container_volumes.",
        "training_container_volumes", "recorded"),
    Failure(
        "tokenizer", "environment",
        ("Couldn't instantiate the backend tokenizer", "is not currently imported", "SentencePiece library",
         "Can't load tokenizer for"),
        "The tokenizer cannot be built: a file or library of it is missing, or transformers is too old.",
        "Copy all files of the model; add sentencepiece or a newer transformers to training_image_python_packages.",
        "training_image_python_packages", "recorded"),
    Failure(
        "safetensors", "configuration",
        ("SafetensorError", "HeaderTooLarge", "MetadataIncompleteBuffer", "InvalidHeaderDeserialization"),
        "A file of the model is cut short, or only the pointer that git keeps for it.",
        "Compare its size with the original, fetch it again (git lfs pull), and copy it to every node.",
        "training_container_volumes", "recorded", passing=True),
    Failure(
        "remote-code", "script", ("pass the argument `trust_remote_code=True`",),
        "The model brings code of its own, which is not run unless allowed.",
        "Read that code, then set trust_remote_code in the script or its arguments.",
        "deepspeed_launch_args", HF),
    Failure(
        "wandb-key", "environment", ("api_key not configured", "wandb: ERROR"),
        "wandb has no key, or cannot reach its server.",
        "Give WANDB_API_KEY in deepspeed_launch_secrets, or WANDB_MODE: offline in deepspeed_launch_environment.",
        "deepspeed_launch_secrets", "https://github.com/wandb/wandb", passing=True),
    Failure(
        "certificate", "environment", ("CERTIFICATE_VERIFY_FAILED", "certificate verify failed"),
        "A server's certificate is not trusted in the container, mostly a proxy's.",
        "Mount your authority's certificate with training_container_volumes and name it in SSL_CERT_FILE.",
        "training_container_environment", "OpenSSL", passing=True),
    Failure(
        "proxy", "environment", ("ProxyError", "Cannot connect to proxy"),
        "The proxy named in the environment does not answer.",
        "Correct cluster_proxy, or HTTP_PROXY and HTTPS_PROXY where the job sets them; NO_PROXY must name the nodes.",
        "cluster_proxy", "urllib3", passing=True),
    Failure(
        "download", "environment",
        ("Max retries exceeded with url", "Temporary failure in name resolution", "Name or service not known"),
        "Something is to be downloaded, and the node reaches no server or resolves no names.",
        "Bring it with workspace_source, assets_sources or into the image, or set cluster_proxy.",
        "cluster_proxy", "urllib3; glibc, gai_strerror(3)", general=True, passing=True),
    # --- the script
    Failure(
        "collective-mismatch", "script",
        ("Detected mismatch between collectives",),
        "The ranks called different operations, or one operation with tensors of different shapes or types.",
        "Compare what both ranks did (the line names it): every rank must take the same path through the script.",
        "", TORCH),
    Failure(
        "index-out", "script",
        ("index out of range in self",),
        "An index is outside its table, such as a token that the embedding does not have.",
        "Compare the tokenizer's vocabulary and the labels with the model.",
        "", TORCH),
    Failure(
        "in-place", "script",
        ("modified by an inplace operation",),
        "The script changed a tensor in place that the backward pass needs.",
        "Write x = x + y instead of x += y there; torch.autograd.set_detect_anomaly(True) shows the place.",
        "", TORCH),
    Failure(
        "shapes", "script",
        ("shapes cannot be multiplied", "must match the size of tensor", "Sizes of tensors must match",
         "stack expects each tensor to be equal size", "is invalid for input of size",
         "does not require grad and does not have a grad_fn", "backward through the graph a second time"),
        "The shapes of the script's tensors do not fit each other.",
        "Correct model or data at the line of the script in the traceback.",
        "", TORCH),
    Failure(
        "triton-shared", "script",
        ("out of resource: shared memory", "OutOfResources: out of resource"),
        "A Triton kernel needs more shared memory on the GPU than this GPU has.",
        "Use smaller blocks or a lower num_stages for that kernel, or another implementation: "
        "attn_implementation sdpa.",
        "deepspeed_launch_args", "https://github.com/triton-lang/triton"),
    Failure(
        "cuda-in-fork", "script",
        ("Cannot re-initialize CUDA in forked subprocess",),
        "The script uses the GPU in a process that was forked, such as a worker of its data loader.",
        "Keep CUDA out of the data set, or use the start method spawn (multiprocessing_context='spawn').",
        "", TORCH),
    Failure(
        "meta-tensor", "script",
        ("Cannot copy out of meta tensor",),
        "The script moves a model that has no weights yet (meta device) as if it had them.",
        "Load it without device_map or low_cpu_mem_usage where DeepSpeed places it, or use to_empty().",
        "", TORCH),
    Failure(
        "padding", "script", ("expected sequence of length", "probably activate truncation and/or padding"),
        "Samples of different lengths reach the model: the tokenisation does not pad them.",
        "Pad and truncate in the tokenisation, or use a collator that pads; the cluster is not to blame.",
        "", "recorded"),
    Failure(
        "pad-token", "script", ("does not have a padding token",),
        "The tokenizer has no padding token.",
        "Set one in the script: tokenizer.pad_token = tokenizer.eos_token.",
        "", HF),
    Failure(
        "data-empty", "script", ("got num_samples=0", "batch_size … larger than"),
        "A rank has no data, or fewer samples than one batch.",
        "Check the paths of the data, and make the batch of training or prediction smaller than the data.",
        "deepspeed_launch_args", "recorded"),
    Failure(
        "input-precision", "script",
        ("Input type (… should be the same", "mat1 and mat2 must have the same dtype",
         "expected m1 and m2 to have the same dtype", "expected mat1 and mat2 to have the same dtype"),
        "The script's inputs have another precision than the model: of bf16 and fp16, DeepSpeed converts weights only.",
        "Have the script call .to(engine.get_data_types()[0]), or set deepspeed_launch_ds_config_precision: fp32.",
        "deepspeed_launch_ds_config_precision", "recorded"),
    Failure(
        "index-on-gpu", "script", ("device-side assert triggered",),
        "The script used an index outside a tensor on the GPU, such as a label or token that does not exist.",
        "Compare labels and vocabulary with the model; CUDA_LAUNCH_BLOCKING: 1 shows the line.",
        "deepspeed_launch_environment", "recorded"),
    Failure(
        "gpu-address", "script",
        ("an illegal memory access was encountered", "unspecified launch failure", "misaligned address"),
        "A kernel on the GPU used memory that is not its own: a bug in the script, in an operator, or a GPU defect.",
        "Run again with CUDA_LAUNCH_BLOCKING: 1; if only one node shows it, look for Xid in its kernel log.",
        "deepspeed_launch_environment", "recorded"),
    Failure(
        "devices-mixed", "script", ("Expected all tensors to be on the same device",),
        "The script mixes tensors of several devices.",
        "Move model and data to the device of LOCAL_RANK.",
        "", TORCH),
    Failure(
        "unused-parameters", "script",
        ("Expected to have finished reduction in the prior iteration", "has already been reduced"),
        "A part of the model takes no part in the loss, or twice.",
        "Set find_unused_parameters, or checkpoint activations with use_reentrant=False.",
        "", TORCH),
    Failure(
        "group-missing", "script", ("Default process group has not been initialized",),
        "The script uses the other ranks before it has joined them.",
        "Call deepspeed.init_distributed() first.",
        "", "recorded"),
    Failure(
        "group-left", "script", ("terminate called without an active exception",),
        "The script ended without leaving Gloo's process group, and its threads aborted it.",
        "Call torch.distributed.destroy_process_group() as the last step.",
        "", "https://github.com/pytorch/pytorch/issues/190489", general=True),
    Failure(
        "llama-factory-launcher", "configuration",
        ("Please launch distributed training with `llamafactory-cli` or `torchrun`",),
        "LLaMA-Factory was started by a launcher that it does not accept.",
        "Set deepspeed_launch_launcher: torchrun, or FORCE_TORCHRUN: 1 in deepspeed_launch_environment.",
        "deepspeed_launch_launcher", "LLaMA-Factory, hparams/parser.py"),
    # --- paths: many errors name a file, so these come after those that say more
    Failure(
        "path-missing", "configuration", ("FileNotFoundError: ", "[Errno 2] No such file or directory"),
        "A file is not on that node.",
        "Bring it with the workspace (--tags workspace), or mount it on every node with training_container_volumes.",
        "training_container_volumes", "recorded", passing=True),
    Failure(
        "path-denied", "configuration", ("PermissionError: ", "[Errno 13] Permission denied"),
        "The job may not read or write a file.",
        "Correct the file's owner and mode on the host, or mount it writable with training_container_volumes.",
        "training_container_volumes", "recorded", passing=True),
    # --- what is true of many causes
    Failure(
        "collective-timeout", "cluster",
        ("Watchdog caught collective operation timeout", "Timed out waiting … for recv operation",
         "Timed out waiting … for send operation", "failed to pass monitoredBarrier", "Heartbeat monitor timed out"),
        "A rank did not take part in time: it hangs, is slow (saving, loading), or the network lost its packets.",
        "Find the rank that prints nothing; if it is just slow, raise deepspeed_launch_stall_timeout.",
        "deepspeed_launch_stall_timeout", "recorded", general=True),
    Failure(
        "store-timeout", "cluster", ("store->get('…') got error", "wait timeout after … keys:"),
        "A rank waited for another one that did not come, mostly rank 0, which hangs or has ended.",
        "Check rank 0's node, and look for processes of an earlier job.",
        "", "https://github.com/deepspeedai/DeepSpeed/issues/5548", general=True),
    Failure(
        "nccl-system", "cluster", ("unhandled system error", "ncclSystemError"),
        "A system call of NCCL failed: sockets, /dev/shm or RDMA.",
        "Read its Last error line, and run again with nccl_env_debug: INFO.",
        "nccl_env_debug", NCCL, general=True),
    Failure(
        "nccl-cuda", "environment",
        ("unhandled cuda error", "ncclUnhandledCudaError", "CUDNN_STATUS_"),
        "A call to the GPU failed inside a library; the CUDA error before or after it says why.",
        "Look for the first CUDA error above; run again with nccl_env_debug: INFO and CUDA_LAUNCH_BLOCKING: 1.",
        "nccl_env_debug", NCCL, general=True),
    Failure(
        "cublas-start", "resources",
        ("CUBLAS_STATUS_NOT_INITIALIZED",),
        "cuBLAS could not start, often for want of GPU memory.",
        "Lower train_micro_batch_size_per_gpu; look for the first CUDA error above.",
        "deepspeed_launch_ds_config_preset", CUDA, general=True),
    Failure(
        "cublas", "environment",
        ("CUBLAS_STATUS_",),
        "cuBLAS refused a call: LD_LIBRARY_PATH brings another release of it, or the shapes do not fit.",
        "Take LD_LIBRARY_PATH out of deepspeed_launch_environment and of the image; CUDA_LAUNCH_BLOCKING: 1 "
        "shows the call.",
        "deepspeed_launch_environment", "https://github.com/mit-han-lab/bevfusion/issues/602", general=True),
    Failure(
        "nccl-unlike", "cluster",
        ("Message truncated : received",),
        "The ranks' NCCL do not fit each other: different releases, or different NCCL_ variables, on the nodes.",
        "Bring the same image to every node (--tags training_image,training_container), and run --tags nccl_env.",
        "nccl_env_settings", "https://github.com/NVIDIA/nccl/issues/626", general=True),
    Failure(
        "nccl-usage", "script", ("ncclInvalidUsage", "ncclInvalidArgument"),
        "NCCL was used wrongly: ranks that share a GPU, or that call different operations.",
        "Read its Last error line; check gpu_slots, and that every rank takes the same path through the script.",
        "gpu_slots", "recorded", general=True),
    Failure(
        "nccl-internal", "cluster", ("ncclInternalError",),
        "NCCL failed inside, mostly while its ranks connect.",
        "Read the NCCL WARN lines before it; run again with nccl_env_debug: INFO.",
        "nccl_env_debug", NCCL, general=True),
    Failure(
        "memory-unclear", "resources", ("Cannot allocate memory",),
        "The system gave no memory: the host's is full, or a limit is reached.",
        "Check the node's memory and training_container_ulimits.",
        "training_container_ulimits", LINUX, general=True),
    Failure(
        "heap", "environment",
        ("double free", "free(): invalid", "corrupted size vs", "corrupted double-linked", "malloc(): ",
         "munmap_chunk(): "),
        "Compiled code damaged its memory (a double free, for example), and the C library ended the rank.",
        "Compare the releases of torch and of compiled libraries; PYTHONFAULTHANDLER: 1 in "
        "deepspeed_launch_environment shows where.",
        "deepspeed_launch_environment", "glibc, malloc(3)", general=True),
    Failure(
        "loader-worker", "resources", ("DataLoader worker (pid",),
        "A worker process of the data loader died.",
        "Check memory and /dev/shm of that node; with num_workers 0 the script shows the real error.",
        "training_container_shm_size", TORCH, general=True),
    # --- exit codes: no text, given by diagnose.exit_meaning
    Failure(
        "exit-sigkill", "resources", (),
        "A rank was killed (SIGKILL), most likely by the kernel because the host's memory was full.",
        "Look into the node's kernel log (dmesg); use less offload, fewer data loader workers or a smaller batch.",
        "deepspeed_launch_ds_config", "recorded"),
    Failure(
        "exit-sigbus", "resources", (),
        "A rank ended with a bus error (SIGBUS): /dev/shm is full or too small.",
        "Raise training_container_shm_size and run --tags training_container.",
        "training_container_shm_size", "recorded"),
    Failure(
        "exit-sigill", "environment", (),
        "A rank met an instruction that its processor does not have (SIGILL): an operator compiled for another one.",
        "Remove ~/.cache/torch_extensions; let the image be built for the oldest processor, or on the node itself.",
        "training_image_deepspeed_ops", "Linux, signal(7)"),
    Failure(
        "exit-sigsegv", "environment", (),
        "A rank crashed inside compiled code (SIGSEGV): libraries that do not fit, or a bug in an operator.",
        "Compare the releases of torch, deepspeed and compiled libraries; PYTHONFAULTHANDLER: 1 shows where it was.",
        "deepspeed_launch_environment", "recorded"),
    Failure(
        "exit-sigabrt", "environment", (),
        "A library ended the rank itself (SIGABRT).",
        "Read the last lines of that rank: terminate called, an assertion, or NCCL's watchdog.",
        "", "Linux, signal(7)", general=True),
    Failure(
        "ended-early", "script", (),
        "A rank ended well while the others still waited for it.",
        "Let every rank take the same number of steps and save together; look for an exit that only one takes.",
        "", "recorded"),
    Failure(
        "exit-ssh", "cluster", (),
        "ssh to that node failed or was cut: key, name, port, network, or the node is gone.",
        "Check whether node and container run, then verify.yml --tags ssh_trust.",
        "deepspeed_launch_transport", "DeepSpeed 0.19.8 with pdsh 2.34", general=True),
    Failure(
        "exit-not-found", "configuration", (),
        "The command was not found (exit code 127) or may not be run (126).",
        "Correct the command; a program of a virtual environment needs its whole path.",
        "deepspeed_launch_script",
        "https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html", general=True),
    # --- symptoms
    Failure(
        "slurm-ended", "cluster",
        ("slurmstepd: error: *** … CANCELLED", "scancel"),
        "SLURM ended the job: somebody cancelled it, or its time was over.",
        "Ask for more time (sbatch --time), or start it again; deepspeed_launch_resume: auto goes on from a "
        "checkpoint.",
        "deepspeed_launch_resume", "https://slurm.schedmd.com/scancel.html"),
    Failure(
        "peer-gone", "symptom",
        ("Connection reset by peer", "Connection closed by peer", "Connection closed by remote peer", "Broken pipe",
         "Socket Timeout", "caused pair closure", "ncclRemoteError", "NCCL communicator was aborted",
         "Failed to recv, got 0 bytes", "failed to recv, got 0 bytes", 'Failed to check the "should dump" flag',
         "Some NCCL operations have failed or timed out", "we are taking the entire process down",
         "watchdog thread terminated with exception"),
        "This rank lost another one, which had ended before.",
        "Check the ranks and nodes that ended first, or that stopped printing.",
        "", "recorded"),
    Failure(
        "ended-from-outside", "symptom",
        ("closing signal SIGTERM", "SIGTERM death signal", "SignalException", "KeyboardInterrupt"),
        "The launcher or somebody ended this rank from outside.",
        "Check the ranks that ended before.",
        "", "recorded"),
)
# fmt: on
"""In the order in which they are tried."""

BY_ID = {failure.id: failure for failure in FAILURES}
