# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which checkpoint a job can go on from, what is missing of it and on which node.

Part of the supervisor's archive: standard library, Python 3.8 or later. What DeepSpeed writes and reads is that of
deepspeed/runtime/engine.py in 0.15.4, 0.16.9, 0.17.6, 0.18.9 and 0.19.8:

- Rank 0 writes ``latest`` when its own files are written, before the other ranks have ended theirs. Nothing is renamed
  into place, so a rank that is killed leaves a file that is short, or none, below a tag that ``latest`` names.
- With ``use_node_local_storage`` each node's local rank 0 wrote ``latest`` up to 0.16.9 at least; from 0.17.6 on only
  rank 0 of the job does. Another node then finds none, warns, and starts at step 0.
- Each rank reads the model states of all model-parallel ranks (stage 3: its own) and its own optimizer shard.

Not known here: MiCS (fewer shards than ranks), and which experts a rank holds: that each is somewhere is checked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .checkpoint_files import EXPERT, LAYER, MOST_FILES, Shape, Tag, base_of, join, tags_of


class Verdict(NamedTuple):
    """``tag``: the newest checkpoint that is whole, else the newest of all; ``None`` when there is none.

    ``complete``: the job can go on from it as it is, with ``world_size`` ranks. ``missing``: (node, path) of files that
    are not there or not whole. ``saved_world_size``: ranks that wrote it, where the files say so. ``wrong_latest``:
    nodes whose file ``latest`` is missing or names another tag, so that the tag must be given to the script, or written
    there; ``latest`` is the path of that file. ``advice``: what to say about it.
    """

    tag: str | None
    step: int | None
    complete: bool
    missing: list[tuple[str, str]]
    advice: str
    saved_world_size: int | None = None
    wrong_latest: tuple[str, ...] = ()
    latest: str | None = None


def _needs(shape: Shape, dp: int, mp: int, zero: bool) -> list[str]:
    """The files that one rank reads."""
    if shape.stage3:
        names = [f"zero_pp_rank_{dp}_mp_rank_{mp:02d}_model_states.pt"]
    else:
        names = [f"mp_rank_{index:02d}_model_states.pt" for index in range(shape.mp)]
    return names + ([f"{shape.prefix}zero_pp_rank_{dp}_mp_rank_{mp:02d}_optim_states.pt"] if zero else [])


