# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Builds the documentation as a site: ``python -m tests.docs_site FOLDER``, with requirements-docs.txt installed.

The Markdown files are taken as they are, with the pages of modules and filters by antsibull-docs. docs/README.md is
the site's list of pages. A warning, a link that leads nowhere or anything remote in a page fails the build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs_site.built import problems
from tests.docs_site.source import adapt, assemble, navigation
from tests.documents import ROOT

HERE = Path(__file__).parent
NAME = "swarmspeed.cluster"
MODULES = "modules"


def run(*words: str, **environment: str) -> None:
    done = subprocess.run(words, env={**os.environ, **environment}, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")


def modules(work: Path, pages: Path) -> None:
    """Write the pages of modules and filters. Roles are left out: their READMEs have the same variables."""
    collection = work / "collections/ansible_collections" / NAME.replace(".", "/")
    collection.mkdir(parents=True)
    for name in ("plugins", "meta", "galaxy.yml", "README.md"):
        (collection / name).symlink_to(ROOT / name)
    pages.mkdir(mode=0o755)
    command = ["antsibull-docs", "--config-file", str(HERE / "antsibull-docs.cfg"), "collection", "--use-current"]
    command += ["--squash-hierarchy", "--fail-on-error", "--no-add-antsibull-docs-version", "--dest-dir", str(pages)]
    run(*command, NAME, ANSIBLE_COLLECTIONS_PATH=str(work / "collections"))


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    source, site = folder / "source", folder / "html"
    assemble(source)
    shutil.copytree(HERE / "_static", source / "_static")
    shutil.copy2(HERE / "conf.py", source)
    modules(folder, source / MODULES)
    adapt(source / MODULES)
    navigation(source, f"{MODULES}/index")
    run("sphinx-build", "-W", "--keep-going", "-q", "-j", "2", "-d", str(folder / "doctrees"), str(source), str(site))
    shutil.copy2(site / "README.html", site / "index.html")
    found = problems(site)
    if found:
        sys.exit("\n".join(found))
    print(f"{len(list(site.rglob('*.html')))} pages: {site / 'index.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
