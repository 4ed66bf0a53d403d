"""Encode and decode Avro by fastavro, which also returns the union branch of each value."""

import io
import json

import fastavro
import fastavro.read

from standalone import SerializationError
from standalone.converters.avro.names import ANYTHING_SCHEMA
from standalone.converters.avro.read_schema import optional_branch

# A logical type of ours: fastavro calls its handler with the value and the schema, which identifies the branch.
_BRANCH = "connect-branch"
_TYPES = ("boolean", "int", "long", "float", "double", "bytes", "string", "array", "map", "record", "enum", "fixed")
for _type in _TYPES:
    fastavro.read.LOGICAL_READERS[f"{_type}-{_BRANCH}"] = lambda value, schema, reader_schema=None: (schema["branch"], value)


class Binary:
    """Encodes and decodes the data of one Node (values in fastavro's types).

    A value of a union other than `["null", type]` is a pair: (`name_in_union` of the branch, value) when written, (branch index, value) when
    read. Logical types are ignored.
    """

    def __init__(self, node, fails_on_rest=False):
        self._fails_on_rest = fails_on_rest
        self._names = {}
        self._writing = fastavro.parse_schema(self._to_write(node, set()))
        self._count = 0
        self._reading = fastavro.parse_schema(self._to_read(node))

    @classmethod
    def anything(cls, fails_on_rest=False):
        """For schemaless values: their Avro type is recursive, which no Connect schema allows."""
        binary = cls.__new__(cls)
        binary._fails_on_rest = fails_on_rest
        binary._writing = binary._reading = fastavro.parse_schema(json.loads(ANYTHING_SCHEMA))
        return binary

    def write(self, out, datum):
        fastavro.schemaless_writer(out, self._writing, datum)

    def read(self, data):
        """Decode bytes into a datum. Raise SerializationError if invalid."""
        source = io.BytesIO(data)
        datum = self.read_from(source)
        if self._fails_on_rest and (rest := len(data) - source.tell()):
            raise SerializationError(f"{rest} bytes follow the value, which avro.fail.on.trailing.data=true forbids.")
        return datum

    def read_from(self, source):
        """Decode one datum from a stream's current position."""
        try:
            return fastavro.schemaless_reader(source, self._reading, None, handle_unicode_errors="replace")
        except (EOFError, ValueError, IndexError, OverflowError, KeyError, TypeError, MemoryError, RecursionError) as error:
            said = "they end too early" if isinstance(error, EOFError) else str(error) or type(error).__name__
            raise SerializationError(f"The bytes do not match their schema: {said}.") from error

    def name_in_union(self, node):
        return self._names.get(node.name) or node.type

    def _to_write(self, node, seen):
        """Build fastavro's schema for writing. Namespaces and scrubbing do not affect the bytes."""
        if node.type == "union":
            return [self._to_write(branch, seen) for branch in node.branches]
        if node.name is None:
            return _plain(node, lambda inner: self._to_write(inner, seen))
        name = self._names.setdefault(node.name, f"n{len(self._names)}")
        if node.name in seen:
            return name
        seen.add(node.name)
        return _named(node, name, lambda inner: self._to_write(inner, seen))

    def _to_read(self, node, branch=None):
        """Build fastavro's schema for reading. Each use of a type is separate, since only some may be union branches."""
        if node.type == "union":
            tells = optional_branch(node) is None
            return [self._to_read(each, at if tells else None) for at, each in enumerate(node.branches)]
        if node.name is None:
            said = _plain(node, self._to_read)
        else:
            self._count += 1
            said = _named(node, f"n{self._count}", self._to_read)
        if branch is not None and node.type != "null":
            said.update(logicalType=_BRANCH, branch=branch)
        return said


def _plain(node, of):
    said = {"type": node.type}
    if node.type in ("array", "map"):
        said["items" if node.type == "array" else "values"] = of(node.inner)
    return said


def _named(node, name, of):
    said = {"type": node.type, "name": name}
    if node.type == "record":
        said["fields"] = [{"name": field.name, "type": of(field.node)} for field in node.fields]
    elif node.type == "enum":
        said["symbols"] = node.symbols
    else:
        said["size"] = node.size
    return said
