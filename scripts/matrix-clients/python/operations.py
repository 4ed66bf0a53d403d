"""What the Python clients of the matrix share: the records, and a line of print an operation, as ../go/main.go does."""

import traceback

BASE = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PER_CODEC = 200
NAMES = ("create", "write", "read", "group", "share", "times", "transaction", "configs", "groups", "delete")


def value(number):
    return b"record %06d, with text that can be compressed, compressed, compressed" % number


def same(what, wanted, found):
    if wanted != found:
        raise AssertionError(f"{what}: {found}, not {wanted}")


def all_records(found):
    """Holds a list of (key, value, headers) to what was written."""
    same("records", sorted(value(number) for number in range(PER_CODEC * len(CODECS))), sorted(each for _, each, _ in found))
    for key, _, headers in found:
        same("headers", [("number", key)], list(headers))


def told(work):
    """"ok", "none" (the client has no such thing), or what went wrong, in a line."""
    if work is None:
        return "none"
    try:
        work()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({where.name}:{where.lineno})".replace("\n", " ")
    return "ok"
