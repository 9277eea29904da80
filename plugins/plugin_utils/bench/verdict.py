# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the figures of a network benchmark mean: which pairs are slow, which network to use, which threshold is missed.

Input everywhere: ``networks`` by kind, as in the report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

SLOW = 0.5
"""A pair is slow below this part of what the best quarter of all pairs in that network reaches. Not of the median: of
three nodes one bad link slows four of the six directions down, and the median with them."""
ASYMMETRIC = 0.5
"""A link is asymmetric where one direction has less than this part of the other."""
LATE, LATE_MS = 3.0, 0.5
"""A pair is late above three times the latency of the best quarter, and half a millisecond more than it: below that
the scheduler of a busy host shows, and no network."""
GAIN = 1.2
"""From this ratio on a network is called faster; less lies within what repeated measurements differ by."""
MANY = 20
"""More sentences of a kind than this help no one; the figures are in the JSON."""
TIMES = "×"  # not an x
WORDS = {"host": "the host network", "overlay": "the overlay", "overlay_encrypted": "the encrypted overlay"}

Networks = Mapping[str, Mapping[str, Any]]


def best_quarter(values: Sequence[float], *, low: bool = False) -> float:
    """The value that the best quarter reaches, by nearest rank; with ``low`` small ones are good."""
    ordered = sorted(values, reverse=low)
    return ordered[max(math.ceil(0.75 * len(ordered)), 1) - 1]


def bandwidth(network: Mapping[str, Any], size: int | None = None) -> tuple[int, float] | None:
    """Return bytes and bus bandwidth (GB/s) of the largest all_reduce, or of the one of this size."""
    found = {
        int(case["bytes"]): float(case["busbw_gigabytes_per_second"])
        for case in network.get("collectives") or []
        if case["op"] == "all_reduce" and size in (None, case["bytes"])
    }
    return max(found.items()) if found else None


def compared(networks: Networks, one: str, other: str) -> tuple[int, float, float] | None:
    """Return bytes and both bus bandwidths of the largest all_reduce that both networks have."""
    for case in sorted(networks.get(one, {}).get("collectives") or [], key=lambda case: -int(case["bytes"])):
        here, there = bandwidth(networks[one], case["bytes"]), bandwidth(networks.get(other, {}), case["bytes"])
        if here and there and there[1] > 0:
            return here[0], here[1], there[1]
    return None


def size_text(size: int) -> str:
    """A message's size as people say it: 64 MiB also where a few bytes fell off, so that ranks could share it."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= 0.99 * unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} B"


def recommend(networks: Networks, in_use: str) -> dict[str, Any]:
    """Return ``text``, ``ratio`` (host over overlay, None where one is missing) and ``set``, variables to set."""
    overlay = in_use if in_use != "host" else "overlay"
    found = compared(networks, "host", overlay)
    if found is None:
        missing = [WORDS[kind] for kind in ("host", overlay) if not bandwidth(networks.get(kind, {}))]
        what = " and ".join(missing) or "an all_reduce of the same size"
        return {"text": f"No recommendation: {what} could not be measured.", "ratio": None, "set": {}}
    size, host, other = found
    ratio = host / other
    figures = f"{host:.3g} against {other:.3g} GB/s, all_reduce of {size_text(size)}"
    wanted = {}
    if in_use == "host":
        text = f"host network, in use: {ratio:.2g} {TIMES} the bus bandwidth of {WORDS[overlay]} here ({figures})"
        text += "; nothing to change."
    elif ratio >= GAIN:
        wanted = {"cluster_network_mode": "host"}
        text = f"host network: {ratio:.2g} {TIMES} the bus bandwidth here ({figures}); set cluster_network_mode: host."
    else:
        text = (
            f"{WORDS[overlay]}, in use: {1 / ratio:.2g} {TIMES} the bus bandwidth of the host network here ({figures})"
        )
        text += "; nothing to change."
    cost = compared(networks, "overlay", "overlay_encrypted")
    if cost:
        text += f" Encryption leaves {cost[2] / cost[1]:.2g} {TIMES} the overlay's bus bandwidth."
    return {"text": text, "ratio": round(ratio, 3), "set": wanted}


def _rates(pairs: Sequence[Mapping[str, Any]], key: str) -> dict[tuple[str, str], float]:
    return {(pair["from"], pair["to"]): float(pair[key]) for pair in pairs if pair.get(key) is not None}


def slow(networks: Networks, floor: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return nodes of which every pair in a direction is slow, and all slow or late pairs; iperf3's among them."""
    nodes: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    for kind, found in [*networks.items(), ("floor", floor)]:
        lines = found.get("pairs") or []
        for line in lines:
            if line.get("error") and not found.get("error"):
                pairs.append(_pair(kind, line["from"], line["to"], f"no throughput: {line['error']}"))
        rates = _rates(lines, "gigabits_per_second")
        if rates:
            reference = best_quarter(list(rates.values()))
            low = {pair: rate for pair, rate in rates.items() if rate < SLOW * reference}
            nodes += _nodes(kind, rates, low, reference)
            for (one, other), rate in low.items():
                text = f"{rate:.3g} Gbit/s, where the best quarter of the pairs has {reference:.3g}"
                pairs.append(_pair(kind, one, other, text))
        trips = _rates(lines, "latency_ms")
        if trips:
            usual = best_quarter(list(trips.values()), low=True)
            for (one, other), trip in trips.items():
                if trip > LATE * usual and trip > usual + LATE_MS:
                    text = f"a round trip takes {trip:.3g} ms, where the best quarter of the pairs has {usual:.3g}"
                    pairs.append(_pair(kind, one, other, text))
    return nodes, pairs


