# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Run the proof on this machine: make its environment, run the parts, keep what they found."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.memory import GPU_RESERVE, GPU_RESERVE_SHARE

from tests.gpu_proof import containers, environment, faults, jobs, memory, models, nodes
from tests.gpu_proof.commands import EXTENSIONS, python, run
from tests.gpu_proof.parts import FAILED, PASSED, Failed, Part, Proof, Skipped
from tests.gpu_proof.paths import CACHE, KEPT, ROOT, ProofError
from tests.gpu_proof.result import SCHEMA, check, file_name
from tests.whole_file import write_whole

STAGES = (0, 1, 2, 3)
_OPERATOR_LIMIT, _JOB_LIMIT, _CASE_LIMIT = 240.0, 150.0, 60.0
_REHEARSAL = 4
"""Times as long: CPUs compile and train more slowly."""


def proof(accelerator: str, named: str | None, only: str = "") -> int:
    """Run the parts and write the result; return an exit status: 0 where no part failed.

    ``only`` is a regular expression for the names of parts. What they find then takes its place in the result that this
    GPU has already. Operators are compiled in any case, as other parts need them.
    """
    began = time.monotonic()
    interpreter, reported = environment.find_python(named)
    if accelerator == "cuda" and not reported.get("cuda"):
        raise ProofError(
            f"{interpreter} has torch {reported['torch']}, which is built without CUDA. "
            "Remedy: make gpu-proof GPU_PYTHON=/path/to/python with torch for GPUs, or ACCELERATOR=cpu for a rehearsal."
        )
    print(f"gpu-proof: torch {reported['torch']}; making the environment", flush=True)
    environment.make(interpreter, reported)
    for folder in (jobs.CLUSTER, nodes.FOLDER, CACHE / "logs", *(() if only else (EXTENSIONS,))):
        shutil.rmtree(folder, ignore_errors=True)
    rehearsal = accelerator != "cuda"
    user = os.environ.get("USER", "")
    held = Proof(secrets=(socket.gethostname(), str(ROOT), str(Path.home()), "" if user == "root" else user))
    held.limit = held.limit * (_REHEARSAL if rehearsal else 1) - (time.monotonic() - began)
    compiling = compiles((part.name for part in parts(accelerator, Proof())), only)
    try:
        for result in held.run(chosen(parts(accelerator, held), only, compiling)):
            print(
                f"gpu-proof: {result['name']}: {result['state']}, {result['seconds']} s. {result['reason']}", flush=True
            )
            leave(assemble(accelerator, held), rehearsal)  # for a machine that is taken away before the end
    finally:
        containers.clean()
    document = assemble(accelerator, held)
    if only and not rehearsal:
        document = merged(document, only)
    path = keep(document, rehearsal)
    print(f"gpu-proof: {path.relative_to(ROOT)}, {document['seconds']} s", flush=True)
    return 1 if any(result["state"] == FAILED for result in held.results) else 0


def parts(accelerator: str, held: Proof) -> Iterator[Part]:
    """Yield the parts in order; what comes later may ask how earlier ones ended."""
    slow = 1 if accelerator == "cuda" else _REHEARSAL
    yield Part("machine", 90.0 * slow, lambda limit: python("machine.py", [], limit))
    yield from containers.parts(accelerator, held, slow)
    yield Part("gpu_info", 90.0, partial(_gpu_info, accelerator))
    for builder in ("FusedAdamBuilder", "CPUAdamBuilder"):
        yield Part(f"compile {builder}", _OPERATOR_LIMIT * slow, partial(_compile, builder, accelerator))
    fused = held.state("compile FusedAdamBuilder") == PASSED
    offload = held.state("compile CPUAdamBuilder") == PASSED
    limit = _JOB_LIMIT * slow
    yield Part("job collective", limit, lambda seconds: jobs.collective(accelerator, seconds))
    yield Part("job digits", limit, lambda seconds: jobs.digits(accelerator, seconds))
    for stage in STAGES:
        train = partial(jobs.transformer, stage, accelerator, fused=fused)
        yield Part(f"job transformer zero{stage}", limit, train)
    train = partial(jobs.transformer, 2, accelerator, fused=fused, offload=True)
    yield Part("job transformer zero2 offload", limit, _needs(offload, "CPUAdam was not compiled", train))
    yield from _over_nodes(accelerator, limit, fused)
    yield from _faults(accelerator, limit, held)
    for name in models.MODELS:
        yield Part(
            f"models {name}",
            2 * _CASE_LIMIT * slow,
            _needs(fused, "FusedAdam was not compiled", partial(_models, name, accelerator, held)),
        )
    for case in memory.cases(rehearsal=accelerator != "cuda"):
        ready = fused and (offload or "offload" not in case.way)
        run_case = _needs(ready, "its optimizer was not compiled", partial(_memory, case, accelerator))
        yield Part(f"memory {case.name}", _CASE_LIMIT * slow, run_case)


