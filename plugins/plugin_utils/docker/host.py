# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is requested of a host's Docker engine, what the host is, and which packages follow from both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...module_utils.apt.pins import recorded, satisfies
from .gathered import BUILDX, OF_DOCKER, PYTHON_PACKAGES, RECORD_PATH

DISTRIBUTION, DOCKER, KEEP = "distribution", "docker", "keep"
LOCKED = ("docker-ce", "docker-ce-cli")
"""Those of Docker's packages that have the engine's version."""
SHIPPED = {"bookworm": (20, 10), "trixie": (26, 1), "jammy": (29, 1), "noble": (29, 1)}
"""The engine of a release, for a host that has none yet. Debian's do not change; Ubuntu's were read in November 2026,
and where apt has another by then, the plan is made again once it is installed."""
PROXY_NAMES = {"http": "HTTP_PROXY", "https": "HTTPS_PROXY", "no_proxy": "NO_PROXY"}


@dataclass(frozen=True)
class Request:
    """What is requested, by the variables of the role without its prefix.

    ``mtu`` is the underlay's, ``ca`` the hash of the certificate authority that the host was given, empty for none.
    ``digest_key`` is the run's, by which ``node_facts`` has digested secrets.
    """

    source: str = DISTRIBUTION
    version: str = ""
    hold: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    restart: bool = False
    users: Sequence[str] = ()
    proxy: Mapping[str, Any] = field(default_factory=dict)
    repository_url: str = ""
    repository_key: str = ""
    swarm: bool = True
    mtu: int = 1500
    ca: str = ""
    digest_key: str = ""


@dataclass(frozen=True)
class Host:
    """The facts of one host, as far as they are about its engine."""

    facts: Mapping[str, Any]

    def part(self, name: str) -> Mapping[str, Any]:
        value = self.facts.get(name)
        return value if isinstance(value, Mapping) else {}

    @property
    def codename(self) -> str:
        return str(self.part("system").get("codename") or "")

    @property
    def installed(self) -> bool:
        return self.part("docker").get("installed") is True

    @property
    def running(self) -> bool:
        return self.part("docker").get("running") is True

    def version_of(self, package: str) -> str | None:
        version = self.part("packages").get(package)
        return str(version) if version else None

    @property
    def family(self) -> str | None:
        """The engine's package, ``other`` where apt did not install it, None where there is no engine."""
        found = next((name for name in ("docker-ce", "docker.io") if self.version_of(name)), None)
        return found or ("other" if self.installed else None)

    @property
    def engine_version(self) -> str | None:
        """The version of the engine that is there, whether it runs or not."""
        family = self.family
        of_package = self.version_of(family) if family and family != "other" else None
        return of_package or (str(self.part("docker").get("version") or "") or None)

    def has_account(self, user: str) -> bool:
        return self.part("accounts").get(user) is True

    @property
    def stale_swarm_ports(self) -> list[int]:
        """The ports on which the engine still listens for a swarm that it has left."""
        ports = self.part("docker").get("stale_swarm_ports")
        return [port for port in ports if isinstance(port, int)] if isinstance(ports, list) else []

    @property
    def running_containers(self) -> list[str]:
        containers = self.part("docker").get("containers")
        entries = containers.items() if isinstance(containers, Mapping) else ()
        return sorted(
            str(name) for name, entry in entries if isinstance(entry, Mapping) and entry.get("state") == "running"
        )


def engine_packages(source: str, codename: str) -> tuple[str, ...]:
    """Return the packages that make an engine; from Debian 13 on the distribution's client is one of its own."""
    if source == DOCKER:
        return OF_DOCKER
    if codename in ("bullseye", "bookworm"):
        return ("docker.io",)
    # Ubuntu's docker.io brings its client.
    return ("docker.io", "docker-cli", BUILDX) if codename in ("trixie", "forky", "sid") else ("docker.io", BUILDX)


def parse_request(request: Mapping[str, Any]) -> Request:
    values = {name: request[name] for name in Request.__dataclass_fields__ if name in request}
    return Request(**{**values, "version": str(values.get("version") or ""), "mtu": int(values.get("mtu") or 1500)})


def packages_wanted(requested: Request, host: Host) -> tuple[list[str], bool]:
    """Return what apt is to install, and whether in a version that is requested."""
    wanted = [name for name in PYTHON_PACKAGES if not host.version_of(name)]
    family = host.family
    engine = engine_packages(DOCKER if family == "docker-ce" else requested.source, host.codename)
    if family is None:
        if requested.source == KEEP:
            return wanted, False
        return [*wanted, *engine, "iptables"], bool(requested.version)
    if family == "docker.io" and requested.source != KEEP:
        engine = engine_packages(DISTRIBUTION, host.codename)
        wanted += [name for name in engine if not host.version_of(name)]
    if not requested.version or family == "other" or satisfies(host.engine_version, requested.version):
        return wanted, False
    if (family, requested.source) not in (("docker.io", DISTRIBUTION), ("docker-ce", DOCKER)):
        return wanted, False  # reported by _request_problems
    locked = ("docker.io", "docker-cli") if family == "docker.io" else LOCKED
    return list(dict.fromkeys([*wanted, *(name for name in engine if name in locked)])), True


def holds(requested: Request, host: Host, installing: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the packages that are to be on hold, and those that need not be any more."""
    if requested.source == KEEP or host.family == "other":
        return [], []
    if not requested.hold and not requested.version:
        return [], recorded(host.part("files"), RECORD_PATH)
    return [name for name in (*OF_DOCKER, "docker.io", "docker-cli") if host.version_of(name) or name in installing], []
