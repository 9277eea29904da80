# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The named kinds of values that ``roles/<role>/meta/constraints.yml`` refers to. Pure.

A kind judges a value that already has the type of its argument spec, and only by what no host could use: when in doubt
it accepts. Patterns are such that Python and the regular expressions of JSON Schema read them alike.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ansible.module_utils.common.text.formatters import human_to_bytes

LONGEST = 4096
"""Characters of one line: of a path on Linux, and more than any other of these needs."""
INT64 = (1 << 63) - 1
"""The engine reads limits and sizes as signed numbers of 64 bits."""

_LINE = r"[^\x00-\x1f\x7f]+"
_SEPARATED = r"(?:[._]|__|-+)"
_PATH = rf"[a-z0-9]+(?:{_SEPARATED}[a-z0-9]+)*"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REGISTRY = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{{1,5}})?"
_REPOSITORY = rf"(?:{_REGISTRY}/)?{_PATH}(?:/{_PATH})*"
_PACKAGE = r"[a-z0-9][a-z0-9+.-]+(?::[a-z0-9-]+)?(?:{0}[A-Za-z0-9.+:~*-]+)?"
_VERSION = (
    r"v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*(?:[-_.]?(?:a|b|c|rc|alpha|beta|pre|preview)[-_.]?[0-9]*)?"
    r"(?:-[0-9]+|[-_.]?(?:post|rev|r)[-_.]?[0-9]*)?(?:[-_.]?dev[-_.]?[0-9]*)?(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?"
)
"""PEP 440, https://packaging.python.org/en/latest/specifications/version-specifiers/"""

_LIMITS = "as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack"
LIMITS = frozenset(_LIMITS.split())
"""Of runc (libcontainer/specconv): https://man7.org/linux/man-pages/man2/getrlimit.2.html"""
_CAPABILITIES = """
    ALL AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH
    FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN
    NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYS_ADMIN SYS_BOOT SYS_CHROOT
    SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG SYSLOG WAKE_ALARM
"""
CAPABILITIES = frozenset(_CAPABILITIES.split())
"""https://man7.org/linux/man-pages/man7/capabilities.7.html"""
_BOOLEANS = ("1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False")
"""What Go's strconv.ParseBool takes."""

_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*(?:\[\s*(?P<extras>[A-Za-z0-9._,\s-]*)\])?\s*"
    r"(?P<rest>[^;]*?)\s*(?:;\s*(?P<marker>\S.*))?",
    re.ASCII,
)
_EXTRA = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
_CLAUSE = re.compile(
    rf"(?:(?:===)\s*[^\s,;)]+|(?:==|!=)\s*{_VERSION}(?:\.\*)?|(?:<=|>=|<|>)\s*{_VERSION}|~=\s*{_VERSION})",
    re.ASCII | re.IGNORECASE,
)
_LIMIT = re.compile(r"([A-Za-z]+):(-?[0-9]{1,19})(?::(-?[0-9]{1,19}))?", re.ASCII)
_PUBLISHED = re.compile(
    r"(?:([0-9]+(?:\.[0-9]+){3}|\[[0-9A-Fa-f:.]+\]):)?([0-9]{1,5}):([0-9]{1,5})(?:/(?:tcp|udp|sctp))?", re.ASCII
)
_OPENED = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?/(?:tcp|udp)", re.ASCII)


@dataclass(frozen=True)
class Kind:
    """``what`` continues "is not …". ``fits`` may raise ``ValueError`` for no.

    ``pattern`` says the same for editors, or a part of it. ``address``: a user and a password may stand in the value.
    ``meant`` returns what the user probably meant, or nothing.
    """

    what: str
    example: Any
    fits: Callable[[Any], bool] | None = None
    pattern: str = ""
    address: bool = False
    meant: Callable[[Any], str] = lambda _value: ""

    def accepts(self, value: Any) -> bool:
        if self.pattern and not (isinstance(value, str) and _matches(self.pattern, value)):
            return False
        try:
            return self.fits is None or self.fits(value)
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return False


