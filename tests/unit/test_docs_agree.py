# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What two documents say, or a document and the code, is the same: figures, counts, defaults, ports, names."""

from __future__ import annotations

import re
from configparser import ConfigParser

import pytest
import yaml
from ansible import constants
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.variables import role_specs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host import firewall_rules
from ansible_collections.swarmspeed.cluster.tests.role_readme import default_of

from tests.documents import DOCUMENTS, ROOT, text

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
WHEELHOUSES = {
    path.parent.name: found[1]
    for path in sorted(ROOT.glob("examples/*/vars.yml"))
    for found in [re.search(r"^training_image_wheelhouse: .*/(wheelhouse-\w+)", path.read_text("utf-8"), re.MULTILINE)]
    if found
}
"""The examples whose images need more than the lab's own wheels, and the folder that has them."""


def flat(document: str) -> str:
    """Return the text of a document without its line breaks."""
    return " ".join(text(document).split())


def within(pattern: str, document: str) -> re.Match[str]:
    found = re.search(pattern, flat(document))
    assert found is not None, f"{document}: {pattern}"
    return found


def names(listed: str) -> list[str]:
    return sorted(re.split(r", | and ", listed))


def test_the_demo_takes_the_same_time_everywhere() -> None:
    demo = within(r"It takes (\d+ min \d+ s) on two cores", "docs/demo.md")[1]
    assert re.findall(r"`make demo`[^.]*? takes \**(\d+ min \d+ s)", flat("docs/performance.md")) == [demo, demo]


