# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

import copy
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import checkpoint_files
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.checkpoint_files import (
    BROKEN,
    list_files,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.checkpoints import (
    Verdict,
    newest,
    universal,
    universal_tag,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.restarts import judge

RECORDED = Path(__file__).parents[2] / "fixtures" / "checkpoints"
TWO = [{"name": "lab1", "slots": [0], "first_rank": 0}, {"name": "lab2", "slots": [0], "first_rank": 1}]

Listings = dict[str, dict[str, Any]]


def recorded(name: str) -> Listings:
    found: Listings = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return found


def without(listings: Listings, node: str, path: str) -> Listings:
    """The same, less one file; a path that is not there would make the test say nothing."""
    changed = copy.deepcopy(listings)
    files = changed[node]["files"]
    left = [item for item in files if item[0] != path]
    assert len(left) == len(files) - 1
    changed[node]["files"] = left
    return changed


def sized(listings: Listings, node: str, path: str, size: int) -> Listings:
    changed = without(listings, node, path)
    changed[node]["files"].append([path, size])
    return changed


def judged(listings: Listings, stage: int | None = None, *, local: bool = False, world: int = 2) -> Verdict:
    return newest(listings, TWO, stage, local, world)


@pytest.mark.parametrize(
    ("name", "stage"),
    [("stage2_shared", 2), ("stage3_shared", 3), ("stage1_node_local_0.15.4", 1)],
)
def test_recorded_checkpoints_that_are_whole(name: str, stage: int) -> None:
    for given in (stage, None):
        verdict = judged(recorded(name), given, local="local" in name)
        assert verdict == Verdict("global_step8", 8, True, [], "The job can go on from global_step8.", 2, (), "latest")


@pytest.mark.parametrize(("name", "stage"), [("stage1_node_local", 1), ("stage3_node_local", 3)])
def test_later_releases_write_latest_on_one_node_only(name: str, stage: int) -> None:
    verdict = judged(recorded(name), stage, local=True)
    assert (verdict.tag, verdict.complete, verdict.missing, verdict.wrong_latest) == (
        "global_step8",
        True,
        [],
        ("lab2",),
    )
    assert verdict.advice == (
        "latest on lab2 does not name global_step8: give the tag to the script's load_checkpoint, or write it into "
        "that file, else that node loads another checkpoint or none."
    )


@pytest.mark.parametrize(
    ("name", "stage", "missing"),
    [
        ("stage0_own_disks", 0, ["mp_rank_00_model_states.pt"]),
        ("stage1_own_disks", 1, ["mp_rank_00_model_states.pt"]),
        ("bf16_own_disks", 1, ["mp_rank_00_model_states.pt"]),
        ("moe_own_disks", 1, ["mp_rank_00_model_states.pt"]),
    ],
)
def test_disks_that_are_not_shared_lack_what_rank_0_alone_writes(name: str, stage: int, missing: list[str]) -> None:
    verdict = judged(recorded(name), stage)
    assert (verdict.tag, verdict.complete) == ("global_step8", False)
    assert verdict.missing == [("lab2", f"global_step8/{file}") for file in missing]
    assert verdict.advice == (
        "Checkpoint global_step8 cannot be used: global_step8/mp_rank_00_model_states.pt on lab2 is missing. "
        "The nodes do not share that folder: copy what is missing (the first lies on lab1), and set "
        "checkpoint.use_node_local_storage: true, or use a shared folder."
    )


def test_a_pipeline_needs_the_model_states_of_all_stages_on_each_node() -> None:
    verdict = judged(recorded("pipeline_own_disks"), 1)
    assert verdict.missing == [
        ("lab1", "global_step8/mp_rank_01_model_states.pt"),
        ("lab2", "global_step8/mp_rank_00_model_states.pt"),
    ]
    shared = recorded("pipeline_own_disks")
    for node, other in (("lab1", "lab2"), ("lab2", "lab1")):
        shared[node]["files"] += [
            item for item in recorded("pipeline_own_disks")[other]["files"] if item[0] != "latest"
        ]
        shared[node]["latest"] = {"latest": "global_step8"}
    assert judged(shared, 1).complete
    lost = sized(shared, "lab2", "global_step8/layer_03-model_states.pt", 0)
    assert judged(lost, 1).tag == "global_step4"
    gone = without(
        without(shared, "lab1", "global_step8/layer_03-model_states.pt"),
        "lab2",
        "global_step8/layer_03-model_states.pt",
    )
    assert judged(gone, 1).tag == "global_step4"


@pytest.mark.parametrize(("size", "state"), [(None, "missing"), (0, "empty"), (BROKEN, "not written to its end")])
@pytest.mark.parametrize("shard", ["zero_pp_rank_1_mp_rank_00_optim_states.pt", "mp_rank_00_model_states.pt"])
def test_a_rank_killed_while_it_saved_falls_back_to_the_checkpoint_before(
    size: int | None, state: str, shard: str
) -> None:
    listings, path = recorded("stage2_shared"), f"global_step8/{shard}"
    for node in ("lab1", "lab2"):
        listings = without(listings, node, path) if size is None else sized(listings, node, path, size)
    verdict = judged(listings, 2)
    assert (verdict.tag, verdict.step, verdict.complete, verdict.missing) == ("global_step4", 4, True, [])
    assert verdict.wrong_latest == ("lab1", "lab2")
    assert f"Checkpoint global_step8 cannot be used: {path} on lab" in verdict.advice
    assert f" is {state}" in verdict.advice
    assert (
        "A rank was ended while it wrote, or its disk was full. The newest that is whole is global_step4."
        in verdict.advice
    )
    assert "latest on lab1, lab2 does not name global_step4" in verdict.advice


def test_every_single_loss_is_noticed() -> None:
    for name, stage in (("stage2_shared", 2), ("stage3_shared", 3), ("stage1_node_local_0.15.4", 1)):
        whole = recorded(name)
        for node in ("lab1", "lab2"):
            own = {path for path, _size in whole[node]["files"] if path.startswith("global_step8/")}
            assert len(own) >= 2
            for path in own:
                verdict = judged(sized(whole, node, path, 0), stage, local=True)
                other_ranks = name != "stage1_node_local_0.15.4" and f"rank_{1 - int(node[-1]) + 1}_" in path
                assert (verdict.tag == "global_step8") is other_ranks, (name, node, path)


def test_when_nothing_is_whole_the_newest_is_reported() -> None:
    listings = recorded("stage1_node_local_0.15.4")
    for step in (4, 8):
        listings = without(listings, "lab2", f"global_step{step}/zero_pp_rank_1_mp_rank_00_optim_states.pt")
    verdict = judged(listings, 1, local=True)
    assert (verdict.tag, verdict.complete) == ("global_step8", False)


def test_nodes_that_disagree_are_named() -> None:
    listings = recorded("stage1_node_local_0.15.4")
    listings["lab2"]["latest"]["latest"] = "global_step4"
    verdict = judged(listings, 1, local=True)
    assert verdict.wrong_latest == ("lab2",)
    assert verdict.advice.startswith(
        "The nodes disagree about the newest checkpoint: latest says global_step8 on lab1, global_step4 on lab2. "
    )


def test_a_node_that_came_back_empty() -> None:
    listings = recorded("stage1_node_local_0.15.4")
    listings["lab2"] = {"files": [], "latest": {}, "truncated": False}
    verdict = judged(listings, 1, local=True)
    assert (verdict.tag, verdict.complete, verdict.saved_world_size) == ("global_step8", False, 1)
    assert "It was saved by 1 rank(s), and now there are to be 2" in verdict.advice
    assert verdict.advice.endswith("If it was saved by more, the files of the last ranks were never written.")


def test_no_checkpoint_yet() -> None:
    nothing: dict[str, Any] = {"files": [["README.md", 10]], "latest": {}, "truncated": False}
    assert judged({"lab1": nothing, "lab2": nothing}, 1) == Verdict(
        None, None, False, [], "There is no checkpoint yet: the job starts from the beginning."
    )
    assert judged({}, 1).tag is None
    assert judged({"lab9": recorded("stage2_shared")["lab1"]}, 2).tag is None  # not a node of this job


def test_another_number_of_ranks() -> None:
    verdict = newest({"lab1": recorded("stage2_shared")["lab1"]}, TWO[:1], 2, False, 1)
    assert (verdict.tag, verdict.complete, verdict.missing, verdict.saved_world_size) == ("global_step8", False, [], 2)
    assert verdict.advice == (
        "It was saved by 2 rank(s), and now there are to be 1: DeepSpeed does not load ZeRO stage 2 into another "
        "number of ranks, not even with elastic_checkpoint. Convert it to a universal checkpoint, with all shards in "
        "one folder: python -m deepspeed.checkpoint.ds_to_universal --input_folder TAG --output_folder TAG_universal "
        "--inject_missing_state; "
        "write TAG_universal into the file latest_universal; start with checkpoint.load_universal: true. Or load the "
        "weights alone (load_module_only=True) and lose the optimizer's state."
    )
    shared0 = {"lab1": recorded("stage0_own_disks")["lab1"]}
    assert newest(shared0, TWO[:1], 0, False, 1).complete  # without ZeRO one file has it all


def test_universal() -> None:
    assert universal(3, 4, 4) == (True, "It was saved by 4 rank(s), as many as there are now.")
    assert universal(0, 4, 2) == (
        True,
        "It was saved by 4 rank(s); without ZeRO one file has it all, so 2 can load it.",
    )
    possible, text = universal(3, 4, 2)
    assert not possible
    assert "zero_to_fp32.py" in text
    assert "--inject_missing_state" not in text


def test_experts_are_needed_somewhere() -> None:
    listings = recorded("moe_own_disks")
    for step in (4, 8):  # as if somebody had copied it
        listings["lab2"]["files"].append([f"global_step{step}/mp_rank_00_model_states.pt", 9])
    assert judged(listings, 1).complete
    gone = without(listings, "lab2", "global_step8/layer_0_expert_1_mp_rank_00_model_states.pt")
    verdict = judged(gone, 1)
    assert verdict.tag == "global_step4"
    assert "global_step8/layer_0_expert_1_mp_rank_00_model_states.pt" in verdict.advice


def trainer(deepspeed: bool) -> dict[str, Any]:
    """A stand-in for the Trainer's folders with DeepSpeed: its own files, recorded, around DeepSpeed's, recorded."""
    listing = recorded("transformers")["lab1"]
    if not deepspeed:
        return listing
    inner = recorded("stage2_shared")["lab1"]["files"]
    files = [item for item in listing["files"] if not item[0].endswith("optimizer.pt")]
    for step in (10, 20):
        files += [
            [f"checkpoint-{step}/{path.replace('global_step8', f'global_step{step}')}", size]
            for path, size in inner
            if "step4" not in path
        ]
    latest = {f"checkpoint-{step}/latest": f"global_step{step}" for step in (10, 20)}
    return {**listing, "files": files, "latest": latest}


@pytest.mark.parametrize("deepspeed", [False, True])
def test_the_trainers_folders(deepspeed: bool) -> None:
    listings = {"lab1": trainer(deepspeed), "lab2": trainer(deepspeed)}
    stage = 2 if deepspeed else None
    verdict = judged(listings, stage)
    assert (verdict.tag, verdict.step, verdict.complete, verdict.wrong_latest) == ("checkpoint-20", 20, True, ())
    lost = without(listings, "lab2", "checkpoint-20/trainer_state.json")
    assert (judged(lost, stage).tag, judged(lost, stage).complete) == ("checkpoint-10", True)
    assert "checkpoint-20/trainer_state.json on lab2 is missing" in judged(lost, stage).advice
    inner = "global_step20/zero_pp_rank_1_mp_rank_00_optim_states.pt" if deepspeed else "optimizer.pt"
    assert judged(sized(listings, "lab2", f"checkpoint-20/{inner}", BROKEN), stage).tag == "checkpoint-10"


@pytest.mark.parametrize(
    ("folder", "tag", "step"),
    [
        ("global_step8", "global_step8", 8),
        ("epoch07", "epoch07", None),
        ("120", "120", 120),
        ("run1/step_30", "run1/step_30", 30),
        ("epoch=0-step=40.ckpt/checkpoint", "epoch=0-step=40.ckpt", 40),
    ],
)
def test_names_of_tags(folder: str, tag: str, step: int | None) -> None:
    parent = folder.rpartition("/")[0]
    latest = {f"{parent}/latest" if parent else "latest": folder.rpartition("/")[2]}
    listing = {"files": [[f"{folder}/mp_rank_00_model_states.pt", 5]], "latest": latest, "truncated": False}
    verdict = judged({"lab1": listing, "lab2": listing})
    assert (verdict.tag, verdict.step, verdict.complete, verdict.wrong_latest) == (tag, step, True, ())


def test_tags_are_ordered_by_number() -> None:
    names = [f"epoch{number}" for number in (1, 2, 9, 10, 11, 100)]
    random.Random(1).shuffle(names)
    listing = {"files": [[f"{name}/mp_rank_00_model_states.pt", 5] for name in names], "latest": {}, "truncated": True}
    verdict = judged({"lab1": listing, "lab2": listing})
    assert verdict.tag == "epoch100"
    assert "Only the first 100000 files of a node were checked: remove old checkpoints." in verdict.advice


@pytest.mark.parametrize(
    ("pipeline", "mp", "world"), [(False, 1, 4), (False, 2, 8), (True, 2, 8), (True, 4, 8), (True, 4, 4)]
)
def test_each_rank_of_a_grid_needs_its_own_shard(pipeline: bool, mp: int, world: int) -> None:
    files = [f"mp_rank_{index:02d}_model_states.pt" for index in range(mp)]
    files += [
        f"zero_pp_rank_{dp}_mp_rank_{index:02d}_optim_states.pt" for dp in range(world // mp) for index in range(mp)
    ]
    files += [f"layer_{index:02d}-model_states.pt" for index in range(mp)] if pipeline else []
    listing: dict[str, Any] = {
        "files": [[f"s1/{name}", 5] for name in files],
        "latest": {"latest": "s1"},
        "truncated": False,
    }
    members = [{"name": f"n{rank}", "slots": [0], "first_rank": rank} for rank in range(world)]
    listings: Listings = {str(member["name"]): copy.deepcopy(listing) for member in members}
    assert newest(listings, members, 1, False, world).complete
    owners = {}
    for rank in range(world):
        for path, _size in listing["files"]:
            verdict = newest(sized(listings, f"n{rank}", path, 0), members, 1, False, world)
            if "optim" in path and not verdict.complete:
                owners[path] = rank
    assert sorted(owners.values()) == list(range(world))  # one owner each, and each rank one shard
    if pipeline:  # the ranks of a stage stand together
        assert (
            owners[
                "s1/zero_pp_rank_1_mp_rank_00_optim_states.pt"
                if world > mp
                else "s1/zero_pp_rank_0_mp_rank_01_optim_states.pt"
            ]
            == 1
        )


def zipped(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:  # what torch.save writes is a zip archive
        archive.writestr("archive/data.pkl", b"x" * size)


def test_files_are_listed_and_a_cut_one_is_found(tmp_path: Path) -> None:
    assert list_files(str(tmp_path / "none")) == {"files": [], "latest": {}, "truncated": False}
    whole, cut = tmp_path / "global_step1" / "a.pt", tmp_path / "global_step1" / "b.pt"
    zipped(whole, 5000)
    cut.write_bytes(whole.read_bytes()[:3000])
    (tmp_path / "global_step1" / "c.pt").write_bytes(b"")
    (tmp_path / "global_step1" / "d.pt").write_bytes(b"\x80\x02 an older format")
    (tmp_path / "latest").write_text("global_step1\n", encoding="utf-8")
    (tmp_path / "gone").symlink_to("nowhere")
    assert list_files(str(tmp_path)) == {
        "files": [
            ["global_step1/a.pt", whole.stat().st_size],
            ["global_step1/b.pt", BROKEN],
            ["global_step1/c.pt", 0],
            ["global_step1/d.pt", 18],
            ["latest", 13],
        ],
        "latest": {"latest": "global_step1"},
        "truncated": False,
    }


def test_a_zip_cut_anywhere_is_found(tmp_path: Path) -> None:
    zipped(tmp_path / "whole", 300)
    content = (tmp_path / "whole").read_bytes()
    for end in range(4, len(content) - 22 + 1, 7):
        (tmp_path / "cut.pt").write_bytes(content[:end])
        assert list_files(str(tmp_path))["files"][0] == ["cut.pt", BROKEN], end


def test_a_listing_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / f"f{number}").write_bytes(b"x")
    monkeypatch.setattr(checkpoint_files, "MOST_FILES", 3)
    assert list_files(str(tmp_path)) == {"files": [["f0", 1], ["f1", 1], ["f2", 1]], "latest": {}, "truncated": True}


def universal_listing(latest: str | None = "step9_universal", size: int = 10) -> dict[str, Any]:
    files = [["step9_universal/zero/w/fp32.pt", size], ["step9/zero_pp_rank_0_mp_rank_00_optim_states.pt", 10]]
    reported = {"latest": "step20"}
    return {"files": files, "latest": {**reported, "latest_universal": latest} if latest else reported}


def test_a_universal_checkpoint_is_the_only_one_that_is_loaded_with_load_universal() -> None:
    found = universal_tag({"lab1": universal_listing(), "lab2": universal_listing()}, TWO)
    assert (found.tag, found.step, found.complete, found.missing) == ("step9_universal", 9, True, [])
    none = universal_tag({"lab1": universal_listing(None), "lab2": universal_listing(None)}, TWO)
    assert (none.tag, none.complete) == (None, False)
    assert none.advice == "There is no latest_universal yet: the job starts from the beginning."


@pytest.mark.parametrize(
    ("listing", "path"),
    [
        (universal_listing(None), "latest_universal"),
        (universal_listing("step3_universal"), "latest_universal"),
        (universal_listing(size=0), "step9_universal/zero"),
        ({}, "latest_universal"),
    ],
)
def test_a_universal_checkpoint_that_one_node_lacks(listing: dict[str, Any], path: str) -> None:
    found = universal_tag({"lab1": universal_listing(), "lab2": listing}, TWO)
    assert (found.tag, found.complete) == ("step9_universal", False)
    assert found.missing[0] == ("lab2", path)
    assert f"{path} on lab2 is missing or another one." in found.advice


def test_restarts_ask_for_the_kind_that_the_configuration_loads(tmp_path: Path) -> None:
    both = {"lab1": universal_listing(), "lab2": universal_listing()}
    config = tmp_path / "ds_config.json"
    for content, tag in (
        ({"zero_optimization": {"stage": 2}, "checkpoint": {"load_universal": True}}, "step9_universal"),
        ({"zero_optimization": {"stage": 2}}, "step9"),
        ([], "step9"),
    ):
        config.write_text(json.dumps(content))
        assert judge(both, TWO, str(config), 2).tag == tag


def test_what_a_run_shows_by_a_link_is_listed_and_no_other_link_is_followed(tmp_path: Path) -> None:
    run, other = tmp_path / "workspace/.swarmspeed/runs/a@gpu1/ckpt/step7", tmp_path / "other"
    for folder in (run, other):
        folder.mkdir(parents=True)
        (folder / "mp_rank_00_model_states.pt").write_text("x")
    shown = tmp_path / "workspace/ckpt"
    shown.mkdir()
    (shown / "step7").symlink_to("../.swarmspeed/runs/a@gpu1/ckpt/step7")
    (shown / "again").symlink_to(other)
    (run / "loop").symlink_to(run)
    assert list_files(str(shown))["files"] == [["step7/mp_rank_00_model_states.pt", 1]]
