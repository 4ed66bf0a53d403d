"""Offsets as operators read and change them, for sources (the offsets file) and sinks (the consumer group).

Keys of source offsets that begin with `_` are internal to a connector: they are neither shown nor accepted.
"""

import re

from standalone.errors import BadRequestError, ConflictError, ConnectError, LogError

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
_UNKNOWN_TOPIC = "UnknownTopicOrPartitionException"
_MOST = {PARTITION: (1 << 31) - 1, OFFSET: (1 << 63) - 1}
_WHOLE = re.compile(r"\+?\d{1,99}")
# The broker's errors while the group has members: a task that hangs does not leave it.
_MEMBERS_LEFT = ("GroupNotEmpty", "UnknownMemberId", "GroupSubscribedToTopic", "NonEmptyGroup", "RebalanceInProgress")


def parse(said):
    """Parse [(partition, offset or None)] from a request's body."""
    entries = said.get("offsets") if isinstance(said, dict) else None
    if not isinstance(entries, list) or not entries:
        raise BadRequestError('The request must name offsets to set: {"offsets": [{"partition": {…}, "offset": {…}}]}.')
    found = []
    for entry in entries:
        known = isinstance(entry, dict) and entry.keys() <= {"partition", "offset"}
        partition, offset = (entry.get(key) for key in ("partition", "offset")) if known else ("", "")
        if not isinstance(partition, dict | None) or not isinstance(offset, dict | None):
            raise BadRequestError(f"An offset must have a 'partition' and an 'offset', both objects (or null to reset it), not {entry!r}.")
        found.append((partition, offset))
    return found


class SourceOffsets:
    def __init__(self, name, plan, file):
        self._name, self._plan, self._file = name, plan, file

    def get(self):
        return [{"partition": partition, "offset": _shown(offset)} for partition, offset in self._file.all(self._name)]

    def change(self, entries):
        entries = [(partition, None if offset is None else _shown(offset)) for partition, offset in entries]
        managed = _ask_connector(self._plan, entries)
        if any(partition is None and offset is not None for partition, offset in entries):
            raise BadRequestError("Each offset to set must name its 'partition'.")
        entries = [(partition, offset) for partition, offset in entries if partition is not None]
        self._file.append(self._name, entries)
        self._file.sync()
        return managed

    def reset(self):
        return self.change([(partition, None) for partition, _ in self._file.all(self._name)])


class SinkOffsets:
    def __init__(self, plan, group, admin):
        self._plan, self._group, self._admin = plan, group, admin

    def get(self):
        found = self._admin.group_offsets(self._group)
        return [{"partition": {TOPIC: topic, PARTITION: number}, "offset": {OFFSET: found[topic, number]}} for topic, number in sorted(found)]

    def change(self, entries):
        offsets = dict(_sink_entry(partition, offset) for partition, offset in entries)
        managed = _ask_connector(self._plan, offsets)
        wanted = {pair: offset for pair, offset in offsets.items() if offset is not None}
        try:
            if wanted:
                self._admin.list_offsets(dict.fromkeys(wanted, -2))  # the partitions must exist
                self._admin.alter_group_offsets(self._group, wanted)
            if len(wanted) < len(offsets):
                self._admin.delete_group_offsets(self._group, [pair for pair, offset in offsets.items() if offset is None])
        except LogError as error:
            if _UNKNOWN_TOPIC in error.java_class:
                raise BadRequestError(f"The offsets cannot be set: {error}") from error
            self._unless_there_is_no_group(error)
        return managed

    def reset(self):
        managed = _ask_connector(self._plan, dict.fromkeys(self._admin.group_offsets(self._group)))
        try:
            self._admin.delete_group(self._group)
        except LogError as error:
            self._unless_there_is_no_group(error)
        return managed

    def _unless_there_is_no_group(self, error):
        if any(name in error.java_class for name in _MEMBERS_LEFT):
            raise ConflictError(
                f"The offsets cannot be changed while the group '{self._group}' has members: a task of the connector has not stopped yet, or "
                "another consumer uses that group. Try again later."
            ) from error
        if "GroupIdNotFound" not in error.java_class:
            raise error


def _ask_connector(plan, offsets):
    """Let the connector's own alter_offsets() check the change; it may refuse."""
    try:
        return plan.connector_class().alter_offsets(dict(plan.originals), offsets)
    except ConnectError as error:
        raise BadRequestError(f"The connector refuses these offsets: {error}") from error


def _sink_entry(partition, offset):
    if partition is None or not {TOPIC, PARTITION} <= set(partition) or not isinstance(partition[TOPIC], str):
        raise BadRequestError(f"The partition of a sink must be {{\"{TOPIC}\": NAME, \"{PARTITION}\": N}}, not {partition!r}.")
    pair = partition[TOPIC], _whole(partition[PARTITION], PARTITION)
    if offset is None:
        return pair, None
    if OFFSET not in offset:
        raise BadRequestError(f"The offset of a sink must be {{\"{OFFSET}\": N}}, not {offset!r}.")
    return pair, _whole(offset[OFFSET], OFFSET)


def _whole(value, key):
    """A number from 0 to the maximum of Kafka's field, or a string of one."""
    number = int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _MOST[key]:
        raise BadRequestError(f"'{key}' must be a whole number from 0 to {_MOST[key]}, not {value!r}.")
    return number


def _shown(offset):
    return {key: value for key, value in offset.items() if not key.startswith("_")}