def _matches(pattern: str, text: str) -> bool:
    return len(text) <= LONGEST and re.fullmatch(pattern, text, re.ASCII) is not None


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= INT64


def _port(value: Any) -> bool:
    return _number(value) and 0 <= value < 65536


def _below_nothing(path: str) -> bool:
    return ".." not in path.split("/")


def _relative(path: str) -> bool:
    parts = path.removesuffix("/").split("/")
    return not any(part in ("", ".", "..") for part in parts) and not path.startswith("-")


def _interface(text: str) -> bool:
    return text not in (".", "..")


def _network(text: str) -> bool:
    return bool(ipaddress.IPv4Network(text)) and "/" in text


def _network_meant(value: Any) -> str:
    try:
        return str(ipaddress.IPv4Network(value, strict=False)) if "/" in value else ""
    except ValueError:
        return ""


def _address(text: str) -> bool:
    return "%" not in text and bool(ipaddress.ip_address(text))


def _located(text: str) -> bool:
    """A URL with a host, and with a port that is one."""
    parts = urlsplit(text)
    host = parts.hostname or ""
    return re.fullmatch(r"[A-Za-z0-9_.:-]+", host) is not None and host[0] not in ".-" and parts.port != 0


def _plain_url(text: str) -> bool:
    return _located(text) and "@" not in urlsplit(text).netloc


def _apt_uri(text: str) -> bool:
    return _located(text) if re.match(r"(?:tor\+|mirror\+)?https?:", text) else True


def _proxy(text: str) -> bool:
    return _located(text if "://" in text else f"//{text}")


def _requirement(text: str) -> bool:
    """As pip takes one on its command line: by name, or by address."""
    if re.match(r"(?:[a-z]+\+)?[a-z]+://\S|/\S+\.(?:whl|zip|tar\.gz|tgz)$", text):
        return True
    if re.fullmatch(r"--[a-z][a-z-]+(?:=\S+)?", text):
        return True
    found = _REQUIREMENT.fullmatch(text.strip())
    if not found:
        return False
    extras = (found["extras"] or "").strip()
    if extras and not all(_EXTRA.fullmatch(part.strip()) for part in extras.split(",")):
        return False
    rest = found["rest"].strip()
    if rest.startswith("@"):
        return bool(rest[1:].strip())
    if rest.startswith("(") and rest.endswith(")"):
        rest = rest[1:-1].strip()
    return not rest or all(_clause(part.strip()) for part in rest.removesuffix(",").split(","))


def _torch(text: str) -> bool:
    by_name = "://" not in text and not text.startswith(("-", "/"))
    return _requirement(text) and (not by_name or re.match(r"\s*torch\b", text) is not None)


def _group(text: str) -> bool:
    return not text.isdigit() or int(text) < 1 << 31


def _image(text: str) -> bool:
    """What distribution/reference refuses beside the form: a long name, and one that could be an image's id."""
    name = re.sub(r"(?::[^/]*)?(?:@.*)?$", "", text)
    first, there, dummy = name.partition("/")
    registry = bool(there) and (first == "localhost" or "." in first or ":" in first)
    whole = name if registry else f"docker.io/{'' if there else 'library/'}{name}"
    return len(whole) <= 255 and re.fullmatch("[0-9a-f]{64}", name) is None


def _overlay(text: str) -> bool:
    network = ipaddress.IPv4Network(text)
    return _network(text) and not (network.is_loopback or network.is_multicast or network.is_link_local)


def _clause(text: str) -> bool:
    if not _CLAUSE.fullmatch(text):
        return False
    # ~= needs a release of two parts, and only == and != take a local version.
    release = re.sub(r"^[~=!<>]+\s*v?(?:[0-9]+!)?", "", text)
    if text.startswith("~=") and not re.match(r"[0-9]+\.[0-9]+", release):
        return False
    if re.search(r"(?:dev[0-9]*|\+[^*]*)\.\*$", text, re.IGNORECASE):
        return False
    return text.startswith(("==", "!=")) or "+" not in text


