# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Colours of the report, for light and dark. Here and not in the style sheet, so that tests can reckon with them.

Text has a contrast of at least 4.5 : 1 on what it stands on, lines and marks 3 : 1 (WCAG 2.2, 1.4.3 and 1.4.11). The
steps of heat maps go from purple over grey to orange, which people with red-green blindness can distinguish
(after ColorBrewer's PuOr).
"""

from __future__ import annotations

LIGHT = {
    "page": "#f5f6f7",
    "panel": "#ffffff",
    "sunk": "#eef0f2",
    "line": "#d5dae0",
    "ink": "#1a1f25",
    "soft": "#545d68",
    "accent": "#1f5a99",
    "ok": "#0a6b5c",
    "warn": "#875300",
    "bad": "#b42318",
    "ok-bg": "#e3f2ee",
    "warn-bg": "#fbf0da",
    "bad-bg": "#fce9e6",
    "host": "#1f5a99",
    "overlay": "#b04e00",
    "overlay_encrypted": "#74409f",
    "heat0": "#b5aed8",
    "heat1": "#eceaf2",
    "heat2": "#fde3bd",
    "heat3": "#f8ba66",
    "heat4": "#d97f24",
    "heat5": "#8c3d00",
    "on-heat0": "#1a1f25",
    "on-heat1": "#1a1f25",
    "on-heat2": "#1a1f25",
    "on-heat3": "#1a1f25",
    "on-heat4": "#1a1f25",
    "on-heat5": "#ffffff",
}

DARK = {
    "page": "#101317",
    "panel": "#181c21",
    "sunk": "#21262d",
    "line": "#343b44",
    "ink": "#e7eaee",
    "soft": "#a1abb6",
    "accent": "#82b5ec",
    "ok": "#62c9ad",
    "warn": "#e3b45c",
    "bad": "#ff938a",
    "ok-bg": "#14312b",
    "warn-bg": "#362a12",
    "bad-bg": "#3f1d1b",
    "host": "#82b5ec",
    "overlay": "#f0a15a",
    "overlay_encrypted": "#c6a0ea",
    "heat0": "#4c4580",
    "heat1": "#2b303a",
    "heat2": "#55401f",
    "heat3": "#7d581a",
    "heat4": "#d08a2e",
    "heat5": "#ffc477",
    "on-heat0": "#e7eaee",
    "on-heat1": "#e7eaee",
    "on-heat2": "#e7eaee",
    "on-heat3": "#ffffff",
    "on-heat4": "#101317",
    "on-heat5": "#101317",
}


def variables(palette: dict[str, str]) -> str:
    """The declarations of a palette as custom properties of CSS."""
    return "".join(f"--{name}:{value};" for name, value in palette.items())


def _linear(channel: int) -> float:
    share = channel / 255
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Contrast of two colours ``#rrggbb``, 1 to 21 (WCAG 2.2)."""
    lights = sorted(
        sum(weight * _linear(int(colour[at : at + 2], 16)) for weight, at in ((0.2126, 1), (0.7152, 3), (0.0722, 5)))
        for colour in (one, other)
    )
    return (lights[1] + 0.05) / (lights[0] + 0.05)
