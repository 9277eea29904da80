"""A proxy that refuses, a mirror that answers with a web page, an unknown authority: each is named with its remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import playbook_run
from tests.playbook_run import Run, network, node, on, site, snapshot
from tests.proxy_runs import GIVEN, HOSTS, OUTSIDE, PASSWORD, PROXY, variables, with_password

ALL = ", ".join(HOSTS)
REFUSES = f"the proxy {PROXY}:3128 does not accept this user and password (407). "
WANTS = f"the proxy {PROXY}:3128 requires a user and a password (407)"
IN_THE_BUILD = "lab1: the image was not built: "
REFUSED = "(407). Remedy: correct {}: http://"
UNKNOWN = f"the certificate of {OUTSIDE}:8445 is by an authority that is not known"
HTML = "answers with a web page (HTML)"
SMALL = {"training_image_repository": "swarmspeed/trouble", "training_image_torch": "torch~=2.13.0"}
"""The engine has built no layer of this text, so pip is to ask the index."""
CONSENT = {"docker_allow_restart": True}
"""Without it an engine's other proxy is one more problem on each host."""
UNASKED = {"preflight_skip": ["proxy"]}
"""Without preflight's question to the proxy: what each program says of it then."""


def wrong(name: str, password: str) -> Any:
    url = with_password(variables()["cluster_proxy"], password)
    return {"http": url, "https": url} if name == "docker_proxy" else url


def run(*arguments: str, **values: Any) -> Run:
    found = site(*arguments, *GIVEN, *playbook_run.variables(**values))
    assert PASSWORD not in found.output
    return found


def images() -> dict[str, list[str]]:
    """Return what each engine has, unnamed images and containers among it."""
    listing = "docker images --all --quiet --no-trunc | sort -u; docker ps --all --quiet --no-trunc"
    return {name: on(name, f"{listing}; ls -A {playbook_run.CLUSTER_ROOT} || true").splitlines() for name in HOSTS}


@contextmanager
def nothing_changed(names: bool = False) -> Iterator[None]:
    """Also no packet may leave. With ``names`` questions for a registry's name are expected, which the engine asks."""
    before = snapshot(), images()
    yield
    assert (snapshot(), images()) == before
    assert (network("count") != "0") is names
    network("cut", PROXY)


@pytest.mark.parametrize(
    ("password", "reported"),
    [("wrong-QQ71", REFUSES), ("", WANTS)],
)
@pytest.mark.parametrize("variable", ["host_apt_proxy", "host_pip_proxy", "docker_proxy", "training_image_proxy"])
def test_a_proxy_that_refuses_is_found_before_anything_is_changed(variable: str, password: str, reported: str) -> None:
    named = {"docker_proxy": "docker_proxy.http, docker_proxy.https"}.get(variable, variable)
    with nothing_changed():
        found = run(**{variable: wrong(variable, password)}, **CONSENT)
        found.refused_by(("proxy", ALL)).refused(f": {named}: {reported}")
        assert "QQ71" not in found.output


def test_one_proxy_for_all_is_one_problem() -> None:
    with nothing_changed():
        found = run(cluster_proxy=wrong("cluster_proxy", "wrong-QQ71"), **CONSENT).refused_by(("proxy", ALL))
        found.refused(f"1. {ALL}: cluster_proxy: {REFUSES}")


def test_apt_that_is_refused() -> None:
    """The file that apt reads is written before apt is asked: it is all that changes, and is right again below."""
    found = run(
        "--tags", "host", host_apt_proxy=wrong("host_apt_proxy", "wrong-QQ71"), host_packages=["tree"], **UNASKED
    )
    found.refused("lab1: apt could not install packages: ", REFUSED.format("host_apt_proxy"))
    assert "QQ71" not in found.output
    assert node("lab1").run("dpkg -s tree").rc != 0
    run("--tags", "host").done(change=True)


def test_pip_that_is_refused_in_the_build() -> None:
    with nothing_changed():
        found = run(
            "--tags",
            "training_image",
            training_image_proxy=wrong("training_image_proxy", "wrong-QQ71"),
            **SMALL,
            **UNASKED,
        )
        found.refused(IN_THE_BUILD, REFUSED.format("training_image_proxy (for the base image docker_proxy)"))
        assert "QQ71" not in found.output