def test_tasks_that_were_measured_and_exist_no_longer_are_counted() -> None:
    files = [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/**/*.yml")]
    tasks = {name for path in files for name in re.findall(r"- name: (.*)", path.read_text("utf-8"))}
    measured = re.findall(r"^task (.*?)  +\d", text("docs/performance.md"), re.MULTILINE)
    gone = [name for name in measured if name not in tasks]
    assert f"{len(gone)} of the {len(measured)} tasks have had other names since" in flat("docs/performance.md")


def test_figures_are_kept_for_releases_this_version_and_the_checkouts_before_them() -> None:
    version = yaml.safe_load(text("galaxy.yml"))["version"]
    released = yaml.safe_load(text("changelogs/changelog.yaml"))["releases"]
    kept = {path.stem for path in ROOT.glob("docs/bench/*.json")}
    assert kept <= {"0.1.0", version, *released}
    assert ("0.1.0 are the checkouts before the first release" in flat("docs/performance.md")) == ("0.1.0" in kept)


def test_examples_that_need_wheels_of_their_own() -> None:
    lab = within(r"`wheelhouse-examples` for (.*?) from `examples/wheels.txt`", "docs/lab.md")[1]
    assert names(lab) == sorted(name for name, folder in WHEELHOUSES.items() if folder == "wheelhouse-examples")
    page = within(r"what the images of (.*?) need in addition", "examples/README.md")[1]
    assert names(page) == sorted(WHEELHOUSES)
    share = within(r"(\w+) of these share one image", "examples/README.md")[1]
    assert NUMBERS.index(share.lower()) == len(names(lab))
    need = within(r"(\w+) of them first need `make example-wheels`", "docs/demo.md")[1]
    assert NUMBERS.index(need.lower()) == len(WHEELHOUSES)


def test_the_demo_counts_the_examples() -> None:
    more = within(r"has (\w+) more jobs", "docs/demo.md")[1]
    assert NUMBERS.index(more) == len(list(ROOT.glob("examples/*/vars.yml"))) - 1  # digits is the demo's


def test_systems_for_the_lab_are_the_same_everywhere() -> None:
    for document in ("docs/demo.md", "CONTRIBUTING.md", "docs/lab.md"):
        assert re.search(r"\b(?:on|On|a) Debian or Ubuntu\b", flat(document)), document


def test_defaults_in_running_text_are_those_of_the_role_specs() -> None:
    options = role_specs().options
    found = [
        (document, name, default)
        for document in DOCUMENTS
        for name, default in re.findall(r"`(\w+)(?:: [^`]*)?` \(default `([^`]*)`", flat(document))
        if name in options
    ]
    assert ("docs/verify.md", "training_image_prune", "false") in found
    assert [one for one in found if f"`{one[2]}`" != default_of(dict(options[one[1]]))] == []


def test_the_time_limit_of_a_connection() -> None:
    ours = ConfigParser()
    ours.read(ROOT / "ansible.cfg")
    default = constants.config.get_configuration_definitions()["DEFAULT_TIMEOUT"]["default"]
    given = within(
        r"Ansible's `timeout` \((\d+) s; (\d+) s in this repository's `ansible.cfg`\)", "docs/controllers.md"
    )
    assert given.groups() == (str(default), ours["defaults"]["timeout"])


def test_the_oldest_community_docker_is_explained() -> None:
    oldest = yaml.safe_load(text("galaxy.yml"))["dependencies"]["community.docker"].removeprefix(">=")
    listed = {one["name"]: one["version"] for one in yaml.safe_load(text("requirements.yml"))["collections"]}
    newer = listed["community.docker"].removeprefix(">=")
    assert f"{oldest} is the first release" in flat("docs/controllers.md")
    assert f"`requirements.yml` therefore asks for {newer} or later" in flat("docs/controllers.md")


def test_cuda_releases_whose_image_begins_with_one_of_nvidias() -> None:
    table = yaml.safe_load(text("plugins/plugin_utils/versions/table.yml"))
    based = [row["release"] for rows in table.values() if isinstance(rows, list) for row in rows if row.get("base")]
    assert {release.partition(".")[0] for release in based} == {"12"}
    assert names(within(r"except for CUDA (.*?): as no", "docs/images.md")[1]) == sorted(based)
    base = role_specs().options["training_image_base"]["description"]
    assert "debian:12-slim" in base and "for CUDA 12 NVIDIA's images" in base


def test_the_ports_of_the_page_are_those_that_the_role_host_opens() -> None:
    ports = within(r"with `cluster_network_mode: host` also (.*?) If ufw", "docs/installation.md")[1]
    assert f"{role_specs().options['ssh_trust_port']['default']}/tcp" in ports
    for low, high in (firewall_rules.CHANNEL_PORTS, firewall_rules.RENDEZVOUS_PORTS):
        assert f"{low}–{high}/tcp" in ports and f"| {low}–{high}/tcp" in text("docs/security.md")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_where_relative_paths_start_is_the_same_everywhere(document: str) -> None:
    starts = re.findall(r"[Rr]elative paths? starts? ([^.,:;|]+)", flat(document))
    assert [start for start in starts if not start.startswith("where the playbook is run")] == []


def test_rows_of_the_gpu_proof_are_as_many_as_its_counts() -> None:
    for section in text("docs/gpu_hosts.md").split("<!-- gpu_proof: ")[1].split("\n**")[1:]:
        counts = re.search(r": (\d+) passed, (\d+) failed, (\d+) skipped in", section)
        assert counts is not None
        rows = [line for line in section.splitlines() if re.match(r"\| (?!part|memory plan|model \|)", line)]
        failed, skipped = (sum(word in row for row in rows) for word in ("failed", "skipped"))
        assert [len(rows) - failed - skipped, failed, skipped] == [int(count) for count in counts.groups()]


def test_the_tarball_has_what_the_page_says() -> None:
    assert "the tarball includes the example inventory" in flat("docs/installation.md") and "and `ansible.cfg`" in flat(
        "docs/installation.md"
    )
    directives = yaml.safe_load(text("galaxy.yml"))["manifest"]["directives"]
    included = {path for line in directives if line.startswith("include ") for path in line.split()[1:]}
    # The example's job among them, which its workspace_source names.
    assert {"ansible.cfg", "inventories/example/hosts.yml", "examples/digits/*.py"} <= included
    assert [path for path in included if path.startswith("inventories/") and "/example/" not in path] == []
