"""schema.drift: what a sink task does if the schema of a topic's values changes while it runs. Each change is an event in the history.

    evolve         records continue unchanged: the sink alters its table, or reports that it cannot
    freeze         the task fails, with the change as its reason
    discard_row    records with another schema are skipped
    discard_value  records are projected to the first schema (data/projector.py): new fields are dropped

The reference is the first schema of each topic that any task of the connector got since the connector was created or its configuration
changed: after `freeze`, a restart of the task or the worker fails again. Values without a schema are never compared.
"""

import logging

from standalone.data.batch import SinkBatch
from standalone.data.column import values_of
from standalone.data.projector import project
from standalone.data.schema import SchemaBuilder
from standalone.errors import ConnectError, SchemaProjectorError

log = logging.getLogger(__name__)

EVOLVE, FREEZE, DISCARD_ROW, DISCARD_VALUE = "evolve", "freeze", "discard_row", "discard_value"
MODES = (EVOLVE, FREEZE, DISCARD_ROW, DISCARD_VALUE)
STATE = "SCHEMA_CHANGED"  # of the event
_MOST_TOLD = 100  # limits the events of a topic whose schema keeps changing
_DONE = {EVOLVE: "they continue", DISCARD_ROW: "they are skipped", DISCARD_VALUE: "they are projected to the first schema"}


class FirstSchemas:
    """{topic: its first schema} of each connector, shared by its tasks and stored in the worker's state.

    `new_json` creates the JsonConverter in whose envelope a schema is stored, as the item schema of an empty list.
    """

    def __init__(self, state, new_json):
        self._state, self._new_json = state, new_json
        self._known = {}  # connector -> (its configuration, _Known)

    def of(self, connector, config):
        known = self._known.get(connector)
        if known is None or known[0] != config:
            # A change of the configuration has cleared the state.
            known = self._known[connector] = config, _Known(connector, self._state, self._new_json(False))
        return known[1]


class _Known(dict):
    def __init__(self, connector, state, json):
        super().__init__()
        self._connector, self._state, self._json = connector, state, json
        for topic, text in state.first_schemas(connector).items():
            try:
                self[topic] = json.to_connect(topic, text.encode())[0].value_schema
            except ConnectError as error:
                log.warning("The first schema of the topic '%s' for the connector '%s' cannot be read: %s", topic, connector, error)

    def setdefault(self, topic, schema=None, /):
        if topic not in self:
            self[topic] = schema
            try:
                text = self._json.from_connect(topic, SchemaBuilder.array(schema).build(), []).decode()
            except ConnectError as error:
                log.warning("The first schema of the topic '%s' cannot be stored and will be lost in a restart of the worker: %s", topic, error)
            else:
                self._state.put_first_schema(self._connector, topic, text)
        return self[topic]


class SchemaDrift:
    """Of one task, on its thread. `reporter` gets records that cannot be projected, `tell(state, text)` writes an event."""

    def __init__(self, mode, first, reporter, counters, tell):
        self._mode, self._first, self._reporter, self._counters, self._tell = mode, first, reporter, counters, tell
        self._told = {}  # topic -> schemas already reported

    def applied(self, batches):
        """The SinkBatches that the task gets."""
        found = []
        for batch in batches:
            schema = batch.value_schema
            if schema is None or isinstance(batch.topic, list):
                found.append(batch)
                continue
            first = self._first.setdefault(batch.topic, schema)
            if schema is first or schema == first:
                self._first[batch.topic] = schema  # compares by identity next time
                found.append(batch)
            else:
                found += self._changed(batch, first)
        return found

    def _changed(self, batch, first):
        what = f"The schema of values of the topic '{batch.topic}' has changed: {difference(first, batch.value_schema)}"
        if self._mode == FREEZE:
            self._note(batch, f"{what}; schema.drift=freeze rejects its records")
            raise SchemaProjectorError(f"{what}. schema.drift=freeze allows no other schema. Set it to evolve, discard_row or discard_value.")
        self._note(batch, f"{what}; schema.drift={self._mode}: {_DONE[self._mode]}")
        if self._mode == EVOLVE:
            return [batch]
        if self._mode == DISCARD_ROW:
            self._counters.total_records_skipped += len(batch)
            return []
        return self._projected(batch, first)

    def _projected(self, batch, first):
        """Batches of the records that fit the first schema; the others are reported one by one."""
        runs, low, values = [], 0, []

        def cut(high):
            if values:
                parts = batch.slice(low, high)._parts(0, high - low)
                parts |= {"value": list(values), "value_schema": first}
                runs.append(SinkBatch(offsets=batch.offsets[low:high], timestamp_type=batch.timestamp_type, origin=batch.origin, **parts))
            values.clear()

        for row, value in enumerate(values_of(batch.value, batch.value_schema, len(batch))):
            try:
                values.append(project(batch.value_schema, value, first))
            except SchemaProjectorError as error:
                cut(row)
                low = row + 1
                self._reporter.report(batch.records()[row], error)  # raises if errors.tolerance is none
        cut(len(batch))
        return runs

    def _note(self, batch, text):
        told = self._told.setdefault(batch.topic, [])
        if batch.value_schema not in told and len(told) < _MOST_TOLD:
            told.append(batch.value_schema)
            log.warning("%s", text)
            self._tell(STATE, text)


def difference(before, after):
    """What has changed, for messages: fields that were added, removed or changed type."""
    if before.fields is None or after.fields is None:
        return f"{before!r} is now {after!r}"
    old, new = ({field.name: field.schema for field in each.fields} for each in (before, after))
    said = [f"'{name}' was added" for name in new if name not in old]
    said += [f"'{name}' was removed" for name in old if name not in new]
    said += [f"'{name}' changed from {_kind(old[name])} to {_kind(new[name])}" for name in new if name in old and old[name] != new[name]]
    return ", ".join(said) or "its name, version or documentation"


def _kind(schema):
    return ("optional " if schema.optional else "") + (schema.name or schema.type)
