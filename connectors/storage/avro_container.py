"""Read Avro container files block by block; formats/avro.py writes them."""

import bz2
import lzma
import zlib

import pyarrow as pa

from standalone import DataError
from standalone.converters.avro.rows import AvroReader


def _snappy(data):
    size, shift = 0, 0
    for byte in data:  # a checksum follows each snappy block
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return pa.decompress(data[:-4], size, "snappy", asbytes=True)


def _zstandard(data):
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return stream.read()


_CODECS = {
    "null": bytes, "deflate": lambda data: zlib.decompress(data, -zlib.MAX_WBITS), "snappy": _snappy, "bzip2": bz2.decompress, "xz": lzma.decompress,
    "zstandard": _zstandard,
}  # fmt: skip


def blocks(file):
    """Yield (schema, values) of each block of an open file. Raise DataError if it is not Avro, or truncated."""
    if file.read(4) != b"Obj\x01":
        raise DataError("it does not begin like an Avro file")
    meta = {}
    while count := _long(file):
        if count < 0:
            count = -count
            _long(file)
        for _ in range(count):
            name = _bytes(file)
            meta[name.decode()] = _bytes(file)
    mark = _exactly(file, 16)
    codec = meta.get("avro.codec", b"null").decode()
    if codec not in _CODECS:
        raise DataError(f"its codec '{codec}' is not supported; supported are {', '.join(_CODECS)}")
    reader = AvroReader(meta["avro.schema"].decode())
    while head := file.read(1):
        count, data = _long(file, head), _bytes(file)
        if _exactly(file, 16) != mark:
            raise DataError("a block does not end with the sync marker")
        yield reader.schema, list(reader.read(_CODECS[codec](data), count))


def _long(file, head=b""):
    number, shift = 0, 0
    while True:
        byte = (head or _exactly(file, 1))[0]
        head = b""
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number >> 1 ^ -(number & 1)


def _bytes(file):
    return _exactly(file, _long(file))


def _exactly(file, count):
    data = file.read(count)
    if len(data) != count:
        raise DataError("it is truncated")
    return data