def compiles(names: Iterable[str], only: str) -> bool:
    """Return whether what is asked for needs compiled operators."""
    without = ("containers ", "machine", "gpu_info", "compile ")
    return any(re.search(only, name) and not name.startswith(without) for name in names)


def chosen(all_parts: Iterator[Part], only: str, compiling: bool = True) -> Iterator[Part]:
    """Yield those that are asked for, what names the GPU, and the operators where others need them."""
    for part in all_parts:
        needed = part.name == "machine" or (compiling and part.name.startswith("compile "))
        if needed or re.search(only, part.name):
            yield part


def merged(document: dict[str, Any], only: str) -> dict[str, Any]:
    """Return the result that is kept of this GPU with the requested parts of this run in their places."""
    path = KEPT / file_name(document["gpu"])
    if not path.exists():
        return document
    before = json.loads(path.read_text(encoding="utf-8"))
    check(before, kept=True)
    found = {part["name"]: part for part in before["parts"]}
    found |= {p["name"]: p for p in document["parts"] if p["name"] not in found or re.search(only, p["name"])}
    order = [part.name for part in parts(document["accelerator"], Proof())]
    listed = sorted(found.values(), key=lambda p: order.index(p["name"]) if p["name"] in order else len(order))
    return {**document, "parts": listed, "seconds": round(sum(part["seconds"] for part in listed), 1)}


def _over_nodes(accelerator: str, limit: float, fused: bool) -> Iterator[Part]:
    def over_both(name: str, job: Callable[..., dict[str, Any]], *given: Any, **options: Any) -> Part:
        def run_it(seconds: float) -> dict[str, Any]:
            return nodes.with_both(lambda cluster: job(*given, accelerator, seconds, cluster=cluster, **options))

        return Part(name, limit, run_it)

    yield over_both("nodes collective", jobs.collective)
    for stage in STAGES[1:]:
        yield over_both(f"nodes transformer zero{stage}", jobs.transformer, stage, fused=fused)
    for name in nodes.EXAMPLES:
        yield over_both(f"nodes example {name}", nodes.example, name)


def _faults(accelerator: str, limit: float, held: Proof) -> Iterator[Part]:
    on_gpu = accelerator == "cuda"
    if on_gpu:
        for name, run_it in (
            ("refusal slots", faults.refused_slots),
            ("refusal memory", faults.refused_memory),
            ("status", faults.status),
        ):
            yield Part(name, limit, partial(run_it, accelerator, held.plain))
    for how, expected in (faults.EXPECTED if on_gpu else faults.REHEARSED).items():
        yield Part(f"failure {how}", limit, partial(faults.failure, how, expected, accelerator, held.plain))


def _needs(ready: bool, reason: str, then: Any) -> Any:
    def run_it(limit: float) -> dict[str, Any]:
        if not ready:
            raise Skipped(reason)
        found: dict[str, Any] = then(limit)
        return found

    return run_it


def _gpu_info(accelerator: str, limit: float) -> dict[str, Any]:
    if accelerator != "cuda":
        raise Skipped("a rehearsal has no GPU to ask")
    command = ["ansible", "localhost", "-m", "swarmspeed.cluster.gpu_info", "-e"]
    command += ["ansible_python_interpreter={{ ansible_playbook_python }}"]
    printed = run(command, limit, cwd=ROOT, extra={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})
    rows = python("ask_nvml.py", [_write(_json_in(printed))], limit)["rows"]
    wrong = [found["field"] for found in rows if not found["equal"]]
    if wrong:
        raise Failed(f"gpu_info and NVML differ in {', '.join(wrong)}", {"fields": rows})
    return {"fields": rows}


def _json_in(printed: str) -> str:
    start, end = printed.find("{"), printed.rfind("}")
    if not 0 <= start < end:
        raise Failed("gpu_info printed no JSON")
    return printed[start : end + 1]