def _pair(kind: str, one: str, other: str, text: str) -> dict[str, Any]:
    return {"from": one, "to": other, "network": kind, "text": f"{one} → {other} in {kind}: {text}."}


def _nodes(
    kind: str, rates: Mapping[tuple[str, str], float], low: Mapping[tuple[str, str], float], reference: float
) -> list[dict[str, Any]]:
    """Nodes from which, or to which, everything is slow, though other nodes are not: then it is that node's link."""
    found = []
    for end, way in ((0, "sends"), (1, "receives")):
        for name in dict.fromkeys(pair[end] for pair in rates):
            mine = [pair for pair in rates if pair[end] == name]
            others = [pair for pair in rates if name not in pair]
            if len(mine) > 1 and all(pair in low for pair in mine) and any(pair not in low for pair in others):
                best = max(rates[pair] for pair in mine)
                text = f"{name} {way} at most {best:.3g} Gbit/s in {kind}, whatever the other node, where the best "
                text += f"quarter of the pairs has {reference:.3g}: check its link, cable and switch port (ethtool)."
                found.append({"node": name, "network": kind, "text": text})
    return found


def asymmetric(networks: Networks) -> list[dict[str, Any]]:
    """Return links of which one direction is much slower than the other, the slow direction as from and to."""
    found = []
    for kind, network in networks.items():
        rates = _rates(network.get("pairs") or [], "gigabits_per_second")
        for (one, other), rate in rates.items():
            back = rates.get((other, one))
            if back is not None and rate < ASYMMETRIC * back:
                text = f"{rate:.3g} Gbit/s, and {back:.3g} the other way"
                found.append(_pair(kind, one, other, text))
    return found


def failures(networks: Networks, in_use: str, thresholds: Mapping[str, float]) -> list[str]:
    """Return a sentence for each reason to fail: the network in use is not whole, or a threshold is missed.

    ``thresholds``: ``min_ratio`` (overlay over host), ``min_gigabits`` (Gbit/s of every pair), ``min_busbw`` (GB/s of
    the largest all_reduce); 0 asks for nothing.
    """
    found, network = [], networks.get(in_use, {})
    name = "overlay_network_bench_"
    if network.get("error"):
        found.append(f"{in_use}, which the cluster trains over, could not be measured: {network['error']}")
    elif not network:
        found.append(f"{in_use}, which the cluster trains over, was not measured.")
    found += [
        f"{pair['from']} → {pair['to']} in {in_use}: {pair['error']}."
        for pair in network.get("pairs") or []
        if pair.get("error")
    ]
    least = thresholds["min_gigabits"]
    found += [
        f"{one} → {other} in {in_use}: {rate:.3g} Gbit/s, less than {name}min_gigabits ({least:g})."
        for (one, other), rate in _rates(network.get("pairs") or [], "gigabits_per_second").items()
        if rate < least
    ]
    least, best = thresholds["min_busbw"], bandwidth(network)
    if least and best and best[1] < least:
        size = size_text(best[0])
        text = f"{in_use}: {best[1]:.3g} GB/s of bus bandwidth (all_reduce of {size})"
        found.append(f"{text}, less than {name}min_busbw ({least:g}).")
    elif least and not best:
        found.append(f"{in_use}: {name}min_busbw ({least:g}) is requested, and no all_reduce could be measured.")
    least = thresholds["min_ratio"]
    overlay = in_use if in_use != "host" else "overlay"
    both = compared(networks, overlay, "host") if least else None
    if both and both[1] / both[2] < least:
        text = f"{overlay}: {both[1] / both[2]:.2g} {TIMES} the bus bandwidth of the host network"
        found.append(f"{text} (all_reduce of {size_text(both[0])}), less than {name}min_ratio ({least:g}).")
    elif least and not both:
        found.append(f"{name}min_ratio ({least:g}) is requested, and {overlay} and host could not be compared.")
    return found
