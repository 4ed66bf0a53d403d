"""Transforms and converters by their column meanings, a case at a time: the outcome, or LeftToRows with the reason."""

import base64

from standalone.pipeline.plan import Link
from standalone.testing import LeftToRows, decoded_column, encoded_column, transform_columns

from goldenlib import encoding, rows


class Session:
    """Spark, started when the first case needs it."""

    def __init__(self):
        self._holder = None

    def holder(self):
        if self._holder is None:
            from standalone.pipeline.session import SessionHolder, default_cache_dir

            self._holder = SessionHolder({"spark.master": "local[2]"}, cache_dir=default_cache_dir())
            self._holder.request()
            if self._holder.wait(180) is None:
                raise SystemExit(f"Spark did not start: {self._holder.failure}")
        return self._holder

    def stop(self):
        if self._holder is not None:
            self._holder.stop()


SESSION = Session()


def outcome(kind, case):
    """As rows.outcome; raises LeftToRows."""
    return {"transforms": transforms, "converters": converters}[kind](case)


def transforms(case):
    try:
        steps = rows.chain_of(case)
    except rows.Failed as failure:
        raise LeftToRows("it is not configured") from failure
    links = [Link(str(at), transform, predicate, negate) for at, (transform, predicate, negate) in enumerate(steps)]
    record = encoding.read_record(case["record"])
    try:
        (made,) = transform_columns(links, [record], SESSION.holder())
    except LeftToRows:
        raise
    except Exception as error:  # as in the pipeline: what cannot be compiled is done by rows
        raise LeftToRows(f"it cannot be compiled: {type(error).__name__}: {error}"[:200]) from error
    if made is None:
        raise LeftToRows("which step dropped the record is not told by columns")
    return {"record": encoding.write_record(made)}


def converters(case):
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
