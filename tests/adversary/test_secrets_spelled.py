# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A secret is hidden however a program spells it, wherever a log is cut, and whatever a container names as secrets."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from urllib.parse import quote, quote_plus, urlencode

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common import secret_names, secret_spellings
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.secret_names import NOT_SHOWN, hider

from tests.adversary.test_secrets import READERS, SECRET, cluster, gathered, status
from tests.growth import assert_growth

BASH = shutil.which("bash") or ""
DASH = shutil.which("dash") or ""
VALUES = (
    'two"words\\and-more',
    "it's a 'quoted' one",
    "both \"of\" 'them' \\ here",
    "ключ-пароль",
    "größe$HOME`x`&<b>",
    "größe\aüber",
    "line-one\nline-two\rline-three",
    "tab\there%and+more",
    "plain-and-simple-81",
)


def traced(shell: str) -> Callable[[str], str]:
    def trace(value: str) -> str:
        command = [shell, "-xc", 'true "$S"; export S; export -p']
        done = subprocess.run(
            command, env={"S": value, "LC_ALL": "C.UTF-8"}, capture_output=True, text=True, check=True
        )
        return done.stdout + done.stderr

    return trace


def printf_q(value: str) -> str:
    return subprocess.run([BASH, "-c", 'printf %q "$1"', "x", value], capture_output=True, text=True, check=True).stdout


SPELLED: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "repr": repr,
    "repr in a mapping": lambda value: repr({"a": value}),
    "repr in a longer text": lambda value: repr(f"login with {value!s} and 'x' and \"y\" failed"),
    "repr of one quote": lambda value: repr(f"it's {value}"),
    "repr twice": lambda value: repr(repr({"a": value})),
    "ascii": ascii,
    "bytes": lambda value: repr(value.encode()),
    "bytes in bytes": lambda value: repr(b"'\"" + value.encode()),
    "json": json.dumps,
    "json with umlauts": lambda value: json.dumps(value, ensure_ascii=False),
    "json in json": lambda value: json.dumps({"a": json.dumps({"b": value})}),
    "json in json with umlauts": lambda value: json.dumps(json.dumps(value, ensure_ascii=False), ensure_ascii=False),
    "json printed by repr": lambda value: repr(json.dumps(value)),
    "bytes of json": lambda value: repr(json.dumps(value).encode()),
    "shlex": shlex.quote,
    "a command line": lambda value: shlex.join(["a", value]),
    "an address": quote,
    "all of an address": lambda value: quote(value, safe=""),
    "a form": quote_plus,
    "a query": lambda value: urlencode({"a": value}),
    "a query in small letters": lambda value: re.sub("%..", lambda found: found.group().lower(), quote(value, safe="")),
    "html": escape,
    "yaml": lambda value: "'" + value.replace("'", "''") + "'",
    **({"bash -x": traced(BASH), "bash printf %q": printf_q} if BASH else {}),
    **({"dash -x": traced(DASH)} if DASH else {}),
}


def remains(value: str) -> set[str]:
    """What of a secret would show it: its words, also as they are spelled."""
    words = re.findall(r"[^\W_]{4,}", value)
    return {form for word in words for form in (word, ascii(word)[1:-1], repr(word.encode())[2:-1], quote(word))}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("spelling", SPELLED.values(), ids=SPELLED)
def test_a_secret_as_a_program_spells_it(spelling: Callable[[str], str], value: str) -> None:
    shown = hider({"DB_PASSWORD": value})(spelling(value))
    assert "********" in shown and not [word for word in remains(value) if word in shown], shown


@pytest.mark.parametrize("value", ['two"words\\and-more', "ключ-пароль", "it's line-one\nline-two"])
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_hides_every_spelling(reader: Callable[[Path], str], value: str, tmp_path: Path) -> None:
    printed = [one for spelling in SPELLED.values() for one in spelling(value).split("\n")]
    jobs = cluster(tmp_path, *printed, own={"DB_PASSWORD": value}, traceback=[value], reason=f"git said {value!r}")
    found = reader(jobs)
    for part in ("words", "and-more", "пароль", "041f", "line-one", "line-two", "%D0"):
        assert part not in found


def test_a_long_secret_is_hidden_whole_and_in_its_lines(tmp_path: Path) -> None:
    key = "\n".join(f"{at:02d}" + "aB3/+" * 12 for at in range(50))
    jobs = cluster(tmp_path, key, json.dumps(key), repr(key), quote(key), own={"DEPLOY_PRIVATE_KEY": key})
    found = gathered(jobs)
    assert "aB3" not in found and "B3/" not in found and len(found) < 2000


CUT = [f"rank 0: {SECRET}", f"{SECRET} {SECRET}", f"1%\r{SECRET}\r2%", f"HF_TOKEN={SECRET}0", f"x{SECRET}"]


