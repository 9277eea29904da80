# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The report's document and its page. Clusters are constructed by tests/report_clusters.py, and named so there."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import NAMES
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.document import document
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.inputs import (
    Bench,
    Inputs,
    Verify,
    parse_bench,
    parse_verify,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.nodes import differences
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.page import page
from ansible_collections.swarmspeed.cluster.tests import report_clusters
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

VOID = {"meta", "link", "br", "img", "input", "hr"}
OURS = {"level", "key", "style", "role", "cluster"}
"""What of a document is never taken from a host, and steers the templates."""


class Page(HTMLParser):
    """Reads a page strictly: each element is closed, in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text: list[str] = []
        self.addresses: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, dummy in attrs)))
        self.addresses += [str(value) for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, dummy in attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open.pop() == tag, f"{tag} is closed out of order"

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@cache
def made(name: str) -> tuple[dict[str, Any], str]:
    content = document(report_clusters.CASES[name]())
    return content, page(content)


every_case = pytest.mark.parametrize("name", list(report_clusters.CASES))


@every_case
def test_the_page_is_whole_and_loads_nothing(name: str) -> None:
    html = made(name)[1]
    read = Page(html)
    assert set(read.addresses) == {"#cluster", "#health", "#network", "#job", "#nodes"}
    assert all(f'id="{address[1:]}"' in html for address in read.addresses)
    assert re.findall(r"https?://|@import|url\(", html.replace("http-equiv", "")) == []
    for svg in re.findall(r"<svg.*?</svg>", html, re.S):
        ElementTree.fromstring(svg)
    attributes = {name for dummy, those in read.tags for name in those}
    assert [name for name in attributes if name == "style" or name.startswith("on")] == []
    assert len(html) < 3_000_000


@every_case
def test_only_our_script_may_run(name: str) -> None:
    html = made(name)[1]
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert (
        f"default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;; script-src &#39;sha256-{digest}&#39;" in html
    )
    for data in re.findall(r'<script type="application/json" class="heat-data">(.*?)</script>', html, re.S):
        found = json.loads(data)
        assert len(found["values"]) == len(found["names"])


def spoilt(value: Any, extra: str, key: str = "") -> Any:
    """A document in which every text that could come from a host has something behind it."""
    if isinstance(value, dict):
        return {name: spoilt(inner, extra, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [spoilt(inner, extra, key) for inner in value]
    return value + extra if isinstance(value, str) and value and key not in OURS else value


@every_case
@pytest.mark.parametrize(
    "extra",
    [
        "<script>alert(1)</script>",
        "\"'><img src=x onerror=alert(1)>",
        "</script><b>",
        "</title></style>",
        "{{ 7 * 7 }}",
    ],
)
def test_texts_of_hosts_stay_texts(name: str, extra: str) -> None:
    content, html = made(name)
    worse = page(spoilt(content, extra))
    before, after = Page(html), Page(worse)
    assert after.tags == before.tags
    assert extra in after.words
    assert "49" not in after.words or "49" in before.words


def test_the_largest_is_quick_and_small() -> None:
    began = time.process_time()
    html = page(document(report_clusters.sixty_four()))
    assert time.process_time() - began < 5
    assert len(html) < 1_000_000
    read = Page(html)
    assert read.tags.count(("div", ("class",))) > 64
    assert sum(tag == "path" for tag, dummy in read.tags) < 200  # not one for each of 4096 cells


def test_three_nodes() -> None:
    content, html = made("three")
    assert content["verdict"] == {"level": "ok", "text": "All 3 nodes answer, and nothing needs attention."}
    assert content["findings"] == []
    cells = content["picture"]["cells"]
    assert [(cell["name"], cell["role"], cell["ranks"]) for cell in cells] == [
        ("lab1", "leader", "0"),
        ("lab2", "worker", "1"),
        ("lab3", "worker", "2"),
    ]
    assert [rail["text"] for rail in content["picture"]["rails"]] == [
        "10.1.0.0/24 · eth0 · MTU 1400 · 10 Gbit/s",
        "swarmspeed · 10.64.0.0/24",
    ]
    assert [item["what"] for item in content["differing"]] == ["System", "Docker engine"]
    words = Page(html).words
    for reported in (
        *report_clusters.SENTENCES.values(),
        "36 checks over 6 pairs of nodes: all pass. Gloo used eth0 on lab1–lab3.",
        "1 d 13 h ago, old",
        "host network: 3.1 × the bus bandwidth here; set cluster_network_mode: host",
        "encrypted overlay: The kernel has no ESP, so an encrypted overlay carries no traffic here.",
        "iperf3 3.18 between hosts:",
        "Latency, overlay",
        "Bandwidth, host network",
        "All-reduce",
        "Reduce-scatter",
        "digits succeeded",
        "Loss",
        "steps per second",
        "lab1:/srv/swarmspeed/swarmspeed/jobs/digits/launcher.log",
    ):
        assert reported in words, reported


def test_sixty_four_nodes() -> None:
    content, dummy = made("sixty_four")
    assert content["verdict"]["text"] == "All 64 nodes answer; 2 things are worth checking."
    assert [(item["where"], item["what"]) for item in content["findings"]] == [
        (
            "gpu23",
            "Sends at most 25.4 Gbit/s in host, whatever the other node, where the best quarter of the pairs has "
            "97: check its link, cable and switch port (ethtool).",
        ),
        ("nodes", "NVIDIA driver differs: 580.105.08 on most; 570.195.03 on gpu40."),
    ]
    levels = {cell["name"]: cell["level"] for cell in content["picture"]["cells"]}
    assert {name: level for name, level in levels.items() if level != "ok"} == {"gpu23": "warn", "gpu40": "warn"}
    assert [(figure["value"], figure["what"]) for figure in content["figures"]][:3] == [
        ("64", "nodes"),
        ("512", "GPUs"),
        ("512", "ranks"),
    ]
    kernel = next(item for item in content["differing"] if item["what"] == "Kernel")
    assert [(group["count"], group["who"], group["majority"]) for group in kernel["groups"]][1] == (
        4,
        "gpu08–gpu10, gpu31",
        False,
    )


def test_a_broken_cluster_says_each_thing_once_with_its_remedy() -> None:
    content, html = made("broken")
    assert content["verdict"] == {"level": "bad", "text": "5 of 6 nodes answer; 9 things are wrong."}
    found = [(item["level"], item["where"], item["what"][:44], item["remedy"][:36]) for item in content["findings"]]
    site = "ansible-playbook site.yml --tags "
    assert found == [
        ("bad", "train-node-4", "Does not answer, so nothing is known of it: ", "Look: ansible train-node-4.east.exam"),
        ("bad", "train-node-3", "The Docker engine does not answer: no answer", f"{site}doc"),
        ("bad", "train-node-2", "The driver does not answer: nvidia-smi canno", f"{site}nvi"),
        ("bad", "train-node-5", "Its clock is +121 s away from the controller", "timedatectl set-ntp true, or install"),
        ("bad", "train-node-5", "Its training container is exited.", f"{site}tra"),
        ("bad", "train-node-6", "UDP 4789 between hosts fails for 10 pairs wi", "Open 4789/udp between the nodes, or "),
        ("bad", "nvidia_driver", "train-node-2: the driver does not answer. (S", ""),
        ("bad", "swarm", "train-node-4: not in the swarm research-east", f"{site}swa"),
        ("bad", "job chat", "Failed: rank 35 on train-node-5 was first. T", "Raise training_container_shm_size; 6"),
        ("warn", "nodes", "Underlay MTU differs: 9000 on most; 1500 on ", ""),
    ]
    levels = [cell["level"] for cell in content["picture"]["cells"]]
    assert levels == ["ok", "bad", "bad", "lost", "bad", "bad"]
    words = Page(html).words
    assert "There is no bench_network.json yet. ansible-playbook bench_network.yml measures" in words
    assert "10 pairs did not work" in words
    assert "rank 35 on train-node-5.east.example.org" in words
    assert "Exit code -15: rank 0–34, 36–47 on train-node-1–train-node-6" in words


def changed(**change: Any) -> Inputs:
    return replace(report_clusters.three(), **change)


def test_nothing_is_known_of_any_node() -> None:
    silent = dict.fromkeys(("lab1", "lab2", "lab3"), "no route")
    content = document(changed(facts={}, silent=silent, jobs={}, verify=parse_verify(None), bench=parse_bench(None)))
    assert content["verdict"]["text"] == "0 of 3 nodes answer; 1 thing is wrong."
    assert content["findings"][0]["where"] == "every node"
    words = Page(page(content)).words
    assert "There is no verify.json yet. ansible-playbook verify.yml proves every promise" in words
    assert "Whether there are jobs is not known, as no node answered." in words
    assert "launch.yml" not in words


@pytest.mark.parametrize(
    ("answered", "text"),
    [
        (("lab1", "lab2", "lab3"), "There are no jobs. ansible-playbook launch.yml starts one."),
        (("lab1", "lab3"), "No job on the nodes that answered; of lab2 nothing is known."),
    ],
)
def test_no_job_is_claimed_only_of_nodes_that_answered(answered: tuple[str, ...], text: str) -> None:
    inputs = changed(jobs={name: {"jobs": []} for name in answered})
    words = Page(page(document(inputs))).words
    assert text in words
    assert ("launch.yml" in words) is (len(answered) == len(inputs.hosts))


def test_what_nccl_connected_stands_with_the_last_job() -> None:
    inputs = report_clusters.three()
    jobs = json.loads(json.dumps(inputs.jobs))
    wrong = {"network": "Socket", "devices": ["docker_gwbridge"], "interface": "=eth0", "hcas": ""}
    for result in jobs.values():
        for job in result["jobs"]:
            job["summary"]["nccl"] = {"size": 3, "connected": 3, "rings": True, "nodes": {"lab2": wrong}}
    words = Page(page(document(changed(jobs=jobs)))).words
    assert "digits: NCCL has connected 3 ranks, all rings: sockets on docker_gwbridge (lab2)." in words
    assert "on lab2 NCCL uses docker_gwbridge, but nccl_env chose eth0." in words
    assert "NCCL has connected" not in Page(page(document(inputs))).words


def test_who_waits_for_whom_stands_with_the_last_job() -> None:
    inputs = report_clusters.three()
    jobs = json.loads(json.dumps(inputs.jobs))
    found = {
        **{"at": "2026-11-28T10:00:00Z", "silent": 61.0, "bound": 60.0, "ranks": [1], "confidence": "certain"},
        **{"collective": {"operation": "all_reduce", "sequence": 9, "ranks": [0, 2]}, "missing": ["lab3"]},
        **{"does": {"function": "<b>load</b>", "file": "data.py", "line": 33}, "remedy": "see data.py:33."},
        "sentence": "Rank 1 on lab2 has not come to all_reduce number 9",
        "timeline": {
            "waited": 61.0,
            "ranks": [{"rank": rank, "done": [-0.1], "open": [0.0][rank:]} for rank in (0, 1)],
        },
    }
    for result in jobs.values():
        for job in result["jobs"]:
            job["summary"]["hangs"] = [found]
    html = page(document(changed(jobs=jobs)))
    words = Page(html).words
    assert (html.count('class="waits"'), html.count('class="entered"')) == (1, 2)
    assert "then 61 s" in words and "rank 0 lab1" in words and "✕ rank 1 lab2" in words
    assert "Rank 1 on lab2 has not come to all_reduce number 9. Remedy see data.py:33." in words
    assert "Found at 2026-11-28T10:00:00Z, after 61 s without progress (certain). Nothing is known of lab3." in words
    assert "waits for rank 1 in all_reduce 9" in words and "is in <b>load</b>, data.py:33" in words
    assert "Who waits for whom" not in Page(page(document(inputs))).words


def test_not_verified_is_not_called_right() -> None:
    content = document(changed(verify=parse_verify(None)))
    assert content["verdict"]["text"] == "All 3 nodes answer, and what was seen of them is right. Not verified yet."


def test_without_containers_nothing_is_reported_of_them() -> None:
    facts = {
        name: {**one, "docker": {"running": False, "networks": {}}}
        for name, one in report_clusters.three().facts.items()
    }
    content = document(changed(runtime="host", network_mode="host", facts=facts))
    assert content["findings"] == []
    assert [rail["key"] for rail in content["picture"]["rails"]] == ["under"]


def test_a_swarm_with_a_stranger_and_a_container_off_its_network() -> None:
    inputs = report_clusters.three()
    facts = json.loads(json.dumps(inputs.facts))
    facts["lab1"]["docker"]["swarm"]["nodes"].append({"id": "other", "hostname": "gone", "state": "down"})
    facts["lab2"]["docker"]["containers"]["swarmspeed-lab2"]["addresses"] = {"swarmspeed": None}
    facts["lab3"]["docker"]["swarm"]["node_id"] = "of-another-swarm"
    facts["lab1"]["fabric"]["problems"] = ["The command ip is not installed."]
    found = {item["where"]: item["what"] for item in document(replace(inputs, facts=facts))["findings"]}
    assert found == {
        "lab3": "In a swarm that the managers do not know of.",
        "lab2": "Its training container is not attached to the overlay swarmspeed.",
        "cluster": "The swarm has 2 members that the inventory does not: gone, lab3.",
        "lab1": "The command ip is not installed.",
    }


def test_a_warning_of_nvidia_smi_is_worth_checking_and_a_fault_is_wrong() -> None:
    inputs = report_clusters.three()
    facts = json.loads(json.dumps(inputs.facts))
    facts["lab1"]["gpu"].update(notes=["GPU 1: nvidia-smi says 'WARNING: x'."], problems=["GPU 0 is lost."])
    found = document(replace(inputs, facts=facts))["findings"]
    assert [(item["level"], item["what"]) for item in found if item["where"] == "lab1"] == [
        ("bad", "GPU 0 is lost."),
        ("warn", "GPU 1: nvidia-smi says 'WARNING: x'."),
    ]


def test_nodes_without_a_common_subnet_are_a_finding() -> None:
    inputs = report_clusters.three()
    facts = json.loads(json.dumps(inputs.facts).replace("10.1.0.12", "10.9.0.12"))
    facts["lab3"]["fabric"]["interfaces"][0]["addresses"][0]["subnet"] = "10.9.0.0/24"
    content = document(replace(inputs, facts=facts))
    assert [item["where"] for item in content["findings"]] == ["cluster"]
    assert "lab3" in content["findings"][0]["what"]
    Page(page(content))


def test_facts_of_another_version_are_a_finding() -> None:
    content = document(changed(facts={name: {"system": {}} for name in ("lab1", "lab2", "lab3")}, runtime="host"))
    assert content["findings"][0]["what"] == "The facts of the nodes cannot be read (KeyError: 'gpu')."
    Page(page(content))


def test_jobs_that_could_not_be_read_are_not_no_jobs() -> None:
    jobs = {"lab1": {"unreachable": True, "msg": "Task failed: no route"}, "lab2": {}, "lab3": {"jobs": []}}
    found = document(changed(jobs=jobs))["findings"]
    assert [(item["level"], item["where"], item["what"], item["remedy"]) for item in found] == [
        ("bad", "lab1", "Which jobs it has could not be read: no route.", "ansible-playbook status.yml"),
        ("bad", "lab2", "Which jobs it has could not be read: no reason was given.", "ansible-playbook status.yml"),
    ]


def test_a_node_that_went_away_from_its_job() -> None:
    inputs = report_clusters.broken()
    jobs = json.loads(json.dumps(inputs.jobs))
    gone = {"node": "lab2", "rank": None, "cause": "lab2 has gone: it has not answered for 10 s", "remedy": None}
    next(iter(jobs.values()))["jobs"][0]["summary"]["first_failure"] = gone
    content = document(replace(inputs, jobs=jobs))
    found = next(item for item in content["findings"] if item["where"] == "job chat")
    assert (found["what"], found["remedy"]) == ("Failed. lab2 has gone: it has not answered for 10 s.", "")
    assert content["job"]["failure"]["node"] == ""
    Page(page(content))


def test_no_secret_is_on_the_page() -> None:
    inputs = report_clusters.broken()
    silent = {name: f"{text} through http://me:hunter2@proxy:3128" for name, text in inputs.silent.items()}
    jobs = json.loads(json.dumps(inputs.jobs).replace("Bus error", "HF_TOKEN=hf_hunter2"))
    html = page(document(replace(inputs, silent=silent, jobs=jobs)))
    assert "hunter2" not in html and html.count("********") >= 2


def test_verify_stands_in_where_nothing_was_benchmarked() -> None:
    maps = document(changed(bench=Bench(missing=True)))["network"]["maps"]
    assert [found["title"] for found in maps] == ["Time to connect, as verify.yml saw it"]
    assert document(changed(bench=Bench(), verify=Verify()))["network"]["maps"] == []


@pytest.mark.parametrize("read", [parse_verify, parse_bench])
def test_files_that_cannot_be_read(read: Callable[[str | None, str], Verify | Bench]) -> None:
    assert read(None, "x.json").problem == "There is no x.json yet."
    assert read('{"version": 1, "pai', "x.json").problem == "x.json is not JSON, perhaps cut short. Write it again."
    assert read("[" * 100_000, "x.json").problem == "x.json is not JSON, perhaps cut short. Write it again."
    assert read('{"version": 7}', "x.json").problem == (
        "x.json is of format 7, and this report reads format 1. Write it again."
    )
    assert read("[]", "x.json").problem.startswith("x.json is of format None")


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-10, 10), st.floats(allow_nan=False), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
    max_leaves=12,
)
KEYS = st.sampled_from(
    [
        "roles",
        "pairs",
        "collective",
        "versions",
        "nodes",
        "time",
        "networks",
        "floor",
        "recommendation",
        "slow_pairs",
        "asymmetric",
        "failed",
    ]
)


@settings(max_examples=examples(40), deadline=None)
@given(st.dictionaries(KEYS, JSON, max_size=8))
def test_any_content_of_the_files_makes_a_page(content: dict[str, Any]) -> None:
    text = json.dumps({**content, "version": 1})
    Page(page(document(changed(verify=parse_verify(text), bench=parse_bench(text)))))


@settings(max_examples=examples(40), deadline=None)
@given(st.sampled_from(["pairs", "roles", "versions"]), st.data())
def test_any_value_within_the_files_makes_a_page(part: str, data: st.DataObject) -> None:
    """One field of a good file replaced by anything."""
    inputs = report_clusters.three()
    good = report_clusters.verify("swarmspeed", list(inputs.hosts), Random(1), "gloo", "eth0")
    entries = good[part]
    key = data.draw(st.sampled_from(list(entries) if isinstance(entries, dict) else list(range(len(entries)))))
    inner = entries[key]
    inner[data.draw(st.sampled_from(list(inner)))] = data.draw(JSON)
    Page(page(document(replace(inputs, verify=parse_verify(json.dumps(good))))))


def test_what_follows_from_the_hosts_network_is_not_said_again() -> None:
    """The containers of two hosts that cannot reach one another fail, too: one finding, two kinds of failed checks."""
    inputs = report_clusters.broken()
    assert {check.check for check in inputs.verify.checks if not check.ok} == {"tcp", "udp 4789"}
    found = [item["what"] for item in document(inputs)["findings"] if " fails for " in item["what"]]
    assert len(found) == 1 and found[0].startswith("UDP 4789 between hosts fails for 10 pairs with train-node-6 (")


def test_a_pair_that_could_not_be_measured_is_crossed_out() -> None:
    pairs = [
        {"from": "lab1", "to": "lab2", "gigabits_per_second": None, "error": "timed out"},
        {"from": "lab2", "to": "lab1", "gigabits_per_second": 9.0, "latency_ms": 0.1},
    ]
    networks = {"overlay": {"pairs": pairs, "notes": ["2 of 3 rounds of pairs fitted into the time"]}}
    slow = {"from": "lab1", "to": "lab2", "network": "overlay", "text": "lab1 → lab2 in overlay: no throughput"}
    bench = {"version": 1, "networks": networks, "floor": {"error": "not measured"}, "slow_pairs": [slow]}
    content = document(changed(bench=parse_bench(json.dumps(bench))))
    assert [found["data"]["failed"] for found in content["network"]["maps"]] == [[[0, 1]], [[0, 1]]]
    assert content["findings"][0]["what"] == "lab1 → lab2 in overlay: no throughput."
    words = Page(page(content)).words
    assert "2 of 3 rounds of pairs fitted into the time." in words
    assert "iperf3 between hosts: not measured." in words


def test_roles_after_one_that_failed_are_not_called_right() -> None:
    roles = {"preflight": {"ok": True, "sentence": "Fine"}, "host": {"ok": False, "sentence": "lab2: x. Remedy: y"}}
    content = document(changed(verify=parse_verify(json.dumps({"version": 1, "roles": roles, "collective": None}))))
    found = [(role["name"], role["level"]) for role in content["health"]["roles"]]
    assert found == [("preflight", "ok"), ("host", "bad")]
    assert content["health"]["unseen"] == list(NAMES[2:])
    assert content["findings"] == [{"level": "bad", "where": "host", "what": "lab2: x.", "remedy": "y"}]
    assert f"Not checked: {NAMES[2]}, {NAMES[3]}," in Page(page(content)).words


def test_differences_name_the_majority_and_the_others() -> None:
    found = {f"n{index}": {"Kernel": "6.1", "torch": "2"} for index in range(5)}
    found["n3"] = {"Kernel": "6.12"}
    found["down"] = {}
    differing, alike = differences(found)
    assert [(item["what"], item["matters"]) for item in differing] == [("torch", True), ("Kernel", False)]
    assert [(group["value"], group["who"], group["majority"]) for group in differing[1]["groups"]] == [
        ("6.1", "n0–n2, n4", True),
        ("6.12", "n3", False),
    ]
    assert differing[0]["groups"][1]["value"] == "not known"
    assert alike == []
    assert differences({}) == ([], [])


def test_a_tie_has_no_majority() -> None:
    differing, dummy = differences({"a": {"Kernel": "1"}, "b": {"Kernel": "2"}})
    assert [group["majority"] for group in differing[0]["groups"]] == [False, False]
