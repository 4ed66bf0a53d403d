"""Route a batch's rows to tables."""

import re

import numpy as np

from connectors.storage.fields import field_column, field_value, texts_of
from connectors.tables.keys import ONE_TABLE
from standalone import ConfigError


class Routes:
    def __init__(self, config, originals):
        self._format = config["table.name.format"]
        self._tables = config["iceberg.tables"]
        self._field = config["iceberg.tables.route-field"]
        self._is_dynamic = config["iceberg.tables.dynamic-enabled"]
        self._patterns = {}
        for table in self._tables:
            text = originals.get(f"{ONE_TABLE}{table}.route-regex")
            try:
                self._patterns[table] = re.compile(text) if text is not None else None
            except re.error as error:
                key = f"{ONE_TABLE}{table}.route-regex"
                raise ConfigError(f"{key}: '{text}' is not a pattern: {error}", {key: f"'{text}' is not a pattern: {error}"}) from None

    def of(self, batch):
        """Return [(table, numbers of its rows, or None for all)]; a row may go to several tables, or to none."""
        if self._format:
            return [(self._named(topic), rows) for topic, rows in self._by_topic(batch)]
        if not self._field:
            return [(table, None) for table in self._tables]
        found = {}
        for text, rows in self._by_field(batch):
            for table in self._tables_of(text):
                found.setdefault(table, []).append(rows)
        return [(table, np.sort(np.concatenate(rows))) for table, rows in found.items()]

    def _tables_of(self, text):
        if self._is_dynamic:
            return [text.lower()]
        return [table for table, pattern in self._patterns.items() if pattern is not None and pattern.fullmatch(text)]

    def _named(self, topic):
        return self._format.replace("${topic}", re.sub(r"\W", "_", topic))

    @staticmethod
    def _by_topic(batch):
        if isinstance(batch.topic, str):
            return [(batch.topic, None)]
        topics = np.array(batch.topic, dtype=object)
        return [(topic, np.flatnonzero(topics == topic)) for topic in dict.fromkeys(batch.topic)]

    def _by_field(self, batch):
        """Return (text, rows) per value of the route field; rows without it go nowhere."""
        found = None if batch.value_schema is None else field_column(batch, self._field)
        if found is not None and found[0].type == "string":
            numbers, texts = texts_of(found[1].fill_null(""))
            return [(text, np.flatnonzero(numbers == at)) for at, text in enumerate(texts) if text]
        rows = {}
        for row, record in enumerate(batch.records()):
            is_there, value = field_value(record.value, self._field)
            if is_there and value is not None:
                rows.setdefault(str(value), []).append(row)
        return [(text, np.array(each)) for text, each in rows.items()]
