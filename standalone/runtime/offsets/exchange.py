"""Import and export of source offsets: the file of Java's worker into ours, and back. The worker must not run meanwhile.

Java looks up an offset by the bytes of its key, so keys are written exactly as its JsonConverter writes them. A partition with multiple
fields keeps the order of the connector.
"""

import os

from standalone.errors import AlreadyExistsError, NotFoundError, OffsetsError
from standalone.private import open_private
from standalone.runtime.offsets import java_map
from standalone.runtime.offsets.journal import OffsetsFile, java_offsets
from standalone.runtime.supervision.state import State

SET, SAME, KEPT, FORGOTTEN, NOTHING = "set", "same", "kept", "forgotten", "nothing"


class Stopped:
    """The offsets file of a stopped worker, locked as long as this context lasts: no worker can start on it meanwhile."""

    def __init__(self, config, clock, look_only=False):
        self._offsets = OffsetsFile(config["offset.storage.file.filename"])
        self._state = None if look_only else State(config.state_dir, clock)

    def __enter__(self):
        if self._state is None:
            return self._offsets.load()
        self._state.open()
        try:
            return self._offsets.open()
        except BaseException:
            self._state.close()
            raise

    def __exit__(self, *_):
        if self._state is not None:
            try:
                self._offsets.close()
            finally:
                self._state.close()


def read_java(path):
    """[(connector, partition, offset or None), …] of a Java worker's offsets file."""
    try:
        with open(path, "rb") as file:
            return java_offsets(file.read())
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}.") from None
    except OSError as error:
        raise OffsetsError(f"{path} cannot be read: {error.strerror}.") from error
    except (java_map.NotAMap, ValueError, TypeError) as error:
        raise OffsetsError(f"{path} is not an offsets file of Java's connect-standalone: {error}.") from error


def take_in(entries, offsets, connectors=(), overwrite=False, dry_run=False):
    """Import offsets of Java's worker: [(connector, partition, Java's offset, our previous offset, action)].

    An existing offset that differs is not changed, unless `overwrite`.
    """
    report = []
    for connector, partition, offset in entries:
        if connectors and connector not in connectors:
            continue
        before = offsets.get(connector, partition)
        action = _action(before, offset, overwrite)
        report.append((connector, partition, offset, before, action))
        if action in (SET, FORGOTTEN) and not dry_run:
            offsets.append(connector, [(partition, offset)])
    if not dry_run:
        offsets.sync()
    return report


def _action(before, offset, overwrite):
    if before == offset:
        return SAME if offset is not None else NOTHING
    if before is not None and not overwrite:
        return KEPT
    return FORGOTTEN if offset is None else SET


def write_java(path, offsets, json_converter, connectors=(), overwrite=False):
    """Export the offsets into a file in the format of Java's worker; return the exported [(connector, partition, offset)].

    `json_converter` is a JsonConverter without schemas. Internal keys of a connector (that begin with `_`) are not exported.
    """
    if os.path.exists(path) and not overwrite:
        raise AlreadyExistsError(f"The file {path} already exists.")
    unknown = sorted(set(connectors) - set(offsets.connectors()))
    if unknown:
        raise NotFoundError(f"{offsets.path} has no offsets of {', '.join(unknown)}.")
    written = [
        (connector, partition, {key: value for key, value in offset.items() if not key.startswith("_")})
        for connector in connectors or offsets.connectors()
        for partition, offset in offsets.all(connector)
    ]

    def json(value):
        return bytes(json_converter.from_connect(path, None, value))

    data = java_map.write([(json([connector, partition]), json(offset)) for connector, partition, offset in written])
    temporary = f"{path}.tmp"
    try:
        with open_private(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise OffsetsError(f"{path} cannot be written: {error.strerror}.") from error
    return written
