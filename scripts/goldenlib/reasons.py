"""Which golden cases go by columns and which are left to rows, and why: counted over the cases that have schemas and end without an error."""

import collections
import re


def counted(kind, cases, done):
    """Two Counters by class: the cases that went by columns, and those that were left to rows by (class, reason)."""
    by_columns, left = collections.Counter(), collections.Counter()
    for case, result in zip(cases, done):
        if "error" in result["outcome"] or not _HAS_SCHEMAS[kind](case, result["outcome"]):
            continue
        name = _NAMES[kind](case)
        if result["engine"] == "columns":
            by_columns[name] += 1
        else:
            left[name, re.sub("'[^']*'", "'…'", result["engine"].removeprefix("declined: "))] += 1
    return by_columns, left


def table(kind, cases, done):
    """A readable report: a line for each class, then one for each reason."""
    by_columns, left = counted(kind, cases, done)
    every = by_columns.copy()
    for (name, _), count in left.items():
        every[name] += count
    lines = [f"{name}: {by_columns[name]} of {every[name]} by columns" for name in sorted(every)]
    lines += [f"{count} × {name}: {reason}" for (name, reason), count in left.most_common()]
    good, total = sum(by_columns.values()), sum(every.values())
    return "\n".join([*lines, f"{good} of {total} by columns ({100 * good / max(1, total):.1f} %)"])


def _parts(step):
    """The parts of a record whose schemas a step needs."""
    name = step["class"].rpartition(".")[2]
    if name == "ValueToKey":
        return ["valueSchema"]
    return ["keySchema"] if name.endswith("$Key") else ["valueSchema"] if name.endswith("$Value") else []


def _transforms(case, outcome):
    return all(case["record"][part] is not None for step in case["chain"] for part in _parts(step))


def _converters(case, outcome):
    if case["direction"].endswith("Header"):
        return False
    return (outcome.get("schema") if case["direction"] == "to" else case["input"]["schema"]) is not None


def _transform_name(case):
    return "a chain" if len(case["chain"]) > 1 else case["chain"][0]["class"].rpartition(".")[2]


def _converter_name(case):
    return f"{case['class'].rpartition('.')[2]} {case['direction']}"


_HAS_SCHEMAS = {"transforms": _transforms, "converters": _converters}
_NAMES = {"transforms": _transform_name, "converters": _converter_name}
