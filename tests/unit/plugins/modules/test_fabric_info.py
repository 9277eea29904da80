# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue of fabric_info, over an invented host, and that it returns what it documents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.modules import fabric_info

ADDRESS = [
    {
        "ifname": "eth0",
        "link_type": "ether",
        "operstate": "UP",
        "mtu": 1500,
        "addr_info": [{"family": "inet", "local": "10.20.0.11", "prefixlen": 24, "scope": "global"}],
    }
]
ROUTE = [{"dst": "default", "gateway": "10.20.0.1", "dev": "eth0"}]
PORT: dict[str, Any] = {
    "port": "1",
    "state": "4: ACTIVE",
    "phys_state": "5: LinkUp",
    "rate": "100 Gb/sec (4X EDR)",
    "link_layer": "IB",
    "gids": [{"index": "0", "gid": "fe80::1", "type": "IB/RoCE v1", "interface": ""}],
}


class FakeIO:
    calls = 0

    def ip(self, *arguments: str) -> CommandResult | None:
        FakeIO.calls += 1
        return CommandResult(0, json.dumps(ADDRESS if "address" in arguments else ROUTE))

    def interface(self, name: str) -> dict[str, Any]:
        return {"speed": "25000", "driver": "mlx5_core", "hardware": True}

    def pci_path(self, address: str) -> str:
        return ""

    def infiniband(self) -> list[dict[str, Any]]:
        return [
            {"name": "mlx5_0", "interfaces": ["ib0"], "numa_node": "0", "pci_path": "", "vpd": b"", "ports": [PORT]}
        ]


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **args: Any) -> dict[str, Any]:
    monkeypatch.setattr(fabric_info, "SystemFabricIO", FakeIO)
    monkeypatch.setattr(FakeIO, "calls", 0)
    with patch_module_args(args), pytest.raises(SystemExit) as ended:
        fabric_info.main()
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (ended.value.code == 0) is not result.get("failed", False)
    return result


@pytest.mark.parametrize("check", [False, True])
def test_it_returns_what_it_documents(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], check: bool
) -> None:
    result = run(monkeypatch, capsys, subnet="10.20.0.0/16", _ansible_check_mode=check)
    assert (result["changed"], result["interface"], result["default_interface"]) == (False, "eth0", "eth0")
    documented = from_yaml(fabric_info.RETURN)
    assert set(documented) == set(result) - {"changed", "invocation"}
    interface, port = result["interfaces"][0], result["infiniband"][0]["ports"][0]
    assert set(documented["interfaces"]["contains"]) == set(interface)
    assert set(documented["interfaces"]["contains"]["addresses"]["contains"]) == set(interface["addresses"][0])
    assert set(documented["routes"]["contains"]) == set(result["routes"][0])
    assert set(documented["infiniband"]["contains"]) == set(result["infiniband"][0])
    ports = documented["infiniband"]["contains"]["ports"]["contains"]
    assert set(ports) == set(port)
    assert set(ports["gids"]["contains"]) == set(port["gids"][0])


def test_without_a_subnet_no_interface_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "interface" not in run(monkeypatch, capsys)


def test_a_subnet_that_nothing_carries(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, capsys, subnet="10.21.0.0/16")["interface"] is None


@pytest.mark.parametrize(
    ("subnet", "text"),
    [
        ("10.20.0.11/24", "subnet: 10.20.0.11/24 has host bits set. Give a network such as 10.20.0.0/24."),
        (
            "storage",
            "subnet: 'storage' does not appear to be an IPv4 or IPv6 network. Give a network such as 10.20.0.0/24.",
        ),
    ],
)
def test_a_bad_subnet_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], subnet: str, text: str
) -> None:
    result = run(monkeypatch, capsys, subnet=subnet)
    assert (result["failed"], result["msg"], FakeIO.calls) == (True, text, 0)