@pytest.mark.parametrize("line", CUT)
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", ""])
def test_a_shortened_log_does_not_begin_within_a_secret(line: str, end: str, tmp_path: Path) -> None:
    """At every place at which the log can be cut, with lines that end, that are drawn over, and without an end."""
    jobs = cluster(tmp_path)
    whole = (line + end) * 3000
    (jobs / "digits" / "launcher.log").write_text(whole, newline="")
    hide = hider({"GH_PAT": SECRET})
    for place in range(len(line + end)):
        found = shortened(whole, 40_000 + place, hide)
        assert "(The first " in found and not any(SECRET[-length:] in found for length in range(6, len(SECRET)))


def shortened(whole: str, limit: int, hide: Callable[[str], str]) -> str:
    from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.log_files import shorten  # noqa: PLC0415
    from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.log_files_io import masked  # noqa: PLC0415

    data = whole.encode()
    return shorten("gpu1", "x", len(data), data[-limit:], lambda tail: masked("launcher.log", tail, hide)).decode()


@pytest.mark.parametrize("end", ["\n", "\r", ""])
def test_the_last_lines_of_a_long_log_do_not_begin_within_a_secret(end: str, tmp_path: Path) -> None:
    jobs = cluster(tmp_path)
    for place in range(0, len(SECRET) + 2, 3):
        (jobs / "digits" / "launcher.log").write_text((SECRET + end) * 60_000 + "x" * place, newline="")
        found = json.loads(status(jobs))["log"]
        assert not any(SECRET[-length:] in line for line in found for length in range(6, len(SECRET)))


PARTS = (
    "://a:",
    "a=",
    "'a': ",
    "A_A: ",
    "hf_",
    "sk-",
    '="',
    "a.a.",
    "://",
    "a=b ",
    "'--a', ",
    "://a@",
    "eyJ",
    "AKIA",
    "\\u00",
)


@pytest.mark.parametrize("part", PARTS)
def test_a_container_cannot_stall_who_masks_its_log(part: str) -> None:
    """Text on which a pattern without bounds would go back and forth for hours."""
    hide = hider({"GH_PAT": SECRET})

    def of_length(size: int) -> Callable[[], object]:
        return lambda: hide(part * (size // len(part)))

    assert_growth(of_length(20_000), of_length(160_000), less_than=24)


NAMED: dict[str, Callable[[int], dict[str, str]]] = {
    "many": lambda size: {f"T{at}_TOKEN": f"secret-{at:06d}" for at in range(size // 32)},
    "all with one begin": lambda size: {f"T{at}_TOKEN": "a" * 40 + f"{at:06d}" for at in range(size // 64)},
    "one": lambda size: {"A_TOKEN": "a" * size + "b"},
    "ever longer": lambda size: {f"T{at}_TOKEN": "a" * at for at in range(6, min(4000, size // 500))},
    "of all characters": lambda size: {f"T{at}_TOKEN": chr(0x4E00 + at % 20000) * 7 for at in range(size // 64)},
    "with quotes": lambda size: {f"T{at}_TOKEN": f"'\"\\ü{at:06d}" for at in range(size // 64)},
    "addresses": lambda size: {f"T{at}": f"http://me:pass{at:06d}@x" for at in range(size // 64)},
    "lines": lambda size: {"A_TOKEN": "\n".join(f"secret{at:06d}" for at in range(size // 16))},
}


@pytest.mark.parametrize("named", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("size", [pytest.param(100_000, marks=pytest.mark.slow), 800_000, 7_000_000])
def test_a_container_cannot_stall_by_the_secrets_that_it_names(
    named: Callable[[int], dict[str, str]], size: int, tmp_path: Path
) -> None:
    """Each of them has to be searched for in everything that is shown, also in the names of the variables."""
    own = named(size)
    jobs = cluster(tmp_path, *("aaaa bbbb cccc" for _line in range(20_000)), own=own)
    began = time.process_time()
    found = status(jobs)
    assert time.process_time() - began < 15
    assert SECRET not in found and json.loads(found)["state"] == "succeeded"


def test_more_secrets_than_can_be_searched_for_show_nothing() -> None:
    own = {f"T{at}_TOKEN": f"secret-{at:06d}" for at in range(secret_names.MOST_VARIABLES + 1)}
    assert hider(own)("login with secret-000001 failed") == NOT_SHOWN and hider(own)("") == ""
    own = {"A_TOKEN": "a" * (secret_spellings.MOST_CHARACTERS + 1)}
    assert hider(own)("anything") == NOT_SHOWN
    own = {f"T{at}_TOKEN": chr(0x4E00 + at) * 7 for at in range(4000)}  # few characters, and many in their spellings
    assert hider(own)("anything") == NOT_SHOWN
    few = dict(list({f"T{at}_TOKEN": f"secret-{at:06d}" for at in range(1000)}.items()))
    assert hider(few)("login with secret-000999 failed") == "login with ******** failed"
