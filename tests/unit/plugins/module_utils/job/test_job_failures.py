# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The table of known failures: complete, true to our variables, and equal to docs/diagnosis.md.

After a change of the table: ``WRITE_DIAGNOSIS=1 pytest tests/unit/plugins/module_utils/job/test_job_failures.py``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.failures import BY_ID, FAILURES, KINDS, Failure
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.variables import role_specs

ROOT = Path(__file__).parents[5]
DOCUMENT = ROOT / "docs" / "diagnosis.md"
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
BEGIN, END = "<!-- table of job/failures.py -->\n", "<!-- end of the table -->\n"
TAGS = {*ROLES, "hostfile", "ds_config", "launch", "verify"}


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    marks = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return marks + space + text.replace("|", "\\|") + space + marks


def rows(kind: str) -> str:
    lines = ["| id | text in the log | cause | remedy | setting | known from |", "|---|---|---|---|---|---|"]
    for failure in FAILURES:
        if failure.kind == kind:
            texts = "<br>".join(code(text.lstrip("^")) for text in failure.texts) or "(no text)"
            setting = f"`{failure.setting}`" if failure.setting else ""
            name = failure.id + (" *" if failure.general else "") + (" †" if failure.passing else "")
            cells = (name, texts, cell(failure.cause), cell(failure.remedy), setting, failure.source)
            lines.append("| " + " | ".join(cells).replace("  ", " ") + " |")
    return "\n".join(lines) + "\n"


def table() -> str:
    parts = [f"### {kind}: {words}\n\n{rows(kind)}" for kind, words in KINDS.items()]
    return "\n" + "\n".join(parts) + "\n"


def test_the_document_has_the_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    if os.environ.get("WRITE_DIAGNOSIS"):
        DOCUMENT.write_text(before + BEGIN + table() + END + after, encoding="utf-8")
        old = table()
    assert old == table(), "docs/diagnosis.md is not what the table gives: see the top of this file"


def test_there_are_as_many_as_promised_and_each_once() -> None:
    # An entry with a frame may share its text with one that applies without that frame.
    texts = [text for failure in FAILURES for text in failure.texts if not failure.frame]
    framed = [(text, failure.frame) for failure in FAILURES for text in failure.texts if failure.frame]
    assert len(FAILURES) >= 60
    assert len(BY_ID) == len(FAILURES)
    assert len(set(texts)) == len(texts)
    assert len(set(framed)) == len(framed)
    assert {failure.kind for failure in FAILURES} == set(KINDS)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.id)
def test_each_is_complete(failure: Failure) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", failure.id)
    for sentence in (failure.cause, failure.remedy):
        assert re.fullmatch(r"[A-Za-z/][^\n]*\.", sentence)
    assert failure.source
    assert all(len(piece) >= 2 for text in failure.texts for piece in text.lstrip("^").split("…"))
    assert all(len(text.lstrip("^").split("…")[0]) >= 4 for text in failure.texts)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.id)
def test_each_setting_is_a_variable_of_this_collection(failure: Failure) -> None:
    known = set(role_specs().options)
    assert failure.setting == "" or failure.setting in known
    prefixes = "|".join((*ROLES, "cluster", "gpu"))
    words = set(re.findall(rf"(?<![\w-])(?:{prefixes})_[a-z_]+\b(?!\.)", failure.remedy + failure.cause))
    assert words - known - set(ROLES) == set()


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.id)
def test_each_tag_exists(failure: Failure) -> None:
    tags = {tag for tags in re.findall(r"--tags ([a-z_,]+)", failure.remedy) for tag in tags.strip(",").split(",")}
    assert tags - TAGS == set()


def test_symptoms_are_not_called_general() -> None:
    """They have a grade of their own, below it."""
    assert [failure.id for failure in FAILURES if failure.kind == "symptom" and failure.general] == []


def test_only_exit_codes_and_two_judgements_have_no_text() -> None:
    silent = {failure.id for failure in FAILURES if not failure.texts}
    assert {name for name in silent if not name.startswith("exit-")} == {"extension-lock", "ended-early"}
