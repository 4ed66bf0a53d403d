"""The golden vectors: what the genuine Java classes did, a case a line."""

import functools
import json
import lzma
import pathlib

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"


@functools.cache
def cases(kind):
    """All cases of a kind; the largest files are compressed."""
    plain = GOLDEN / f"{kind}.jsonl"
    with plain.open(encoding="ascii") if plain.exists() else lzma.open(f"{plain}.xz", "rt", encoding="ascii") as lines:
        return [json.loads(line) for line in lines]


def classes(kind, case):
    """The Java classes that a case is about."""
    if kind == "transforms":
        return {said["class"] for step in case["chain"] for said in (step, step.get("predicate")) if said}
    return {case.get("class", kind)}
