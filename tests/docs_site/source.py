# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What Sphinx reads: the documents where they are in the repository, what they link to, and the order of pages."""

from __future__ import annotations

import functools
import re
import shutil
from pathlib import Path

from tests.documents import BESIDE, DOCUMENTS, INDEX, ROOT, listed, local_links, path_of, text

_ANSIBLE = "https://docs.ansible.com/ansible/latest"
_THEIRS = {
    "action_plugins": "plugins/action.html",
    "ansible_configuration_settings": "reference_appendices/config.html",
    "callback_plugins": "plugins/callback.html",
    "common_return_values": "reference_appendices/common_return_values.html",
}
_LINK = re.compile(r"(?<!!)\[(?P<words>[^]]*)\]\((?P<path>[^)#:\s]+)\)")


PAGES = (*DOCUMENTS, "CHANGELOG.md")


def assemble(folder: Path) -> None:
    """Copy all documents, and the files that they link to or show."""
    for document in PAGES:
        path = folder / document
        path.parent.mkdir(parents=True, exist_ok=True)
        role = re.fullmatch(r"roles/(\w+)/README.md", document)
        label = f"(ansible_collections.swarmspeed.cluster.{role[1]}_role)=\n\n" if role else ""
        path.write_text(label + _LINK.sub(functools.partial(_linked, document), text(document)), encoding="utf-8")
        for target in {target for target, _anchor in local_links(document)} - set(PAGES):
            if (ROOT / target).is_file():
                (folder / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / target, folder / target)


def _linked(document: str, link: re.Match[str]) -> str:
    """Return a link, to a folder's README where it leads to a folder. A site has no page of other folders."""
    target = path_of(document, link["path"])
    if not (ROOT / target).is_dir():
        return link[0]
    if f"{target}/README.md" in DOCUMENTS:
        return f"[{link['words']}]({link['path'].rstrip('/')}/README.md)"
    return link["words"]


_CONTENTS = ".. contents::\n   :local:\n   :depth: 1\n"


def adapt(folder: Path) -> None:
    """In pages by antsibull-docs, leave out the list of headings, which the theme has, and turn references to
    Ansible's own documentation, whose index is elsewhere, into links."""
    for path in folder.glob("*.rst"):
        page = re.sub(
            r":ref:`(?:([^`<]+) <)?(?!ansible_collections\.swarmspeed\.)(\w[\w.]*)>?`",
            lambda found: f"`{found[1] or 'Ansible'} <{_ANSIBLE}/{_theirs(found[2])}>`__",
            path.read_text(encoding="utf-8").replace(_CONTENTS, ""),
        )
        path.write_text(page, encoding="utf-8")


def _theirs(label: str) -> str:
    """Return the address of a label; a module's is ansible_collections.NAMESPACE.NAME.MODULE_module."""
    if label.startswith("ansible_collections."):
        return f"{label.removeprefix('ansible_').replace('.', '/')}.html"
    return _THEIRS[label]


def navigation(folder: Path, modules: str) -> None:
    """Add the list of pages to the first one, in the index's sections, and to pages that list those of a folder."""
    parts = {"": [INDEX], **listed()}
    parts["Reference"] = [*parts["Reference"], modules]
    for caption, documents in parts.items():
        _add(folder / "README.md", documents, caption)
    beside = {*DOCUMENTS} - {"README.md", *(document for documents in parts.values() for document in documents)}
    for below, page in BESIDE.items():
        _add(folder / page, sorted(document for document in beside if document.startswith(below)))


def _add(page: Path, documents: list[str], caption: str = "") -> None:
    names = "".join(f"/{document.removesuffix('.md')}\n" for document in documents)
    with page.open("a", encoding="utf-8") as end:
        end.write(f"\n```{{toctree}}\n:hidden:\n{f':caption: {caption}' if caption else ''}\n\n{names}```\n")
