# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Renders this collection's Dockerfile as Ansible's template module would. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

import jinja2


def render(template: str, values: Mapping[str, Any]) -> str:
    environment = jinja2.Environment(
        autoescape=False,  # a Dockerfile is no HTML
        keep_trailing_newline=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["quote"] = lambda text: quote(str(text))
    environment.filters["split"] = lambda text: str(text).split()
    return environment.from_string(template).render(values)
