"""The columnar forms do what the row forms do: on generated schemas, data and chains of one to four links.

An example is a chain, a schema and a batch of data. Three batches share a plan, and many plans a Spark job: its own job for each
example would take an hour. What is left to the rows engine is right by definition; how much that is, is counted.
"""

import importlib.util
import os
import pathlib
import random
import sys

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

SEED = int(os.environ.get("ROWS_EQUAL_SPARK_SEED", "0"))
PLANS = int(os.environ.get("ROWS_EQUAL_SPARK_PLANS", "150"))
BATCHES = 3  # of each plan
ROWS = 4  # of each batch
TOGETHER = 50  # plans in one job


@pytest.fixture(scope="module")
def lib():
    """The modules behind scripts/golden, and the strategies beside this file."""
    scripts = str(pathlib.Path(__file__).parent.parent.parent / "scripts")
    sys.path.insert(0, scripts)
    try:
        from goldenlib import encoding, together

        spec = importlib.util.spec_from_file_location("generated_chains", pathlib.Path(__file__).parent / "generated_chains.py")
        generated = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(generated)
        yield {"encoding": encoding, "together": together, "generated": generated}
    finally:
        sys.path.remove(scripts)


def generated_cases(cases):
    """As many cases as there are to be plans."""
    found = {}

    @seed(SEED)
    @settings(max_examples=PLANS * 2, phases=[Phase.generate], database=None, deadline=None)
    @given(st.integers(0, (1 << 64) - 1))
    def collect(number):
        found.setdefault(number, None)

    collect()
    return [cases(random.Random(number)) for number in list(found)[:PLANS]]


@pytest.mark.spark
def test_rows_equal_spark(lib, spark_holder):
    cases = generated_cases(lib["generated"].cases(BATCHES, ROWS))
    assert len(cases) >= PLANS * 0.95
    cases = [(links, [record for batch in batches for record in batch]) for links, batches in cases]
    expected = [[lib["generated"].behind_links(links, record) for record in records] for links, records in cases]
    every = [made for start in range(0, len(cases), TOGETHER)
             for made in lib["together"].transform_together(cases[start : start + TOGETHER], spark_holder)]  # fmt: skip
    wrong = []
    for (links, records), wanted, made in zip(cases, expected, every, strict=True):
        wrong += _differing(lib, links, records, wanted, made)
    wrong.sort(key=lambda each: len(repr(each)))
    assert not wrong, f"{len(wrong)} rows differ, the shortest:\n" + "\n".join(map(_told, wrong[:3]))
    done = sum(BATCHES for made in every if isinstance(made, list))
    assert done >= len(cases) * BATCHES / 4, f"only {done} of {len(cases) * BATCHES} examples went by columns"


def _differing(lib, links, records, wanted, made):
    """[(links, record, what rows make of it, what came out)]"""
    left, write = lib["together"].LeftToRows, lib["encoding"].write_record
    if isinstance(made, left):
        return [(links, records[0], "compiled", made)] if "cannot be compiled" in str(made) else []
    wrong = []
    for record, expected, found in zip(records, wanted, made, strict=True):
        if not isinstance(found, left) and (isinstance(expected, Exception) or (expected and write(expected)) != (found and write(found))):
            wrong.append((links, record, expected, found))
    return wrong


def _told(each):
    links, record, expected, found = each
    chain = "\n  ".join(f"{link.alias} {link.predicate and type(link.predicate).__name__} negate={link.negate}" for link in links)
    return f"  {chain}\n{record!r}\nby rows: {expected!r}\nby columns: {found!r}"
