"""Reads and writes the offsets file of Java's worker: a serialised HashMap<byte[], byte[]>.

Only this one shape of Java's serialization is supported, as its worker writes no other. Layout, big-endian:
stream header, object, class description of HashMap with loadFactor and threshold, the two fields, a block with capacity and
count, then the entries: each a byte array (its class is described once, then referenced) or null.
"""

import struct

MAGIC = b"\xac\xed\x00\x05"

# The fixed bytes before the map's capacity: HashMap with a load factor of 0.75, and its threshold.
_HEAD = (
    MAGIC
    + b"\x73\x72\x00\x11java.util.HashMap"
    + bytes.fromhex("0507dac1c31660d1")  # serialVersionUID
    + b"\x03\x00\x02F\x00\x0aloadFactorI\x00\x09threshold\x78\x70"
)
_ARRAY_CLASS = b"\x72\x00\x02[B" + bytes.fromhex("acf317f8060854e0") + b"\x02\x00\x00\x78\x70"
_LOAD_FACTOR = 0.75

_NULL, _REFERENCE, _CLASS, _OBJECT, _ARRAY, _BLOCK, _END = 0x70, 0x71, 0x72, 0x73, 0x75, 0x77, 0x78
_BASE_HANDLE = 0x7E0000


class NotAMap(ValueError):
    """These bytes are not a serialized HashMap<byte[], byte[]>."""


def read(data):
    """[(key, value or None), ...] in file order."""
    try:
        return _Reader(data).map()
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise NotAMap(f"it is truncated or malformed ({error})") from error


def write(entries):
    """The bytes of a HashMap with these (key, value or None)."""
    capacity = 16
    while capacity * _LOAD_FACTOR < len(entries):
        capacity *= 2
    parts = [_HEAD, struct.pack(">fi", _LOAD_FACTOR, int(capacity * _LOAD_FACTOR)), struct.pack(">BBii", _BLOCK, 8, capacity, len(entries))]
    described = _ARRAY_CLASS
    for item in (item for entry in entries for item in entry):
        if item is None:
            parts.append(bytes([_NULL]))
            continue
        parts += [bytes([_ARRAY]), described, struct.pack(">i", len(item)), item]
        # The class of byte arrays is described once: it has the third handle, after the map's class and the map.
        described = struct.pack(">Bi", _REFERENCE, _BASE_HANDLE + 2)
    return b"".join([*parts, bytes([_END])])


class _Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0
        self.handles = []  # targets of later references

    def map(self):
        if self.bytes(4) != MAGIC:
            raise NotAMap("it does not begin as a Java object stream")
        self.expect(_OBJECT, "an object")
        name = self.class_description()
        if name != "java.util.HashMap":
            raise NotAMap(f"it holds a {name}, not a java.util.HashMap")
        self.handles.append("the map")
        self.take(">fi")  # loadFactor, threshold
        self.expect(_BLOCK, "the map's size")
        self.take(">B")
        _, count = self.take(">ii")
        entries = [(self.item(), self.item()) for _ in range(count)]
        self.expect(_END, "the end of the map")
        return entries

    def class_description(self):
        kind = self.take(">B")[0]
        if kind == _REFERENCE:
            return self.handles[self.take(">i")[0] - _BASE_HANDLE]
        if kind != _CLASS:
            raise NotAMap(f"a class is expected at byte {self.at - 1}, found 0x{kind:02x}")
        name = self.text()
        self.handles.append(name)
        self.take(">qB")  # serial version and flags
        for _ in range(self.take(">H")[0]):
            code = self.take(">B")[0]
            self.text()
            if code in b"L[":
                raise NotAMap(f"the class {name} has fields that a map of byte arrays does not have")
        self.expect(_END, "the end of a class")
        if self.take(">B")[0] != _NULL:
            raise NotAMap(f"the class {name} has a superclass that a map of byte arrays does not have")
        return name

    def item(self):
        kind = self.take(">B")[0]
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            return self.handles[self.take(">i")[0] - _BASE_HANDLE]
        if kind != _ARRAY:
            raise NotAMap(f"a byte array is expected at byte {self.at - 1}, found 0x{kind:02x}")
        name = self.class_description()
        if name != "[B":
            raise NotAMap(f"an entry is a {name}, not a byte array")
        length = self.take(">i")[0]
        item = bytes(self.bytes(length))
        self.handles.append(item)
        return item

    def expect(self, code, what):
        found = self.take(">B")[0]
        if found != code:
            raise NotAMap(f"{what} is expected at byte {self.at - 1}, found 0x{found:02x}")

    def text(self):
        return self.bytes(self.take(">H")[0]).decode("utf-8")

    def take(self, form):
        size = struct.calcsize(form)
        return struct.unpack(form, self.bytes(size))

    def bytes(self, count):
        if count < 0 or self.at + count > len(self.data):
            raise NotAMap("it is truncated")
        self.at += count
        return self.data[self.at - count : self.at]