def _size(text: Any) -> bool:
    """The engine takes 0 for its own default."""
    return bool(0 < human_to_bytes(text) <= INT64)


def _limit(text: str) -> bool:
    """``-1`` is none; the kernel has a highest number of open files (fs.nr_open), so there -1 never works."""
    found = _LIMIT.fullmatch(text)
    if not found or found.group(1).lower() not in LIMITS:
        return False
    soft, hard = int(found.group(2)), int(found.group(3) or found.group(2))
    ranges = all(-1 <= number <= INT64 for number in (soft, hard))
    ordered = hard == -1 or (soft != -1 and soft <= hard)
    return ranges and ordered and not (hard == -1 and found.group(1).lower() == "nofile")


def _capability(text: str) -> bool:
    return text.upper().removeprefix("CAP_") in CAPABILITIES


def _security(option: str) -> bool:
    """As the engine reads them (daemon_unix.go, parseSecurityOpt). ``systempaths`` is read by its client alone."""
    if option in ("no-new-privileges", "disable"):
        return True
    name, there, value = option.partition("=" if "=" in option else ":")
    if name == "seccomp" and there:
        return value in ("unconfined", "builtin") or isinstance(json.loads(value), dict)
    if name in ("no-new-privileges", "writable-cgroups") and there:
        return value in _BOOLEANS
    return bool(there) and name in ("label", "apparmor")


def _published(text: str) -> bool:
    found = _PUBLISHED.fullmatch(text)
    if not found:
        return False
    if found.group(1):
        ipaddress.ip_address(found.group(1).strip("[]"))
    return all(0 < int(port) < 65536 for port in found.groups()[1:])


def _opened(text: str) -> bool:
    found = _OPENED.fullmatch(text.strip())
    return found is not None and 0 < int(found.group(1)) <= int(found.group(2) or found.group(1)) < 65536


def _scalar(value: Any) -> bool:
    return not isinstance(value, (dict, list, tuple)) and value is not None and "\0" not in str(value)


def _scalar_line(value: Any) -> bool:
    return _scalar(value) and not re.search(r"[\n\r]", str(value))


def _armoured(text: str) -> bool:
    return "-----BEGIN PGP PUBLIC KEY BLOCK-----" in text and "-----END PGP PUBLIC KEY BLOCK-----" in text


