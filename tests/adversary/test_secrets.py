# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A reader of the console, of logs on the controller or of facts learns no secret. Every secret here is invented."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.action.preflight import invalid
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.text import secrets as config_secrets
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config_secrets import mask
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.state import gather_engine_files
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import resource
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import summary as job_summary
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.info_io import JobsReader
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.log_files_io import NodeFolder
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import base as job_base
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node.system_io import file_facts
from ansible_collections.swarmspeed.cluster.plugins.modules.training_job import Call
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import collect
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.values import sealed
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.vscode import configuration
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.gathered import requested
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import INVENTORY_CHECKS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.registry.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.inputs import argument_troubles

from tests.role_values import defaults, load

SECRET = "never-to-be-seen-81"
URL = f"postgres://train:{SECRET}@db.example:5432/runs"
NAMES = (
    *("HF_TOKEN", "WANDB_API_KEY", "PGPASSWORD", "GH_PAT", "OPENAI_APIKEY", "AWS_SECRET_ACCESS_KEY", "MYSQL_PWD"),
    *("AZURE_STORAGE_CONNECTION_STRING", "DB_PASS", "SESSION_COOKIE", "SENTRY_DSN", "HFTOKEN", "sshPassphrase"),
)
ENDED = {"state": "succeeded", "run": 1, "started_at": "2026-11-22T09:00:05Z", "finished_at": "2026-11-22T09:30:00Z"}


def cluster(root: Path, *lines: str, own: dict[str, str] | None = None, **state: Any) -> Path:
    """A node's folders as the roles leave them: a token in nccl_env_environment, and a job that printed these lines."""
    (root / "etc").mkdir()
    (root / "etc" / "env").write_text(f"DS_ACCELERATOR=cpu\nGH_PAT={SECRET}\n")
    folder = root / "jobs" / "digits"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps({**ENDED, **state}))
    (folder / "spec.json").write_text(json.dumps({"spec": {"command": ["x"], "environment": own or {}}}))
    (folder / "launcher.log").write_text("".join(f"{line}\n" for line in lines))
    return root / "jobs"


def console(jobs: Path) -> str:
    """What the playbook prints while it follows the job."""
    given = {"name": "digits", "runtime": "container", "jobs_dir": str(jobs), "container_jobs_dir": "/jobs"}
    requested = {"state": "started", "observe": True, "log_offset": 0, "log_limit": 65536}
    no_engine: Any = {"container": None}  # a job that has ended needs no engine
    return json.dumps(Call(defaultdict(lambda: None, {**given, **requested}), False, no_engine).run())


def status(jobs: Path) -> str:
    """What status.yml and report.yml get to know of the job."""
    return json.dumps(JobsReader(str(jobs), {}).gather("digits", tail=50))


def gathered(jobs: Path) -> str:
    """The logs as they are brought to the controller."""
    sent = NodeFolder(str(jobs), "digits", "gpu1", 1 << 20).reply({}, set())["files"]
    return "".join(zlib.decompress(base64.b64decode(one["data"])).decode() for one in sent)


READERS = (console, status, gathered)


@pytest.mark.parametrize("name", NAMES)
def test_a_rank_prints_the_value_of_a_variable(name: str) -> None:
    state = {"state": "failed", "reason": f"login with {SECRET} failed"}
    assert SECRET not in json.dumps(job_summary.summary({"environment": {name: SECRET}}, state))


@pytest.mark.parametrize("name", NAMES)
def test_names_that_one_list_of_several_misses(name: str) -> None:
    launch = configuration("x", ["x"], folder="/b", cwd="/w", environment={name: SECRET}, env_file="")
    assert name not in launch["env"]
    assert SECRET not in sealed(f"exports {name}={SECRET} to all nodes")
    assert SECRET not in json.dumps(mask({"log-opts": {name: SECRET}}))
    assert list(config_secrets({"monitor": {name: SECRET}})) == [SECRET]
    with pytest.raises(resource.JobError, match="looks like a secret"):
        resource.check_variables({name: SECRET}, forwarded=True)


@pytest.mark.parametrize("reader", READERS)
def test_a_rank_prints_a_token_of_nccl_env_environment(reader: Any, tmp_path: Path) -> None:
    found = reader(cluster(tmp_path, "one", f"rank 0: cloning with {SECRET}", reason=f"git said {SECRET}"))
    assert SECRET not in found and "cloning with ********" in found


@pytest.mark.parametrize("reader", READERS)
def test_a_rank_prints_what_the_job_has_as_secret_under_a_plain_name(reader: Any, tmp_path: Path) -> None:
    own = {"TEAM": SECRET, "SWARMSPEED_SECRETS": "RUN,TEAM"}
    found = reader(cluster(tmp_path, f"logged in as {SECRET}", own=own, reason=f"{SECRET} is unknown"))
    assert SECRET not in found and "logged in as ********" in found
    with pytest.raises(resource.JobError, match="TEAM looks like a secret"):
        resource.check_variables(own, forwarded=True)


@pytest.mark.parametrize("reader", READERS)
def test_a_rank_prints_the_password_of_an_address(reader: Any, tmp_path: Path) -> None:
    found = reader(cluster(tmp_path, f"connecting to {URL}"))
    assert SECRET not in found and "postgres://********@db.example:5432/runs" in found


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("line", ["{name}={value}", "'{name}': '{value}'", '"{name}": "{value}"', "{name}: {value}"])
def test_a_rank_prints_its_whole_environment(reader: Any, line: str, tmp_path: Path) -> None:
    """Also of variables that its script set itself, which nothing else tells of."""
    assert SECRET not in reader(cluster(tmp_path, line.format(name="OPENAI_APIKEY", value=SECRET)))


