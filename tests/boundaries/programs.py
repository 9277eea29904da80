# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The program that reads the values of a kind: a shell script that fails if its argument, the value, is refused.

They run on a node of the lab, in ``/srv/boundaries``, with the training image as ``$IMAGE``, a container of it named
``boundaries`` in the node's own network, and two servers there (``server.py``) on the ports 1 and 65535.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.common.text.formatters import human_to_bytes

from tests.playbook_run import ssh

PLACE = "/srv/boundaries"
_RUN = "docker run --rm --entrypoint true"
_NO_NETWORK = 'gone() { for each in 1 2 3 4 5; do docker network rm "$1" && return; sleep 1; done; false; }; gone'
"""An overlay is in use for a moment after its last container."""
_FETCH = (
    "docker exec boundaries python3 -m pip --no-cache-dir --retries 0 download --quiet --no-deps --dest /tmp/fetched"
)
_THROUGH_PROXY = f'{_FETCH} --proxy "$1" --trusted-host mirror.invalid --index-url http://mirror.invalid/simple einops'
_APT = (
    'printf "%s" "deb [trusted=yes] $source ./" > apt.list; rm -rf lists; mkdir -p lists/partial; '
    # Without the host's cache: another apt may write it meanwhile.
    'options="-o Dir::Etc::SourceList=$PWD/apt.list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=$PWD/lists '
    '-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="; '
    'apt-get update --error-on=any $options -o Acquire::http::Proxy="$proxy"; '
    "apt-cache show $options swarmspeed-boundary"
)
_FOLDER = 'mkdir -p files; cd files; mkdir -p -- "./$1"; test -d "./$1"; rmdir -- "./$1"'
_SAME = '[ "$found" = "$1." ]'
_OPERATOR = """
import sys
from deepspeed.ops.op_builder.all_ops import ALL_OPS
sys.exit(f"DS_BUILD_{sys.argv[1]}" not in {builder.BUILD_VAR for builder in ALL_OPS.values()})
"""

SCRIPTS = {
    # Names
    "dns_label": f'[ "$({_RUN.replace("true", "hostname")} --hostname "$1" $IMAGE)" = "$1" ]',
    "host_name": 'docker node ls --filter "name=$1"',
    "job_name": _FOLDER,
    "docker_name": 'docker network create "$1"; docker network rm "$1"',
    # The pool of the swarm may be as small as one subnet.
    "overlay_name": f"""docker network create --driver overlay --attachable --subnet "198.19.$((N + 16)).0/24" "$1"
        {_RUN} --network "$1" $IMAGE || failed=1; {_NO_NETWORK} "$1"; test -z "$failed" """,
    "interface": 'ip link add name "$1" type bridge; ip link delete dev "$1"',
    "account": """exec 9>/tmp/boundary.lock; flock 9; useradd --badname -- "$1"; usermod -aG docker -- "$1"
        id -nG -- "$1" | grep -w docker; userdel -- "$1" """,
    "group": f'{_RUN} --group-add "$1" $IMAGE',
    "environment_name": 'docker exec -e "$1=é x" boundaries env | grep -Fx -- "$1=é x"',
    "environment_key": 'docker exec -e "$1=é x" boundaries env | grep -Fx -- "$1=é x"',
    "sysctl": 'sysctl -w "$1=$(sysctl -n "$1")"',
    "operator": f"docker exec boundaries python3 -c '{_OPERATOR}' \"$1\"",
    "capability": 'id=$(docker create --cap-add "$1" $IMAGE); docker rm "$id"',
    # Addresses
    "ipv4": 'ip address add "$1/32" dev lo; ip address delete "$1/32" dev lo',
    "ip": 'ip address add "$1" dev lo; ip address delete "$1" dev lo',
    "cidr_v4": 'ip route add blackhole "$1" table "77$N"; ip route flush table "77$N"',
    "overlay_subnet": f"""docker network create --driver overlay --attachable --subnet "$1" "boundary-$N"
        {_RUN} --network "boundary-$N" $IMAGE || failed=1; {_NO_NETWORK} "boundary-$N"; test -z "$failed" """,
    "port": '/usr/sbin/sshd -t -o "Port=$1"',
    "published_port": f'{_RUN} --publish "$1" $IMAGE',
    "opened_port": """ports=${1%/*}; iptables -w -N "BOUND-$N"
        iptables -w -A "BOUND-$N" -p "${1#*/}" --dport "${ports%-*}:${ports#*-}" -j ACCEPT || failed=1
        iptables -w -F "BOUND-$N"; iptables -w -X "BOUND-$N"; test -z "$failed" """,
    "url": f'{_FETCH} --index-url "$1" einops',
    "plain_url": f'{_FETCH} --index-url "$1" einops',
    "pip_index": f'{_FETCH} --index-url "$1" einops',
    **dict.fromkeys(("proxy", "proxy_url", "pip_proxy"), _THROUGH_PROXY),
    "apt_proxy": f'source=http://mirror.invalid/deb; proxy="$1"; {_APT}',
    "apt_uri": f'source="$1"; proxy=DIRECT; {_APT}',
    # Files and folders
    "absolute_folder": f'{_RUN} --volume "$1:/boundary" $IMAGE; rmdir -- "$1" 2>/dev/null || test -d "$1"',
    "absolute_path": 'mkdir -p -- "$1"; test -d "$1"; rmdir -- "$1" 2>/dev/null || true',
    "relative_path": _FOLDER,
    "controller_path": _FOLDER,
    "file_name": _FOLDER,
    # Software
    "apt_package": 'apt-get --simulate install -- "$1"',
    "dpkg_package": 'apt-get --simulate install -- "$1"; dpkg-query -W -- "${1%%=*}"',
    "apt_version": 'apt-get --simulate install "bc=$1*"',
    "python_command": 'apt-get --simulate install -- "$1"',
    "python_version": f'{_FETCH} --no-index --find-links {PLACE} "einops!=$1"',
    "requirement": f'{_FETCH} --no-index --find-links {PLACE} "$1" $(case "$1" in --*) echo einops;; esac)',
    "torch_requirement": 'docker exec boundaries python3 -m pip install --dry-run --no-index "$1"',
    # One of these names may be that of the training image.
    "image": 'had=$(docker images -q "$1"); docker tag $IMAGE "$1"; test -n "$had" || docker rmi "$1"',
    "image_repository": 'docker tag $IMAGE "$1:0"; docker rmi "$1:0"',
    # What containers take
    "memory_size": f'{_RUN} --shm-size "$1" $IMAGE',
    "ulimit": f'{_RUN} --ulimit "${{1%%:*}}=${{1#*:}}" $IMAGE',
    "security_option": f'{_RUN} --security-opt "$1" $IMAGE',
    # Text
    "scalar": f'found=$(docker exec -e "BOUNDARY=$1" boundaries sh -c \'printf %s. "$BOUNDARY"\'); {_SAME}',
    "scalar_line": f'found=$(docker exec -e "BOUNDARY=$1" boundaries sh -c \'printf %s. "$BOUNDARY"\'); {_SAME}',
    "argument": f'found=$(docker exec boundaries printf %s. "$1"); {_SAME}',
    "line": f'found=$(docker exec boundaries printf %s. "$1"); {_SAME}',
}
ON_THE_CONTROLLER = {
    "git_reference": """git init -q .; git -c user.name=a -c user.email=a commit -q --allow-empty -m a
        git update-ref "refs/heads/$1" HEAD; git fetch -q . "refs/heads/$1"
        git update-ref "refs/tags/$1" HEAD; git fetch -q . "refs/tags/$1" """,
}
READ_AS: dict[str, Callable[[Any], Any]] = {"memory_size": human_to_bytes}
"""What community.docker makes of a value before the engine has it."""

