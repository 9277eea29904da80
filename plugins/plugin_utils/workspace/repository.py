# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A git repository as the source of the workspace: what may be named, which commit it means, why git failed. Pure."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit, urlunsplit

from ...module_utils.common.reported import shown
from ...module_utils.common.secret_names import mask_text
from ...module_utils.common.untrusted_text import on_one_line
from ..core.kinds import KINDS

SOURCE, REFERENCE, FOLDER = "workspace_source", "workspace_source_ref", "workspace_source_folder"
PROTOCOLS = ("https", "ssh", "file", "http", "git")
"""What git may use, also where a server redirects it. Its helpers (``ext::``) would run commands."""
_UNPROTECTED = ("http", "git")
"""Anyone on the way could replace what is fetched, unless its commit is named: that is a digest of all of it."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ABBREVIATED = re.compile(r"[0-9a-f]{7,63}")
_SCP = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*@)?(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9_.-]*):(?P<path>[^:/].*|/[^/].*)"
)
"""``git@host:path``, for ssh."""
_BARE = re.compile(r"[A-Za-z0-9._-]{1,60}")


def is_commit(text: str) -> bool:
    """Whether it is a whole commit."""
    return bool(_COMMIT.fullmatch(text))


class SourceError(Exception):
    """The source cannot be used. ``subject`` is the variable, the text says why, ``remedy`` what to do."""

    def __init__(self, subject: str, text: str, remedy: str) -> None:
        super().__init__(f"{subject}: {text}. Remedy: {remedy}.")
        self.subject, self.text, self.remedy = subject, text, remedy


@dataclass(frozen=True)
class Repository:
    """A repository, a reference of it, and a folder in it. ``credentials`` are in no other part of it."""

    url: str
    reference: str
    folder: str = ""
    credentials: str = ""

    @property
    def commit(self) -> str:
        """The commit, where the reference is one; then the network is needed at most once."""
        return self.reference if _COMMIT.fullmatch(self.reference) else ""

    @property
    def key(self) -> str:
        """The name of its folder in the cache, the same whoever fetches it."""
        last = re.split(r"[/:]", self.url.rstrip("/"))[-1]
        last = last[: -len(".git")] if last.endswith(".git") else last
        name = last if _BARE.fullmatch(last) and last.strip(".-") else "repository"
        return f"{name.strip('.-')}-{hashlib.sha256(self.url.encode()).hexdigest()[:16]}"

    def name(self, commit: str) -> str:
        """What it is called in messages and in the plan."""
        within = f", folder {self.folder}" if self.folder else ""
        if self.commit:
            return f"{self.url} at commit {commit[:12]}{within}"
        return f"{self.url} at {self.reference} (commit {commit[:12]}){within}"

    def environment(self, count: int) -> dict[str, str]:
        """Return the variables that give git the credentials. As arguments, every user could read them in ps.

        ``count`` is the number of settings that the environment has already.
        """
        if not self.credentials:
            return {}
        parts = urlsplit(self.url)
        value = base64.b64encode(self.credentials.encode()).decode()
        return {
            "GIT_CONFIG_COUNT": str(count + 1),
            f"GIT_CONFIG_KEY_{count}": f"http.{parts.scheme}://{parts.netloc}/.extraHeader",
            f"GIT_CONFIG_VALUE_{count}": f"Authorization: Basic {value}",
        }


def named(source: str, reference: str, folder: str) -> bool:
    """Whether the variables name a repository, and not a folder of the controller. Raises ``SourceError``."""
    if reference:
        return True
    if folder:
        raise SourceError(
            FOLDER, "is set, but only a git repository has one", f"name a tag, branch or commit in {REFERENCE}"
        )
    if "://" in source or source.startswith(("git@", "ext::")):
        raise SourceError(
            SOURCE,
            f"{_safe(source)} is the URL of a git repository, but {REFERENCE} is empty",
            f"name a tag, branch or commit in {REFERENCE}",
        )
    return False


def parse(source: str, reference: str, folder: str) -> Repository:
    """Return the repository that the variables name. Raises ``SourceError``."""
    url, credentials = _url(source)
    found = Repository(url, reference, _folder(folder), credentials)
    if not KINDS["git_reference"].accepts(reference):
        raise SourceError(
            REFERENCE,
            f"{shown(reference)} is not a valid name of a tag or branch, nor a commit",
            "correct it; see git ls-remote",
        )
    scheme = url.partition("://")[0]
    if scheme in _UNPROTECTED and not found.commit:
        raise SourceError(
            SOURCE,
            f"{url} is fetched without encryption, so anyone on the network path could replace the code",
            f"use https or ssh, or give the whole commit (40 characters) in {REFERENCE}",
        )
    return found


def _url(source: str) -> tuple[str, str]:
    """Return the URL without its credentials, and these."""
    if source != source.strip() or any(ord(letter) < 33 or ord(letter) == 127 for letter in source):
        raise SourceError(SOURCE, f"{_safe(source)} has spaces or control characters in it", "correct the URL")
    if source.startswith("/"):
        return source, ""
    scheme, separator, dummy = source.partition("://")
    if not separator:
        match = _SCP.fullmatch(source)
        if match and not match["path"].startswith("-"):
            return source, ""
    if scheme not in PROTOCOLS:
        raise SourceError(
            SOURCE,
            f"{_safe(source)} is not a URL of a supported kind",
            f"use one that begins with {', '.join(f'{name}://' for name in PROTOCOLS)}, or git@host:path, or the "
            "absolute "
            "path of a repository on the controller",
        )
    try:
        parts = urlsplit(source)
        host, user, password, port = parts.hostname or "", parts.username, parts.password, parts.port
    except ValueError:
        raise SourceError(SOURCE, f"{_safe(source)} is not a URL", "correct it") from None
    if (not host and scheme != "file") or port == 0 or host.startswith("-") or parts.path.startswith(("-", "/-")):
        raise SourceError(SOURCE, f"{_safe(source)} names no host, or an option", "correct it")
    if scheme == "https" and user is not None:
        clean = urlunsplit((scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, parts.fragment))
        return clean, f"{unquote(user)}:{unquote(password or '')}"
    if password is not None or (scheme in _UNPROTECTED and user is not None):
        raise SourceError(
            SOURCE,
            f"{_safe(source)} contains a password, which {scheme} would show to others",
            "remove it, and use https, or ssh with a key",
        )
    return source, ""


def _folder(folder: str) -> str:
    parts = folder.strip("/").split("/") if folder else []
    if folder.startswith("/") or any(part in ("", ".", "..", ".git") for part in parts) or "\0" in folder:
        raise SourceError(
            FOLDER, f"{shown(folder)} is not a folder of a repository", "give a path relative to its root"
        )
    return "/".join(parts)


def _safe(source: str) -> str:
    return mask_text(shown(source))


def patterns(reference: str) -> list[str]:
    """What the server is asked for: a tag goes with the commit it stands for (``^{}``)."""
    if reference == "HEAD" or reference.startswith("refs/"):
        return [reference, f"{reference}^{{}}"]
    return [f"refs/heads/{reference}", f"refs/tags/{reference}", f"refs/tags/{reference}^{{}}"]


def resolve(repository: Repository, listing: str) -> tuple[str, str]:
    """Return name and commit of the reference, from what git ls-remote printed. Raises ``SourceError``."""
    reference, wanted = repository.reference, patterns(repository.reference)
    found = {name: commit for commit, name in _listed(listing) if name in wanted}
    peeled = {name: found.get(f"{name}^{{}}", commit) for name, commit in found.items() if not name.endswith("^{}")}
    if len(set(peeled.values())) > 1:
        raise SourceError(
            REFERENCE,
            f"{repository.url} has both a branch and a tag {reference}, and they are not the same commit",
            f"write refs/heads/{reference} or refs/tags/{reference}",
        )
    for name, commit in peeled.items():
        return name, commit
    remedy = "correct it; git ls-remote lists the tags and branches"
    if _ABBREVIATED.fullmatch(reference):
        remedy = "give the whole commit, which has 40 characters: servers do not accept abbreviated ones"
    raise SourceError(REFERENCE, f"{repository.url} has no tag or branch {reference}", remedy)


def _listed(listing: str) -> Iterator[tuple[str, str]]:
    for line in listing.splitlines():
        commit, dummy, name = line.partition("\t")
        if _COMMIT.fullmatch(commit):
            yield commit, name


_FAILURES: tuple[tuple[str, str, str], ...] = (
    (
        r"not our ref|unadvertised object|couldn't find remote ref|no such remote ref|bad object",
        "does not have {reference}",
        f"correct {REFERENCE}; some servers provide only tags and branches",
    ),
    (
        r"dubious ownership",
        "belongs to another user of the controller, so git does not read it",
        "git config --global --add safe.directory, with its path",
    ),
    (
        r"host key verification failed|no \S+ host key is known",
        "is on a host whose SSH key is not known to this controller",
        "log in there once by ssh, compare the key, and run again",
    ),
    (
        r"authentication failed|could not read (?:username|password)|terminal prompts disabled|permission denied"
        r"|returned error: 40[13]|access denied",
        "needs a login, or does not exist",
        "correct the URL, or give git access to it on the controller (git credential, or a key of ssh)",
    ),
    (
        r"not found|does not exist|does not appear to be a git repository|not a git repository|no such file",
        "is not a git repository",
        f"correct {SOURCE}",
    ),
    (
        r"could not resolve|connection refused|timed out|no answer within|network is unreachable|no route to host"
        r"|failed to connect|couldn't connect|connection reset|proxy",
        "cannot be reached from the controller",
        "check its network and git's proxy (git config http.proxy), or name a commit that was fetched before",
    ),
)
UNREACHABLE = _FAILURES[-1][1]


def failure(repository: Repository, output: str) -> SourceError:
    """Return why git failed, in a sentence, from what it printed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    fatal = (
        [line for line in lines if line.startswith(("fatal:", "error:", "ssh:"))] or lines[-1:] or ["no reason given"]
    )
    reported = mask_text(on_one_line(fatal[0]))[:200].rstrip(".")
    for pattern, text, remedy in _FAILURES:
        if re.search(pattern, output, re.IGNORECASE):
            subject = REFERENCE if "{reference}" in text else SOURCE
            return SourceError(
                subject, f"{repository.url} {text.format(reference=repository.reference)} ({reported})", remedy
            )
    return SourceError(SOURCE, f"git could not fetch {repository.url} ({reported})", "correct that, and run again")


def notes(repository: Repository, found: Mapping[str, list[str]]) -> list[str]:
    """Return what of the repository is not on the nodes, in sentences."""
    texts = {
        "submodules": "its submodules are not fetched, so their folders are empty",
        "large": "its large files (Git LFS) are not fetched and remain pointers",
        "links": "links that lead out of it are left out",
    }
    return [
        f"{SOURCE}: {repository.url}: {text}: {', '.join(on_one_line(name) for name in sorted(found[kind])[:5])}"
        f"{' and more' if len(found[kind]) > 5 else ''}."
        for kind, text in texts.items()
        if found.get(kind)
    ]