def _write(text: str) -> str:
    path = CACHE / "gpu_info.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


def _compile(builder: str, accelerator: str, limit: float) -> dict[str, Any]:
    needed = ["g++", *(["nvcc"] if accelerator == "cuda" else [])]
    for program in needed:
        if shutil.which(program) is None and not (program == "nvcc" and Path("/usr/local/cuda/bin/nvcc").exists()):
            raise Skipped(f"there is no {program} on this machine")
    return python("operators.py", [builder], limit, memory.environment(accelerator))


def _memory(case: memory.Case, accelerator: str, limit: float) -> dict[str, Any]:
    on_gpu = accelerator == "cuda"
    predicted, planned = memory.predict(case, accelerator)
    room = memory.room(predicted) if on_gpu else 0
    measured = memory.measure(case, accelerator, limit, room)
    fits = "out_of_memory" not in measured
    if not fits:
        measured = memory.measure(case, accelerator, limit)
    if "out_of_memory" in measured:
        raise Skipped(f"this GPU is too small for it: {measured['out_of_memory']}")
    least = memory.LEAST if on_gpu else memory.LEAST_ON_CPU
    found = {**memory.row(case, predicted, measured, planned.of("gpu", "reserve"), least), "room": room, "fits": fits}
    if on_gpu:
        found["tight_room"] = memory.room(predicted, GPU_RESERVE_SHARE)
        remedied = memory.measure(case, accelerator, limit, found["tight_room"], expandable=True)
        found["fits_with_expandable_segments"] = "out_of_memory" not in remedied
    # on a CPU what is offloaded is counted with the rest
    judged = on_gpu or "offload" not in case.way
    if judged and found["verdict"] != "right":
        raise Failed(f"the plan is {found['verdict']}: {found['ratio']} of what was measured", found)
    # without expandable segments fragments can take more than any plan could leave: that is recorded, not judged
    if on_gpu and not found["fits_with_expandable_segments"]:
        raise Failed(f"torch had {found['tight_room']} bytes in expandable segments, and that was not enough", found)
    if on_gpu and found["outside_torch"] > GPU_RESERVE:
        raise Failed(f"{found['outside_torch']} bytes are not torch's, more than the reserve has for them", found)
    return found


def _models(name: str, accelerator: str, held: Proof, limit: float) -> dict[str, Any]:
    if not nodes.installed("transformers"):
        raise Skipped("there is no transformers beside torch on this machine")
    if nodes.installed("sklearn") and not nodes.installed("sklearn.metrics"):
        raise Skipped("transformers imports scikit-learn, for which there is a stand-in only")
    gpus = next((result["found"].get("gpus") for result in held.results if result["name"] == "machine"), None) or []
    room = min((gpu["memory_bytes"] for gpu in gpus), default=0) * 85 // 100
    return models.measured(name, accelerator, limit, room)


def assemble(accelerator: str, held: Proof) -> dict[str, Any]:
    """Return the document that is kept."""
    machine: dict[str, Any] = next((result["found"] for result in held.results if result["name"] == "machine"), {})
    gpus = machine.get("gpus") or [{}]
    return {
        "schema": SCHEMA,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "accelerator": accelerator,
        "gpu": gpus[0].get("name", "unknown"),
        "collection": _version(),
        "seconds": held.seconds(),
        "preflight_left_out": list(jobs.LEFT_OUT),
        "parts": held.results,
    }


def keep(document: dict[str, Any], rehearsal: bool) -> Path:
    """Write it, of a GPU also beside the documentation where it is fit for that; a rehearsal is not kept."""
    first, text = leave(document, rehearsal)
    check(document, kept=not rehearsal)
    if rehearsal:
        return first
    path = KEPT / file_name(document["gpu"])
    write_whole(path, text)
    return path


def leave(document: dict[str, Any], rehearsal: bool) -> tuple[Path, str]:
    """Write it below the proof's folder, fit or not; return where, and its text."""
    text = json.dumps(document, indent=1) + "\n"
    path = CACHE / ("rehearsal.json" if rehearsal else "result.json")
    write_whole(path, text)
    return path, text


def _version() -> str:
    # without a YAML library: this runs with any Python
    lines = (ROOT / "galaxy.yml").read_text(encoding="utf-8").splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith("version:"))