ONE_BY_ONE = ("published_port",)
"""Kinds whose values get into each other's way."""

_RUNNER = r"""
import json, os, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
given = json.load(sys.stdin)
os.makedirs(given["place"], exist_ok=True)

def tried(numbered):
    number, value = numbered
    with tempfile.TemporaryDirectory(dir=given["place"]) as folder:
        done = subprocess.run(["sh", "-ec", given["script"], "sh", value], cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                              env={**os.environ, "N": str(number)})
    return "" if done.returncode == 0 else f"({done.returncode}) {done.stdout.decode(errors='replace')[-600:]}"

with ThreadPoolExecutor(max_workers=given["at_once"]) as pool:
    print(json.dumps(list(pool.map(tried, enumerate(given["values"])))))
"""


def written(value: Any) -> Any:
    """Return a value of kinds.yml: a mapping with ``repeat`` stands for a text."""
    if not isinstance(value, dict):
        return value
    return f"{value.get('before', '')}{value['repeat'] * value['times']}{value.get('after', '')}"


def read_as(kind: str, value: Any) -> str:
    """Return the text that the program gets."""
    return str(READ_AS.get(kind, lambda given: given)(value))


def refused(kind: str, values: Sequence[Any], node: str, image: str, place: Path) -> dict[str, str]:
    """Give each value to the program of its kind; return what it printed about those that it refused."""
    texts = [read_as(kind, value) for value in values]
    if kind in ON_THE_CONTROLLER:
        command, where, script = ["python3", "-c", _RUNNER], str(place), ON_THE_CONTROLLER[kind]
    else:
        command, where, script = ssh(node, f"python3 -c '{_quoted(_RUNNER)}'"), PLACE, f"IMAGE={image}\n{SCRIPTS[kind]}"
    at_once = 1 if kind in ONE_BY_ONE else 4
    given = json.dumps({"script": script, "place": where, "values": texts, "at_once": at_once})
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == len(values)
    return {text[:80]: trouble for text, trouble in zip(texts, found, strict=True) if trouble}


def _quoted(text: str) -> str:
    return text.replace("'", "'\"'\"'")
