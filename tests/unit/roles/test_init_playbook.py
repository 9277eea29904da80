# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What init.yml shows before anything is written."""

from __future__ import annotations

from tests.role_values import load, templar


def test_each_host_key_is_shown_on_a_line_of_its_own() -> None:
    (pause,) = (task for task in load("../playbooks/init.yml")[0]["tasks"] if "ansible.builtin.pause" in task)
    keys = ["10.0.0.11  SHA256:abc  ED25519", "10.0.0.12  SHA256:d\x1bef  ED25519"]
    prompt = templar({"_init_read": {"unconfirmed": keys}}).template(pause["ansible.builtin.pause"]["prompt"])
    first, second, last = prompt.splitlines()
    assert first == keys[0]
    assert second.startswith("10.0.0.12  SHA256:d") and "\x1b" not in second
    assert last.endswith("Then type yes")