def test_what_is_gathered_stays_json_around_a_mask(tmp_path: Path) -> None:
    jobs = cluster(tmp_path, reason=f'export HF_TOKEN="{SECRET}"; python', traceback=[f"HF_TOKEN={SECRET}"])
    found = json.loads(gathered(jobs).strip())
    assert SECRET not in json.dumps(found) and found["run"] == 1


def test_a_secret_on_the_command_line_of_the_job(tmp_path: Path) -> None:
    jobs = cluster(tmp_path)
    command = ["train.py", "--api-key", SECRET, f"--token={SECRET}", "--epochs", "3"]
    (jobs / "digits" / "spec.json").write_text(json.dumps({"spec": {"command": command, "environment": {}}}))
    found = status(jobs)
    assert SECRET not in found and "--epochs" in found


def test_the_summary_that_the_supervisor_writes(tmp_path: Path) -> None:
    """On the node of rank 0, inside the container; it is kept for good."""
    (tmp_path / "environment").write_text(f"GH_PAT={SECRET}\n")
    spec = {"environment": {}, "env_file": str(tmp_path / "environment"), "command": ["x"], "world_size": 1}
    (tmp_path / "spec.json").write_text(json.dumps({"spec": spec}))
    place = job_base.NodeContext(tmp_path)
    failed = {"state": "failed", "first_failure": {"message": f"401 for {SECRET}"}}
    assert SECRET not in json.dumps(job_summary.summary(place.spec, failed, environment=place.given()))


def test_a_mask_does_not_make_a_log_too_long_to_be_taken(tmp_path: Path) -> None:
    jobs = cluster(tmp_path, "HF_TOKEN=a " * 100_000)
    assert len(gathered(jobs)) < (1 << 20) + 8192


@pytest.mark.parametrize(
    ("name", "value"), [("WANDB_API_KEY", SECRET), ("HTTPS_PROXY", f"http://me:{SECRET}@proxy:3128")]
)
def test_docker_inspect_shows_the_environment_of_a_container(name: str, value: str) -> None:
    hosts = {"gpu1": {"training_container_environment": {name: value, "HF_HOME": "/data"}}}
    groups = {"cluster": ["gpu1"], "managers": ["gpu1"], "workers": []}
    inventory = Inventory(
        groups=groups, hosts=hosts, names={"gpu1": list(hosts["gpu1"])}, defaults={"cluster_name": "a"}
    )
    found = collect(INVENTORY_CHECKS, inventory)
    reported = [problem.line() for problem in found.problems if "training_container_environment." in problem.subject]
    assert reported == [
        f"training_container_environment.{name}: holds a secret, judged by its name or by a password in an address, "
        "and docker inspect shows it. Remedy: put it into nccl_env_environment, which reaches every rank by a file "
        "that root alone can read."
    ]


@pytest.mark.parametrize(
    ("name", "value"), [("HF_TOKEN", SECRET), ("INDEX", f"https://me:{SECRET}@pypi.example/simple")]
)
def test_the_history_of_an_image_shows_its_build_arguments(name: str, value: str) -> None:
    (reported,) = map(str, argument_troubles({name: value, "RELEASE": "2026.11"}))
    assert reported.startswith(f"training_image_build_args: {name} holds a secret") and SECRET not in reported


def test_a_wrong_type_is_reported_without_the_value() -> None:
    found = invalid("nccl_env_environment", {"type": "dict"}, f"PGPASSWORD: {SECRET}")
    assert found and SECRET not in found


def brute_force(digest: str, form: str) -> bool:
    """Whether four digits follow from a digest, as they do in a moment from a plain one."""
    return any(
        hashlib.sha256(form.format(f"{pin:04d}").encode()).hexdigest().startswith(digest) for pin in range(10_000)
    )


@pytest.mark.parametrize(
    ("role", "gathered", "end"),
    [
        ("nccl_env", "", "/etc/env"),
        ("docker", "", "/swarmspeed-proxy.env"),
        ("host", "", "/80swarmspeed-proxy"),
        ("host", "", "/pip.conf"),
        ("host", "", "/swarmspeed-git-proxy.conf"),
        ("ssh_trust", "", "/id_ed25519"),
        ("ssh_trust", "", "/ssh_host_ed25519_key"),
    ],
)
def test_a_password_is_guessed_from_the_digest_of_its_file(role: str, gathered: str, end: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("DB_PIN=4711\n")
    role_vars = defaults(cluster_root="/r", cluster_name="lab")
    files = load(f"{role}/vars/main.yml")[gathered] if gathered else requested({}, [GATHERED[role]], role_vars)["files"]
    (entry,) = [one for one in files if str(one["path"]).endswith(end)]
    keyed = {"key": "k" * 40} if entry.get("secret") else {}
    facts = file_facts(str(tmp_path / "file"), content=False, block=None, **keyed)
    assert not brute_force(facts["sha256"], "DB_PIN={}\n")


class Files:
    """An engine whose configuration has a short password in it."""

    def read(self, path: str) -> bytes | None:
        return json.dumps({"log-opts": {"splunk-token": "4711"}}).encode()

    def unit(self, service: str) -> str:
        return ""


def test_a_password_is_guessed_from_the_seal_of_the_engines_configuration() -> None:
    facts = gather_engine_files(Files(), False, "k" * 40)
    digest = facts["config"]["log-opts"]["splunk-token"].split()[-1].rstrip(")")
    assert len(digest) == 16 and not brute_force(digest, '"{}"')
