# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How the GPUs of a host reach each other and the network: the matrix of ``nvidia-smi topo -m``.

Its words (nvidia-smi(1)): NV# is # NVLinks, PIX one PCIe bridge, PXB several, PHB the processor's host bridge, NODE
several host bridges of a NUMA node, SYS another NUMA node. Older drivers name the network devices in the matrix itself,
newer ones number them and name them in a legend below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""The head is underlined, even where the output is not a terminal."""

_NIC_NAME = re.compile(r"^\s*(NIC\d+):\s*(\S+)\s*$", re.ASCII)


@dataclass(frozen=True)
class Topology:
    """How GPUs reach each other and the RDMA devices, by their numbers as text: ``gpus["0"]["1"] == "NV18"``."""

    gpus: dict[str, dict[str, str]] = field(default_factory=dict)
    nics: dict[str, dict[str, str]] = field(default_factory=dict)
    cpu_affinity: dict[str, str] = field(default_factory=dict)


def parse_topology(text: str) -> Topology | None:
    """Return the matrix of ``nvidia-smi topo -m``, or None where there is none."""
    lines = _COLOUR.sub("", text).splitlines()
    columns: list[str] = []
    rows: dict[str, list[str]] = {}
    named: dict[str, str] = {}
    for line in lines:
        words = line.split()
        name = _NIC_NAME.match(line)
        if name:
            named[name.group(1)] = name.group(2)
        elif not columns and words and re.fullmatch(r"GPU\d+", words[0], re.ASCII):
            # After the devices stand "CPU Affinity" and, with newer drivers, "NUMA Affinity" and "GPU NUMA ID".
            columns = words[: words.index("CPU")] if "CPU" in words else words
        elif words and words[0] in columns and len(words) > len(columns):
            rows[words[0]] = words[1:]
    if not rows:
        return None
    topology = Topology()
    for row, cells in rows.items():
        links = {_short(column): cell for column, cell in zip(columns, cells) if column != row and _is_gpu(column)}
        if not _is_gpu(row):
            topology.nics[named.get(row, row)] = links
            continue
        topology.gpus[_short(row)] = links
        if len(cells) > len(columns) and re.fullmatch(r"[\d,-]+", cells[len(columns)], re.ASCII):
            topology.cpu_affinity[_short(row)] = cells[len(columns)]
    return topology


def _is_gpu(name: str) -> bool:
    return re.fullmatch(r"GPU\d+", name, re.ASCII) is not None


def _short(name: str) -> str:
    return name[3:] if name.startswith("GPU") else name