def _missing(
    tag: Tag,
    listings: dict[str, dict[str, Any]],
    members: list[dict[str, Any]],
    world_size: int,
    *,
    shape: Shape,
    zero: bool,
    older: list[str],
) -> list[tuple[str, str]]:
    """(node, path) of what is needed and not there, or not whole. ``older``: names in the checkpoint before."""
    lacking: list[tuple[str, str]] = []
    stages: dict[frozenset[int], list[str]] = {}  # stages of a pipeline: the nodes that run them
    for member in members:
        node = str(member["name"])
        needed: dict[str, None] = {}
        if tag.trainer:
            needed[f"{tag.trainer}/trainer_state.json"] = None
        if tag.trainer == tag.path:
            needed[f"{tag.trainer}/optimizer.pt"] = None
        places = [shape.place(member["first_rank"] + slot, world_size) for slot in range(len(member["slots"]))]
        if tag.trainer != tag.path:
            for dp, mp in places:
                needed.update(dict.fromkeys(join(tag.path, name) for name in _needs(shape, dp, mp, zero)))
        sizes = {path: size for path, size in listings.get(node, {}).get("files", []) if path in needed}
        lacking += [(node, path) for path in needed if sizes.get(path, 0) <= 0]
        stages.setdefault(frozenset(mp // shape.slices for _dp, mp in places), []).append(node)
    for nodes in stages.values() if shape.pipeline else ():
        names = {name for node in nodes for name in tag.sizes.get(node, {}) if LAYER.fullmatch(name)}
        lacking += [
            (node, join(tag.path, name)) for node in nodes for name in sorted(names) if not tag.whole(node, name)
        ]
    for name in {*tag.names(), *older}:  # each must be somewhere
        holders = [node for node, sizes in tag.sizes.items() if name in sizes]
        if EXPERT.fullmatch(name) or (LAYER.fullmatch(name) and not holders):
            bad = [node for node in holders if not tag.whole(node, name)] if holders else [str(members[0]["name"])]
            lacking += [(node, join(tag.path, name)) for node in bad]
    return sorted(set(lacking))


def newest(
    listings: dict[str, dict[str, Any]],
    members: list[dict[str, Any]],
    zero_stage: int | None,
    node_local: bool,
    world_size: int,
) -> Verdict:
    """Judge what nodes found (``list_files``). ``zero_stage`` ``None``: as the files say. Members: as in state.json."""
    tags = tags_of({node: listing for node, listing in listings.items() if any(node == one["name"] for one in members)})
    if not tags:
        return Verdict(None, None, False, [], "There is no checkpoint yet: the job starts from the beginning.")
    named = _named(listings, members, tags)
    judged: list[tuple[Tag, list[tuple[str, str]], int | None]] = []
    chosen: tuple[Tag, list[tuple[str, str]], int | None] | None = None
    for place, tag in enumerate(tags):
        shape = Shape(tag.names(), zero_stage)
        zero = bool(shape.optim) or bool(zero_stage)
        saved = shape.dp * shape.mp if shape.dp and _dense(shape, tag) else None
        if saved and saved < world_size and _was_whole(tag, saved, tags[place + 1 :]):
            saved = None  # the last ranks' shards are missing: older tags have them
        ranks = saved or world_size
        requested = members if ranks == world_size else _spread(members, ranks)
        older = next((other.names() for other in tags[place + 1 :] if _same_shape(other, tag)), [])
        lacking = _missing(tag, listings, requested, ranks, shape=shape, zero=zero, older=older)
        judged.append((tag, lacking, saved))
        if not lacking:
            chosen = judged[-1]
            break
    tag, lacking, saved = chosen or judged[0]
    texts = _disagreement(named, members, tag)
    if any(listing.get("truncated") for listing in listings.values()):
        texts.append(f"Only the first {MOST_FILES} files of a node were checked: remove old checkpoints.")
    worse = judged[:1] if chosen is None else judged[:-1][:2]
    texts += [_damage(damaged, what, node_local, listings) for damaged, what, _ranks in worse]
    if chosen and judged[0] is not chosen:
        texts.append(f"The newest that is whole is {tag.name}.")
    wrong = [] if tag.trainer == tag.path else _wrong_latest(listings, members, tag)
    if chosen and wrong:
        texts.append(
            f"{tag.latest} on {', '.join(wrong)} does not name {base_of(tag.path)}: give the tag to the script's "
            "load_checkpoint, or write it into that file, else that node loads another checkpoint or none."
        )
    fits = not saved or saved == world_size
    if chosen and not fits and saved:
        texts.append(universal(zero_stage if zero_stage is not None else _stage(tag), saved, world_size)[1])
        if saved < world_size:
            texts.append("If it was saved by more, the files of the last ranks were never written.")
    if not texts:
        texts.append(f"The job can go on from {tag.name}.")
    return Verdict(tag.name, tag.step, bool(chosen) and fits, lacking, " ".join(texts), saved, tuple(wrong), tag.latest)


def _stage(tag: Tag) -> int:
    shape = Shape(tag.names())
    return 3 if shape.stage3 else 1 if shape.optim else 0


def _dense(shape: Shape, tag: Tag) -> bool:
    """Whether a shard of every rank of that shape is somewhere."""
    held = {(int(found.group(1)), int(found.group(2))) for found in shape.optim}
    return held == {(dp, mp) for dp in range(shape.dp) for mp in range(shape.mp)} and bool(tag.sizes)


def _was_whole(tag: Tag, saved: int, older: list[Tag]) -> bool:
    """Whether the tag before this one had more shards: then the last ranks' are missing here, and it was not shrunk."""
    before = next((Shape(other.names()) for other in older if Shape(other.names()).optim), None)
    return before is not None and before.dp * before.mp > saved


def _same_shape(one: Tag, two: Tag) -> bool:
    first, second = Shape(one.names()), Shape(two.names())
    return (first.dp, first.mp) == (second.dp, second.mp)


def _spread(members: list[dict[str, Any]], ranks: int) -> list[dict[str, Any]]:
    """Members that hold as many ranks as wrote the checkpoint: it must be whole before it can be converted."""
    first = {**members[0], "first_rank": 0, "slots": list(range(ranks))}
    return [first]


def _named(
    listings: dict[str, dict[str, Any]], members: list[dict[str, Any]], tags: list[Tag]
) -> dict[str, dict[str, str]]:
    """What each node's ``latest`` beside the newest tags says: path: node: text."""
    found: dict[str, dict[str, str]] = {}
    for path in {tag.latest for tag in tags}:
        for member in members:
            text = listings.get(str(member["name"]), {}).get("latest", {}).get(path)
            if text is not None:
                found.setdefault(path, {})[str(member["name"])] = text
    return found


def _disagreement(named: dict[str, dict[str, str]], members: list[dict[str, Any]], tag: Tag) -> list[str]:
    reported = named.get(tag.latest, {})
    if len(set(reported.values())) < 2:
        return []
    each = ", ".join(f"{text or 'nothing'} on {node}" for node, text in sorted(reported.items()))
    return [f"The nodes disagree about the newest checkpoint: {tag.latest} says {each}."]


def _wrong_latest(listings: dict[str, dict[str, Any]], members: list[dict[str, Any]], tag: Tag) -> list[str]:
    nodes = [str(member["name"]) for member in members]
    reported = {node: listings.get(node, {}).get("latest", {}).get(tag.latest) for node in nodes}
    return [node for node in nodes if reported[node] != base_of(tag.path)]


def _damage(tag: Tag, lacking: list[tuple[str, str]], node_local: bool, listings: dict[str, dict[str, Any]]) -> str:
    """What is wrong with a tag, and what may fix it."""
    sizes = {node: dict(map(tuple, listing.get("files", []))) for node, listing in listings.items()}
    shown = []
    for node, path in lacking[:3]:
        size = sizes.get(node, {}).get(path)
        state = "missing" if size is None else "empty" if size == 0 else "not written to its end"
        shown.append(f"{path} on {node} is {state}")
    more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
    text = f"Checkpoint {tag.name} cannot be used: {'; '.join(shown)}{more}."
    absent = [(node, path) for node, path in lacking if path not in sizes.get(node, {})]
    elsewhere = [(node, path) for node, path in absent if any(files.get(path, 0) > 0 for files in sizes.values())]
    if elsewhere and len(elsewhere) == len(lacking):
        node, path = elsewhere[0]
        holder = next(name for name, files in sizes.items() if files.get(path, 0) > 0)
        text += f" The nodes do not share that folder: copy what is missing (the first lies on {holder})"
        text += "." if node_local else ", and set checkpoint.use_node_local_storage: true, or use a shared folder."
    elif lacking:
        text += " A rank was ended while it wrote, or its disk was full."
    return text


def universal_tag(listings: dict[str, dict[str, Any]], members: list[dict[str, Any]]) -> Verdict:
    """The checkpoint that ``latest_universal`` names, the only one that is loaded with ``load_universal``.

    ds_to_universal has made a folder ``zero`` in it, of which every rank reads its part.
    """
    nodes = [str(member["name"]) for member in members]
    latest = "latest_universal"
    reported = {node: str(listings.get(node, {}).get("latest", {}).get(latest) or "") for node in nodes}
    tag = next((text for text in reported.values() if text), None)
    if tag is None:
        return Verdict(None, None, False, [], f"There is no {latest} yet: the job starts from the beginning.")
    missing = [(node, latest) for node in nodes if reported[node] != tag]
    for node in nodes:
        files = listings.get(node, {}).get("files", [])
        if not any(path.startswith(f"{tag}/zero/") and size > 0 for path, size in files):
            missing.append((node, f"{tag}/zero"))
    step = Tag(tag.replace("_universal", "")).step
    if missing:
        node, path = missing[0]
        advice = (
            f"Universal checkpoint {tag} cannot be used: {path} on {node} is missing or another one. Use a folder "
            "that all nodes share, or copy it."
        )
        return Verdict(tag, step, False, missing, advice, latest=latest)
    advice = f"The job can go on from universal checkpoint {tag}; what was saved later was not converted."
    return Verdict(tag, step, True, [], advice, latest=latest)


def universal(zero_stage: int, saved: int, world_size: int) -> tuple[bool, str]:
    """Whether a checkpoint of ``saved`` ranks can be loaded as it is by ``world_size`` ranks, and how else.

    In all releases read, engine.py refuses another number of data-parallel ranks for every ZeRO stage above 0 before it
    reads a shard, so zero_optimization.elastic_checkpoint does not help; stage 3 refuses that setting altogether.
    """
    if saved == world_size:
        return True, f"It was saved by {saved} rank(s), as many as there are now."
    if not zero_stage:
        return True, f"It was saved by {saved} rank(s); without ZeRO one file has it all, so {world_size} can load it."
    inject = "" if zero_stage == 3 else " --inject_missing_state"
    weights = "zero_to_fp32.py" if zero_stage == 3 else "load_module_only=True"
    return False, (
        f"It was saved by {saved} rank(s), and now there are to be {world_size}: DeepSpeed does not load ZeRO "
        f"stage {zero_stage} into another number of ranks, not even with elastic_checkpoint. Convert it to a universal "
        "checkpoint, with all shards in one folder: python -m deepspeed.checkpoint.ds_to_universal --input_folder TAG "
        f"--output_folder TAG_universal{inject}; write TAG_universal into the file latest_universal; start with "
        f"checkpoint.load_universal: true. Or load the weights alone ({weights}) and lose the optimizer's state."
    )
