# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What doctor.yml says of a job: which rank the others wait for, from what its nodes found when they were asked."""

from __future__ import annotations

import base64
from pathlib import PurePosixPath

from ...module_utils.common.untrusted_text import on_one_line
from ...module_utils.job.doctor.examination import HANGS, REQUEST, conclude, expand
from ...module_utils.job.resource import ACTIVE
from ..core.values import mapping, number
from .table import Results, merge, silent


def examined(name: str, infos: Results, examinations: Results) -> list[str]:
    """Lines: what follows from the examinations of all nodes that have a part of the job.

    ``infos``: what training_job_info returned by node, ``examinations``: what training_job_examine did.
    """
    jobs = {known.name: known for known in merge(infos)}
    known = jobs.get(name)
    if known is None or not any(job.get("state") in ACTIVE for job in (known.job, *known.others.values())):
        state = f"{name} is not running ({known.job['state']})" if known else f"There is no job {name}"
        running = [one for one, other in jobs.items() if other.job.get("state") in ACTIVE]
        return [f"{state}. Running jobs: {', '.join(running) or 'none'}.", *silent(infos)]
    members = [mapping(one) for one in mapping(known.job.get("summary")).get("members") or []]
    nodes = {
        int(number(one.get("first_rank")) or 0) + place: str(one.get("name"))
        for one in members
        for place in range(len(one.get("slots") or []))
    }
    found, lines = [], []
    for node in [str(one.get("name")) for one in members] or [known.node]:
        result = examinations.get(node) or {}
        try:
            found.append(expand(base64.b64decode(str(result.get("examination") or ""), validate=True)))
        except ValueError as error:
            why = result.get("problem") or result.get("msg") or error
            lines.append(f"{node}: the state of its ranks is unknown: {on_one_line(str(why), 300)}")
    finding = conclude(found, len(nodes) or len(found), nodes)
    steps = mapping(mapping(known.job.get("summary")).get("figures")).get("step")
    place = "" if steps is None else f" (step {steps})"
    return [
        f"{name}{place}: {finding['sentence'].rstrip('.')}. ({finding['confidence']})",
        f"Remedy: {finding['remedy'].rstrip('.')}.",
        *lines,
        f"What each node found is in {PurePosixPath(str(known.job.get('log_path'))).parent}/{HANGS}/{REQUEST} there.",
    ]