def test_pip_that_meets_an_authority_that_no_one_knows() -> None:
    index = {"training_image_torch_index": f"https://{OUTSIDE}:8445/index/"}
    with nothing_changed():
        run("--tags", "training_image", **SMALL, **index).refused(
            IN_THE_BUILD + UNKNOWN, "Remedy: give that authority's certificate "
        )


def test_an_index_that_answers_with_a_login_page() -> None:
    index = {"training_image_torch_index": f"https://{OUTSIDE}:8444/index/"}
    with nothing_changed():
        run("--tags", "training_image", **SMALL, **index).refused(
            IN_THE_BUILD + "the package index has nothing under that name",
            "Remedy: correct what names its source: training_image_torch_index, ",
        )


def pulled(image: str, **values: Any) -> Run:
    return run("--tags", "training_image", training_image_source="pull", training_image_name=image, **values)


def test_an_image_of_the_companys_own_registry_is_pulled_through_the_proxy() -> None:
    """The other way round: with the authority that was given it works, so what follows fails for its own reason."""
    image = f"{OUTSIDE}:8443/lab/tiny:1"
    pulled(image).done(change=True)
    for name in HOSTS:
        on(name, f"docker rmi {image}")


def test_a_registry_of_an_authority_that_no_one_knows() -> None:
    with nothing_changed():
        pulled(f"{OUTSIDE}:8445/lab/tiny:1").refused(
            f"lab1: the image {OUTSIDE}:8445/lab/tiny:1 was not pulled: {UNKNOWN}"
        )


def test_a_registry_that_answers_with_a_login_page() -> None:
    with nothing_changed():
        pulled(f"{OUTSIDE}:8444/lab/tiny:1").refused(
            f"lab1: the image {OUTSIDE}:8444/lab/tiny:1 was not pulled: ", HTML
        )


def test_a_mirror_that_answers_with_a_login_page() -> None:
    """The engine goes on to its own registry, which no lab reaches, and tells of the mirror in its journal alone.

    Whatever proxy it has, it looks that registry's name up, and goes on without an answer.
    """
    mirror = {"docker_daemon_config": {"registry-mirrors": [f"https://{OUTSIDE}:8444"]}}
    run("--tags", "docker", **mirror).done(change=True)
    try:
        with nothing_changed(names=True):
            pulled("lab/tiny:1", **mirror).refused(
                "lab1: the image lab/tiny:1 was not pulled: ", HTML, "registry-mirrors"
            )
    finally:
        run("--tags", "docker", docker_allow_restart=True, docker_daemon_config={"registry-mirrors": None}).done(
            change=True
        )


def test_an_engine_that_the_proxy_refuses() -> None:
    """Its proxy is changed by hand: by variables it would be found before, and needs a restart."""
    path = "/etc/systemd/system/docker.service.d/swarmspeed-proxy.env"
    with playbook_run.condition(
        "lab1",
        f"cp -p {path} /root/kept && sed -i 's/{PASSWORD}/wrong-QQ71/' {path} && systemctl restart docker",
        f"mv /root/kept {path} && systemctl restart docker",
    ):
        found = pulled(f"{OUTSIDE}:8443/lab/tiny:1", **UNASKED)
        found.refused(f"lab1: the image {OUTSIDE}:8443/lab/tiny:1 was not pulled: ", REFUSED.format("docker_proxy"))
        assert "QQ71" not in found.output
    for name in HOSTS:
        node(name).run(f"docker rmi {OUTSIDE}:8443/lab/tiny:1")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("nothing of that kind", "contains no certificate in PEM form"),
        ("-----BEGIN PRIVATE KEY-----", "contains a private key"),
    ],
)
def test_a_file_that_is_no_certificate(tmp_path: Path, text: str, reported: str) -> None:
    path = tmp_path / "ca.crt"
    path.write_text(text, encoding="utf-8")
    with nothing_changed():
        run(host_ca_certificate=str(path)).refused_by(("ca_certificate", "host_ca_certificate")).refused(reported)


def test_after_all_this_nothing_is_to_be_repaired() -> None:
    run().done(change=False, nodes=HOSTS)
    # Until the overlay network converges after the restarts, engines ask other name servers for the containers' names.
    network("cut", PROXY)
    run().done(change=False, nodes=HOSTS)
    assert network("count") == "0"
