"""Nothing secret is printed at the highest verbosity users take, with diffs, nor stands in a process list."""

from __future__ import annotations

import base64
import re
import threading

import pytest

from tests.engines import join_tokens
from tests.playbook_run import (
    ETC,
    NODES,
    Run,
    container,
    leave_swarm,
    node,
    on,
    playbook,
    site,
    variables,
)

TOKEN = "hf-Qx81-never-to-be-seen"
LOUD = ("-vvv", "--diff")


@pytest.fixture(scope="module")
def processes() -> list[str]:
    """Process lists of the nodes, sampled while the first run goes on."""
    return []


@pytest.fixture(scope="module")
def busy(processes: list[str]) -> Run:
    """A run that regenerates all keys, writes a token and joins a node again."""
    leave_swarm("lab3")
    for name in NODES:
        on(name, f"rm -f {ETC}/ssh/id_ed25519* {ETC}/ssh/ssh_host_ed25519_key*")
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(0.1):
            processes.extend(node(name).run("ps axww -o args").stdout for name in NODES)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        return site(*LOUD, *variables(nccl_env_environment={"HF_TOKEN": TOKEN}))
    finally:
        ended.set()
        sampler.join()


@pytest.fixture(scope="module")
def secrets(busy: Run) -> dict[str, list[str]]:
    """What must not be seen: each line of each private key, also as slurp encodes it, join tokens, the user's token."""
    files = [on(name, f"cat {ETC}/ssh/{key}") for name in NODES for key in ("id_ed25519", "ssh_host_ed25519_key")]
    # The first line of every such key says only its type, and so does the beginning of its encoded form.
    return {
        "keys": [line for file in files for line in file.splitlines()[2:-1]],
        "encoded": [base64.b64encode(file.encode()).decode()[160:320] for file in files],
        "tokens": join_tokens("lab1"),
        "user": [TOKEN],
    }


def seen(text: str, secrets: dict[str, list[str]]) -> list[str]:
    joined = re.sub(r"\s+", "", text)  # a wrapped line hides nothing
    return [
        kind for kind, values in secrets.items() for value in values if value in joined or value.strip("=") in joined
    ]


def test_the_busy_run_really_made_them_again(busy: Run, secrets: dict[str, list[str]]) -> None:
    busy.done(change=True)
    assert len(secrets["keys"]) >= 12 and all(token.startswith("SWMTKN-") for token in secrets["tokens"])
    assert f"HF_TOKEN={TOKEN}" in on("lab2", f"docker exec {container('lab2')} ssh lab3 env").splitlines()
    assert "Join the swarm" in busy.output and "Generate the cluster's key pair" in busy.output


def test_the_busy_run_printed_no_secret(busy: Run, secrets: dict[str, list[str]]) -> None:
    assert seen(busy.output, secrets) == []


def test_no_process_of_a_node_showed_a_secret(busy: Run, secrets: dict[str, list[str]], processes: list[str]) -> None:
    assert sum("ansible" in listed or "python3" in listed for listed in processes) > 3  # sampled while it ran
    assert seen("\n".join(processes), secrets) == []


def test_the_log_of_the_nodes_shows_no_secret(busy: Run, secrets: dict[str, list[str]]) -> None:
    for name in NODES:
        log = on(name, "journalctl --no-pager --output cat --since -5min")
        assert "ansible" in log
        assert seen(log, secrets) == [], name


def test_idle_runs_print_no_secret(busy: Run, secrets: dict[str, list[str]]) -> None:
    given = variables(nccl_env_environment={"HF_TOKEN": TOKEN})
    idle = site(*LOUD, *given).done(change=False)
    assert seen(idle.output, secrets) == []
    assert seen(playbook("verify", *LOUD, *given).done(change=False).output, secrets) == []


def test_the_users_token_goes_with_its_variable(busy: Run) -> None:
    site("--tags", "nccl_env").done(change=True)
    assert TOKEN not in on("lab1", f"docker exec {container('lab1')} cat /root/.ssh/environment")
