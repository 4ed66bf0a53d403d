"""The whole oracle by rows: every vector of every class, what errors say among it, and no class of ours without vectors."""

import collections
import json
import re
import sys

import pytest

from standalone.errors import ConnectError
from standalone.plugins import BUILT_IN, Plugins
from tests.suite.golden import GOLDEN, cases, classes
from tests.test_golden import alike

ROWS = ("transforms", "converters", "schema_projector", "values")
# What Kafka's class is for, and where its behaviour is checked against Java's, if not by vectors.
WITHOUT_VECTORS = {
    "org.apache.kafka.common.config.provider.FileConfigProvider": "tests/runtime/test_providers.py",
    "org.apache.kafka.common.config.provider.DirectoryConfigProvider": "tests/runtime/test_providers.py",
    "org.apache.kafka.common.config.provider.EnvVarConfigProvider": "tests/runtime/test_providers.py",
}
RECORDED = {"transforms": 4207, "converters": 1334, "schema_projector": 306, "values": 801}


def by_class():
    """{(kind, Java class): its cases}; a case of multiple classes is one of each."""
    found = collections.defaultdict(list)
    for kind in ROWS:
        for case in cases(kind):
            for name in classes(kind, case):
                found[kind, name].append(case)
    return dict(sorted(found.items()))


BY_CLASS = by_class()


def named(kind_and_class):
    kind, name = kind_and_class
    return f"{kind}-{name.rpartition('.')[2]}"


@pytest.fixture(scope="module")
def rows():
    sys.path.insert(0, str(GOLDEN.parent.parent / "scripts"))
    try:
        from goldenlib import rows

        yield rows
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize("kind", ROWS)
def test_no_vector_got_lost(kind):
    assert len({case["id"] for case in cases(kind)}) == len(cases(kind)) == RECORDED[kind]


@pytest.mark.parametrize("about", BY_CLASS, ids=named)
def test_a_class_does_what_java_does(rows, about):
    wrong = []
    for case in BY_CLASS[about]:
        found = rows.outcome(about[0], case)
        if not alike(case["outcome"], found):
            wrong.append(f"{case['id']}: wanted {case['outcome']}, found {found}")
    assert not wrong, f"{len(wrong)} of {len(BY_CLASS[about])}:\n" + "\n".join(wrong[:10])


def java_names():
    for java, (_, kinds, inner) in BUILT_IN.items():
        if java.startswith("org.apache.kafka."):
            for name in inner or ("",):
                yield pytest.param(f"{java}${name}" if name else java, id=java.rpartition(".")[2] + name), kinds


@pytest.mark.parametrize("java", [name for name, _ in java_names()])
def test_every_class_of_ours_has_vectors(java):
    assert (java in WITHOUT_VECTORS) != any(name == java for _, name in BY_CLASS), f"record vectors of {java} (see golden/README of the recorder)"


@pytest.mark.parametrize("java", sorted(WITHOUT_VECTORS))
def test_what_has_no_vectors_is_tested_elsewhere(java):
    text = (GOLDEN.parent.parent / WITHOUT_VECTORS[java]).read_text()
    assert java.rpartition(".")[2] in text


# --- What errors say ---------------------------------------------------------------------------------------------------


def failures():
    """{Java class that fails: its cases}"""
    found = collections.defaultdict(list)
    for case in cases("transforms"):
        if "error" in case["outcome"]:
            found[case["chain"][case["outcome"]["at"]]["class"]].append(case)
    return dict(sorted(found.items()))


FAILURES = failures()


@pytest.mark.parametrize("java", FAILURES, ids=lambda java: java.rpartition(".")[2])
def test_an_error_says_what_failed_and_names_nothing_else(rows, java):
    """The vectors hold no messages, since ours are our own: each must say what it is about, and quote only what is there."""
    wrong = []
    for case in FAILURES[java]:
        found = rows.outcome("transforms", case)
        step = case["chain"][case["outcome"]["at"]]
        for complaint in complaints(step, case["record"], found):
            wrong.append(f"{case['id']} {step}: {complaint}: {found}")
    assert not wrong, f"{len(wrong)} of {len(FAILURES[java])}:\n" + "\n".join(wrong[:10])


def complaints(step, record, found):
    message = found.get("message") or ""
    names = subjects(step, record, found["stage"])
    if not any(name in message for name in names):
        yield f"it names neither the class, an option nor a field ({sorted(names)[:12]})"
    given = json.dumps([step, record], ensure_ascii=False).lower()
    for quoted in re.findall(r"'([^']*)'", message):
        for piece in re.findall(r"[^\W_]+", quoted.lower()):  # the path a.b.c is made of names that are there
            if piece not in given:
                yield f"it quotes '{quoted}', which is nowhere in the case"


def subjects(step, record, stage):
    """What a message may be about: class and options; after the start a field of the record or of the configuration, too."""
    steps = [step, *([step["predicate"]] if "predicate" in step else [])]
    found = {re.split(r"[.$]", each["class"].replace("$Key", "").replace("$Value", ""))[-1] for each in steps}
    for each in steps:
        kind = "predicate" if each is not step else "transform"
        found |= set(options(kind, each["class"]))
    for text in step["config"].values():
        found |= {f"'{name}'" for name in (text, *re.split(r"[,:]", text)) if name}
    if stage == "apply":
        if any(not text.strip("!?") for text in step["config"].values()):
            found.add("needs a name")  # the field has none that could be told
        found |= {f"'{field['name']}'" for part in ("keySchema", "valueSchema") for field in (record[part] or {}).get("fields", ())}
        found |= {"two fields"}  # which are made by the transform, and in no schema
    return found


def options(kind, java):
    config_def = Plugins().find(kind, java).config_def
    return () if config_def is None else [option.name for option in config_def]


@pytest.mark.parametrize("kind", ROWS)
def test_no_error_of_python_comes_through(rows, kind):
    """A KeyError or an AttributeError tells a user nothing: what Java calls a DataException is ours, and a NullPointerException is that, too."""
    ours = {each.java_class.rpartition(".")[2] for each in family(ConnectError)} | {"ValueError", "TypeError"}
    found = collections.Counter(
        outcome["error"] for outcome in (rows.outcome(kind, case) for case in cases(kind) if "error" in case["outcome"]) if "error" in outcome
    )
    assert set(found) <= ours, found


def family(error):
    return {error, *(each for child in error.__subclasses__() for each in family(child))}
