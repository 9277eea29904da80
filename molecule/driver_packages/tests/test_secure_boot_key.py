"""The remedy for Secure Boot on Debian 12 and 13, with the real dkms: does it make the key that it then enrols?

There is no firmware with Secure Boot here, so ``mokutil --import`` is not run, and nothing is confirmed at a console.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parents[3] / "collections")]

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.refusals import secure_boot_refusal
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.request import Node

from tests.playbook_run import on

KEY = "/var/lib/dkms/mok.pub"


def commands(release: str) -> list[str]:
    """Return the commands of the remedy, as somebody would paste them one after the other."""
    facts: dict[str, Any] = {
        "gpu": {"secure_boot": True},
        "driver": {"mok_enrolled": False, "mok_keys": []},
        "system": {"distribution": "debian", "release": release},
    }
    refusal = secure_boot_refusal(Node(facts))
    assert refusal is not None
    (listed,) = re.findall(r"enrol the key \((.*); then reboot", refusal.remedy)
    return str(listed).split("; ")


@pytest.mark.parametrize(("host", "release"), [("lab1", "12"), ("lab2", "13")])
def test_the_remedy_makes_the_key_with_which_dkms_signs(host: str, release: str) -> None:
    assert on(host, ". /etc/os-release && echo $VERSION_ID").strip() == release
    there = on(host, "dpkg-query -W -f '${db:Status-Abbrev}' dkms 2>/dev/null || true").startswith("ii")
    on(host, f"rm -f {KEY} {KEY.replace('.pub', '.key')}")
    *make, enrol = commands(release)
    assert enrol == f"mokutil --import {KEY}"
    try:
        for command in make:
            install = command.startswith("apt-get install ")
            on(host, command.replace("install ", "-qq install -y --no-install-recommends ") if install else command)
        subject = on(host, f"openssl x509 -inform DER -in {KEY} -noout -subject")
        assert "DKMS module signing key" in subject
        # Only root may read what modules are signed with.
        assert on(host, "stat -c %a /var/lib/dkms/mok.key").strip() == "600"
        # The dkms of Debian 12 has no generate_mok, so the command for Debian 13 would not help there.
        known = "generate_mok" in on(host, "dkms --help 2>&1 || true")
        assert known is (release == "13") is ("dkms generate_mok" in make)
    finally:
        on(host, f"rm -f {KEY} {KEY.replace('.pub', '.key')}")
        if not there:
            on(host, "DEBIAN_FRONTEND=noninteractive apt-get -qq purge -y --autoremove dkms mokutil")