KINDS: dict[str, Kind] = {
    # What the argument spec says is all.
    "boolean": Kind("true or false", True),
    "choice": Kind("one of the choices", ""),
    # Numbers
    "number": Kind("a number", 1, _number),
    "yes_or_no": Kind("true or false", True, lambda value: isinstance(value, bool)),
    "whole_number": Kind("a whole number", 1, _whole_number),
    "port": Kind("a port", 2222, _port),
    # Names
    "dns_label": Kind(
        "a DNS label (lower-case letters a-z, digits and inner hyphens, at most 63 of them)",
        "team-a",
        pattern=r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?",
    ),
    "host_name": Kind("a host name", "gpu3", pattern=r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}"),
    "job_name": Kind(
        "1 to 63 of a-z, 0-9, '.', '_' and '-', the first of them a letter or digit",
        "finetune-10b",
        pattern=r"[a-z0-9][a-z0-9._-]{0,62}",
    ),
    "docker_name": Kind(
        "letters, digits, '_', '.' and '-', the first of them a letter or digit",
        "train",
        pattern=r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}",
    ),
    # On a worker an overlay is found by its name only once it is used there; until then a short one of hexadecimal
    # digits is taken for the beginning of another network's id.
    "overlay_name": Kind(
        "a name of at most 63 letters, digits, inner '_' and '-', more than three if all are hexadecimal digits",
        "train",
        pattern=r"(?![0-9a-f]{1,3}$)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?",
    ),
    "interface": Kind(
        "the name of a network interface", "bond0", _interface, pattern=r"[A-Za-z_][A-Za-z0-9_.+~-]{0,14}"
    ),
    "account": Kind("the name of an account", "alice", pattern=r"[^\x00-\x1f\x7f:,/-][^\x00-\x1f\x7f:,/]{0,255}"),
    "group": Kind("the name or number of a group", "video", _group, pattern=r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}"),
    "environment_name": Kind(
        "the name of an environment variable (letters, digits and underscores)",
        "HF_HOME",
        pattern=r"[A-Za-z_][A-Za-z0-9_]{0,1023}",
    ),
    "environment_key": Kind(
        "the name of an environment variable, without '=' and blanks", "HF_HOME", pattern=r"[^=\s\x00]+"
    ),
    "sysctl": Kind(
        "the name of a kernel parameter", "net.core.rmem_max", pattern=r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_:@*+-]+)+"
    ),
    "operator": Kind("the name of a DeepSpeed operator", "CPU_ADAM", pattern=r"[A-Za-z][A-Za-z0-9_]{0,63}"),
    "capability": Kind("a capability of Linux, as in capabilities(7)", "IPC_LOCK", _capability, pattern=_LINE),
    # Addresses
    "ipv4": Kind("an IPv4 address", "10.1.0.5", lambda text: bool(ipaddress.IPv4Address(text)), pattern=r"[0-9.]+"),
    "ip": Kind("an IP address", "10.1.0.5", _address, pattern=r"[0-9A-Fa-f.:]+"),
    "cidr_v4": Kind(
        "an IPv4 network such as 10.20.0.0/24",
        "10.20.0.0/24",
        _network,
        pattern=r"[0-9.]+/[0-9.]+",
        meant=_network_meant,
    ),
    "overlay_subnet": Kind(
        "an IPv4 network of ordinary addresses",
        "10.20.0.0/24",
        _overlay,
        pattern=r"[0-9.]+/[0-9.]+",
        meant=_network_meant,
    ),
    "url": Kind(
        "a URL of http or https",
        "https://mirror.example.com/path",
        _located,
        pattern=r"https?://[^\s/]\S*",
        address=True,
    ),
    "plain_url": Kind(
        "a URL of http or https without user and password",
        "https://mirror.example.com/path",
        _plain_url,
        pattern=r"https?://[^\s/]\S*",
        address=True,
    ),
    "apt_uri": Kind(
        "a URI that apt fetches from",
        "http://mirror.example.com/debian",
        _apt_uri,
        pattern=r"(?:(?:tor\+|mirror\+)?https?://[^\s/]|(?:mirror\+)?(?:file|copy|ftp|cdrom|mirror):/?)\S*",
        address=True,
    ),
    "pip_index": Kind(
        "the address of a package index",
        "https://mirror.example.com/simple",
        lambda text: _located(text) if text.startswith("http") else True,
        pattern=r"(?:https?://[^\s/]|file:/|/)\S*",
        address=True,
    ),
    "proxy": Kind(
        "the address of a proxy",
        "http://proxy.example.com:3128",
        _proxy,
        pattern=r"(?:(?:https?|socks4a?|socks5h?)://)?[^\s/]+/?",
        address=True,
    ),
    "proxy_url": Kind(
        "the URL of an HTTP proxy",
        "http://proxy.example.com:3128",
        _proxy,
        pattern=r"https?://[^\s/\"]+/?",
        address=True,
    ),
    "pip_proxy": Kind(
        "the URL of a proxy for pip",
        "http://proxy.example.com:3128",
        _proxy,
        pattern=r"(?:https?|socks4a?|socks5h?)://[^\s/]+/?",
        address=True,
    ),
    "apt_proxy": Kind(
        "the URL of a proxy for apt",
        "http://proxy.example.com:3128",
        _proxy,
        pattern=r"(?:https?|socks5h)://[^\s/\"]+/?",
        address=True,
    ),
    "published_port": Kind("[ADDRESS:]PORT:PORT[/PROTOCOL]", "127.0.0.1:8888:8888", _published),
    "opened_port": Kind("a port or a range of ports with its protocol, tcp or udp", "8000/tcp", _opened),
    # Files and folders
    "script": Kind(
        "one line without steps upwards in a path", "train.py", lambda text: _below_nothing(text.split(" ")[0]), _LINE
    ),
    "absolute_folder": Kind(
        "an absolute path without steps upwards, ':' and '$'",
        "/data/swarmspeed",
        _below_nothing,
        r"/[^\x00-\x1f\x7f:$]*",
    ),
    "absolute_path": Kind("an absolute path without steps upwards", "/data", _below_nothing, r"/[^\x00-\x1f\x7f]*"),
    "relative_path": Kind(
        "a relative path without steps upwards",
        "checkpoints/model",
        _relative,
        pattern=r"[^\x00-\x1f\x7f/\\][^\x00-\x1f\x7f\\]*",
    ),
    "controller_path": Kind("a path on the controller", "files/train.tar", pattern=_LINE),
    "file_name": Kind(
        "the name of a file or folder, without its path",
        "__pycache__",
        lambda text: text not in (".", ".."),
        pattern=r"[^\x00/]+",
    ),
    # Software
    "apt_package": Kind(
        "the name of a Debian package",
        "git",
        pattern=_PACKAGE.format("(?:=|/)"),
    ),
    # Of an installed package dpkg does not know the release that it came from.
    "dpkg_package": Kind(
        "the name of a Debian package, without a release",
        "git",
        pattern=_PACKAGE.format("="),
    ),
    "apt_version": Kind(
        "a version of a Debian package, or the beginning of one", "27.5", pattern=r"[0-9][A-Za-z0-9.+:~-]*"
    ),
    "python_command": Kind("the name of a Python", "python3.12", pattern=r"[a-z][a-z0-9.+-]+"),
    "python_version": Kind("a version of a Python package", "0.19.8", pattern=_VERSION),
    "requirement": Kind("a requirement as pip takes it", "transformers>=4.50", _requirement, pattern=_LINE),
    "torch_requirement": Kind("a requirement of torch", "torch==2.11.0", _torch, pattern=_LINE),
    # git-check-ref-format(1), and only what a shell, a URL and a folder take as it is.
    "git_reference": Kind(
        "the name of a tag or branch, or a commit",
        "v1.4",
        pattern=r"(?!.*(?:\.\.|//|@\{|/\.|\.lock(?:/|$)))[A-Za-z0-9_][A-Za-z0-9_./+@#=-]*(?<![./])",
    ),
    "image": Kind(
        "the name of an image",
        "registry.example.com/team/train:1.4",
        _image,
        pattern=rf"{_REPOSITORY}(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?",
    ),
    "image_repository": Kind("the name of an image without a tag", "team/train", _image, pattern=_REPOSITORY),
    "kernel": Kind("a kernel as uname -r prints it", "6.1.0-31-amd64", pattern=r"[0-9A-Za-z.+~_-]{1,200}"),
    "pgp_key": Kind("a public key in text form (-----BEGIN PGP PUBLIC KEY BLOCK-----)", "", _armoured),
    # What containers take
    "memory_size": Kind("a size of memory above 0", "16g", _size, pattern=_LINE),
    "ulimit": Kind(
        "NAME:SOFT[:HARD] with a limit of Linux, -1 for none (never for nofile), and SOFT not above HARD",
        "nofile:1024:65536",
        _limit,
    ),
    "security_option": Kind(
        "a security option of the engine (apparmor=…, seccomp=unconfined, label=…, no-new-privileges)",
        "seccomp=unconfined",
        _security,
        pattern=r"[^\x00]+",
    ),
    # Text
    "line": Kind("one line of text", "text", pattern=_LINE),
    "argument": Kind("a text without the character NUL", "--epochs", lambda text: "\0" not in text),
    "scalar": Kind("a text or a number", "1", _scalar),
    "scalar_line": Kind("a text of one line, or a number", "1", _scalar_line),
    "pattern": Kind("", ""),
    "mapping": Kind("a mapping", {}),
}
