# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The verdict over all nodes of a job: every problem with its words, and nothing where all is well."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.checks import Verdict, judge
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.cross_node_checks import group

from tests.effort import examples
from tests.growth import assert_growth

GIB = 1024**3
MIB = 1024**2
SITE = "ansible-playbook site.yml --tags"
IMAGES = f"use one image everywhere ({SITE} training_image,training_container)"
NET = f"{SITE} overlay_network,training_container"


def merge(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Change single keys, some levels down."""
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        result[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def probe(number: int, count: int, **change: Any) -> dict[str, Any]:
    """What job_precheck returns for node gpuNUMBER of a cluster where all is well."""
    others = [other for other in range(1, count + 1) if other != number]
    hosts = {f"gpu{other}": f"ai-gpu{other}" for other in others}
    found = {
        "asked": {
            "runtime": "container",
            "subnet": "10.0.1.0/24",
            "transport": "pdsh",
            "accelerator": "cpu",
            "slots": [0, 1],
            "checkpoint_gib": 0,
            "chdir": "/workspace",
        },
        "image": {"reference": "train:1", "id": "sha256:aaaaaaaaaaaaaaaa", "content": "sha256:c1"},
        "trouble": {},
        "answer": {
            "python": "3.11.2",
            "versions": {"torch": "2.13.0", "deepspeed": "0.19.8", "transformers": None, "accelerate": None},
            "programs": {"deepspeed": "/usr/bin/deepspeed"},
            "modules": {"llamafactory.launcher": ""},
            "addresses": [f"10.0.1.{number}", "172.18.0.3", "127.0.0.1"],
            "names": {
                name: {"host": host, "addresses": [f"10.0.1.{name[3:]}"], "error": ""} for name, host in hosts.items()
            },
            "ssh": dict.fromkeys(hosts, ""),
            "shm": {"size": GIB, "free": GIB, "error": "", "largest": []},
            "memlock": {"limit": None, "exempt": False},
            "infiniband": False,
            "smi": None,
            "port": None,
            "chdir": "",
            "exports": {},
            "script": {"path": "/workspace/train.py", "sha256": "s1", "error": ""},
            "ds_config": {"path": "/etc/swarmspeed/ds_config.json", "sha256": "d1", "error": ""},
            "hostfile": {"path": "/etc/swarmspeed/hostfile", "sha256": "h1", "error": ""},
            "paths": {"/data": ""},
            "checkpoints": {"path": "/ckpt", "at": "/ckpt", "free": 50 * GIB, "writable": True, "error": ""},
            "locks": [],
            "operators": {"compile": [], "missing": []},
        },
    }
    return merge(found, change)


GPUS = ("gpu1", "gpu2", "gpu3")


def cluster(count: int = 3, **changes: dict[str, Any]) -> dict[str, Any]:
    return {f"gpu{number}": probe(number, count, **changes.get(f"gpu{number}", {})) for number in range(1, count + 1)}


def problems(count: int = 3, **changes: dict[str, Any]) -> list[str]:
    verdict = judge(cluster(count, **changes))
    assert verdict.notes == []
    return verdict.problems


def answer(**change: Any) -> dict[str, Any]:
    return {"answer": change}


def ssh(*names: str, words: str = "Connection refused") -> dict[str, Any]:
    return answer(ssh=dict.fromkeys(names, words))


def test_a_cluster_where_all_is_well() -> None:
    verdict = judge(cluster())
    assert verdict == Verdict([], [], "3 nodes, each with python 3.11.2, torch 2.13.0, deepspeed 0.19.8")
    expected = "Checks before the start: 3 nodes, each with python 3.11.2, torch 2.13.0, deepspeed 0.19.8."
    assert verdict.message() == verdict.message(preview=True) == expected
    assert judge(cluster(1)).message().startswith("Checks before the start: 1 node, each with python 3.11.2")


def test_the_message_counts_and_numbers() -> None:
    verdict = Verdict(["one", "two"], ["three"], "")
    assert verdict.message() == "The job was not started: 2 problems found on its nodes.\n1. one\n2. two\nNote: three"
    assert Verdict(["one"], [], "").message() == "The job was not started: 1 problem found on its nodes.\n1. one"
    assert Verdict(["one"], [], "").message(preview=True) == (
        "As the nodes are now, 1 problem would keep the job from starting; the run may fix some before.\n1. one"
    )


LATE = {"rc": 124, "out": "", "err": "no answer within 30 s"}
SMI = {
    "list": {"rc": 0, "out": "GPU 0: X (UUID: GPU-a)\nGPU 1: X (UUID: GPU-b)\n", "err": ""},
    "gpus": {"rc": 0, "out": "0, GPU-a, 900, 81920, Default\n1, GPU-b, 4, 81920, Default\n", "err": ""},
    "apps": {"rc": 0, "out": "", "err": ""},
}
LOCK = {"path": "/root/.cache/torch_extensions/py311_cpu/op/lock", "age": 600, "holder": "", "error": ""}
EVERYWHERE = ("gpu1", "gpu2", "gpu3")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"gpu2": {"image": {"id": "sha256:bbbbbbbbbbbbbbbb", "content": "sha256:c2"}}},
            "image: its content differs between the nodes: train:1 (sha256:aaaaaaaaaaaa) on gpu1, gpu3; "
            f"train:1 (sha256:bbbbbbbbbbbb) on gpu2. Remedy: {SITE} training_image,training_container.",
        ),
        (
            {"gpu3": answer(versions={"torch": "2.12.0"})},
            f"torch: its version differs between the nodes: 2.13.0 on gpu1, gpu2; 2.12.0 on gpu3. Remedy: {IMAGES}.",
        ),
        (
            {"gpu1": answer(versions={"transformers": "4.52.4"})},
            "transformers: its version differs between the nodes: 4.52.4 on gpu1; none on gpu2, gpu3. "
            f"Remedy: {IMAGES}.",
        ),
        (
            {"gpu1": answer(python="3.13.5")},
            f"python: its version differs between the nodes: 3.13 on gpu1; 3.11 on gpu2, gpu3. Remedy: {IMAGES}.",
        ),
        (
            {name: {"asked": {"runtime": "host"}} for name in EVERYWHERE}
            | {"gpu1": {"asked": {"runtime": "host"}, **answer(versions={"torch": "1"})}},
            "torch: its version differs between the nodes: 1 on gpu1; 2.13.0 on gpu2, gpu3. "
            "Remedy: install one release of it on every node.",
        ),
        (
            {"gpu1": answer(programs={"deepspeed": None})},
            "gpu1: deepspeed is not on the PATH in the container. Remedy: add it to the image, or put its folder into "
            "PATH with deepspeed_launch_environment.",
        ),
        (
            {"gpu1": {"asked": {"runtime": "host"}, **answer(programs={"deepspeed": None})}},
            "gpu1: deepspeed is not on the PATH on the host. Remedy: install it there, or name its folder with "
            "deepspeed_launch_path.",
        ),
        (
            {"gpu1": answer(modules={"llamafactory.launcher": "llamafactory"})},
            "gpu1: Python in the container cannot run the module llamafactory.launcher (there is no llamafactory). "
            "Remedy: "
            "add its package to the image (training_image_python_packages), or correct deepspeed_launch_script.",
        ),
        (
            {"gpu1": {"asked": {"runtime": "host"}, **answer(modules={"train": "train"})}},
            "gpu1: Python on the host cannot run the module train. Remedy: add its package "
            "(workspace_python_packages), or "
            "correct deepspeed_launch_script.",
        ),
        (
            {"gpu1": answer(shm={"size": 64 * MIB})},
            "gpu1: /dev/shm has 64 MiB, too little for 2 ranks. Remedy: raise training_container_shm_size "
            f"({SITE} training_container).",
        ),
        (
            {"gpu1": {"asked": {"slots": [3]}, **answer(shm={"size": 64 * MIB})}},
            "gpu1: /dev/shm has 64 MiB, too little. Remedy: raise training_container_shm_size "
            f"({SITE} training_container).",
        ),
        (
            {"gpu1": {"asked": {"runtime": "host"}, **answer(shm={"size": GIB - 1})}},
            "gpu1: /dev/shm has 1023 MiB, too little for 2 ranks. Remedy: mount -o remount,size=50% /dev/shm.",
        ),
        (
            {"gpu1": answer(shm={"size": 0, "error": "No such file or directory"})},
            "gpu1: /dev/shm: No such file or directory. Remedy: the ranks need it: mount a tmpfs there.",
        ),
        (
            {"gpu2": answer(shm={"free": 200 * MIB, "largest": ["nccl-1", "torch_2"]})},
            "gpu2: /dev/shm is full: 200 MiB of 1.0 GiB are free; largest there: nccl-1, torch_2. Remedy: remove what "
            "an earlier job left there, or stop the job that uses it.",
        ),
        (
            {"gpu2": {"asked": {"accelerator": "cuda"}, **answer(infiniband=True, memlock={"limit": 8 * MIB})}},
            "gpu2: the limit of locked memory is 8 MiB, too little for InfiniBand. Remedy: training_container_ulimits "
            f"with memlock:-1:-1 ({SITE} training_container).",
        ),
        (
            {
                "gpu2": {
                    "asked": {"accelerator": "cuda", "runtime": "host"},
                    **answer(infiniband=True, memlock={"limit": 8 * MIB}),
                }
            },
            "gpu2: the limit of locked memory is 8 MiB, too little for InfiniBand. Remedy: memlock unlimited in "
            "/etc/security/limits.d (host_limits), and log in again.",
        ),
        (
            {"gpu1": answer(smi=SMI)},
            "gpu1: GPU 0 is in use: 900 of 81920 MiB of its memory. Remedy: end what uses it, or choose other slots "
            "with deepspeed_launch_include.",
        ),
        (
            {"gpu1": answer(smi={**SMI, "list": LATE})},
            "gpu1: nvidia-smi fails where the ranks run: no answer within 30 s. "
            f"Remedy: {SITE} nvidia_container_toolkit,training_container.",
        ),
        (
            {"gpu1": {"asked": {"runtime": "host"}, **answer(smi={**SMI, "list": LATE})}},
            f"gpu1: nvidia-smi fails where the ranks run: no answer within 30 s. Remedy: {SITE} nvidia_driver.",
        ),
        (
            {"gpu1": {"asked": {"slots": [1, 2]}, **answer(smi=SMI)}},
            "gpu1: slot 2 of the job: nvidia-smi lists only 2 GPU(s) where the ranks run. Remedy: correct gpu_slots or "
            "deepspeed_launch_include.",
        ),
        (
            {"gpu1": answer(port={"port": 29500, "error": "Address already in use", "holder": "42 (python3 a.py)"})},
            "gpu1: port 29500 of the rendezvous is taken by process 42 (python3 a.py). Remedy: end that process, or "
            "set deepspeed_launch_master_port to another port or to 0.",
        ),
        (
            {"gpu1": answer(port={"port": 80, "error": "Permission denied", "holder": ""})},
            "gpu1: port 80 of the rendezvous cannot be listened on (Permission denied). Remedy: end that process, or "
            "set deepspeed_launch_master_port to another port or to 0.",
        ),
        (
            {"gpu2": answer(script={"error": "is not there", "sha256": ""})},
            f"gpu2: script /workspace/train.py is not there. Remedy: {SITE} workspace.",
        ),
        (
            # The runner is started on the first node; the others' files are not read.
            {
                name: answer(exports={"/workspace/.deepspeed_env": ["NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"]})
                for name in GPUS
            },
            "gpu1: /workspace/.deepspeed_env sets NCCL_IB_HCA, NCCL_SOCKET_IFNAME, which DeepSpeed exports to all "
            "nodes in place of their own values. Remedy: remove it from that file: role nccl_env finds each node's, "
            "and nccl_env_settings or nccl_env_environment of a host set others.",
        ),
        (
            {"gpu2": answer(script={"sha256": "s2"})},
            f"script: its content differs between the nodes: one on gpu1, gpu3; one on gpu2. Remedy: {SITE} workspace.",
        ),
        (
            dict.fromkeys(EVERYWHERE, answer(ds_config={"error": "is not there", "sha256": ""})),
            f"gpu1, gpu2, gpu3: ds_config /etc/swarmspeed/ds_config.json is not there. Remedy: {SITE} ds_config.",
        ),
        (
            {"gpu2": answer(ds_config={"sha256": "d2"})},
            "ds_config: its content differs between the nodes: one on gpu1, gpu3; one on gpu2. "
            f"Remedy: {SITE} ds_config.",
        ),
        (
            {"gpu2": answer(hostfile={"error": "is not there", "sha256": ""})},
            f"gpu2: hostfile /etc/swarmspeed/hostfile is not there. Remedy: {SITE} hostfile.",
        ),
        (
            {"gpu3": answer(hostfile={"sha256": "h2"})},
            "hostfile: its content differs between the nodes: one on gpu1, gpu2; one on gpu3. "
            f"Remedy: {SITE} hostfile.",
        ),
        (
            {"gpu2": answer(chdir="is not there")},
            f"gpu2: the working directory /workspace is not there. Remedy: {SITE} workspace.",
        ),
        (
            {"gpu2": answer(paths={"/data": "is not there"})},
            "gpu2: /data of deepspeed_launch_data_paths is not there. Remedy: bring it there, or mount it "
            "(training_container_volumes).",
        ),
        (
            {"gpu2": {"asked": {"runtime": "host"}, **answer(paths={"/data": "may not be read"})}},
            "gpu2: /data of deepspeed_launch_data_paths may not be read. Remedy: bring it there.",
        ),
        (
            {"gpu2": {"asked": {"checkpoint_gib": 50.5}}},
            "gpu2: /ckpt has 50.0 GiB free for checkpoints, but 50.5 GiB are needed. Remedy: free space there, or "
            "correct deepspeed_launch_checkpoints or deepspeed_launch_checkpoint_gib.",
        ),
        (
            {"gpu2": answer(checkpoints={"at": "/", "writable": False})},
            "gpu2: checkpoints /ckpt: / cannot be written to. Remedy: correct deepspeed_launch_checkpoints.",
        ),
        (
            {"gpu2": answer(locks=[{**LOCK, "state": "dead", "error": "Read-only file system"}])},
            f"gpu2: the dead lock {LOCK['path']}, 600 s old, cannot be removed (Read-only file system), and every rank "
            "would wait for it. Remedy: remove it by hand.",
        ),
        (
            {"gpu2": answer(operators={"compile": ["FUSED_ADAM"], "missing": ["a C++ compiler", "nvcc"]})},
            "gpu2: DeepSpeed compiles FUSED_ADAM at the first step; missing there: a C++ compiler, nvcc. Remedy: "
            "add them to training_image_deepspeed_ops, or set training_image_compiler: true "
            f"({SITE} training_image,training_container); an image of your own needs the one or the other built in.",
        ),
        (
            {"gpu2": {"asked": {"runtime": "host"}, **answer(operators={"compile": ["AIO"], "missing": ["ninja"]})}},
            "gpu2: DeepSpeed compiles AIO at the first step; missing there: ninja. "
            "Remedy: install what is missing, or a DeepSpeed with these operators.",
        ),
        (
            {"gpu2": answer(addresses=["172.18.0.3"])},
            f"gpu2: it has no address in the training network 10.0.1.0/24. Remedy: {NET}.",
        ),
    ],
)
def test_what_keeps_a_job_from_starting(changes: dict[str, Any], expected: str) -> None:
    assert problems(3, **changes) == [expected]


def test_what_the_first_step_can_compile_is_a_note() -> None:
    verdict = judge(cluster(2, gpu1=answer(operators={"compile": ["CPU_ADAM", "FUSED_ADAM"], "missing": []})))
    assert verdict.problems == []
    assert verdict.notes == ["gpu1: DeepSpeed compiles CPU_ADAM, FUSED_ADAM at the first step, which takes minutes."]


@pytest.mark.parametrize(
    "changes",
    [
        {"gpu2": {"image": {"id": "sha256:other-store"}}},
        {"gpu2": {"asked": {"slots": [0]}, **answer(shm={"size": 100 * MIB, "free": 64 * MIB})}},
        {"gpu2": answer(infiniband=True, memlock={"limit": 8 * MIB})},
        {"gpu2": {"asked": {"accelerator": "cuda"}, **answer(infiniband=True, memlock={"limit": 8, "exempt": True})}},
        {"gpu2": answer(script=None, ds_config=None, hostfile=None, checkpoints=None)},
        {"gpu2": {"asked": {"slots": [1]}, **answer(smi=SMI)}},
        {"gpu2": {"asked": {"checkpoint_gib": 50}}},
        {"gpu2": answer(port={"port": 29500, "error": "", "holder": ""})},
        {"gpu2": answer(locks=[{**LOCK, "state": "gone"}])},
        {"gpu2": answer(names={"gpu1": {"addresses": ["10.0.1.1", "10.0.1.77"]}})},
    ],
)
def test_what_does_not(changes: dict[str, Any]) -> None:
    assert problems(3, **changes) == []


def test_no_subnet_means_that_every_address_counts() -> None:
    changes: dict[str, Any] = {name: {"asked": {"subnet": ""}} for name in EVERYWHERE}
    changes["gpu2"] |= answer(names={"gpu1": {"addresses": ["172.18.0.3"]}})
    assert problems(3, **changes) == []
    changes["gpu2"] |= answer(names={"gpu1": {"addresses": ["127.0.0.1"]}})
    assert len(problems(3, **changes)) == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"gpu3": answer(python="3.11.9")},
            "python: its version differs a little between the nodes: 3.11.2 on gpu1, gpu2; 3.11.9 on gpu3.",
        ),
        (
            {"gpu1": {"asked": {"accelerator": "cuda"}, **answer(memlock={"limit": 8 * MIB})}},
            "gpu1: the limit of locked memory is 8 MiB; that is enough without InfiniBand.",
        ),
        (
            {"gpu1": {"asked": {"slots": [1]}, **answer(smi={**SMI, "apps": {"rc": 0, "out": "GPU-b, 7, 3, x\n"}})}},
            "gpu1: GPU 1 has a process of little memory: 7 x.",
        ),
        (
            {"gpu1": answer(locks=[{**LOCK, "state": "removed"}])},
            f"gpu1: the dead lock {LOCK['path']}, 600 s old, was removed.",
        ),
        (
            {"gpu1": answer(locks=[{**LOCK, "state": "dead"}])},
            f"gpu1: the dead lock {LOCK['path']}, 600 s old, is removed before a start.",
        ),
        (
            {"gpu1": answer(locks=[{**LOCK, "state": "held", "holder": "42 (ninja)"}])},
            f"gpu1: the lock {LOCK['path']}, 600 s old, is held by process 42 (ninja); the ranks wait for it.",
        ),
        (
            {"gpu1": answer(locks=[{**LOCK, "state": "young"}])},
            f"gpu1: the lock {LOCK['path']}, 600 s old, may be held; the ranks wait for it.",
        ),
        (
            {"gpu1": answer(locks=[{**LOCK, "state": "unknown", "holder": "7 (python3)"}])},
            f"gpu1: the lock {LOCK['path']}, 600 s old, may be held by process 7 (python3); the ranks wait for it.",
        ),
        (
            {"gpu1": answer(locks=[{**LOCK, "state": "shared"}])},
            f"gpu1: the lock {LOCK['path']}, 600 s old, is on a network file system: whether another machine holds it "
            "is unknown. Remedy: if nothing is compiling, remove it; every rank would wait for it.",
        ),
    ],
)
def test_what_is_worth_a_note(changes: dict[str, Any], expected: str) -> None:
    verdict = judge(cluster(3, **changes))
    assert (verdict.problems, verdict.notes) == ([], [expected])


def test_a_node_that_gave_no_answer() -> None:
    results = cluster(3)
    results["gpu2"] = None
    results["gpu3"] = {"trouble": {"text": "its container ai-gpu3 does not run", "remedy": "start it"}, "answer": {}}
    verdict = judge(results)
    assert verdict.problems == [
        "gpu2: it did not answer the checks. Remedy: check the error of this node above.",
        "gpu3: its container ai-gpu3 does not run. Remedy: start it.",
    ]
    assert judge(dict.fromkeys(results)).problems == [
        "gpu1, gpu2, gpu3: it did not answer the checks. Remedy: check the error of this node above."
    ]


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("ssh: Could not resolve hostname ai-gpu2: Name or service not known", NET),
        ("root@ai-gpu2: Permission denied (publickey).", f"{SITE} ssh_trust"),
        ("Host key verification failed.", f"{SITE} ssh_trust"),
        (
            "ssh: connect to host ai-gpu2 port 2222: Connection refused",
            f"{SITE} training_container starts its sshd again",
        ),
        (
            "ssh: connect to host ai-gpu2 port 2222: Connection timed out",
            "open swarm_data_path_port/udp and port 7946 between the nodes, on the host's network ssh_trust_port/tcp",
        ),
        (
            "ssh: No such file or directory",
            "add openssh-client to the image, or use deepspeed_launch_transport: direct",
        ),
        ("something new", f"{SITE} ssh_trust"),
    ],
)
def test_ssh_that_fails_names_both_ends_and_says_the_words(words: str, remedy: str) -> None:
    assert problems(3, gpu3=ssh("gpu2", words=words)) == [
        f"gpu3: cannot reach gpu2 by ssh ({words}). Remedy: {remedy}."
    ]


def test_names_that_fail_name_both_ends() -> None:
    absent = answer(names={"gpu2": {"addresses": [], "error": "Name or service not known"}})
    assert problems(3, gpu1=absent, gpu3=absent) == [
        f"gpu1, gpu3: cannot find gpu2 by name (ai-gpu2: Name or service not known). Remedy: {NET}."
    ]
    stale = answer(names={"gpu2": {"addresses": ["10.0.1.99"]}})
    assert problems(3, gpu1=stale) == [
        f"gpu1: cannot find gpu2 by name (ai-gpu2 resolves to 10.0.1.99, but its address is 10.0.1.2). Remedy: {NET}."
    ]
    host = {name: {"asked": {"runtime": "host"}} for name in EVERYWHERE}
    assert problems(3, **{**host, "gpu1": {**host["gpu1"], **absent}}) == [
        "gpu1: cannot find gpu2 by name (ai-gpu2: Name or service not known). "
        f"Remedy: {SITE} host with host_names: true."
    ]


def test_the_gateway_which_is_alike_everywhere_is_no_address_of_a_node() -> None:
    found = problems(3, gpu1=answer(names={"gpu2": {"addresses": ["172.18.0.3"]}}))
    assert len(found) == 1 and "ai-gpu2 resolves to 172.18.0.3, but its address is 10.0.1.2" in found[0]


def test_a_node_that_no_one_reaches_is_one_problem() -> None:
    changes = {f"gpu{number}": ssh("gpu5") for number in range(1, 65) if number != 5}
    (found,) = problems(64, **changes)
    assert found.startswith("gpu1, gpu2, gpu3, gpu4, gpu6 and 58 more: cannot reach gpu5 by ssh (Connection refused).")


def test_a_node_that_is_cut_off_is_two_problems() -> None:
    changes = {f"gpu{number}": ssh("gpu5") for number in range(1, 65) if number != 5}
    changes["gpu5"] = ssh(*changes)
    assert [text.split(" by ssh")[0] for text in problems(64, **changes)] == [
        "gpu1, gpu2, gpu3, gpu4, gpu6 and 58 more: cannot reach gpu5",
        "gpu5: cannot reach gpu1, gpu2, gpu3, gpu4, gpu6 and 58 more",
    ]


def test_no_one_reaches_anybody_is_one_problem() -> None:
    names = [f"gpu{number}" for number in range(1, 9)]
    changes = {
        name: answer(ssh={other: f"ssh: connect to host ai-{other}: timed out" for other in names if other != name})
        for name in names
    }
    (found,) = problems(8, **changes)
    assert found.startswith(
        "gpu1, gpu2, gpu3, gpu4, gpu5 and 3 more: cannot reach gpu2, gpu3, gpu4, gpu5, gpu6 and 3 more by ssh ("
    )


def test_groups_cover_every_failure_once_and_nothing_else() -> None:
    dice = random.Random(7)
    for dummy in range(examples(200)):
        names = [f"n{number}" for number in range(dice.randint(2, 7))]
        pairs = [
            (one, two) for one in names for two in names if one != two and dice.random() < dice.choice([0.1, 0.5, 1])
        ]
        failures = {pair: dice.choice(["refused", f"{pair[1]}: timed out"]) for pair in pairs}
        reported = [
            (source, target, words.split()[-1])
            for sources, targets, words in group(failures)
            for source in sources
            for target in targets
            if source != target
        ]
        assert sorted(reported) == sorted((*pair, words.split()[-1]) for pair, words in failures.items())


def test_the_verdict_grows_with_the_pairs_and_not_faster() -> None:
    def worst(count: int) -> dict[str, Any]:
        names = [f"gpu{number}" for number in range(1, count + 1)]
        return cluster(count, **{name: ssh(*(other for other in names if other > name)) for name in names})

    small, large = worst(12), worst(48)
    assert len(judge(large).problems) > 1
    assert_growth(lambda: judge(small), lambda: judge(large), less_than=16 * 4)


def test_everything_at_once_is_reported_at_once() -> None:
    found = problems(
        3,
        gpu1=answer(
            port={"port": 29500, "error": "Address already in use", "holder": ""}, shm={"size": MIB, "free": 0}
        ),
        gpu2=answer(versions={"torch": "2"}, script={"error": "is not there"}),
        gpu3={**ssh("gpu1"), "image": {"content": "other"}},
    )
    assert [text.split(":")[0] for text in found] == ["image", "torch", "gpu3", "gpu1", "gpu1", "gpu2"]
