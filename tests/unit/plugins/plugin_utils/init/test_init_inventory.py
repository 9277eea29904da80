# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""hosts.yml: what is written, and how servers are added to one that people have edited."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.decisions import choose_managers
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.inventory import (
    Entry,
    InventoryError,
    added,
    entry,
    hosts,
    render,
    scalar,
    shared_variables,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.init_servers import server


def entries(*numbers: int, **more: Any) -> list[Entry]:
    return [entry(server(number, **more), f"gpu{number}", "8 × H100") for number in numbers]


def written(*numbers: int) -> str:
    return render(entries(*numbers), choose_managers(len(numbers)), "1.0.0")


@pytest.mark.parametrize(("count", "managers"), [(1, 1), (2, 1), (5, 3)])
def test_servers_are_managers_and_workers_with_what_they_share_in_one_place(count: int, managers: int) -> None:
    numbers = range(11, 11 + count)
    cluster = yaml.safe_load(written(*numbers))["cluster"]
    groups = cluster["children"]
    names = [f"gpu{number}" for number in numbers]
    assert list(groups["managers"]["hosts"]) == names[:managers]
    assert list(groups["workers"]["hosts"]) == names[managers:]
    assert groups["managers"]["hosts"]["gpu11"] == {"ansible_host": "10.0.0.11"}
    assert cluster["vars"]["ansible_user"] == "ubuntu"
    assert "{{ inventory_dir }}/known_hosts" in cluster["vars"]["ansible_ssh_common_args"]


def test_what_differs_stays_with_the_server() -> None:
    text = render([*entries(11), *entries(12, user="root", port=2222)], choose_managers(2), "1.0.0")
    cluster = yaml.safe_load(text)["cluster"]
    assert "ansible_user" not in cluster["vars"]
    assert cluster["children"]["workers"]["hosts"]["gpu12"] == {
        "ansible_host": "10.0.0.12",
        "ansible_port": 2222,
        "ansible_user": "root",
    }


def test_what_is_written_is_read_again() -> None:
    assert hosts(written(11, 12)) == {"gpu11": {"ansible_host": "10.0.0.11"}, "gpu12": {"ansible_host": "10.0.0.12"}}
    assert shared_variables(written(11, 12))["ansible_user"] == "ubuntu"
    assert hosts("") == {} == shared_variables("")


EDITED = """\
# mine
cluster:
  children:
    workers:
        hosts:   # two
            gpu12: {ansible_host: 10.0.0.12}   # flow
            gpu13:
                ansible_host: 10.0.0.13
                tags: [a,
                       b]   # over two lines

            # not a host
    managers:
        hosts:
            gpu11:
  vars:
    ansible_user: ubuntu
    secret: !vault |
      $ANSIBLE_VAULT
"""


@pytest.mark.parametrize(
    "text",
    [
        EDITED,
        written(11),
        written(11, 12),
        written(11, 12).rstrip("\n"),
        "cluster:\n  children:\n    managers: {hosts: {a: {}}}\n    workers:\n      hosts: {} # none yet\n",
        "cluster:\n  children:\n    workers:\n      hosts:\n    managers:\n      hosts:\n        a:\n",
        "cluster:\n  children:\n    managers:\n      hosts:\n        a:\n    workers:\n      hosts:\n        b:\n",
    ],
)
def test_servers_are_added_and_no_line_is_changed(text: str) -> None:
    whole, by_hand = added(text, entries(14, 15))
    assert by_hand == ""
    there = hosts(whole)
    assert there["gpu14"]["ansible_host"] == "10.0.0.14" and there["gpu15"]["ansible_host"] == "10.0.0.15"
    assert {name: there[name] for name in hosts(text)} == hosts(text)
    # An empty mapping has to go; every other line is there as before, in order.
    left = iter(whole.splitlines())
    assert [line for line in text.replace("hosts: {}", "hosts:").splitlines() if line not in left] == []


def test_what_all_share_is_not_repeated() -> None:
    whole = added(written(11), entries(12))[0]
    assert hosts(whole)["gpu12"] == {"ansible_host": "10.0.0.12"}
    assert hosts(added(written(11), entries(12, user="root"))[0])["gpu12"]["ansible_user"] == "root"


@pytest.mark.parametrize("text", ["cluster: {children: {workers: {hosts: {a: {}}}}}\n", "cluster:\n  hosts:\n    a:\n"])
def test_what_is_not_understood_is_left_to_the_user(text: str) -> None:
    whole, by_hand = added(text, entries(12))
    assert whole == text
    assert by_hand.startswith("gpu12: # 8 × H100\n  ansible_host: 10.0.0.12\n")


@pytest.mark.parametrize(("text", "where"), [("a:\n\tb: 1\n", "line 2: "), ("a: {{ b }}\nc: [", "line ")])
def test_what_is_no_yaml_is_refused_with_its_line(text: str, where: str) -> None:
    with pytest.raises(InventoryError) as caught:
        hosts(text)
    assert str(caught.value).startswith(where)


@settings(max_examples=examples(200))
@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
    | st.sampled_from(["on", "1e3", "~", "0x1", "a: b"])
)
def test_a_text_is_read_as_it_was(text: str) -> None:
    assert yaml.safe_load(f"key: {scalar(text)}\n") == {"key": text}
