# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes a report's document down as one page of HTML that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .palette import DARK, LIGHT, variables

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'"
TEMPLATES = Path(__file__).parents[3] / "playbooks" / "templates" / "report"


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(document: dict[str, Any]) -> str:
    """The page.

    Everything in a document is escaped, as names and log lines come from hosts. Should something get through all the
    same, the page's own policy lets no script run but ours, by its digest, and nothing be loaded from anywhere.
    """
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            document=document,
            style=Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
            script=Markup(script),
            policy=POLICY.format(digest),
            light=Markup(variables(LIGHT)),
            dark=Markup(variables(DARK)),
        )
    )
