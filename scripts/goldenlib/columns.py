"""Transforms and converters by their columnar forms: the outcome of each case, or LeftToRows with the reason.

What Spark computes goes through Spark.
"""

import base64

from goldenlib import encoding, rows
from goldenlib.together import transform_together
from standalone.pipeline.chain import Link
from standalone.testing import COPIES, LeftToRows, decoded_column, encoded_column

TOGETHER = 40  # cases in one job


class Session:
    """Spark, started when the first case needs it."""

    def __init__(self):
        self._holder = None

    def holder(self):
        if self._holder is None:
            from standalone.pipeline.spark.session import SessionHolder, default_cache_dir

            self._holder = SessionHolder({"spark.master": "local[2]"}, cache_dir=default_cache_dir())
            self._holder.request()
            if self._holder.wait(180) is None:
                raise SystemExit(f"Spark did not start: {self._holder.failure}")
        return self._holder

    def stop(self):
        if self._holder is not None:
            self._holder.stop()


SESSION = Session()


def outcomes(kind, cases):
    """For each case its outcome as rows.outcome says it, or LeftToRows."""
    if kind == "converters":
        return [_converter(case) for case in cases]
    return [outcome for start in range(0, len(cases), TOGETHER) for outcome in _transforms(cases[start : start + TOGETHER])]


# --- Transforms ----------------------------------------------------------------------------------------------------


def _transforms(cases):
    prepared = [_prepared(case) for case in cases]
    there = [each for each in prepared if not isinstance(each, LeftToRows)]
    made = iter(transform_together(there, SESSION.holder()))
    return [each if isinstance(each, LeftToRows) else _told(each, next(made)) for each in prepared]


def _prepared(case):
    """(links, the record a few times over)"""
    try:
        steps = rows.chain_of(case)
    except rows.Failed:
        return LeftToRows("it is not configured")
    links = [Link(str(at), transform, predicate, negate) for at, (transform, predicate, negate) in enumerate(steps)]
    return links, [encoding.read_record(case["record"])] * COPIES


def _told(prepared, made):
    if isinstance(made, LeftToRows):
        return made
    if any(isinstance(each, LeftToRows) for each in made):
        return made[0]
    written = [each and encoding.write_record(each) for each in made]
    if not all(each == written[0] for each in written):
        return {"error": "RowsDiffer", "message": f"the same records came out different: {written}"}
    return {"dropped": True, "at": _dropped_at(*prepared)} if made[0] is None else {"record": written[0]}


def _dropped_at(links, records):
    """The link that drops them: columns do not say which it is, so the links are tried one by one, by rows."""
    record = records[0]
    for at, link in enumerate(links):
        record = rows.apply(record, link.transform, link.predicate, link.negate)
        if record is None:
            return at


# --- Converters ----------------------------------------------------------------------------------------------------


def _converter(case):
    try:
        return _converted(case)
    except LeftToRows as reason:
        return reason


def _converted(case):
    if case["direction"] not in ("from", "to", "roundtrip"):
        raise LeftToRows("headers are converted by rows")
    try:
        converter = rows.converter_of(case)
    except rows.Failed as failure:
        raise LeftToRows("it is not configured") from failure
    given = case["input"]
    if case["direction"] == "to":
        data = None if given["bytes"] is None else base64.b64decode(given["bytes"])
        return rows.read(_there(decoded_column(converter, data)))
    schema = encoding.read_schema(given["schema"])
    data = _there(encoded_column(converter, schema, encoding.read_value(given["value"], schema)))
    return rows.written(data) if case["direction"] == "from" else rows.read(_there(decoded_column(converter, data)))


def _there(found):
    if isinstance(found, LeftToRows):
        raise found
    return found
