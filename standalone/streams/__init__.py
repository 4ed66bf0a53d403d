"""Streams on Spark: topics as Spark's tables (source.py), programs in Python (dsl.py), and persistent SQL queries (engine.py)."""

_HOMES = {
    "ConnectDataSource": "standalone.streams.source",
    **dict.fromkeys(("Streams", "Stream", "Table", "Grouped"), "standalone.streams.dsl"),
    "function": "standalone.streams.udf",
}

__all__ = ["ConnectDataSource", "Grouped", "Stream", "Streams", "Table", "function"]


def __getattr__(name):
    """Import names lazily: pyspark takes a second to import."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
