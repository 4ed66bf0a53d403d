"""Which golden cases go by columns and which are left to rows, and why: counted over the cases that have schemas and end without an error."""

import collections
import re


def table(kind, cases, done):
    """In words, for people: a line for each class, then one for each reason."""
    by_columns, by_rows, reasons = collections.Counter(), collections.Counter(), collections.Counter()
    for case, result in zip(cases, done):
        if "error" in result["outcome"] or not _HAS_SCHEMAS[kind](case, result["outcome"]):
            continue
        name = _NAMES[kind](case)
        if result["engine"] == "columns":
            by_columns[name] += 1
        else:
            by_rows[name] += 1
            reasons[name, re.sub("'[^']*'", "'…'", result["engine"].removeprefix("declined: "))] += 1
    names = sorted({*by_columns, *by_rows})
    lines = [f"{name}: {by_columns[name]} of {by_columns[name] + by_rows[name]} by columns" for name in names]
    lines += [f"{count} × {name}: {reason}" for (name, reason), count in reasons.most_common()]
    good, all_of_them = by_columns.total(), by_columns.total() + by_rows.total()
    return "\n".join([*lines, f"{good} of {all_of_them} by columns ({100 * good / max(1, all_of_them):.1f} %)"])


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
