# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Sphinx's configuration of the documentation site, which python -m tests.docs_site builds."""

from __future__ import annotations

project = "swarmspeed.cluster"
author = "The swarmspeed.cluster founders"
root_doc = "README"
extensions = ["myst_parser", "sphinx_antsibull_ext"]

# Anchors are made from headings as they are where people read the files in a repository.
myst_heading_anchors = 6
highlight_language = "yaml+jinja"
default_role = "any"
smartquotes = False

html_theme = "furo"
html_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_theme_options = {"navigation_with_keys": True}
# The colours of modules' pages are those of the theme: _static/site.css.
antsibull_ext_color_scheme = "none"
