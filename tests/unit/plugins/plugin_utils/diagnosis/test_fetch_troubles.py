# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Why something could not be fetched. The texts have the forms of their programs; none is a recording."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter.fetch import fetch_trouble
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.secret_names import mask_urls
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.diagnosis.fetch_failures import LAST, explain
from hypothesis import given
from hypothesis import strategies as st

REFUSED = (
    "the proxy does not accept user and password, or was given none (407). Remedy: correct the_proxy: "
    "http://USER:PASSWORD@HOST:PORT, with %40 for an @ in either and so on."
)
UNKNOWN = (
    "the certificate of {} is by an authority that is not known there, mostly the company's own. Remedy: give that "
    "authority's certificate in host_ca_certificate."
)
HTML = (
    "{} answers with a web page (HTML), as a login page or a wrong address does. Remedy: check what it answers (curl "
    "--location --head), and correct a_source."
)


PRINTED = {
    # apt
    """Err:1 http://m.example/debian bookworm InRelease
      407  Proxy Authentication Required [IP: 10.0.0.1 3128]""": REFUSED,
    """Err:1 https://m.example/debian x InRelease
      Certificate verification failed: The certificate is NOT trusted. The certificate issuer is unknown.""": (
        UNKNOWN.format("m.example")
    ),
    """E: Failed to fetch http://m.example/x/InRelease  Clearsigned file isn't valid,
    got 'NOSPLIT' (does the network require authentication?)""": HTML.format("m.example"),
    "W: Failed to fetch http://m.example/debian/x  Could not resolve 'm.example'": (
        "m.example cannot be reached from there. Remedy: set or correct the_proxy, or a_source."
    ),
    # pip
    """after connection broken by 'ProxyError('Cannot connect to proxy.',
    OSError('Tunnel connection failed: 407 Proxy Authentication Required'))': /simple/x/""": REFUSED,
    """There was a problem confirming the ssl certificate: HTTPSConnectionPool(host='10.0.0.9', port=8445):
    (1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate')""": (
        UNKNOWN.format("10.0.0.9:8445")
    ),
    "ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)": (
        "the package index has nothing under that name, as a wrong address or a login page has. Remedy: correct "
        "a_source."
    ),
    # the engine
    '500 Server Error ("Get "https://r.example/v2/": Proxy Authentication Required")': REFUSED,
    'Get "https://r.example:5000/v2/": x509: certificate signed by unknown authority': UNKNOWN.format("r.example:5000"),
    'Get "https://r:5/v2/": tls: failed to verify certificate: x509: certificate signed by unknown authority': (
        UNKNOWN.format("r:5")
    ),
    "Attempting next endpoint for pull after error: invalid character '<' looking for beginning of value": (
        HTML.format("the server")
    ),
    'Get "https://r.example:5000/v2/": http: server gave HTTP response to HTTPS client': (
        "r.example:5000 speaks plain HTTP, and the engine wants TLS. Remedy: give it a certificate, or name it under "
        "insecure-registries in docker_daemon_config."
    ),
    'Get "https://r.example/v2/": proxyconnect tcp: dial tcp 10.0.0.1:3128: connect: connection refused': (
        "the proxy does not answer. Remedy: restore it, or correct the_proxy."
    ),
    'Get "https://r.example/v2/": dial tcp: lookup r.example: no such host': (
        "r.example cannot be reached from there. Remedy: set or correct the_proxy, or a_source."
    ),
}


@pytest.mark.parametrize(("reported", "expected"), PRINTED.items())
def test_the_cause_is_named(reported: str, expected: str) -> None:
    assert explain(reported, "the_proxy", "a_source") == expected


def test_the_first_cause_of_the_list_wins_over_what_follows_from_it() -> None:
    reported = (
        "Attempting next endpoint for pull after error: error unmarshalling content: invalid character '<' looking for "
        'beginning of value\nGet "https://r.example/v2/": dial tcp: lookup r.example: no such host'
    )
    assert "web page (HTML)" in explain(reported, "p", "s")


def test_a_build_log_is_a_list_made_text() -> None:
    reported = "Error building x - code: 1, logs: ['Step 1/2 : FROM y\\n', ' 407 Proxy Authentication Required\\n']"
    assert explain(reported, "the_proxy", "s") == REFUSED


def test_what_is_not_known_is_shown_by_its_end_without_passwords() -> None:
    reported = "\n".join(f"line {number} http://me:hunter2@p:1" for number in range(100))
    shown = explain(reported, "p", "s")
    assert shown.count("line") == LAST and "line 99" in shown
    assert "hunter2" not in shown and "http://********@p:1" in shown
    assert explain("", "p", "s").startswith("nothing was printed. Remedy: ")


WORD = st.text(st.sampled_from("abcxyz%-0189"), min_size=1, max_size=9)


@given(WORD, WORD, st.sampled_from(["407", "no such host", "x509: certificate signed by unknown authority", "what"]))
def test_a_password_is_never_reported(user: str, password: str, reported: str) -> None:
    text = f"at http://{user}:QQ{password}QQ@proxy.example:3128 {reported}"
    assert f"QQ{password}QQ" not in explain(text, "p", "s")
    assert f"QQ{password}QQ" not in mask_urls(text)


@given(st.text())
def test_odd_text_is_no_exception(text: str) -> None:
    assert ". Remedy: " in explain(text, "p", "s")


def test_the_filter_wants_text() -> None:
    with pytest.raises(AnsibleFilterError, match="expected what a program said, not dict"):
        fetch_trouble({}, "p", "s")
    with pytest.raises(AnsibleFilterError, match="expected what a program said, not list"):
        fetch_trouble(["a", 1], "p", "s")


def test_the_outputs_of_several_programs_are_lines_of_their_own() -> None:
    assert fetch_trouble(["first", "second"], "p", "s") == fetch_trouble("first\nsecond", "p", "s")
    assert fetch_trouble(["first", "second"], "p", "s") != fetch_trouble("firstsecond", "p", "s")
