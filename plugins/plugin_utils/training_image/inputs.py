# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a user gives for the build of the image, beyond names and versions: read, and checked at the start. Pure.

Forms: requirements files as in https://pip.pypa.io/en/stable/reference/requirements-file-format/, git references as in
https://pip.pypa.io/en/stable/topics/vcs-support/, sources of apt as in sources.list(5) (read 2026-11-23).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils.common.secret_names import is_secret

ARCHIVES = (".tar.gz", ".tgz", ".zip")
"""Ends of the names of source archives that pip unpacks."""
_GIT = re.compile(r"git\+(?P<url>https://[^\s@#]+)@(?P<reference>[A-Za-z0-9][\w./-]*)", re.ASCII)
_COMMENT = re.compile(r"(^|\s)#.*$")
_INCLUDE = re.compile(r"(-r|--requirement|-c|--constraint)(?=[\s=\w./]|$)")
_FILE = re.compile(
    r"""(-e|--editable)[\s=]+(?!\w+\+?\w*://)   # a folder of one's own, and no repository
    |(-f|--find-links)[\s=]+(?!https?://)
    |(\.{1,2}(/|$)|/|~|file:)
    |[^\s@]+\s*@\s*file:
    |[^\s@:]+\.(whl|tar\.gz|tgz|zip)(\s|$)""",
    re.VERBOSE | re.IGNORECASE,
)
_DEB822 = re.compile(r"^(Types|URIs|Suites)\s*:", re.MULTILINE | re.IGNORECASE)
_ONE_LINE = re.compile(r"deb(-src)?\s+(\[[^\]]*\]\s+)?\S+:\S+\s+\S+")


@dataclass(frozen=True)
class Trouble:
    """``subject`` is a variable; both texts are without a full stop."""

    subject: str
    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}. Remedy: {self.remedy}."


@dataclass(frozen=True)
class Source:
    """Where DeepSpeed comes from. ``kind`` is ``index``, ``archive`` or ``git``."""

    kind: str
    path: str = ""
    url: str = ""
    reference: str = ""

    @property
    def suffix(self) -> str:
        """Return the end of the archive's name, by which pip knows how to unpack it."""
        return next((end for end in ARCHIVES if self.path.lower().endswith(end)), "")


SOURCE = "training_image_deepspeed_source"
_FORMS = f"a file that ends in {', '.join(ARCHIVES[:-1])} or {ARCHIVES[-1]}, or git+https://HOST/PATH@REFERENCE"


def read_source(text: str) -> Source | Trouble:
    """Return where DeepSpeed comes from, or what is wrong with the text."""
    given = text.strip()
    if not given:
        return Source("index")
    if not given.startswith("git+"):
        source = Source("archive", path=given)
        return (
            source if source.suffix else Trouble(SOURCE, "is neither an archive nor a git reference", f"give {_FORMS}")
        )
    if re.match(r"git\+\w+://[^/]*@", given):
        return Trouble(
            SOURCE,
            "has a user or a password in its address, which everyone could read in the image's history",
            "download the source and give it as an archive",
        )
    found = _GIT.fullmatch(given)
    if found is None:
        return Trouble(
            SOURCE,
            "is not a git reference over HTTPS that names a commit or a tag",
            "write git+https://HOST/PATH@REFERENCE; the commit in full makes the same image each time",
        )
    return Source("git", url=found["url"], reference=found["reference"])


def requirements_troubles(path: str, text: str) -> Iterator[Trouble]:
    """Yield what a requirements file may not have: the file alone goes into the build, nothing beside it."""
    # A backslash at the end of a line continues it; pip joins lines before it removes comments.
    joined = text.replace("\r\n", "\n").replace("\\\n", " ")
    lines = [line for line in (_COMMENT.sub("", line).strip() for line in joined.split("\n")) if line]
    included = [line for line in lines if _INCLUDE.match(line)]
    files = [line for line in lines if _FILE.match(line)]
    name = "training_image_requirements"
    if included:
        yield Trouble(
            name,
            f"{path} includes other files, but the build gets only this one: {_some(included)}",
            "write what they hold into this file, as pip-compile and uv pip compile do",
        )
    if files:
        yield Trouble(
            name,
            f"{path} names files or folders, but the build gets only this file: {_some(files)}",
            "bring them as wheels in training_image_wheelhouse, and name the packages here",
        )


def _some(lines: Sequence[str]) -> str:
    return "; ".join(lines[:3]) + ("; …" if len(lines) > 3 else "")


def apt_sources_text(given: Any) -> str:
    """Return the sources as one text: a list has one a line."""
    lines = given if isinstance(given, Sequence) and not isinstance(given, str) else [given or ""]
    text = "\n".join(str(line).rstrip() for line in lines).strip("\n")
    return f"{text}\n" if text.strip() else ""


def is_deb822(text: str) -> bool:
    """Distinguish the two forms that apt reads, by which it has to be named."""
    return _DEB822.search(text) is not None


def apt_sources_troubles(given: Any, name: str = "training_image_apt_sources") -> Iterator[Trouble]:
    """Yield what is wrong, without the text: it may hold a password."""
    if isinstance(given, Mapping) or not isinstance(given, (str, Sequence, type(None))):
        yield Trouble(name, "is neither text nor a list", "give lines such as 'deb http://HOST/debian bookworm main'")
        return
    text = apt_sources_text(given)
    if is_deb822(text):
        for number, part in enumerate(re.split(r"\n\s*\n", text.strip()), 1):
            reported = {field.lower() for field in re.findall(r"^([\w-]+)\s*:", part, re.MULTILINE)}
            missing = [field for field in ("Types", "URIs", "Suites") if field.lower() not in reported]
            if missing and reported:
                yield Trouble(
                    name, f"entry {number} has no {' and no '.join(missing)}", "see deb822 in sources.list(5)"
                )
        return
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.split("#", 1)[0].strip()
        if bare and not _ONE_LINE.match(bare):
            yield Trouble(
                name,
                f"line {number} is not a source of apt",
                "write it as 'deb http://HOST/debian bookworm main', or give all as deb822 (Types, URIs, Suites)",
            )


def argument_troubles(given: Any) -> Iterator[Trouble]:
    """Yield which build arguments hold a secret."""
    name = "training_image_build_args"
    for key, value in given.items() if isinstance(given, Mapping) else ():
        if is_secret(key, value):
            yield Trouble(
                name,
                f"{key} holds a secret, and everyone could read it in the image's history",
                "leave it out: indexes and proxies with a password have variables of their own, and what ranks need "
                "at run time belongs in nccl_env_environment",
            )
